"""A transaction that is committed under a valid token, or not at all."""

from __future__ import annotations

import asyncio
import secrets
import time
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from sqlalchemy import text

from rowlock.errors import LeaseLost, LedgerUnavailable, OutcomeUnknown, Refused
from rowlock.leases.patience import to_its_end
from rowlock.ledger.connection import LedgerConnection

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from sqlalchemy import CursorResult, Executable
    from sqlalchemy.engine import Connection

    from rowlock.leases.lease import Lease
    from rowlock.ledger.ledger import Ledger

_T = TypeVar("_T")
_REREAD_PAUSE = 0.2
_REREAD_SECONDS = 30.0


class FencedTransaction(ABC):
    """A transaction on the ledger's database, fenced by a token when it is left.

    An exception inside the block rolls everything back. If the token is stale at the end, nothing is committed and
    LeaseLost is raised.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._connection: Connection | None = None
        self._thread: _Thread | None = None

    @abstractmethod
    def _check(self) -> None:
        """Raises when there is no point in beginning."""

    @abstractmethod
    def _commit(self, connection: Connection) -> None:
        """Fences and commits; `_commit_fenced` does the second half."""

    @abstractmethod
    def _reread(self) -> Literal["committed", "not committed", "lost"]:
        """What the ledger says about a commit whose reply was lost."""

    @abstractmethod
    def _lose(self) -> None:
        """Raises LeaseLost."""

    @property
    def connection(self) -> Connection:
        """The SQLAlchemy connection, for what `execute` does not do. Do not commit it."""
        if self._connection is None:
            raise Refused("The transaction is not open: use it inside `with … .transaction() as tx:`.")
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
                "aexecute is for `async with … .transaction() as tx:`; in a plain `with` use execute."
            )
        return await self._thread.run(self.execute, statement, parameters)

    async def run_sync(self, function: Callable[[Self], _T]) -> _T:
        """`await tx.run_sync(lambda tx: insert_once(tx, …))`: anything that needs the connection, off the event loop."""
        if self._thread is None:
            raise Refused(
                "run_sync is for `async with … .transaction() as tx:`; in a plain `with` just call it."
            )
        return await self._thread.run(function, self)

    # -- with ------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._check()
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
                self._commit(connection)

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

    def _commit_fenced(self, connection: Connection) -> None:
        try:
            with self._ledger.translated():
                connection.commit()
        except LedgerUnavailable as error:
            self._resolve(error)

    def _resolve(self, error: LedgerUnavailable) -> None:
        """The reply to COMMIT was lost. Whether it happened stands in the ledger, under our token."""
        waited = 0.0
        while True:
            try:
                fate = self._reread()
            except LedgerUnavailable:
                if waited >= _REREAD_SECONDS:
                    raise OutcomeUnknown(
                        f"{self!r}: the connection broke during the commit and the ledger has not come back, so it is not "
                        "known whether it was committed. Look before you do it again."
                    ) from error
                time.sleep(_REREAD_PAUSE)
                waited += _REREAD_PAUSE
                continue
            match fate:
                case "committed":
                    return
                case "not committed":
                    raise error
                case "lost":
                    self._lose()


class LeaseTransaction(FencedTransaction):
    """What a holder writes, committed while it holds the lease."""

    def __init__(self, lease: Lease) -> None:
        super().__init__(lease.writes)
        self.lease = lease
        self._number = secrets.randbits(62)

    def __repr__(self) -> str:
        return f"<LeaseTransaction {self.lease.name} token={self.lease.token}>"

    def _check(self) -> None:
        self.lease.check()

    def _commit(self, connection: Connection) -> None:
        # One at a time under one lease: the number of the last commit answers for a lost reply.
        with self.lease.committing:
            with self._ledger.translated():
                fence(self.lease, LedgerConnection(connection, self._ledger.statements), self._number)
            self._commit_fenced(connection)

    def _reread(self) -> Literal["committed", "not committed", "lost"]:
        lease = self.lease
        row = self._ledger.run_safely("lock_commits", name=lease.name, slot=lease.held_slot.slot)[0]
        if row.last_commit == self._number:
            return "committed"
        return "not committed" if row.token == lease.token else "lost"

    def _lose(self) -> None:
        # The next holder may have overwritten the number of a commit that did happen: that cannot be told any more.
        raise OutcomeUnknown(
            f"{self!r}: the connection broke during the commit, and the lease was lost before the ledger could be asked "
            "what became of it. Look before you do it again."
        )


def fence(lease: Lease, on: LedgerConnection, commit: int | None = None) -> None:
    """Checks a lease's token inside a transaction and keeps the lease from being taken until its end.

    `commit` is the number under which the transaction can be re-read.
    """
    params = {"commit": commit, "ttl_ms": int(lease.ttl * 1000), **lease.held_slot._asdict()}
    if on.one("lock_fence", params) is None:
        lease.lose("its token is stale in the ledger")
        raise LeaseLost(
            f"{lease.name!r}: token {lease.token} is stale, so nothing of this transaction is committed. Another instance "
            "may hold it now."
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
        return await to_its_end(
            asyncio.get_running_loop().run_in_executor(self._pool, lambda: function(*arguments))
        )

    def end(self) -> None:
        self._pool.shutdown(wait=False)
