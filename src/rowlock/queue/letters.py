"""Dead letters: what died, of what, and how to drive it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlock.errors import NotFound, Refused
from rowlock.ledger.reading import as_dict
from rowlock.queue.inspector import NEWEST

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlock.ledger.ledger import Ledger

_PAGE = 500
Groups = list[dict[str, Any]]  # its own name: inside the class `list` is a method


class DeadLetters:
    """The dead records of a ledger. They stay until they are driven again, or pruned on purpose."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def count(self, flow: str | None = None, fingerprint: str | None = None) -> int:
        """How many a filter names: the dry run of a re-drive."""
        return int(self._ledger.run_safely("dead_count", flow=flow, fingerprint=fingerprint)[0].records)

    def list(
        self, flow: str | None = None, fingerprint: str | None = None, limit: int = 50
    ) -> list[dict[str, Any]]:
        """Dead letters, newest first."""
        wanted = {"flow": flow, "fingerprint": fingerprint, "limit": limit, "before": NEWEST}
        return [as_dict(row) for row in self._ledger.run_safely("dead_records", **wanted)]

    def groups(self, flow: str | None = None, limit: int = 100) -> Groups:
        """Dead letters by what killed them, the largest group first."""
        return [as_dict(row) for row in self._ledger.run_safely("dead_groups", flow=flow, limit=limit)]

    def redrive_one(self, record_id: int) -> None:
        """Drives one dead or cancelled record again. What it went through is kept."""
        if not self._ledger.redrive([record_id]):
            found = self._ledger.run_safely("record_find", id=record_id)
            if not found:
                raise NotFound(f"There is no record {record_id}; its history may have been pruned.")
            raise Refused(
                f"Record {record_id} is {found[0].status}, not dead or cancelled: there is nothing to drive again."
            )

    def redrive(
        self,
        flow: str | None = None,
        fingerprint: str | None = None,
        limit: int | None = None,
        progress: Callable[[int], None] = lambda _done: None,
    ) -> int:
        """Drives everything a filter names again, oldest first, in small commits; how many."""
        done = after = 0
        while limit is None or done < limit:
            page = _PAGE if limit is None else min(_PAGE, limit - done)
            rows = self._ledger.run_safely(
                "dead_ids", flow=flow, fingerprint=fingerprint, after=after, limit=page
            )
            if not rows:
                break
            after = rows[-1].id
            done += len(self._ledger.redrive([row.id for row in rows]))
            progress(done)
        return done
