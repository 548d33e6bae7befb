"""`rowlock serve`: the HTTP interface."""

import logging
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from rowlock.cli.ledgers import connect, require_file
from rowlock.cli.loading import load_app_on
from rowlock.cli.options import LedgerUrl
from rowlock.errors import ConfigurationError

if TYPE_CHECKING:
    from rowlock.app import Rowlock


def serve(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODULE[:APP]]",
            help="Where your Rowlock is; without it, the ledger of the settings is served.",
            show_default=False,
        ),
    ] = None,
    *,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8080,
    ledger: LedgerUrl = None,
) -> None:
    """Serve the HTTP interface until SIGTERM or Ctrl-C.

    While the ledger has no tokens, everybody on this machine may call, and an address that other machines can reach is
    refused. From the first token on (rowlock tokens create), every request must bring one.

    Example: rowlock serve --port 8080
    """
    if any(find_spec(package) is None for package in ("fastapi", "uvicorn", "prometheus_client")):
        raise ConfigurationError("The server needs packages that are not here: pip install 'rowlock[server]'")
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s",
    )
    from rowlock.server.server import Server

    with _app(target, ledger) as app:
        Server(app, host=host, port=port).run()


def _app(target: str | None, ledger: str | None) -> "Rowlock":
    from rowlock.app import Rowlock
    from rowlock.settings import load_settings

    if target is not None:
        return load_app_on(ledger, target)
    with connect(ledger) as opened:
        require_file(opened)
    return Rowlock(settings=load_settings(ledger_url=ledger))
