"""The command line: parse, call the public API, print."""

from ._app import main as main
