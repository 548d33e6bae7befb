"""Named leases on PostgreSQL: every operation is one statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlock.ledger.lock_table import NO_TICKET, HeldSlot, LockTable, Wanted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlock.ledger.ledger import Row


class PostgresqlLocks(LockTable):
    def create(self, name: str, slots: int) -> None:
        self._ledger.run_safely("lock_create", name=name, slots=slots)

    def take(self, wanted: Wanted, ticket: int = NO_TICKET) -> HeldSlot | None:
        rows = self._ledger.run_safely("lock_take", ticket=ticket, channel=self.channel, **wanted._asdict())
        return HeldSlot(wanted.name, rows[0].slot, rows[0].token) if rows else None

    def release(self, held: HeldSlot) -> str | None:
        rows = self._ledger.run_safely("lock_release", channel=self.channel, **held._asdict())
        return str(rows[0].ended) if rows else None

    def force(self, name: str, slot: int, detail: str, token: int | None = None) -> Row | None:
        params = {"name": name, "slot": slot, "detail": detail, "token": token}
        rows = self._ledger.run("lock_force", channel=self.channel, **params)
        return rows[0] if rows else None

    def renew(self, holder: int, held: Sequence[HeldSlot]) -> set[tuple[str, int]]:
        names, slots, tokens = (list(column) for column in zip(*held, strict=True))
        rows = self._ledger.run("locks_renew", holder=holder, names=names, slots=slots, tokens=tokens)
        return {(row.lock_name, row.slot) for row in rows}

    def queue(self, name: str, holder: int, patience: float) -> int:
        return int(self._ledger.run("lock_queue", name=name, holder=holder, patience=patience)[0].ticket)
