"""One entry point: every failure is one line and an exit code, or one JSON object."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module

import click

from ..errors import CorriclError

COMMANDS = {
    "theory": "_theory",
    "simulate": "_simulate",
    "train": "_train",
    "concentration": "_concentration",
    "compare": "_compare",
    "sample": "_sample",
    "figure": "_figure",
    "sweep": "_sweep",
    "results": "_results",
    "measure": "_measure",
    "choose": "_choose",
    "cite": "_cite",
    "explore": "_explore",
    "doctor": "_doctor",
}
"""Command and the file that holds it; only the file of the command that is asked for is loaded."""


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return getattr(import_module(f".{COMMANDS[cmd_name]}", __package__), cmd_name)


def _print_version(context: click.Context, parameter: click.Parameter, asked: bool) -> None:
    if asked:
        from .. import __version__

        click.echo(__version__)
        context.exit()


@click.group(cls=_Lazy, no_args_is_help=True, context_settings={"max_content_width": 110})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
def app() -> None:
    """In-context learning when the prompt's tokens are correlated: theory, simulation, figures."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        status = app.main(words, prog_name="corricl", standalone_mode=False)
        code = status if isinstance(status, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = 2
    except click.ClickException as error:
        code = _fail(words, "bad_usage", error.format_message(), 2)
    except CorriclError as error:
        code = _fail(words, error.code, str(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        code = _fail(words, "interrupted", "interrupted", 130)
    except MemoryError:
        code = _fail(words, "out_of_memory", "not enough memory for these sizes", 2)
    except Exception as error:
        if "CORRICL_DEBUG" in os.environ:
            raise
        text = f"internal error, please report it ({type(error).__name__}: {error}); CORRICL_DEBUG=1 shows where"
        code = _fail(words, "internal", text, 1)
    raise SystemExit(code)


def _fail(words: list[str], code: str, message: str, status: int) -> int:
    line = " ".join(message.split())
    if "--json" in words:
        print(json.dumps({"error": {"code": code, "message": line}}))
    print(f"corricl: {line}", file=sys.stderr)
    return status
