"""Serving the page, to this machine alone unless told otherwise."""

from __future__ import annotations

import errno
import logging
import socket
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlencode
from weakref import WeakSet

from ..errors import InputError

LOOPBACK = "127.0.0.1"
PORT = 5006
LOCAL = "static/extensions/panel/"
UNUSED: dict[str, Any] = {"unused_session_lifetime_milliseconds": 1000, "check_unused_sessions_milliseconds": 500}
"""A page that was closed is forgotten, and its work ended, within two seconds."""


def serve(
    port: int = PORT,
    address: str = LOOPBACK,
    *,
    browser: bool = True,
    ready: Callable[[str, int], None] | None = None,
) -> None:
    """Serve the page until interrupted. Nothing is fetched from other machines.

    Args:
        port: 0 takes any free port.
        address: what to bind; the default is reached from this machine alone.
        browser: open the page in the browser.
        ready: called with the page's address and port once it is served.

    Raises:
        InputError: the port is taken, the address is not one of this machine, or Panel is not installed.
        KeyboardInterrupt: always, in the end.
    """
    server = start(port, address, browser=browser)
    if ready is not None:
        ready(_url(address, server.port), server.port)
    try:
        server.io_loop.start()
        raise KeyboardInterrupt  # Ctrl-C ends the loop quietly
    finally:
        for page in list(_pages):
            page.close()
        server.stop()


def start(port: int, address: str, *, browser: bool = False, apps: dict[str, Any] | None = None) -> Any:
    """The server, bound, whose `io_loop` has yet to be started; `apps` are further pages by their path."""
    try:
        import panel as pn
    except ImportError:
        raise InputError("the page needs Panel: pip install 'corricl[explore]'") from None

    from ._style import PAGE

    port = _free_port(port, address)
    logging.getLogger("bokeh.server.views.ws").setLevel(logging.ERROR)  # it tells of every page that is closed
    pn.extension("filedropper", raw_css=[PAGE])
    options: dict[str, Any] = {"show": browser, "verbose": False, "location": False, "title": "corricl explore"}
    server = pn.io.server.get_server(
        {"/": open_page, **(apps or {})},
        port=port,
        address=address,
        websocket_origin=_origins(port, address),
        **options,
        **UNUSED,
    )
    server.start()  # without it no session would ever be forgotten
    return server


def open_page() -> Any:
    """A new page for the session that asks for it, closed with the session."""
    import panel as pn

    from ._page import Page

    document = pn.state.curdoc
    assert document is not None
    # A session made again after a slow start would else take its style sheets from another machine.
    document.template_variables["dist_url"] = LOCAL
    words = [(name, value.decode()) for name, values in pn.state.session_args.items() for value in values]
    page = Page(urlencode(words), document.add_next_tick_callback)
    _pages.add(page)
    pn.state.on_session_destroyed(partial(_close, page))
    pn.state.onload(page.complete)
    return page.view


_pages: WeakSet[Any] = WeakSet()


def _close(page: Any, context: Any) -> None:
    page.close()


def _free_port(port: int, address: str) -> int:
    if not 0 <= port <= 65535:
        raise InputError(f"port must lie between 0 and 65535; got {port}")
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
            return probe.getsockname()[1]
    except socket.gaierror:
        raise InputError(f"'{address}' is no address") from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise InputError(
                f"port {port} is taken: choose another with --port, or --port 0 for any free one"
            ) from None
        raise InputError(f"cannot listen on {address}, port {port}: {error.strerror}") from None


def _origins(port: int, address: str) -> list[str]:
    """Hosts whose pages may talk to the server: other sites that a browser visits may not."""
    if address in ("0.0.0.0", "::"):
        return ["*"]
    names = [address, "localhost"] if address == LOOPBACK else [address]
    return [f"{name}:{port}" for name in names]


def _url(address: str, port: int) -> str:
    host = LOOPBACK if address in ("0.0.0.0", "::") else f"[{address}]" if ":" in address else address
    return f"http://{host}:{port}/"
