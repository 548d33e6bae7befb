"""`rowlock serve`: the HTTP interface."""

import logging
import sys
from importlib.util import find_spec
from typing import Annotated

import typer

from rowlock.cli.loading import app_or_plain
from rowlock.cli.options import LedgerUrl
from rowlock.errors import ConfigurationError


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

    with app_or_plain(target, ledger) as app:
        Server(app, host=host, port=port).run()
