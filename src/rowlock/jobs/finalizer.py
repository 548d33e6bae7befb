"""The finalizer: announces ends, ends what is late, and repairs what should never need it. One instance of all does it."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from rowlock import clock
from rowlock.errors import LedgerError
from rowlock.leases.elected import Elected
from rowlock.leases.lock import SHORTEST_TTL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rowlock.jobs.jobs import Jobs
    from rowlock.leases.instance import Instance
    from rowlock.ledger.ledger import Ledger, Row
    from rowlock.queue.flow import Flow

logger = logging.getLogger("rowlock.jobs")

_BATCH = 100
_REPAIR_SECONDS = 60.0
END_FLOW = "rowlock.job_end"
SWEEP_FLOW = "rowlock.job_sweep"


class Finalizer:
    def __init__(
        self,
        ledger: Ledger,
        jobs: Jobs,
        instance: Instance,
        enqueue: Callable[..., Any],
        flows: Iterable[Flow] = (),
    ) -> None:
        self._ledger = ledger
        self._jobs = jobs
        self._enqueue = enqueue
        self._flows = list(flows)
        self._every = ledger.settings.finalizer_seconds
        self._sweep_after = ledger.settings.sweep_after_seconds
        self._next_repair = 0.0
        # As long as an instance may be silent: ends wait no longer for another finalizer than inputs for another worker.
        ttl = max(SHORTEST_TTL, ledger.settings.lease_seconds)
        self._elected = Elected(instance, ledger, "rowlock.finalizer", ttl)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rowlock-finalizer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._every):
            try:
                if self._elected.here:
                    self.turn()
            except LedgerError as error:
                logger.warning("the finalizer waits for the ledger: %s", error)

    def turn(self) -> None:
        self._register()
        self.end_late()
        self.hold_back()
        if clock.monotonic() >= self._next_repair:  # it counts, and nothing should be found
            self.repair()
            self._next_repair = clock.monotonic() + _REPAIR_SECONDS
        self.announce()
        self.order_sweeping()

    def _register(self) -> None:
        """A server may tell of an end before the first worker has started."""
        while self._flows:
            self._ledger.run_safely("flow_register", **self._flows[-1].limits)
            self._flows.pop()

    def end_late(self) -> None:
        for row in self._ledger.run_safely("jobs_late"):
            if self._jobs.fail(row.job_key, "its deadline has passed"):
                logger.warning("job %s: its deadline has passed", row.job_key)

    def hold_back(self) -> None:
        """Inputs that came back to the queue after their job had ended."""
        for row in self._ledger.run_safely("jobs_leaking"):
            if row.status == "CANCELLED":
                self._jobs.cancel_live(row.job_id, "its job was cancelled")
            else:
                self._ledger.run("job_hold_back", job=row.job_id)

    def repair(self) -> int:
        """Counts that differ from the inputs: there are none unless the tables were changed by hand. How many."""
        found = self._ledger.run_safely("jobs_miscounted")
        for row in found:
            with self._ledger.transaction() as transaction:
                transaction.one("job_lock", {"job": row.job_id})
                wrong = transaction.all("job_actual", {"job": row.job_id})[0]
                self._ledger.count_job(
                    transaction, row.job_id, done=wrong.done, dead=wrong.dead, cancelled=wrong.cancelled
                )
            logger.error(
                "job %s: its counts were off by %s, and have been repaired", row.job_key, tuple(wrong)
            )
        return len(found)

    def announce(self) -> None:
        """Every end goes into the outbox: its manifest and its webhook."""
        self._hand_over(self._ledger.run_safely("jobs_untold", limit=_BATCH), END_FLOW, note="job_told")

    def order_sweeping(self) -> None:
        """Long after the end, so that no attempt of the job can still be on its way."""
        found = self._ledger.run_safely("jobs_unswept", seconds=self._sweep_after, limit=_BATCH)
        self._hand_over(found, SWEEP_FLOW, note="job_swept")

    def _hand_over(self, ended: Iterable[Row], flow: str, *, note: str) -> None:
        """One record for each end, in one commit with the note that there is one."""
        for row in ended:
            with self._ledger.transaction() as transaction:
                if transaction.one(note, {"job": row.job_id, "ends": row.ends}) is not None:
                    self._enqueue(
                        flow,
                        {"job": row.job_key, "end": row.ends},
                        key=f"{row.job_key}#{row.ends}",
                        connection=transaction.connection,
                    )
