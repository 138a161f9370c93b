"""`python -m corricl.cli`."""

from ._app import main

main()
