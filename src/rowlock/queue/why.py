"""Why: what exactly a record waits for, or what became of it, in words a person can read.

A record passes gates on its way to a handler. Each gate that is closed is one reason, with a sentence and the
figures behind it. Nothing here is guessed: every reason is read from the ledger, by the ledger's clock.
"""

from __future__ import annotations

from functools import cached_property
from shlex import quote
from typing import TYPE_CHECKING, Any

from rowlock.clock import in_words
from rowlock.leases.limits import in_short_supply, in_use
from rowlock.leases.reason import Reason, reason
from rowlock.queue.inspector import Inspector
from rowlock.queue.roles import flows_taken

if TYPE_CHECKING:
    from datetime import datetime

    from rowlock.ledger.ledger import Ledger

_HELD_BACK = 9999  # the year until which a job that has ended holds its inputs back


def explain(ledger: Ledger, record_id: int) -> dict[str, Any]:
    """`{record, state, reasons}`; each reason has its `gate`, its `text`, and what the text is made of."""
    record = Inspector(ledger).record(record_id)
    case = _Case(ledger, record)
    return {
        "record": {"id": record["id"], "flow": record["flow"], "key": record["key"]},
        "state": record["status"],
        "reasons": case.reasons(),
    }


class _Case:
    """One record, looked at once."""

    def __init__(self, ledger: Ledger, record: dict[str, Any]) -> None:
        self._ledger = ledger
        self._record = record
        self._id = record["id"]
        self._flow = record["flow"]
        self._now = ledger.now()

    def reasons(self) -> list[Reason]:
        match self._record["status"]:
            case "completed":
                return [self._completed()]
            case "dead":
                return [self._dead()]
            case "cancelled":
                return [self._cancelled()]
            case "processing":
                return [self._held(), *self._limit_gates()]
        held_up = self._time_gates()
        if held_up and held_up[0]["gate"] == "held back":
            return held_up
        return [*held_up, *self._flow_gates(), *self._worker_gates()]

    # -- gates of a record that waits ------------------------------------------------------------------------

    def _time_gates(self) -> list[Reason]:
        record = self._record
        if record["ready"]:
            return []
        run_at, wait = record["run_at"], self._until(record["run_at"])
        if run_at.year >= _HELD_BACK:
            job = record["key"].partition("/")[0]
            text = f"It is held back, because its job {job} has ended. To drive the job again: `rowlock jobs redrive {quote(job)}`."
            return [reason("held back", text, job=job)]
        facts = {"run_at": run_at, "in_seconds": wait}
        if wait <= 0:
            text = f"Its time came {in_words(-wait)} ago ({_stamp(run_at)}); the next live worker makes it ready."
            return [reason("schedule", text, **facts)]
        when = f"in {in_words(wait)} ({_stamp(run_at)})"
        hurry = f"To run it now: {self._retry}."
        if record["status"] == "pending":
            return [reason("schedule", f"It is scheduled: it may run {when}. {hurry}", **facts)]
        error = self._last_error()
        if error is None or error["outcome"] == "postponed":
            because = f" ({error['message']})" if error else ""
            text = (
                f"Its handler asked to be run again later{because}: {when}. The attempt is not spent. {hurry}"
            )
            return [reason("postponed", text, reason=error["message"] if error else None, **facts)]
        limit = self._policy["max_attempts"]
        text = (
            f"It waits to be tried again after attempt {error['attempt']} of {limit} "
            f"{_ended(error)}. The next attempt is {when}. {hurry}"
        )
        return [reason("retry", text, attempt=error["attempt"], max_attempts=limit, error=error, **facts)]

    def _flow_gates(self) -> list[Reason]:
        flow = self._policy
        if flow["state"] == "paused":
            because = f" ({flow['reason']})" if flow["reason"] else ", no reason was given"
            resume = f"`rowlock flows resume {quote(self._flow)}`"
            text = f"The flow {self._flow} is paused{because}. {self._breaker}To go on{' now' if self._breaker else ''}: {resume}."
            facts = {"breaker": flow["breaker"], "probe_seconds": flow["probe_seconds"]}
            return [reason("flow paused", text, reason=flow["reason"], **facts)]
        if flow["state"] == "draining":
            text = f"The flow {self._flow} drains: it takes no new records, and this one will still run."
            return [reason("flow draining", text, reason=flow["reason"])]
        return []

    def _worker_gates(self) -> list[Reason]:
        alive = self._ledger.run_safely("instances_alive")
        takers = [row for row in alive if row.state == "active" and self._flow in flows_taken(row.roles)]
        if not takers:
            return [self._no_worker(alive)]
        workers = (
            f"{len(takers)} live worker{'s take' if len(takers) > 1 else ' takes'} the flow {self._flow}"
        )
        facts = {"workers": [{"id": row.id, "name": row.name} for row in takers]}
        if not self._record["ready"]:
            return []
        rows = self._ledger.run_safely(
            "record_ahead", flow=self._flow, priority=self._record["priority"], id=self._id
        )
        ahead = int(rows[0].ahead)
        if ahead:
            text = f"{workers}, and {ahead:,} record{'s are' if ahead > 1 else ' is'} ahead of this one in its queue."
        else:
            text = f"It is the next one of its flow; {workers}, and the first with a free slot claims it."
        return [reason("queue", text, ahead=ahead, **facts)]

    def _no_worker(self, alive: list[Any]) -> Reason:
        loops = [row for row in alive if row.roles == "processor"]
        draining = [row for row in alive if row.state == "draining" and self._flow in flows_taken(row.roles)]
        text = f"No live worker takes the flow {self._flow}"
        if draining:
            text += f" ({len(draining)} of those that did drain, and claim no more)"
        elif alive:
            text += f" ({len(alive)} live instance{'s do' if len(alive) > 1 else ' does'} other work)"
        text += ". Start one: `rowlock worker MODULE:APP`."
        if loops:
            text += f" ({len(loops)} of the live instances have loops of their own, and may claim it.)"
        return reason("no worker", text, alive=len(alive), draining=len(draining), processors=len(loops))

    # -- a record that is held ----------------------------------------------------------------------------------

    def _held(self) -> Reason:
        record, holder = self._record, self._record["held_by"]
        since = in_words(-self._until(record["claimed_at"]))
        who = f"instance {record['holder']}" + (f" ({holder['name']})" if holder else "")
        facts = {"holder": record["holder"], "since": record["claimed_at"], "token": record["token"]}
        if holder is None:
            text = f"It is held by {who}, which the ledger has forgotten. See: `rowlock doctor`."
            return reason("holder dead", text, **facts)
        left = holder["seconds_left"]
        facts |= {"name": holder["name"], "seconds_left": left, "heartbeat_age": holder["heartbeat_age"]}
        if holder["state"] in ("dead", "stopped") or left <= 0:
            return self._holder_dead(who, since, holder, facts)
        text = (
            f"It is held by {who} since {since}, attempt {record['attempt']}; the lease has {in_words(left)} left "
            "and is renewed while the instance lives."
        )
        if record["progress"] is not None:
            text += f" Its handler says it is {record['progress']:.0%} done."
            facts["progress"] = record["progress"]
        if record["deaths"] and not record["started"]:
            text += f" Its worker has died under it {record['deaths']} times, so it waits to be run alone."
        return reason("held", text, **facts)

    def _limit_gates(self) -> list[Reason]:
        """A limit that the flow starts within, if it is used up just now."""
        name = self._policy["limit_name"]
        rows = self._ledger.limits.list(name) if name else []
        if not rows or not in_short_supply(rows[0]):
            return []
        text = f"Its handler starts only within the limit {name}: {in_use(rows[0])}."
        facts = {"limit": name, "in_use": rows[0].in_use, "waiting": rows[0].waiting}
        return [reason("limit", text, wait_seconds=rows[0].wait_seconds, **facts)]

    def _holder_dead(self, who: str, since: str, holder: dict[str, Any], facts: dict[str, Any]) -> Reason:
        if holder["ended_at"] is not None:
            gone = f"{holder['state']} since {in_words(-self._until(holder['ended_at']))} ({holder['ended_reason']})"
        else:
            gone = f"silent: its lease ended {in_words(-facts['seconds_left'])} ago"
        text = f"It was claimed by {who} {since} ago, and that instance is {gone}. It has not been taken over yet"
        alive = len(self._ledger.run_safely("instances_alive"))
        text += (
            "; a live worker does that within moments."
            if alive
            else ", because no worker is alive. Start one: `rowlock worker MODULE:APP`."
        )
        return reason("holder dead", text, alive=alive, **facts)

    # -- a record that is settled ----------------------------------------------------------------------------------

    def _completed(self) -> Reason:
        record = self._record
        attempts = "at the first attempt" if record["attempt"] == 1 else f"at attempt {record['attempt']}"
        text = f"It was completed {self._settled_ago()} {attempts}, by instance {record['holder']}"
        if record["claimed_at"] is not None:
            seconds = (record["settled_at"] - record["claimed_at"]).total_seconds()
            text += f", {in_words(seconds)} after it was claimed"
        return reason("completed", text + ".", settled_at=record["settled_at"], holder=record["holder"])

    def _dead(self) -> Reason:
        record = self._record
        text = f"It died {self._settled_ago()}: {record['reason']}. To drive it again: {self._retry}"
        if record["fingerprint"]:
            text += (
                f"; to drive everything again that died of this: `rowlock dead redrive --flow {quote(self._flow)} "
                f"--fingerprint {quote(record['fingerprint'])}`"
            )
        return reason(
            "dead",
            f"{text}.",
            settled_at=record["settled_at"],
            reason=record["reason"],
            fingerprint=record["fingerprint"],
        )

    def _cancelled(self) -> Reason:
        record = self._record
        because = f": {record['reason']}" if record["reason"] else ", no reason was given"
        text = f"It was cancelled {self._settled_ago()}{because}. To drive it again: {self._retry}."
        return reason("cancelled", text, settled_at=record["settled_at"], reason=record["reason"])

    # -- small things ------------------------------------------------------------------------------------------------

    @property
    def _retry(self) -> str:
        return f"`rowlock records retry {self._id}`"

    @cached_property
    def _policy(self) -> dict[str, Any]:
        return Inspector(self._ledger).flow(self._flow)

    @property
    def _breaker(self) -> str:
        """What a breaker that paused the flow does next, by itself."""
        match self._policy["breaker"]:
            case None:
                return ""
            case "probing":
                return "A few records are tried now. "
        seconds = self._policy["probe_seconds"]
        return f"A few records are tried {'in ' + in_words(seconds) if seconds > 0 else 'as soon as a worker can'}. "

    def _last_error(self) -> dict[str, Any] | None:
        """The error that this wait is for. A failure raises the token by one; an older error is another story's."""
        for attempt in self._record["attempts"]:
            if attempt["token"] == self._record["token"] - 1 and attempt["outcome"] != "redriven":
                return {
                    name: attempt[name]
                    for name in ("attempt", "outcome", "error_type", "message", "fingerprint")
                }
        return None

    def _settled_ago(self) -> str:
        return f"{in_words(-self._until(self._record['settled_at']))} ago"

    def _until(self, moment: datetime) -> float:
        return moment.timestamp() - self._now


def _ended(error: dict[str, Any]) -> str:
    if error["outcome"] == "timed_out":
        return f"timed out ({error['message']})"
    what = f"{error['error_type']}: {error['message']}" if error["message"] else error["error_type"]
    return f"{error['outcome']} with {what}"


def _stamp(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")
