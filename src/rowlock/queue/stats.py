"""What a worker tells its instance's tally: claims, how long records waited, how their attempts ended and how long they took."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from rowlock import clock
from rowlock.queue.outcome import OutcomeKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlock.leases.instance import Instance
    from rowlock.ledger.rows import Held
    from rowlock.queue.outcome import Outcome

_NAMES = {"settled": "completed", "lost": "stale"}
_METRICS = {kind: f"attempts_{_NAMES.get(kind, kind)}" for kind in get_args(OutcomeKind)}


class Stats:
    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._tally = instance.tally

    def claimed(self, flow: str, held: Sequence[Held]) -> None:
        if not held:
            return
        self._tally.add("claims", flow, len(held))
        now = self._instance.ledger_time
        for row in held:
            if row.attempt == 1:  # a retry waits because it was told to
                created = row.created_at
                since = created if isinstance(created, float) else created.timestamp()
                self._tally.observe("queue_wait", flow, max(0.0, now - since))

    def ended(self, outcome: Outcome) -> None:
        record = outcome.record
        self._tally.add(_METRICS[outcome.kind], record.flow)
        if record._started is not None:  # noqa: SLF001 - the executor's note
            self._tally.observe("process_duration", record.flow, clock.monotonic() - record._started)  # noqa: SLF001
