"""The scheduler: turns ticks into records. Every instance may run one; the ledger lets each tick pass once.

There is no leader to wait for: whoever moves a schedule's row on enqueues the tick's record in the same transaction,
and everybody else finds the row moved. An instance that dies on the way leaves the tick to the others, at once.
"""

from __future__ import annotations

import logging
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rowlock.errors import FlowClosed, LedgerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rowlock.leases.instance import Instance
    from rowlock.ledger.ledger import Ledger
    from rowlock.queue.schedule import Schedule, Step

logger = logging.getLogger("rowlock.scheduler")

# The ledger's clock is asked again this often at least: it may have been set meanwhile.
_LONGEST_WAIT = 15.0
_SHORTEST_WAIT = 0.01


class Scheduler:
    def __init__(
        self,
        ledger: Ledger,
        schedules: Iterable[Schedule],
        instance: Instance,
        enqueue: Callable[..., Any],
    ) -> None:
        self._ledger = ledger
        self._schedules = list(schedules)
        self._instance = instance
        self._enqueue = enqueue
        self._last: dict[str, datetime] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rowlock-scheduler", daemon=True)

    def start(self) -> None:
        """A schedule is known to the ledger from here on: a tick that is missed later is missed."""
        for schedule in self._schedules:
            self._register(schedule)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        pause = 0.0
        while not self._stopping.wait(pause):
            try:
                pause = self.turn()
            except LedgerError as error:
                logger.warning("schedules wait for the ledger: %s", error)
                pause = self._ledger.settings.poll_seconds

    def turn(self) -> float:
        """Enqueues what is due; seconds until something may be due again."""
        now = datetime.fromtimestamp(self._ledger.now(), UTC)
        waits = [_LONGEST_WAIT]
        for schedule in list(self._schedules):
            step = schedule.next_step(self._last[schedule.name], now)
            if step is not None:
                self._take(schedule, step)
                waits.append(0.0)  # there may be more behind it
            else:
                due = schedule.after(self._last[schedule.name])
                waits.append(max(_SHORTEST_WAIT, (due - now).total_seconds()))
        return min(waits)

    def _take(self, schedule: Schedule, step: Step) -> None:
        try:
            moved = self._move(schedule, step, fire=step.fire)
        except FlowClosed as error:
            logger.warning("schedule %s: the tick %s is dropped: %s", schedule.name, step.tick, error)
            moved = self._move(schedule, step, fire=False)
        if moved:
            self._last[schedule.name] = step.tick
        else:
            self._read(schedule)

    def _move(self, schedule: Schedule, step: Step, *, fire: bool) -> bool:
        """Moves the schedule's row on and enqueues its record: both or neither. False if another one did."""
        with self._ledger.transaction() as transaction:
            params = {
                "name": schedule.name,
                "cron": schedule.cron,
                "tz": schedule.tz,
                "tick": step.tick.timestamp(),
                "fired": int(fire),
                "missed": int(step.missed),
                "instance": self._instance.id,
            }
            if transaction.one("schedule_advance", params) is None:
                return False
            if fire:
                self._enqueue(
                    schedule.flow,
                    schedule.payload_for(step.tick),
                    key=schedule.key(step.tick),
                    priority=schedule.priority,
                    connection=transaction.connection,
                )
        what = "enqueued" if fire else "dropped"
        logger.info("schedule %s: the tick %s is %s", schedule.name, step.tick.isoformat(), what)
        return True

    def _register(self, schedule: Schedule) -> None:
        params = {"name": schedule.name, "cron": schedule.cron, "tz": schedule.tz, "flow": schedule.flow}
        row = self._ledger.run_safely("schedule_register", **params)[0]
        self._last[schedule.name] = datetime.fromtimestamp(row.last_tick, UTC)

    def _read(self, schedule: Schedule) -> None:
        """Another instance was quicker, or has another idea of when this schedule's ticks are."""
        row = self._ledger.run_safely("schedule_find", name=schedule.name)[0]
        last = datetime.fromtimestamp(row.last_tick, UTC)
        if (row.cron, row.tz) != (schedule.cron, schedule.tz):
            logger.warning(
                "schedule %s is %r (%s) in the ledger and %r (%s) here: another version of the program has taken it "
                "over, and this one leaves its ticks alone",
                schedule.name, row.cron, row.tz, schedule.cron, schedule.tz,
            )  # fmt: skip
            self._schedules.remove(schedule)
        self._last[schedule.name] = last
