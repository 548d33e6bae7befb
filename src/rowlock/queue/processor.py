"""DistributedProcessor: the low-level face, for programs that have a loop of their own."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from rowlock import clock
from rowlock.errors import LeaseLost, LedgerUnavailable
from rowlock.leases.instance import Instance
from rowlock.ledger.ledger import check_open
from rowlock.ledger.rows import Completion, Release, Wish
from rowlock.queue.failure import ErrorReport
from rowlock.queue.flow import Flow
from rowlock.queue.lane import place
from rowlock.queue.maintenance import take_over
from rowlock.queue.outcome import Outcome
from rowlock.queue.payload import encode
from rowlock.queue.record import Holder, Record
from rowlock.queue.settler import to_failure
from rowlock.queue.stats import Stats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlock.ledger.ledger import Ledger

_FROM_THE_START = (-32768, 0)


class DistributedProcessor:
    """Claim, work, mark. Every mark is fenced by the record's token, and no error is swallowed.

    Use it as a context manager: the heartbeat that keeps the claimed records runs from enter to exit, and
    what is still held at exit is claimable again at once.
    """

    def __init__(self, ledger: Ledger, flows: Mapping[str, Flow], *, name: str | None = None) -> None:
        self._ledger = ledger
        self._flows = flows
        self._foreign: dict[str, Flow] = {}
        self.instance = Instance(ledger.settings, name=name, roles="processor")

    def __enter__(self) -> Self:
        self.instance.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.instance.stop()

    def claim_records_batch(self, flow_name: str, batch_size: int) -> list[Record]:
        """Claims at most `batch_size` records: high priority first, then oldest."""
        self._flow(flow_name)
        if flow_name in self._flows:
            self._ledger.run_safely("flow_register", **self._flows[flow_name].limits)
        self._ledger.promote(batch_size)
        instance_id = self.instance.id
        _, claimed = self._ledger.exchange(instance_id, [], [Wish(flow_name, batch_size, *_FROM_THE_START)])
        Stats(self.instance).claimed(flow_name, claimed)
        holder = Holder(
            ledger=self._ledger,
            instance_id=instance_id,
            seconds_left=lambda: self.instance.seconds_left if self.instance.id == instance_id else 0.0,
            settle=self._settle,
        )
        # Whoever loops by hand starts what it claims: a record whose worker died before is announced at once.
        suspects = [(row.id, row.token) for row in claimed if row.deaths]
        if suspects:
            self._ledger.start(suspects)
        return [Record(row, holder) for row in sorted(claimed, key=place)]

    def mark_record_completed(self, record: Record, result: Any = None) -> None:
        """Completes the record; LeaseLost if it is no longer ours."""
        text = encode(result, self._ledger.settings.max_payload_bytes, "The result")
        self._settle(Outcome(record, "completed", result=text))

    def mark_record_failed(self, record: Record, error: BaseException | str) -> None:
        """The attempt failed: later again, or dead after the last; LeaseLost if it is no longer ours."""
        report = (
            ErrorReport.of(error) if isinstance(error, BaseException) else ErrorReport.plain("Failed", error)
        )
        self._settle(Outcome(record, "failed", error=report))

    def cleanup_orphaned_records(self) -> int:
        """Returns what dead instances held; how many records that were."""
        return take_over(self._ledger, self.instance, lambda: None)

    def health(self) -> dict[str, Any]:
        """Is the ledger reachable, and how much waits in it?"""
        report: dict[str, Any] = {"timestamp": datetime.now(UTC).isoformat(), "instance": self.instance.id}
        try:
            flows = self._ledger.run_safely("flows")
        except LedgerUnavailable as error:
            return report | {"database_connected": False, "queue_depth": None, "error": str(error)}
        depth = sum(row.ready + row.waiting + row.retry_wait for row in flows)
        return report | {"database_connected": True, "queue_depth": depth}

    def _flow(self, name: str) -> Flow:
        """The flow as this program has registered it, or as the ledger knows it from another."""
        if name in self._flows:
            return self._flows[name]
        if name not in self._foreign:
            rows = self._ledger.run_safely("flow_find", flow=name)
            check_open(name, "active" if rows else None)
            limits = {"max_attempts": rows[0].max_attempts, "max_deaths": rows[0].max_deaths}
            self._foreign[name] = Flow(name, handler=print, **limits)
        return self._foreign[name]

    def _settle(self, outcome: Outcome) -> None:
        record, ledger = outcome.record, self._ledger
        if outcome.kind == "completed":
            settled, _ = ledger.exchange(
                self.instance.id, [Completion(record.id, record.token, outcome.result)], []
            )
        elif outcome.kind == "postponed":
            release = Release(record.id, record.token, outcome.delay, outcome.reason)
            settled = ledger.release(self.instance.id, [release])
        else:
            settled = ledger.fail(self.instance.id, [to_failure(self._flow(record.flow), outcome)])
        if not settled and ledger.reread({record.id: record.token})[record.id] != "settled":
            self.instance.counters.add(stale_refused=1)
            record._state = "lost"  # noqa: SLF001
            raise LeaseLost(f"{record!r}: its token is stale; the mark was refused and nothing was written.")
        record._state = "settled"  # noqa: SLF001
        stats = Stats(self.instance)  # one for each: any thread may settle
        stats.ended(outcome, clock.monotonic())
        stats.tell()
        self.instance.counters.add(completed=outcome.kind == "completed", failed=outcome.kind != "completed")
