"""`corricl explore`: the page, served to this machine."""

from __future__ import annotations

import click

from ._options import as_json, imports, quiet
from ._output import print_json

LOOPBACK, PORT = "127.0.0.1", 5006


@click.command()
@click.option("--port", type=int, default=PORT, show_default=True, help="0 takes any free port.")
@click.option("--address", default=LOOPBACK, show_default=True, help="What to listen on; the default is this machine.")
@click.option("--no-browser", is_flag=True, help="Do not open the browser.")
@imports
@as_json
@quiet
def explore(port: int, address: str, no_browser: bool, modules: tuple[str, ...], as_json: bool, quiet: bool) -> None:
    """Turn the knobs and look: theory, kernels, simulation and your data on one page, until Ctrl-C."""
    from ..explore import serve
    from ..plugins import import_module

    for module in modules:
        import_module(module)

    def ready(url: str, port: int) -> None:
        if as_json:
            print_json({"url": url, "address": address, "port": port})
        elif not quiet:
            click.echo(f"{url} (Ctrl-C ends it)", err=True)

    serve(port, address, browser=not no_browser, ready=ready)
