"""Named leases on SQLite: several steps under the write lock. Waiters hear of a release because the file changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rowlock.ledger.lock_table import NO_TICKET, HeldSlot, LockTable, Wanted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlock.ledger.ledger import Row


class SqliteLocks(LockTable):
    def create(self, name: str, slots: int) -> None:
        self._ledger.run("lock_create", name=name, slot_list=json.dumps(list(range(slots))))

    def take(self, wanted: Wanted, ticket: int = NO_TICKET) -> HeldSlot | None:
        params = wanted._asdict() | {"ticket": ticket}
        # Without the write lock first: waiters look often, and must not stand in a busy writer's way.
        if not self._ledger.run("lock_free", **params):
            return None
        with self._ledger.transaction() as transaction:
            free = transaction.one("lock_free", params)
            if free is None:
                return None
            params |= {"slot": free.slot, "mine": free.mine, "token": free.token}
            if not free.mine:
                how = {"ended": "expired", "detail": f"taken over by instance {wanted.holder}"}
                transaction.all("lock_ended", params | how)
            taken = transaction.all("lock_take", params)[0]
            transaction.all("lock_leave", {"ticket": ticket})
        return HeldSlot(wanted.name, taken.slot, taken.token)

    def release(self, held: HeldSlot) -> str | None:
        params = held._asdict()
        with self._ledger.transaction() as transaction:
            ended = transaction.one("lock_ended", params | {"ended": "released", "detail": None})
            transaction.all("lock_freed", params)
        return str(ended.ended) if ended else None

    def force(self, name: str, slot: int, detail: str, token: int | None = None) -> Row | None:
        params = {"name": name, "slot": slot, "detail": detail, "ended": "forced", "token": token}
        with self._ledger.transaction() as transaction:
            held = transaction.one("lock_held", params)
            if held is not None:
                params |= {"token": held.token}
                transaction.all("lock_ended", params)
                transaction.all("lock_freed", params)
        return held

    def renew(self, holder: int, held: Sequence[HeldSlot]) -> set[tuple[str, int]]:
        rows = self._ledger.run("locks_renew", holder=holder, leases=json.dumps(held))
        return {(row.lock_name, row.slot) for row in rows}

    def queue(self, name: str, holder: int, patience: float) -> int:
        with self._ledger.transaction() as transaction:
            transaction.all("lock_unqueue_gone", {"name": name})
            row = transaction.all("lock_queue", {"name": name, "holder": holder, "patience": patience})[0]
        return int(row.ticket)
