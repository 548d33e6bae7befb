"""COPY out of PostgreSQL: the server writes the CSV, we pass it on, in constant memory.

asyncpg does it with a third of the processor time that other drivers take. Each of its connections has an event loop of
its own here, which runs only while somebody asks for the next piece: no thread, and a slow reader slows the server down.
"""

from __future__ import annotations

import asyncio
import json
import threading
from datetime import date, datetime, time
from enum import Enum
from typing import TYPE_CHECKING, Any

from rowlock.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from sqlalchemy.engine import URL

_PIECE_BYTES = 1024 * 1024
_IDLE_CONNECTIONS = 4
_CONNECT_SECONDS = 10
_STOP_SECONDS = 5
# libpq's own; asyncpg would send them to the server as settings.
_NOT_FOR_ASYNCPG = (
    "connect_timeout",
    "keepalives",
    "tcp_user_timeout",
    "gssencmode",
    "channel_binding",
    "client_encoding",
)


class CopyOut:
    """Connections to one server for COPY, kept for the next one."""

    def __init__(self, url: URL) -> None:
        query = {name: value for name, value in url.query.items() if not name.startswith(_NOT_FOR_ASYNCPG)}
        self._url = url.set(drivername="postgresql", query=query)
        self._idle: list[_Connection] = []
        self._lock = threading.Lock()

    def csv(self, fill: Callable[[Sequence[str]], str], values: Sequence[Any]) -> Generator[bytes, None, int]:
        """The CSV of a query in pieces, with a header; returns the number of rows.

        COPY takes no parameters. The values are sent to the server as parameters of another statement, which gives them
        back as literals, quoted by the server's own rules; `fill` puts these in their places.
        """
        connection = self._idle_one() or _Connection(self._url)
        rows = None
        try:
            rows = yield from connection.copy(fill, [as_text(value) for value in values])
        finally:
            self._give_back(connection, usable=rows is not None)
        return rows

    def _idle_one(self) -> _Connection | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if not connection.closed:
                return connection
            connection.close()  # the server has ended it in the meantime

    def _give_back(self, connection: _Connection, *, usable: bool) -> None:
        if usable:
            with self._lock:
                if len(self._idle) < _IDLE_CONNECTIONS:
                    self._idle.append(connection)
                    return
        connection.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


class _Connection:
    """One connection and its loop; used by one thread at a time."""

    def __init__(self, url: URL) -> None:
        try:
            import asyncpg  # noqa: PLC0415 - an extra: only exports need it
        except ModuleNotFoundError as error:
            raise ConfigurationError("COPY needs asyncpg. Install it: pip install 'rowlock[jobs]'") from error
        self._loop = asyncio.new_event_loop()
        try:
            self._connection: Any = self._loop.run_until_complete(
                asyncpg.connect(
                    url.render_as_string(hide_password=False),
                    timeout=_CONNECT_SECONDS,
                    statement_cache_size=0,  # there may be a pooler between us and the server
                    server_settings={"application_name": "rowlock export"},
                )
            )
        except BaseException:
            self._loop.close()
            raise

    @property
    def closed(self) -> bool:
        """Has the server ended it? Its loop has not run since the last use, and so has not heard of it yet."""
        self._loop.run_until_complete(_turns())
        return bool(self._connection.is_closed())

    def close(self) -> None:
        if not self._loop.is_closed():
            self._connection.terminate()  # whatever runs there ends; a rollback is all that it would say
            self._loop.run_until_complete(self._settle())
            self._loop.close()

    async def _settle(self) -> None:
        """Lets the loop finish what ended, so that it can be closed."""
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(asyncio.sleep(0), *left, return_exceptions=True)

    def copy(
        self, fill: Callable[[Sequence[str]], str], values: Sequence[str | None]
    ) -> Generator[bytes, None, int]:
        pieces: asyncio.Queue[bytes] = asyncio.Queue(maxsize=2)
        task = self._loop.create_task(self._copy(fill, values, pieces))
        try:
            while (piece := self._next(pieces, task)) is not None:
                yield piece
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                # It may tell the server to stop; why we stop is being raised already.
                self._loop.run_until_complete(asyncio.wait({task}, timeout=_STOP_SECONDS))

    def _next(self, pieces: asyncio.Queue[bytes], task: asyncio.Task[int]) -> bytes | None:
        """The next piece, or None when the last one is through."""
        getting = self._loop.create_task(pieces.get())
        self._loop.run_until_complete(asyncio.wait({getting, task}, return_when=asyncio.FIRST_COMPLETED))
        if getting.done():
            return getting.result()
        getting.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        return None

    async def _copy(
        self, fill: Callable[[Sequence[str]], str], values: Sequence[str | None], pieces: asyncio.Queue[bytes]
    ) -> int:
        gathered = bytearray()

        async def receive(data: bytes) -> None:
            gathered.extend(data)
            if len(gathered) >= _PIECE_BYTES:
                await pieces.put(bytes(gathered))
                gathered.clear()

        async with self._connection.transaction(isolation="repeatable_read", readonly=True):
            query = fill(await self._literals(values))
            # The line's end closes a comment that the query may end with.
            status = await self._connection.copy_from_query(
                f"{query}\n", output=receive, format="csv", header=True
            )
        if gathered:
            await pieces.put(bytes(gathered))
        return int(status.split()[-1])

    async def _literals(self, values: Sequence[str | None]) -> list[str]:
        if not values:
            return []
        quoted = ", ".join(f"quote_nullable(${number}::text)" for number in range(1, len(values) + 1))
        return list(await self._connection.fetchrow(f"SELECT {quoted}", *values))


async def _turns() -> None:
    """The end of a stream is read in one turn of the loop, and told in the next."""
    for _ in range(3):
        await asyncio.sleep(0)


def as_text(value: Any) -> str | None:
    """A value as PostgreSQL reads it; the query says what type it becomes."""
    match value:
        case None:
            return None
        case Enum():
            return as_text(value.value)
        case bool():
            return "true" if value else "false"
        case datetime() | date() | time():
            return value.isoformat()
        case dict() | list() | tuple():
            return json.dumps(value, default=str)
    return str(value)
