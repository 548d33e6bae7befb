"""Why: what a job waits for, or what became of it, in words a person can read. Everything is read from the ledger."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rowlock.clock import in_words
from rowlock.jobs.jobs import Jobs
from rowlock.leases.reason import Reason, reason
from rowlock.queue.why import explain

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from rowlock.jobs.job import JobInput
    from rowlock.ledger.ledger import Ledger


_LOOKED_AT = 1000  # inputs beyond these are only counted
_NAMED = 3  # as are errors and holders beyond these
_ERROR_SHOWN = 200


def explain_job(ledger: Ledger, key: str) -> dict[str, Any]:
    """`{job, state, reasons}`; each reason has its `gate`, its `text`, and what the text is made of."""
    case = _Case(ledger, key)
    return {"job": {"key": key}, "state": case.job.status, "reasons": case.reasons()}


class _Case:
    """One job, looked at once."""

    def __init__(self, ledger: Ledger, key: str) -> None:
        self._ledger = ledger
        self._jobs = Jobs(ledger, {})
        self.job = self._jobs.get(key)
        self._now = ledger.now()

    def reasons(self) -> list[Reason]:
        job = self.job
        found = [self._progress() if job.open else self._end()]
        if job.open and job.deadline_at is not None:
            found.append(self._deadline(job.deadline_at))
        by_count: list[tuple[int, Callable[[], Reason]]] = [
            (job.running, self._running),
            (job.retry_wait if job.open else 0, self._retrying),
            (job.pending if job.open else 0, self._waiting),
            (0 if job.open else job.pending + job.retry_wait, self._held_back),
            (job.dead, self._dead),
        ]
        return [*found, *(tell() for count, tell in by_count if count)]

    def _progress(self) -> Reason:
        job = self.job
        settled = job.done + job.dead + job.cancelled
        text = f"{settled:,} of its {job.total:,} inputs are settled, {self._ago(job.requested_at)} after it was submitted."
        return reason("progress", text, settled=settled, total=job.total)

    def _end(self) -> Reason:
        job = self.job
        text = f"It ended {self._ago(job.completed_at)} ago" if job.completed_at else "It has ended"
        if job.error_message:
            text += f": {job.error_message.removesuffix('.')}"
        text += f". {job.done:,} of its {job.total:,} inputs are done ({job.generated:,} files made, {job.reused:,} used again)"
        if job.cancelled:
            text += f", {job.cancelled:,} are cancelled"
        return reason("ended", f"{text}.", done=job.done, cancelled=job.cancelled, error=job.error_message)

    def _deadline(self, deadline: datetime) -> Reason:
        left = deadline.timestamp() - self._now
        text = f"It fails in {in_words(left)}, by its deadline." if left > 0 else "Its deadline has passed."
        return reason("deadline", text, in_seconds=left)

    def _running(self) -> Reason:
        holders = Counter(one.holder for one in self._inputs("RUNNING") if one.holder is not None)
        places = [f"{count:,} on instance {holder}" for holder, count in holders.most_common(_NAMED)]
        more = f" and {len(holders) - _NAMED} other instances" if len(holders) > _NAMED else ""
        text = f"{_inputs_are(self.job.running)} held by workers: {', '.join(places)}{more}."
        return reason("running", text, running=self.job.running, holders=dict(holders))

    def _retrying(self) -> Reason:
        waiting = self._inputs("RETRY_WAIT")
        times = [one.next_retry_at.timestamp() - self._now for one in waiting if one.next_retry_at]
        soon = f" The next one is tried in {in_words(max(0.0, min(times)))}." if times else ""
        text = (
            f"{_inputs_are(self.job.retry_wait)} waiting to be tried again, after {_errors(waiting)}.{soon}"
        )
        return reason("retry", text, retry_wait=self.job.retry_wait)

    def _waiting(self) -> Reason:
        """What the first of them waits for is what all of them wait for, or nearly."""
        text = f"{_inputs_are(self.job.pending)} waiting for a worker."
        gates: list[Reason] = []
        for first in self._inputs("PENDING", 1):
            gates = explain(self._ledger, first.id)["reasons"]
            text += f" The first of them, input {first.id}: {' '.join(gate['text'] for gate in gates)}"
        return reason("pending", text, pending=self.job.pending, first=gates)

    def _held_back(self) -> Reason:
        count = self.job.pending + self.job.retry_wait
        text = f"{_inputs_are(count)} held back, because it has ended. To drive it again: {self._redrive}."
        return reason("held back", text, count=count)

    def _dead(self) -> Reason:
        text = f"{_inputs_are(self.job.dead)} dead, of {_errors(self._inputs('DLQ'))}."
        if not self.job.pending + self.job.retry_wait or self.job.open:
            text += f" To drive them again: {self._redrive}."
        return reason("dead", text, dead=self.job.dead)

    # -- small things ------------------------------------------------------------------------------------------

    def _inputs(self, status: str, limit: int = _LOOKED_AT) -> list[JobInput]:
        return self._jobs.inputs(self.job.key, status=status, limit=limit)

    @property
    def _redrive(self) -> str:
        return f"`rowlock jobs redrive {self.job.key}`"

    def _ago(self, moment: datetime) -> str:
        return in_words(max(0.0, self._now - moment.timestamp()))


def _inputs_are(count: int) -> str:
    return "1 input is" if count == 1 else f"{count:,} inputs are"


def _errors(inputs: list[JobInput]) -> str:
    """The commonest errors, each with how many died of it."""
    counts = Counter((one.error or "no error").split("\n", 1)[0][:_ERROR_SHOWN] for one in inputs)
    named = [
        f"{error!r}" + (f" ({count:,} times)" if count > 1 else "")
        for error, count in counts.most_common(_NAMED)
    ]
    more = f" and {len(counts) - _NAMED} other errors" if len(counts) > _NAMED else ""
    return ", ".join(named) + more
