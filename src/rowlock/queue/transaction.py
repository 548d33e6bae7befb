"""Effect and completion in one commit, fenced by the token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowlock.errors import LeaseLost, Refused
from rowlock.leases.transaction import FencedTransaction
from rowlock.ledger.connection import LedgerConnection
from rowlock.queue.payload import encode

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from rowlock.queue.record import Record


class RecordTransaction(FencedTransaction):
    """A transaction on the ledger's database. Leaving the block completes the record in the same commit.

    If the token is stale by then, nothing is committed and LeaseLost is raised. An exception inside the block
    rolls everything back, and the attempt fails with it.
    """

    def __init__(self, record: Record) -> None:
        super().__init__(record._holder.ledger)  # noqa: SLF001 - the other half of one thing
        self.record = record
        self.result: Any = None

    def __repr__(self) -> str:
        return f"<RecordTransaction of {self.record!r}>"

    def _check(self) -> None:
        self.record.check()
        if self.record.settled:
            raise Refused(f"{self.record!r} is already settled; a record has one completion.")

    def _commit(self, connection: Connection) -> None:
        record = self.record
        result = encode(self.result, self._ledger.settings.max_payload_bytes, "The result")
        on = LedgerConnection(connection, self._ledger.statements)
        with self._ledger.translated():
            fenced = self._ledger.complete(on, id=record.id, token=record.token, result=result)
        if not fenced:
            self._lose()
        self._commit_fenced(connection)
        record._state = "settled"  # noqa: SLF001

    def _reread(self) -> Literal["committed", "not committed", "lost"]:
        match self._ledger.reread({self.record.id: self.record.token})[self.record.id]:
            case "settled":
                return "committed"
            case "held":
                return "not committed"
            case _:
                return "lost"

    def _lose(self) -> None:
        self.record._state = "lost"  # noqa: SLF001
        raise LeaseLost(
            f"{self.record!r}: its token is stale, so nothing of this transaction was committed. Another worker has "
            "taken the record over, or it was settled or cancelled."
        )
