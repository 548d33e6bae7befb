"""The inspector of locks: reads of named leases for people, as plain dicts. It changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlock.errors import NotFound
from rowlock.ledger.reading import as_dict

if TYPE_CHECKING:
    from rowlock.ledger.ledger import Ledger, Row

# What a slot has only while somebody has it.
_OF_A_HOLDING = (
    "acquired_at",
    "renewed_at",
    "expires_at",
    "ttl_seconds",
    "held_for",
    "seconds_left",
    "heartbeat_age",
)


class LockInspector:
    """Who holds what, who waits for it, who held it before. Services, leaders and limits are leases too."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def locks(self, *, everyone: bool = False, limit: int = 1000) -> list[dict[str, Any]]:
        """Every slot that somebody holds or waits for; with `everyone` the free ones too."""
        rows = self._ledger.run_safely("locks", name=None, everyone=everyone, limit=limit)
        return [_slot(row) for row in rows]

    def exists(self, name: str) -> bool:
        return bool(self._ledger.run_safely("locks", name=name, everyone=True, limit=1))

    def slots(self, name: str) -> list[dict[str, Any]]:
        """The slots of one lock: one, or as many as a limit allows at a time."""
        rows = self._ledger.run_safely("locks", name=name, everyone=True, limit=10_000)
        if not rows:
            raise NotFound(
                f"There is no lock {name!r} in {self._ledger}: nobody has ever taken it. To see all that there are: "
                "rowlock locks list --all"
            )
        return [_slot(row) for row in rows]

    def waiters(self, name: str) -> list[dict[str, Any]]:
        """Who waits for it, in the order in which they will have it."""
        return [as_dict(row) for row in self._ledger.run_safely("lock_line", name=name)]

    def history(self, name: str, limit: int = 10) -> list[dict[str, Any]]:
        """The last holdings that have ended, newest first."""
        return [as_dict(row) for row in self._ledger.run_safely("lock_history", name=name, limit=limit)]

    def check(self, name: str) -> dict[str, Any]:
        """Whether any two holdings of one slot overlapped, over the whole history that is kept."""
        rows = self._ledger.run_safely("lock_check", name=name)
        overlaps = [as_dict(row) for row in rows if row.token is not None]
        for one in overlaps:
            one.pop("holdings")
        return {"holdings": int(rows[0].holdings), "overlaps": overlaps, "good": not overlaps}

    def lock(self, name: str, *, history: int = 10) -> dict[str, Any]:
        """Everything about one lock."""
        return {
            "name": name,
            "slots": self.slots(name),
            "waiters": self.waiters(name),
            "history": self.history(name, history),
            "check": self.check(name),
        }

    def held_names(self) -> dict[int, list[str]]:
        """Instance → the names of what it holds now."""
        found: dict[int, list[str]] = {}
        for slot in self.locks(limit=100_000):
            if slot["state"] == "held":
                found.setdefault(slot["holder"], []).append(slot["name"])
        return found


def _slot(row: Row) -> dict[str, Any]:
    slot = as_dict(row)
    slot["holder_alive"] = bool(slot["holder_alive"])  # SQLite has no booleans
    if slot["state"] == "free":
        slot |= dict.fromkeys(_OF_A_HOLDING)
    return slot
