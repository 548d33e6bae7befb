"""`rowlock jobs`: export jobs, straight on the ledger."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rowlock.cli.enqueue import open_text
from rowlock.cli.ledgers import open_ledger
from rowlock.cli.loading import app_or_plain
from rowlock.cli.options import AsJson, LedgerUrl, Limit, Yes
from rowlock.cli.output import confirm, console, say, say_json, say_table, since, stamp
from rowlock.errors import InvalidInput

if TYPE_CHECKING:
    from rowlock.jobs.job import Job
    from rowlock.jobs.jobs import Jobs
    from rowlock.ledger.ledger import Ledger

group = typer.Typer(name="jobs", no_args_is_help=True, help="Export jobs: submit, look, cancel, drive again.")

_LOOK_SECONDS = 0.5
_DEAD_SHOWN = 10

JobKey = Annotated[str, typer.Argument(metavar="JOB", help="As in J20260110_000777.")]


@contextmanager
def _jobs(url: str | None) -> "Iterator[tuple[Ledger, Jobs]]":
    """Without exporters: everything but submitting."""
    from rowlock.jobs.jobs import Jobs

    with open_ledger(url) as opened:
        yield opened, Jobs(opened, {})


@group.command()
def submit(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODULE[:APP]]",
            help="Where your exporters are; without it, those of rowlock.toml.",
            show_default=False,
        ),
    ] = None,
    *,
    file: Annotated[
        str,
        typer.Option(metavar="PATH", help='One input a line, or {"inputs": […]}, as JSON; - reads stdin.'),
    ],
    exporter: Annotated[str | None, typer.Option(metavar="NAME", help="If there are several.")] = None,
    policy: Annotated[str, typer.Option(metavar="POLICY", help="fail_fast or continue.")] = "fail_fast",
    priority: Annotated[int, typer.Option(help="0 (normal) to 100 (first).")] = 0,
    deadline: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Then it fails.", show_default=False)
    ] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="The same key again is the same job.")
    ] = None,
    as_json: AsJson = False,
    ledger: LedgerUrl = None,
) -> None:
    """Submit a job: a file for each input, or an error and nothing.

    Example: rowlock jobs submit exports:app --file inputs.jsonl
    """
    inputs = _read(file)
    with app_or_plain(target, ledger) as app:
        job, made = app.jobs.submit(
            inputs,
            exporter=exporter,
            policy=policy,  # type: ignore[arg-type] # it is checked there
            priority=priority,
            deadline=deadline,
            idempotency_key=idempotency_key,
        )
    if as_json:
        say_json(_view(job))
    elif made:
        say(f"{job.key}: {job.total:,} inputs. See it with: rowlock jobs watch {job.key}")
    else:
        say(f"{job.key}: was made before by the same key; it is {job.status}.")


@group.command("list")
def list_(
    *,
    status: Annotated[
        str | None, typer.Option(metavar="STATUS", help="Only SUBMITTED, RUNNING, COMPLETED, …")
    ] = None,
    exporter: Annotated[str | None, typer.Option(metavar="NAME", help="Only of this exporter.")] = None,
    limit: Limit = 50,
    as_json: AsJson = False,
    ledger: LedgerUrl = None,
) -> None:
    """List jobs, newest first."""
    with _jobs(ledger) as (opened, jobs):
        found = jobs.list(status=status.upper() if status else None, exporter=exporter, limit=limit)
        now = opened.now()
    if as_json:
        say_json([_view(job) for job in found])
    elif not found:
        say("No jobs.")
    else:
        rows = (
            (job.key, job.exporter, job.status, job.total, job.done, job.dead, since(job.requested_at, now), job.error_message)
            for job in found
        )  # fmt: skip
        say_table(("job", "exporter", "status", ">total", ">done", ">dead", ">requested", "error"), rows)


@group.command()
def show(job: JobKey, *, as_json: AsJson = False, ledger: LedgerUrl = None) -> None:
    """Show a job: its counts, its times, and what died."""
    with _jobs(ledger) as (_, jobs):
        found = jobs.get(job)
        dead = jobs.inputs(job, status="DLQ", limit=_DEAD_SHOWN)
    if as_json:
        say_json(_view(found))
        return
    say(f"{_line(found)}")
    if found.error_message:
        say(f"error: {found.error_message}")
    for name in ("requested_at", "started_at", "completed_at", "deadline_at"):
        if getattr(found, name) is not None:
            say(f"{name.removesuffix('_at')}: {stamp(getattr(found, name))}")
    if dead:
        rows = ((one.id, json.dumps(one.fields), one.attempts, one.error) for one in dead)
        say_table((">dead input", "fields", ">attempts", "error"), rows)


@group.command()
def watch(job: JobKey, *, as_json: AsJson = False, ledger: LedgerUrl = None) -> None:
    """Watch a job until it has ended; the exit code is 0 if it is COMPLETED, and 1 if not."""
    with _jobs(ledger) as (_, jobs):
        last = _follow(_changes(jobs, job), as_json=as_json)
    raise typer.Exit(0 if last.status == "COMPLETED" else 1)


def _changes(jobs: "Jobs", key: str) -> "Iterator[Job]":
    """The job whenever it has changed; its last state is one that has ended."""
    seen = None
    while True:
        job = jobs.get(key)
        if job.etag != seen:
            seen = job.etag
            yield job
        if not job.open:
            return
        time.sleep(_LOOK_SECONDS)


def _follow(changes: "Iterator[Job]", *, as_json: bool) -> "Job":
    """A bar on a terminal; a line for each change elsewhere."""
    out = console()
    if as_json or not out.is_terminal:
        for job in changes:
            say(json.dumps(_view(job)) if as_json else _line(job))
        return job
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=out) as bar:
        task = bar.add_task("")
        for job in changes:
            settled = job.done + job.dead + job.cancelled
            bar.update(task, total=job.total, completed=settled, description=_line(job))
    return job


@group.command()
def cancel(job: JobKey, *, yes: Yes = False, as_json: AsJson = False, ledger: LedgerUrl = None) -> None:
    """Cancel a job: what waits is cancelled, and what runs is revoked."""
    with _jobs(ledger) as (_, jobs):
        found = jobs.get(job)
        if found.open:
            confirm(
                f"Cancel {job}, with {found.total - found.done:,} of {found.total:,} inputs to do?", yes=yes
            )
        found = jobs.cancel(job)
    if as_json:
        say_json(_view(found))
    else:
        say(_line(found))


@group.command()
def redrive(
    job: JobKey,
    inputs: Annotated[
        list[int] | None,
        typer.Argument(metavar="INPUT", help="These; otherwise all that are dead or cancelled."),
    ] = None,
    *,
    status: Annotated[
        str | None, typer.Option(metavar="STATUS", help="Only those that are DLQ, or CANCELLED.")
    ] = None,
    error: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only those whose error contains this text.")
    ] = None,
    as_json: AsJson = False,
    ledger: LedgerUrl = None,
) -> None:
    """Drive a job's dead and cancelled inputs again; the job is open again.

    Example: rowlock jobs redrive J20260110_000777 --error "no such table"
    """
    if status is not None and status.upper() not in ("DLQ", "CANCELLED"):
        raise InvalidInput(f"--status {status}: inputs that can be driven again are DLQ or CANCELLED.")
    with _jobs(ledger) as (_, jobs):
        redriven = jobs.redrive(
            job,
            input_ids=list(dict.fromkeys(inputs)) if inputs else None,
            status=status.upper() if status else None,  # type: ignore[arg-type] # one of the two
            error_contains=error,
        )
        status = jobs.get(job).status
    if as_json:
        say_json({"jobId": job, "status": status, "redriven": redriven})
    else:
        say(f"{job}: {redriven:,} inputs are driven again.")


def _read(path: str) -> list[Any]:
    """The inputs in a file: a body as it would be posted, a list, or one a line."""
    with open_text(path) as (stream, name):
        text = stream.read()
    try:
        whole = json.loads(text)
    except ValueError:
        return list(_read_lines(text, name))
    if isinstance(whole, dict) and isinstance(whole.get("inputs"), list):
        return list(whole["inputs"])
    return whole if isinstance(whole, list) else [whole]


def _read_lines(text: str, name: str) -> Iterator[Any]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise InvalidInput(
                    f"{name}, line {number} is not JSON: {error}. Nothing was submitted."
                ) from None


def _line(job: "Job") -> str:
    counts = {
        "pending": job.pending, "running": job.running, "waiting to retry": job.retry_wait, "done": job.done,
        "dead": job.dead, "cancelled": job.cancelled,
    }  # fmt: skip
    told = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    return f"{job.key} {job.status}: {told} of {job.total:,}"


def _view(job: "Job") -> dict[str, Any]:
    """As GET /jobs/{jobId} answers, without its files."""
    from rowlock.server.job_views import JobView

    return JobView.of(job).model_dump(mode="json", by_alias=True, exclude={"data_content", "inputs"})
