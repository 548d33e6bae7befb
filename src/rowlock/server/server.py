"""The server: the HTTP interface on a socket, until a signal."""

from __future__ import annotations

import logging
import signal
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

from rowlock.errors import ConfigurationError
from rowlock.server.api import create_api
from rowlock.server.guard import is_loopback
from rowlock.server.tokens import Tokens
from rowlock.signals import on_signals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fastapi import APIRouter

    from rowlock.app import Rowlock
    from rowlock.server.presence import Presence

logger = logging.getLogger("rowlock.server")
_BACKLOG = 2048


class Server:
    """One process that serves one app. `run()` returns after SIGTERM or SIGINT, or when the instance drains."""

    def __init__(
        self, app: Rowlock, *, host: str = "127.0.0.1", port: int = 8080, routers: Sequence[APIRouter] = ()
    ) -> None:
        self._app = app
        self._host = host
        self._port = port
        self._api = create_api(app, routers=routers)

    def run(self) -> None:
        """Refuses to start where anybody could call it; the first signal lets requests end, a second one does not."""
        with _listen(self._host, self._port) as listening:
            self._check_access(listening.getsockname()[0])
            presence = self._api.state.presence
            presence.begin()  # here an error is a sentence; inside the server it would be a traceback
            config = uvicorn.Config(
                self._api,
                log_config=None,
                access_log=False,  # the journal's has no queries in it
                server_header=False,
                ws="none",
                timeout_graceful_shutdown=max(1, round(self._app.settings.grace_seconds)),
            )
            server = _Uvicorn(config)
            presence.on_drain(server.end)
            with on_signals(lambda number: _on_signal(number, server, presence)):
                logger.info("instance %s serves %s", presence.instance_id, _address(listening))
                server.run(sockets=[listening])

    def _check_access(self, address: str) -> None:
        book = Tokens(self._app.ledger).book()
        if is_loopback(address):
            if book.empty:
                logger.warning(
                    "the ledger has no tokens: everybody on this machine may call. To change that: "
                    "rowlock tokens create NAME --role admin"
                )
        elif not book.usable:
            raise ConfigurationError(
                f"{self._host} can be reached from other machines, and no token counts in {self._app.ledger}: anybody "
                "could call. Create one first (rowlock tokens create NAME --role admin), or serve this machine only: "
                "--host 127.0.0.1"
            )
        else:
            logger.warning(
                "this is plain HTTP: put something that speaks TLS in front, or tokens can be read"
            )


class _Uvicorn(uvicorn.Server):
    """Leaves signals to us: it would end the process by the same signal again, and not with exit code 0."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def end(self) -> None:
        self.should_exit = True


def _on_signal(number: int, server: _Uvicorn, presence: Presence) -> None:
    logger.info("%s: %s", signal.Signals(number).name, "leaving now" if server.should_exit else "finishing")
    server.force_exit = server.should_exit
    server.end()
    presence.drain()  # whoever watches a job would keep us waiting


@contextmanager
def _listen(host: str, port: int) -> Iterator[socket.socket]:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ConfigurationError(
            f"{host}:{port} cannot be listened on: {error.strerror or error}. Take another one: --port, --host"
        ) from error
    with listening:
        # Its connections inherit it. The event loop sets it only on sockets that name their protocol, as this one does
        # not; without it every answer on a connection that is kept open waits 40 ms for an acknowledgement.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield listening


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
