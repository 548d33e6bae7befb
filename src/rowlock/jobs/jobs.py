"""Jobs: submit, look, cancel, drive again. What runs the inputs is the queue; this only counts on it."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from rowlock import clock
from rowlock.errors import IdempotencyConflict, InvalidInput, InvalidJob, NotFound, Problem, Refused
from rowlock.jobs.job import Job, JobEvent, JobInput, Policy
from rowlock.jobs.webhook import check_webhook
from rowlock.queue.payload import check_priority, decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rowlock.jobs.inputs import Entry
    from rowlock.ledger.ledger import Ledger, LedgerConnection, Row

NEWEST = 2**63 - 1
KEY = re.compile(r"J[0-9]{8}_[0-9]{6,19}", re.ASCII)
_PAGE = 1000
_MOST_PROBLEMS = 100


class ExporterLike(Protocol):
    """What a job has to know of its exporter."""

    @property
    def name(self) -> str: ...
    @property
    def flow_name(self) -> str: ...
    @property
    def max_attempts(self) -> int: ...
    @property
    def max_deaths(self) -> int: ...
    def read(self, raw: Mapping[str, Any], limit: int) -> Entry: ...
    def read_all(self, inputs: Sequence[Mapping[str, Any]], limit: int) -> dict[str, str] | None: ...


@dataclass(frozen=True, slots=True)
class Plan:
    """A job that was checked and not made: how, and key → payload of each input."""

    exporter: ExporterLike
    order: dict[str, Any]
    payloads: dict[str, str]

    @property
    def body_hash(self) -> str:
        order = json.dumps(self.order, sort_keys=True)
        return hashlib.sha256("\n".join((order, *sorted(self.payloads.values()))).encode()).hexdigest()


class Jobs:
    """The jobs of one ledger, for the exporters that this program has."""

    def __init__(self, ledger: Ledger, exporters: Mapping[str, ExporterLike]) -> None:
        self._ledger = ledger
        self._exporters = exporters
        self._max_inputs = ledger.settings.max_job_inputs
        self._registered: set[str] = set()

    # -- submit ----------------------------------------------------------------------------------------------

    def submit(
        self,
        inputs: Sequence[Mapping[str, Any]],
        *,
        exporter: str | None = None,
        policy: Policy = "fail_fast",
        priority: int = 0,
        deadline: float | None = None,
        webhook_url: str | None = None,
        idempotency_key: str | None = None,
        requested_by: str | None = None,
    ) -> tuple[Job, bool]:
        """One job of all these inputs, or an error and nothing; False if the idempotency key had made it before."""
        plan = self.plan(
            inputs,
            exporter=exporter,
            policy=policy,
            priority=priority,
            deadline=deadline,
            webhook_url=webhook_url,
        )
        made = {
            **plan.order,
            "total": len(plan.payloads),
            "requested_by": requested_by,
            "idempotency_key": idempotency_key,
            "body_hash": plan.body_hash,
        }
        self._register(plan.exporter)
        with self._ledger.transaction() as transaction:
            key = self._create(transaction, made, plan.payloads, plan.exporter.flow_name)
        if key is not None:
            return self.get(key), True
        return self._repeated(str(idempotency_key), plan.body_hash), False

    def plan(
        self,
        inputs: Sequence[Mapping[str, Any]],
        *,
        exporter: str | None = None,
        policy: Policy = "fail_fast",
        priority: int = 0,
        deadline: float | None = None,
        webhook_url: str | None = None,
    ) -> Plan:
        """What `submit` would make, or its error; nothing is written."""
        chosen = self._exporter(exporter)
        payloads = self.validate(inputs, exporter=chosen.name)
        check_priority(priority)
        if policy not in ("fail_fast", "continue"):
            raise InvalidJob([Problem("/policy", f"{policy!r} is neither fail_fast nor continue")])
        if deadline is not None and not deadline > 0:
            raise InvalidJob([Problem("/deadline", f"{deadline!r} s: a job needs some time")])
        if webhook_url is not None:
            check_webhook(webhook_url, self._ledger.settings)
        order = {
            "exporter": chosen.name,
            "policy": policy,
            "priority": priority,
            "deadline": deadline,
            "webhook": webhook_url,
        }
        return Plan(chosen, order, payloads)

    def validate(self, inputs: Sequence[Mapping[str, Any]], *, exporter: str | None = None) -> dict[str, str]:
        """Key → payload of each input; InvalidJob with a pointer to each part that is wrong."""
        chosen = self._exporter(exporter)
        if not inputs:
            raise InvalidJob([Problem("/inputs", "a job needs at least one input")])
        if len(inputs) > self._max_inputs:
            raise InvalidJob(
                [
                    Problem(
                        "/inputs", f"{len(inputs):,} inputs are more than the limit of {self._max_inputs:,}"
                    )
                ]
            )
        limit = self._ledger.settings.max_payload_bytes
        ready = chosen.read_all(inputs, limit)
        return self._one_by_one(chosen, inputs, limit) if ready is None else ready

    @staticmethod
    def _one_by_one(chosen: ExporterLike, inputs: Sequence[Mapping[str, Any]], limit: int) -> dict[str, str]:
        found: dict[str, str] = {}
        keys: dict[str, int] = {}
        files: dict[str, int] = {}
        problems: list[Problem] = []
        for number, raw in enumerate(inputs):
            try:
                key, file, payload = chosen.read(raw, limit)
            except InvalidInput as error:
                pointer = error.pointer or ""
                told = str(error).removeprefix(f"{pointer}: ")  # it is said where the input is
                problems.append(Problem(f"/inputs/{number}{pointer}", told))
            else:
                # Different inputs may have the same file name; then one job cannot have both.
                first = min(keys.setdefault(key, number), files.setdefault(file, number))
                if first != number:
                    problems.append(Problem(f"/inputs/{number}", f"makes the same file as /inputs/{first}"))
                found[key] = payload
            if len(problems) >= _MOST_PROBLEMS:
                break
        if problems:
            raise InvalidJob(problems)
        return found

    def _create(
        self,
        transaction: LedgerConnection,
        made: dict[str, Any],
        payloads: dict[str, str],
        flow: str,
    ) -> str | None:
        row = transaction.one("job_create", made)
        if row is not None and self._ledger.dialect == "sqlite":
            row = transaction.one("job_key", {"job": row.job_id})
        if row is None:
            return None
        self._ledger.enqueue(
            transaction,
            flow=flow,
            keys=[f"{row.job_key}/{key}" for key in payloads],
            payloads=list(payloads.values()),
            priority=made["priority"],
            run_at=None,
            batch=secrets.randbits(62),
            notify=True,
            job=row.job_id,
        )
        transaction.all("job_event", {"job": row.job_id, "kind": "submitted", "detail": None})
        return str(row.job_key)

    def _register(self, exporter: ExporterLike) -> None:
        """The first job may come before the first worker."""
        if exporter.name not in self._registered:
            self._ledger.run_safely(
                "flow_register",
                flow=exporter.flow_name,
                max_attempts=exporter.max_attempts,
                max_deaths=exporter.max_deaths,
            )
            self._registered.add(exporter.name)

    def _repeated(self, idempotency_key: str, body_hash: str) -> Job:
        row = self._ledger.run_safely("job_repeated", idempotency_key=idempotency_key)[0]
        if row.body_hash != body_hash:
            raise IdempotencyConflict(
                f"The idempotency key {idempotency_key!r} has made the job {row.job_key}, of another body. Use a new key for "
                "a new job."
            )
        return self.get(row.job_key)

    def _exporter(self, name: str | None) -> ExporterLike:
        if not self._exporters:
            raise Refused(
                "This program has no exporters: declare one with @app.exporter(…), or [exporters.NAME] in rowlock.toml."
            )
        known = ", ".join(sorted(self._exporters))
        if name is None:
            if len(self._exporters) != 1:
                raise InvalidJob([Problem("/exporter", f"say which exporter; there are: {known}")])
            return next(iter(self._exporters.values()))
        if name not in self._exporters:
            raise InvalidJob([Problem("/exporter", f"there is no exporter {name!r}; there are: {known}")])
        return self._exporters[name]

    # -- look ------------------------------------------------------------------------------------------------

    def get(self, key: str) -> Job:
        rows = self._ledger.run_safely("job_find", key=key) if KEY.fullmatch(key) else []
        if not rows:
            raise NotFound(f"There is no job {key!r}.")
        return Job.of(rows[0])

    def list(
        self,
        *,
        status: str | None = None,
        exporter: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[Job]:
        """Jobs, newest first; `before` is the id of the last one on the page before."""
        rows = self._ledger.run_safely(
            "jobs", status=status, exporter=exporter, before=NEWEST if before is None else before, limit=limit
        )
        return [Job.of(row) for row in rows]

    def inputs(self, key: str, *, status: str | None = None, after: int = 0, limit: int = 100) -> Inputs:
        """Inputs in the order in which they were given; `after` is the id of the last one on the page before."""
        job = self.get(key)
        rows = self._ledger.run_safely("job_inputs", job=job.id, status=status, after=after, limit=limit)
        return [_input(row) for row in rows]

    def input(self, key: str, input_id: int) -> JobInput:
        for one in self.inputs(key, after=input_id - 1, limit=1):
            if one.id == input_id:
                return one
        raise NotFound(f"Job {key} has no input {input_id}.")

    def all_inputs(self, key: str, *, status: str | None = None) -> Iterator[JobInput]:
        after = 0
        while page := self.inputs(key, status=status, after=after, limit=_PAGE):
            yield from page
            after = page[-1].id

    def events(self, key: str, *, after: int = 0, limit: int = 100) -> Events:
        rows = self._ledger.run_safely("job_events", job=self.get(key).id, after=after, limit=limit)
        return [
            JobEvent(row.event_id, clock.as_datetime(row.happened_at), row.kind, row.detail)  # type: ignore[arg-type]
            for row in rows
        ]

    # -- change ----------------------------------------------------------------------------------------------

    def cancel(self, key: str, reason: str = "cancelled") -> Job:
        """The job ends now: what waits is cancelled, and what runs is revoked."""
        job = self.get(key)
        if not self._stop(job, "CANCELLED", reason):
            raise Refused(f"Job {key} has ended already: it is {self.get(key).status}.")
        self.cancel_live(job.id, reason)
        return self.get(key)

    def fail(self, key: str, reason: str) -> bool:
        """The job ends as failed; what waits is held back. False if it had ended before."""
        job = self.get(key)
        stopped = self._stop(job, "FAILED", reason)
        if stopped:
            self._ledger.run("job_hold_back", job=job.id)
        return stopped

    def _stop(self, job: Job, status: str, reason: str) -> bool:
        with self._ledger.transaction() as transaction:
            stopped = transaction.one("job_stop", {"key": job.key, "status": status, "why": reason})
            if stopped is not None:
                transaction.all("job_event", {"job": job.id, "kind": status.lower(), "detail": reason})
        return stopped is not None

    def cancel_live(self, job_id: int, reason: str) -> None:
        while rows := self._ledger.run("job_live_ids", job=job_id, limit=_PAGE):
            self._ledger.cancel([row.id for row in rows], reason)

    def redrive(
        self,
        key: str,
        *,
        input_ids: Sequence[int] | None = None,
        status: Literal["DLQ", "CANCELLED"] | None = None,
        error_contains: str | None = None,
    ) -> int:
        """Dead and cancelled inputs run again: all of them, or those named, or that fit. The job is open again; how many."""
        job = self.get(key)
        ids = list(self._redrivable(job.id, status, error_contains))
        if input_ids is not None:
            strangers = [id_ for id_ in input_ids if id_ not in set(ids)]
            if strangers:
                raise Refused(
                    f"Job {key}: the inputs {strangers[:10]} are no dead or cancelled inputs of it that fit."
                )
            ids = list(input_ids)
        if not ids:
            raise Refused(
                f"Job {key} is {job.status} and has no dead or cancelled inputs that fit: there is nothing to drive again."
            )
        return sum(len(self._ledger.redrive(ids[at : at + _PAGE])) for at in range(0, len(ids), _PAGE))

    def _redrivable(self, job_id: int, status: str | None, error: str | None) -> Iterator[int]:
        wanted = {"job": job_id, "status": status, "error": error, "limit": _PAGE}
        after = 0
        while rows := self._ledger.run_safely("job_input_ids", **wanted, after=after):
            yield from (row.id for row in rows)
            after = rows[-1].id


Inputs = list[JobInput]  # their own names: inside the class `list` is a method
Events = list[JobEvent]


def _input(row: Row) -> JobInput:
    result = decode(row.result) or {}
    return JobInput(
        id=row.input_id,
        fields=decode(row.fields),
        status=row.status,
        attempts=row.attempt_count,
        next_retry_at=clock.as_datetime(row.next_retry_at),
        path=row.s3_path,
        reused=bool(row.is_reused),
        rows=result.get("rows"),
        bytes=result.get("bytes"),
        sha256=result.get("sha256"),
        error=row.error_message,
        holder=row.lease_owner,
        created_at=clock.as_datetime(row.created_at),  # type: ignore[arg-type] # never null
        claimed_at=clock.as_datetime(row.claimed_at),
        settled_at=clock.as_datetime(row.settled_at),
    )
