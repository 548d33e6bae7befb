"""A job's counts on SQLite: kept by whoever settles its inputs, in the same transaction. PostgreSQL has functions for it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowlock.ledger.connection import LedgerConnection, Row


def count_job(
    on: LedgerConnection,
    job: int,
    *,
    done: int = 0,
    dead: int = 0,
    cancelled: int = 0,
    reused: int = 0,
    why: str | None = None,
) -> None:
    """Counts inputs that are being settled, and ends the job if these were the last, or one of them is dead."""
    counts = {"done": done, "dead": dead, "cancelled": cancelled, "reused": reused}
    on.all("job_count", {"job": job, "why": why, **counts})
    for row in on.all("job_end", {"job": job}):
        on.all("job_event", {"job": job, "kind": row.kind, "detail": why})


def reopen_jobs(on: LedgerConnection, back: Iterable[Row]) -> None:
    """Records that are driven again open the jobs that they are inputs of."""
    jobs: dict[int, Counter[str]] = {}
    for row in back:
        if row.job_id is not None:
            was = on.all("history_status", {"id": row.id})[0].status
            jobs.setdefault(row.job_id, Counter())[was] += 1
    for job, fewer in jobs.items():
        on.all("job_reopen", {"job": job, "dead": fewer["dead"], "cancelled": fewer["cancelled"]})
        on.all("job_let_go", {"job": job})
        on.all("job_event", {"job": job, "kind": "redriven", "detail": f"{fewer.total()} inputs"})
