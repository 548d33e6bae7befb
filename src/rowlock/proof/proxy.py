"""A TCP proxy inside the run: it slows down, falls silent, cuts off, and loses the replies to commits."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import TYPE_CHECKING, Any, Literal, Self

from rowlock.proof.wire import ServerStream

if TYPE_CHECKING:
    from collections.abc import Callable

Mood = Literal["through", "slow", "silent"]
_LATENCY = 0.05


class Proxy:
    """Listens on a port of its own and forwards to one server; all its links share one mood."""

    def __init__(self, host: str, port: int, listen: str = "127.0.0.1") -> None:
        self.target = (host, port)
        self.mood: Mood = "through"
        self.lost_commits = 0  # replies to a COMMIT that were dropped after it had happened
        self.lost_replies = 0  # replies to statements that had committed by themselves
        self._to_lose: list[bool] = []
        self._links: set[_Link] = set()
        self._socket = socket.create_server((listen, 0))
        self.port = int(self._socket.getsockname()[1])
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proof-proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        self.reset()
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # -- what a nemesis asks -----------------------------------------------------------------------------------

    @property
    def links(self) -> int:
        return len(self._links)

    def lose_commit(self, *, explicit: bool) -> None:
        """The next commit's reply is dropped, and its connection cut: it has happened, and nobody is told."""
        self._on_loop(lambda: self._to_lose.append(explicit))

    def forgive(self) -> int:
        """Forgets the orders to lose replies that have not been carried out; how many there were."""
        forgotten: list[bool] = []

        def forget() -> None:
            forgotten.extend(self._to_lose)
            self._to_lose.clear()

        self._on_loop(forget)
        return len(forgotten)

    def set_mood(self, mood: Mood) -> None:
        def change() -> None:
            self.mood = mood
            if mood == "through":
                for link in list(self._links):
                    link.flush()

        self._on_loop(change)

    def reset(self) -> None:
        """Every connection is cut, with whatever is under way on it."""

        def cut() -> None:
            for link in list(self._links):
                link.cut()

        self._on_loop(cut)

    def _on_loop(self, act: Callable[[], Any]) -> None:
        done = threading.Event()

        def run() -> None:
            act()
            done.set()

        self._loop.call_soon_threadsafe(run)
        done.wait()

    # -- on the loop -------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        self._server = await self._loop.create_server(lambda: _Side(_Link(self)), sock=self._socket)

    async def _end(self) -> None:
        self._server.close()
        for link in list(self._links):
            link.cut()
        await asyncio.sleep(0)
        await self._server.wait_closed()

    def loses(self, *, explicit: bool) -> bool:
        """True if this reply has to be dropped."""
        if explicit in self._to_lose:
            self._to_lose.remove(explicit)
            self.lost_commits += explicit
            self.lost_replies += not explicit
            return True
        return False

    @property
    def armed(self) -> bool:
        return bool(self._to_lose)

    def opened(self, link: _Link) -> None:
        self._links.add(link)

    def closed(self, link: _Link) -> None:
        self._links.discard(link)


class _Link:
    """One client's connection and ours to the server."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._client: asyncio.Transport | None = None
        self._server: asyncio.Transport | None = None
        self._stream = ServerStream()
        self._waiting: list[tuple[bool, bytes]] = []  # (from the server, data), while nothing may pass
        self._delayed = {True: 0, False: 0}
        self._loop = asyncio.get_running_loop()

    async def connect(self) -> None:
        try:
            _, side = await self._loop.create_connection(
                lambda: _Side(self, server=True), *self._proxy.target
            )
        except OSError:  # the server is down: the client learns it as it would without us
            self.cut()
            return
        self._server = side.transport
        if self._client is None or self._client.is_closing():
            self.cut()
        elif self._proxy.mood == "through":
            self.flush()

    def joined(self, transport: asyncio.Transport) -> None:
        self._client = transport
        self._proxy.opened(self)
        self._connecting = self._loop.create_task(self.connect())

    def received(self, data: bytes, *, from_server: bool) -> None:
        if from_server:
            reply = self._stream.feed(data)
            if reply is not None and self._proxy.armed and self._proxy.loses(explicit=reply.explicit):
                self._send(data[: reply.offset], True)
                self.cut()
                return
        if self._proxy.mood == "silent" or self._server is None or self._waiting:
            self._waiting.append((from_server, data))
        elif self._proxy.mood == "slow" or self._delayed[from_server]:  # nothing overtakes what is delayed
            self._delayed[from_server] += 1
            self._loop.call_later(_LATENCY, self._send_late, data, from_server)
        else:
            self._send(data, from_server)

    def _send_late(self, data: bytes, from_server: bool) -> None:
        self._delayed[from_server] -= 1
        self._send(data, from_server)

    def flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        for from_server, data in waiting:
            self._send(data, from_server)

    def _send(self, data: bytes, from_server: bool) -> None:
        transport = self._client if from_server else self._server
        if transport is not None and not transport.is_closing():
            transport.write(data)

    def cut(self) -> None:
        for transport in (self._client, self._server):
            if transport is not None:
                transport.abort()
        self._proxy.closed(self)

    def ended(self) -> None:
        """One side has closed: so does the other, after what is on its way."""
        for transport in (self._client, self._server):
            if transport is not None and not transport.is_closing():
                transport.close()
        self._proxy.closed(self)


class _Side(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self, link: _Link, *, server: bool = False) -> None:
        self._link = link
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101
        self.transport = transport
        if not self._server:
            self._link.joined(transport)

    def data_received(self, data: bytes) -> None:
        self._link.received(data, from_server=self._server)

    def connection_lost(self, _error: Exception | None) -> None:
        self._link.ended()
