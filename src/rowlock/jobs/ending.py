"""What the end of a job sets off: its manifest, and its webhook. Each end is one record, so neither is forgotten."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rowlock.jobs.handling import folder_of
from rowlock.jobs.webhook import send

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlock.jobs.handling import Workshop
    from rowlock.jobs.job import Job
    from rowlock.jobs.jobs import Jobs
    from rowlock.queue.record import Record


class EndHandler:
    """The handler of the flow `rowlock.job_end`."""

    def __init__(self, jobs: Callable[[], Jobs], workshop: Workshop) -> None:
        self._open = jobs
        self._workshop = workshop

    def __call__(self, record: Record) -> dict[str, Any]:
        jobs = self._open()
        job = jobs.get(record.payload["job"])
        if job.ends != record.payload["end"] or job.open:
            return {"skipped": "the job was driven again meanwhile"}
        done: dict[str, Any] = {}
        if job.status == "COMPLETED":
            done["manifest"] = self._write_manifest(job, jobs)
        if job.webhook_url is not None:
            secret = self._workshop.settings.webhook_secret.get_secret_value()
            done["webhook"] = send(job.webhook_url, notice(job, done), secret, key=record.idempotency_key)
        return done

    def _write_manifest(self, job: Job, jobs: Jobs) -> str:
        content = json.dumps(manifest(job, jobs), indent=2).encode()
        return self._workshop.store().put(
            f"{folder_of(job.key)}/manifest.json", content, content_type="application/json"
        )


def manifest(job: Job, jobs: Jobs) -> dict[str, Any]:
    """Every file of a job, with what is in it: the same each time it is made."""
    return {
        "jobId": job.key,
        "exporter": job.exporter,
        "total": job.total,
        "files": [
            {
                **one.fields,
                "path": one.path,
                "rows": one.rows,
                "bytes": one.bytes,
                "sha256": one.sha256,
                "reused": one.reused,
            }
            for one in jobs.all_inputs(job.key, status="SUCCEEDED")
        ],
    }


def notice(job: Job, more: dict[str, Any]) -> dict[str, Any]:
    """What a webhook is told."""
    return {
        "jobId": job.key,
        "status": job.status,
        "total": job.total,
        "done": job.done,
        "failed": job.dead,
        "cancelled": job.cancelled,
        "filesGenerated": job.generated,
        "filesReused": job.reused,
        "errorMessage": job.error_message,
        **more,
    }
