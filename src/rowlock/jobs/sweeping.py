"""What attempts that died or were fenced off have left in the storage, removed long after their job's end."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rowlock.errors import RetryLater
from rowlock.jobs.handling import folder_of
from rowlock.jobs.job import OPEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlock.jobs.handling import Workshop
    from rowlock.jobs.job import Job
    from rowlock.jobs.jobs import Jobs
    from rowlock.jobs.storage import ArtifactStore
    from rowlock.queue.record import Record

logger = logging.getLogger("rowlock.jobs")

_AGAIN_SECONDS = 3600.0


class SweepHandler:
    """The handler of the flow `rowlock.job_sweep`."""

    def __init__(self, jobs: Callable[[], Jobs], workshop: Workshop) -> None:
        self._open = jobs
        self._workshop = workshop

    def __call__(self, record: Record) -> dict[str, Any]:
        ledger, store, jobs = self._workshop.ledger(), self._workshop.store(), self._open()
        job = jobs.get(record.payload["job"])
        if job.running:
            raise RetryLater(_AGAIN_SECONDS, f"inputs of its job {job.key} still run")
        if not store.belongs_to(ledger.identity):
            return {"skipped": f"{store.url} is the storage of another ledger too"}
        age = timedelta(seconds=self._workshop.settings.sweep_after_seconds)
        older_than = datetime.fromtimestamp(ledger.now(), UTC) - age
        attempts = store.sweep_attempts(older_than)
        return {"attempts": attempts, **self._sweep_folder(job, jobs, store, older_than)}

    def _sweep_folder(
        self, job: Job, jobs: Jobs, store: ArtifactStore, older_than: datetime
    ) -> dict[str, Any]:
        folder = folder_of(job.key)
        kept = {one.path for one in jobs.all_inputs(job.key, status="SUCCEEDED") if one.path}
        if len(kept) < job.done:
            return {
                "skipped": "the ledger has forgotten some of its inputs, and cannot tell which files count"
            }
        kept.add(store.url_of(f"{folder}/manifest.json"))
        swept = 0
        for stored in store.leftovers(folder, older_than, kept):
            if not self._delete(job, store, stored.key):
                return {"swept": swept, "skipped": "the job was driven again meanwhile"}
            logger.info("%s was left by a lost attempt, and is deleted", store.url_of(stored.key))
            swept += 1
        return {"swept": swept}

    def _delete(self, job: Job, store: ArtifactStore, key: str) -> bool:
        """Under the job's lock: an attempt of a job that was driven again would take this file for its own."""
        with self._workshop.ledger().transaction() as transaction:
            transaction.one("job_lock", {"job": job.id})
            now = transaction.one("job_find", {"key": job.key})
            if now is None or now.status in OPEN:
                return False
            store.delete(key)
        return True
