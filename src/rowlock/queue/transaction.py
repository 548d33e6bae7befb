"""Effect and completion in one commit, fenced by the token."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sqlalchemy import text

from rowlock.errors import LeaseLost, LedgerUnavailable, OutcomeUnknown, Refused
from rowlock.ledger.connection import LedgerConnection
from rowlock.queue.payload import encode

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from sqlalchemy import CursorResult, Executable
    from sqlalchemy.engine import Connection

    from rowlock.queue.record import Record

_T = TypeVar("_T")
_REREAD_PAUSE = 0.2
_REREAD_SECONDS = 30.0


class RecordTransaction:
    """A transaction on the ledger's database. Leaving the block completes the record in the same commit.

    If the token is stale by then, nothing is committed and LeaseLost is raised. An exception inside the block
    rolls everything back, and the attempt fails with it.
    """

    def __init__(self, record: Record) -> None:
        self.record = record
        self.result: Any = None
        self._ledger = record._holder.ledger  # noqa: SLF001 - the other half of one thing
        self._connection: Connection | None = None
        self._thread: _Thread | None = None

    @property
    def connection(self) -> Connection:
        """The SQLAlchemy connection, for what `execute` does not do. Do not commit it."""
        if self._connection is None:
            raise Refused("The transaction is not open: use it inside `with record.transaction() as tx:`.")
        return self._connection

    def execute(self, statement: str | Executable, parameters: Any = None) -> CursorResult[Any]:
        """Runs SQL with :named parameters (one mapping, or a list of them)."""
        if isinstance(statement, str):
            statement = text(statement)
        result: CursorResult[Any] = self.connection.execute(statement, parameters)
        return result

    async def aexecute(self, statement: str | Executable, parameters: Any = None) -> CursorResult[Any]:
        if self._thread is None:
            raise Refused(
                "aexecute is for `async with record.transaction() as tx:`; in a plain `with` use execute."
            )
        return await self._thread.run(self.execute, statement, parameters)

    # -- with ------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.record.check()
        if self.record.settled:
            raise Refused(f"{self.record!r} is already settled; a record has one completion.")
        with self._ledger.translated():
            self._connection = self._ledger.engine.connect()
            self._connection.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        connection, self._connection = self.connection, None
        with connection:  # closing rolls back whatever was not committed
            if error is None:
                self._complete(connection)

    async def __aenter__(self) -> Self:
        self._thread = _Thread()
        try:
            return await self._thread.run(self.__enter__)
        except BaseException:
            if self._connection is not None:
                await self._thread.run(self._connection.close)
            self._thread.end()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._thread is not None  # noqa: S101 - __aenter__ made it
        try:
            await self._thread.run(self.__exit__, kind, error, trace)
        finally:
            self._thread.end()

    # -- the commit --------------------------------------------------------------------------------------

    def _complete(self, connection: Connection) -> None:
        record = self.record
        result = encode(self.result, self._ledger.settings.max_payload_bytes, "The result")
        on = LedgerConnection(connection, self._ledger.statements)
        with self._ledger.translated():
            fenced = self._ledger.complete(on, id=record.id, token=record.token, result=result)
        if not fenced:
            self._lose()
        try:
            with self._ledger.translated():
                connection.commit()
        except LedgerUnavailable as error:
            self._resolve(error)
        record._state = "settled"  # noqa: SLF001

    def _resolve(self, error: LedgerUnavailable) -> None:
        """The reply to COMMIT was lost. Whether it happened stands in the ledger, under our token."""
        record, waited = self.record, 0.0
        while True:
            try:
                fates = self._ledger.reread({record.id: record.token})
            except LedgerUnavailable:
                if waited >= _REREAD_SECONDS:
                    raise OutcomeUnknown(
                        f"{record!r}: the connection broke during the commit and the ledger has not come back. If it "
                        "was committed the record is complete; if not, it will be tried again."
                    ) from error
                time.sleep(_REREAD_PAUSE)
                waited += _REREAD_PAUSE
                continue
            match fates[record.id]:
                case "settled":
                    return
                case "held":
                    raise error
                case _:
                    self._lose()

    def _lose(self) -> None:
        self.record._state = "lost"  # noqa: SLF001
        raise LeaseLost(
            f"{self.record!r}: its token is stale, so nothing of this transaction was committed. Another worker has "
            "taken the record over, or it was settled or cancelled."
        )


class _Thread:
    """A thread of its own for an async transaction.

    The loop's shared threads would not do: they could all be waiting for a lock or a connection that only a
    transaction can give back which itself waits for a thread.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rowlock-transaction")

    async def run(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """To its end even if the task is cancelled meanwhile: a commit is not left half-known."""
        future = asyncio.get_running_loop().run_in_executor(self._pool, lambda: function(*arguments))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait([future])
            raise

    def end(self) -> None:
        self._pool.shutdown(wait=False)
