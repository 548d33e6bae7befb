"""The worker: claims records of its flows, runs their handlers, settles what they did.

One thread, the pump, owns everything that changes: it collects outcomes, settles them and claims the next
records in one statement, and hands them to the executors. The other threads only send it messages.
"""

from __future__ import annotations

import logging
import random
import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Protocol

from rowlock import clock
from rowlock.errors import ConfigurationError, LedgerFull, LedgerUnavailable
from rowlock.leases.instance import Instance
from rowlock.leases.listener import Listener
from rowlock.ledger.ledger import Ledger
from rowlock.queue.async_executor import AsyncExecutor
from rowlock.queue.breakers import Breakers
from rowlock.queue.executor import Executor, ThreadExecutor
from rowlock.queue.lane import Lane, place
from rowlock.queue.maintenance import Maintenance
from rowlock.queue.process_executor import ProcessExecutor
from rowlock.queue.record import Holder, Record
from rowlock.queue.roles import describe
from rowlock.queue.settler import Settler
from rowlock.queue.stats import Stats
from rowlock.queue.suspects import Suspects
from rowlock.queue.watchdog import Watchdog
from rowlock.signals import UntilSignal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rowlock.ledger.rows import Held, Wish
    from rowlock.queue.flow import Flow
    from rowlock.queue.outcome import Outcome

logger = logging.getLogger("rowlock.worker")

_EXECUTORS: dict[str, type[Executor]] = {
    "thread": ThreadExecutor,
    "async": AsyncExecutor,
    "process": ProcessExecutor,
}
_OUTAGE_FIRST, _OUTAGE_LONGEST = 0.1, 5.0
_WAKE: list[Outcome] = []


class Companion(Protocol):
    """Something that runs beside a worker, as the same instance: started and stopped with it."""

    def start(self) -> None: ...
    def stop(self) -> None: ...


