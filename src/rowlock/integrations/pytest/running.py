"""Runs a real worker until nothing is ready, and says what happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowlock import clock
from rowlock.ledger.ledger_clock import LedgerClock
from rowlock.queue.inspector import Inspector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from rowlock.app import Rowlock
    from rowlock.integrations.pytest.throw_away import ThrowAwayLedger
    from rowlock.queue.worker import Worker

_LOOK_SECONDS = 0.01
_MOST = 100_000
_A_MOMENT = 0.001


@dataclass(frozen=True)
class Ran:
    """What a run did. Records are dicts, as the inspector shows them: payload, result, reason, attempts, …"""

    completed: list[dict[str, Any]]
    dead: list[dict[str, Any]]
    cancelled: list[dict[str, Any]]
    waiting: list[dict[str, Any]]  # for a retry, or for their time to come
    errors: list[str]  # every attempt of this run that did not complete, with its traceback

    @property
    def results(self) -> list[Any]:
        """What the handlers returned, in the order in which they were enqueued."""
        return [record["result"] for record in self.completed]

    def __str__(self) -> str:
        counts = ", ".join(
            f"{len(getattr(self, name))} {name}" for name in ("completed", "dead", "cancelled", "waiting")
        )
        return "\n\n".join([counts, *self.errors])

    __repr__ = __str__  # pytest shows this when an assertion fails


class RunUntilIdle:
    """Bound to a test's throw-away ledger: it refuses to work anywhere else."""

    def __init__(self, ledger: ThrowAwayLedger, report: Callable[[str], None]) -> None:
        self._ledger = ledger
        self._report = report

    def __call__(
        self,
        app: Rowlock,
        flows: Iterable[str] | None = None,
        *,
        advance_clock: bool = False,
        concurrency: int | None = 1,
        timeout: float = 60,
    ) -> Ran:
        """Works until nothing is ready, one record at a time.

        Args:
            app: an app that `rowlock_app` has pointed at the throw-away ledger.
            flows: only these.
            advance_clock: goes on with records that wait, by moving the ledger's clock to their time.
            concurrency: records that run at the same time; None for what each flow says.
            timeout: raises TimeoutError after so many real seconds.

        """
        __tracebackhide__ = True
        self._ledger.check(app)
        names = list(app.flows if flows is None else flows)
        inspector = Inspector(app.ledger)
        began = clock.as_datetime(app.ledger.now())
        assert began is not None  # noqa: S101 - it was given a number
        try:
            work_until_idle(app, names, advance_clock=advance_clock, concurrency=concurrency, timeout=timeout)
        finally:
            ran = _look(inspector, names, began)
            if ran.errors:
                self._report("\n\n".join(ran.errors))
        return ran


def work_until_idle(
    app: Rowlock, flows: list[str], *, advance_clock: bool, concurrency: int | None, timeout: float
) -> None:
    """One worker after the other: the clock is moved only while none is alive, or it would lose its lease."""
    give_up = clock.monotonic() + timeout
    while True:
        with app.worker(flows, concurrency=concurrency) as worker:
            _wait(app, worker, give_up, timeout)
        waits = [row.next_due for row in _next(app, flows, 0) if row.next_due is not None]
        if not advance_clock or not waits:
            return
        LedgerClock(app.ledger).advance(max(0.0, min(waits)) + _A_MOMENT)


def _wait(app: Rowlock, worker: Worker, give_up: float, timeout: float) -> None:
    flows = list(worker.flows)
    while any(row.busy for row in _next(app, flows, worker.instance.id)):
        if worker.join(_LOOK_SECONDS):  # it was told to drain; had it failed, this had raised
            return
        if clock.monotonic() > give_up:
            worker.stop()  # once more, as the block is left: it leaves now
            raise TimeoutError(f"Still not idle after {timeout} s: {_busy(app, flows)}.")


def _next(app: Rowlock, flows: list[str], holder: int) -> list[Any]:
    return [app.ledger.run("flow_next", flow=flow, holder=holder)[0] for flow in flows]


def _busy(app: Rowlock, flows: list[str]) -> str:
    live = [
        f"{record['flow']}/{record['key']} is {record['status']}, attempt {record['attempt']}"
        for record in Inspector(app.ledger).records(limit=10)
        if record["flow"] in flows and record["settled_at"] is None
    ]
    return "; ".join(live) or "records come as fast as they go"


def _look(inspector: Inspector, flows: list[str], began: datetime) -> Ran:
    found: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("completed", "dead", "cancelled", "waiting")
    }
    errors = []
    for row in reversed(inspector.records(limit=_MOST)):
        if row["flow"] not in flows or (row["settled_at"] is not None and row["settled_at"] < began):
            continue
        record = inspector.record(row["id"])
        found["waiting" if row["settled_at"] is None else row["status"]].append(record)
        errors += [
            _as_text(record, attempt)
            for attempt in record["attempts"]
            if attempt["ended_at"] >= began and attempt["error_type"] is not None
        ]
    return Ran(errors=errors, **found)


def _as_text(record: dict[str, Any], attempt: dict[str, Any]) -> str:
    head = f"{record['flow']}/{record['key']}, attempt {attempt['attempt']}, {attempt['outcome']}: "
    told = f"{attempt['error_type']}: {attempt['message']}"
    return f"{head}{told}\n{attempt['traceback'] or ''}".rstrip()