class Worker(UntilSignal):
    """Runs flows until it is told to stop, or (`until_empty`) until none of them has a live record."""

    def __init__(
        self,
        ledger: Ledger,
        flows: Iterable[Flow],
        *,
        concurrency: int | None = None,
        name: str | None = None,
        until_empty: bool = False,
        instance: Instance | None = None,
        companions: Iterable[Callable[[Instance], Companion]] = (),
    ) -> None:
        self.flows = {flow.name: flow for flow in flows}
        if not self.flows:
            raise ConfigurationError("A worker needs at least one flow: register one with @app.flow(…).")
        if concurrency is not None and concurrency < 1:
            raise ConfigurationError(f"concurrency={concurrency}: a worker needs at least one slot.")
        self.settings = ledger.settings
        self._ledger = ledger
        # The pump and maintenance have connections of their own: handlers may use up the ledger's pool.
        self._control = Ledger.open(self.settings.model_copy(update={"pool_size": 3}), control=True)
        self._until_empty = until_empty
        self._inbox: SimpleQueue[list[Outcome]] = SimpleQueue()
        self._stopping = threading.Event()
        self._leave_now = threading.Event()
        self._lost = threading.Event()
        self._audit_at = 0.0
        self._outage_pause = 0.0
        self._grace_ends = 0.0
        self._failure: BaseException | None = None
        # An instance that was given is shared with services and locks: whoever gave it starts and ends it.
        self._owns_instance = instance is None
        self.instance = instance or Instance(self.settings, name=name, roles=describe(flows=self.flows))
        self.instance.on_lost(self._on_lost)
        self.instance.on_drain(self._on_drain)
        self._stats = Stats(self.instance)
        self._suspects = Suspects(self._control)
        self._settler = Settler(self._control, self.flows, self.instance.counters)
        self._lanes = {
            flow.name: Lane(
                flow,
                _EXECUTORS[flow.executor](flow, concurrency or flow.concurrency, self._inbox.put),
                self.settings.max_prefetch,
            )
            for flow in self.flows.values()
        }
        self._breakers = Breakers(self._control, self.instance, self._lanes.values(), self._wake)
        self._maintenance = Maintenance(self._control, self.instance, self._wake, self._breakers)
        self._listener = Listener(self._control, self._control.channel, lambda _flows: self._wake())
        self._watchdog = Watchdog(self.instance, self._lanes, self._inbox.put)
        self._companions = [make(self.instance) for make in companions]
        self._thread = threading.Thread(target=self._pump, name="rowlock-pump", daemon=True)

    # -- life ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Registers the instance and begins to claim; returns at once."""
        for flow in self.flows.values():
            self._control.run_safely("flow_register", **flow.limits)
            self._control.run_safely("flow_limit", flow=flow.name, limit=flow.limit and flow.limit.name)
            if flow.breaker is None:  # one that an older version of the program had left open
                self._control.breakers.resume(flow.name, None)
        if self._owns_instance:
            self.instance.start()
        self._watchdog.start()
        self._maintenance.start()
        self._listener.start()
        for companion in self._companions:
            companion.start()
        self._thread.start()
        logger.info("instance %s works on %s", self.instance.id, ", ".join(self.flows))

    def stop(self) -> None:
        """Stops claiming; what runs may finish within the grace time. A second call leaves now."""
        if self._stopping.is_set():
            self._leave_now.set()
        self._stopping.set()
        self._wake()

    def join(self, timeout: float | None = None) -> bool:
        """Waits until the worker has ended; raises what ended it, if that was an error."""
        self._thread.join(timeout)
        if self._thread.is_alive():
            return False
        if self._failure is not None:
            raise self._failure
        return True

    def _wake(self) -> None:
        self._inbox.put(_WAKE)

    def _on_drain(self) -> None:
        """Told with every heartbeat; only the first one matters, and none means: leave now."""
        self._stopping.set()
        self._wake()

    def _on_lost(self, _reason: str) -> None:
        """The lease has ended: handlers stop where they can, and nothing they report counts any more."""
        for lane in self._lanes.values():
            for record in list(lane.in_hand.values()):
                if not record.settled:
                    record._state = "lost"  # noqa: SLF001
            lane.executor.abandon()
        self._lost.set()
        self._wake()

    # -- the pump ----------------------------------------------------------------------------------------

    def _pump(self) -> None:
        try:
            while not self._is_done():
                self._collect(self._patience())
                self._forget_lost()
                try:
                    self._turn()
                    self._recovered()
                except (LedgerUnavailable, LedgerFull) as error:
                    self._outage(error)
        except BaseException as error:
            logger.exception("the worker ends because of an error")
            self._failure = error
        finally:
            self._close()

    def _is_done(self) -> bool:
        if not self._stopping.is_set():
            return False
        if self._grace_ends == 0.0:
            self._grace_ends = clock.monotonic() + self.settings.grace_seconds
            self._hand_back(record for lane in self._lanes.values() for record in lane.suspects)
        # Again and again: a slot may have been about to wait for its flow's limit when we looked.
        self._hand_back(record for lane in self._lanes.values() for record in lane.executor.take_back())
        if self._leave_now.is_set() or clock.monotonic() >= self._grace_ends:
            for lane in self._lanes.values():
                self._hand_back(list(lane.in_hand.values()))
                lane.executor.abandon()
        return not self._settler.pending and not any(lane.in_hand for lane in self._lanes.values())

    def _hand_back(self, records: Iterable[Record]) -> None:
        for record in records:
            if self._lanes[record.flow].drop(record):
                self._settler.release(record.id, record.token)

    def _patience(self) -> float:
        """How long the pump may wait for a message before it looks by itself."""
        if self._stopping.is_set():
            return 0.05
        return self.settings.poll_seconds

    def _collect(self, timeout: float) -> None:
        """Takes everything that has been reported."""
        try:
            outcomes = self._inbox.get(timeout=timeout)
            now = clock.monotonic()
            while True:
                for outcome in outcomes:
                    self._accept(outcome, now)
                outcomes = self._inbox.get_nowait()
        except Empty:
            self._stats.tell()

    def _accept(self, outcome: Outcome, now: float) -> None:
        record = outcome.record
        self._suspects.finished(record)
        lane = self._lanes[record.flow]
        if lane.breaker is not None:
            lane.breaker.note(outcome)
        if lane.finished(record, now):
            self._stats.ended(outcome, now)
            self._settler.take(outcome)
        else:
            logger.warning("%r had been given up; its late outcome is refused", record)
            self.instance.counters.add(stale_refused=1)

    def _forget_lost(self) -> None:
        if self._lost.is_set():
            self._lost.clear()
            self._suspects.clear()
            for lane in self._lanes.values():
                for id_ in [id_ for id_, record in lane.in_hand.items() if record._state == "lost"]:  # noqa: SLF001
                    del lane.in_hand[id_]

    def _turn(self) -> None:
        """Settle, claim, hand out; then what can wait."""
        self._heed_breakers()
        claimed = self._exchange()
        if not self._stopping.is_set():
            self._suspects.start(self._lanes.values())
        if self._audit_at and clock.monotonic() >= self._audit_at:
            self._audit_at = 0.0
            self._audit()
        if self._until_empty and not claimed and self._is_empty():
            self._stopping.set()

    def _heed_breakers(self) -> None:
        """A flow whose breaker has opened starts nothing any more, until it is tried."""
        for lane in self._lanes.values():
            if lane.breaker is not None and lane.breaker.hand_back:
                lane.breaker.hand_back = False
                self._hand_back([*lane.executor.take_back(), *lane.suspects])
            if lane.breaker is not None and lane.breaker.probe_wanted and not self._stopping.is_set():
                self._breakers.begin_probe(lane.breaker)

    def _exchange(self) -> int:
        """One statement with the ledger; how many records it claimed."""
        now = clock.monotonic()
        holder = self.instance.id
        wishes = self._wishes(now)
        if not wishes and not self._settler.pending:
            return 0
        claimed = self._settler.exchange(holder, wishes)
        by_flow: dict[str, list[Held]] = {wish.flow: [] for wish in wishes}
        for held in claimed:
            by_flow[held.flow].append(held)
        done = clock.monotonic()
        for wish in wishes:
            self._lanes[wish.flow].claimed(by_flow[wish.flow], wish, now, done)
        if holder == self.instance.id and self.instance.alive:
            for flow, held_records in by_flow.items():
                self._hand_out(self._lanes[flow], held_records, holder)
        elif claimed:
            # This incarnation has ended meanwhile, and they will be taken over; or a heartbeat that is under way
            # still saves it, and then nobody but us will ever take them: look when that is known.
            self._audit_at = clock.monotonic() + self.settings.heartbeat_seconds
        return len(claimed)

    def _wishes(self, now: float) -> list[Wish]:
        if self._stopping.is_set() or not self.instance.alive:
            return []
        return [wish for lane in self._lanes.values() if (wish := lane.wish(now))]

    def _hand_out(self, lane: Lane, held: list[Held], instance_id: int) -> None:
        if not held:
            return
        holder = Holder(
            ledger=self._ledger,
            instance_id=instance_id,
            seconds_left=lambda: self.instance.seconds_left if self.instance.id == instance_id else 0.0,
            settle=lambda outcome: self._inbox.put([outcome]),
            timeout=lane.flow.timeout,
        )
        self._stats.claimed(lane.flow.name, held)
        records = [Record(row, holder) for row in held]
        lane.in_hand.update({record.id: record for record in records})
        if lane.breaker is not None:
            lane.breaker.in_hand(records)
        lane.suspects.extend([record for record in records if record.deaths])
        lane.dispatch([record for record in records if not record.deaths])

    def _is_empty(self) -> bool:
        if any(lane.in_hand for lane in self._lanes.values()) or self._settler.pending:
            return False
        return not any(self._control.run("flow_live", flow=flow) for flow in self.flows)

    # -- trouble -------------------------------------------------------------------------------------------

    def _outage(self, error: Exception) -> None:
        """Waits, then asks the ledger what was applied. Nothing is guessed, nothing dropped."""
        while True:
            if not self._outage_pause:
                logger.error("the worker waits for the ledger: %s", error)
            self._outage_pause = min(_OUTAGE_LONGEST, self._outage_pause * 2 or _OUTAGE_FIRST)
            if self._leave_now.wait(random.uniform(0.5, 1) * self._outage_pause) or self._grace_is_over():
                raise error
            try:
                self._settler.recover()
                self._audit()
            except (LedgerUnavailable, LedgerFull) as again:
                error = again
                continue
            # The cut-off statement may still have been under way: look once more when it cannot be any longer.
            self._audit_at = clock.monotonic() + self.settings.lease_seconds
            return

    def _recovered(self) -> None:
        if self._outage_pause:
            self._outage_pause = 0.0
            logger.warning("the ledger is back")

    def _grace_is_over(self) -> bool:
        return self._stopping.is_set() and 0.0 < self._grace_ends <= clock.monotonic()

    def _audit(self) -> None:
        """Adopts records that a lost reply claimed for us: the ledger says we hold them, and we do not know them."""
        holder = self.instance.id
        unknown: dict[str, list[Held]] = {}
        for held in self._control.held(holder):
            lane = self._lanes.get(held.flow)
            if lane and held.id not in lane.in_hand and not self._settler.holds(held.id):
                unknown.setdefault(held.flow, []).append(held)
        for flow, rows in unknown.items():
            logger.warning("flow %s: adopted %d records whose claim's reply was lost", flow, len(rows))
            self._hand_out(self._lanes[flow], sorted(rows, key=place), holder)

    def _close(self) -> None:
        for companion in self._companions:
            companion.stop()
        self._watchdog.stop()
        self._listener.stop()
        self._maintenance.stop()
        for lane in self._lanes.values():
            lane.executor.close()
        if self._owns_instance:
            self.instance.stop("error" if self._failure else "stopped")
        elif self._failure:
            self.instance.forfeit("its worker failed")  # what it held is claimable at once
        self._control.close()
