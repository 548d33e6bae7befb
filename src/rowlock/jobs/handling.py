"""What a worker does with an input: reuse a file that is still good, or make one; register it; complete the input."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rowlock.errors import InvalidInput, Reject, RetryLater
from rowlock.jobs.job import OPEN
from rowlock.jobs.writing import Written, write_export

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel

    from rowlock.databases.manager import DatabaseManager
    from rowlock.jobs.exporter import Exporter
    from rowlock.jobs.storage import ArtifactStore
    from rowlock.ledger.ledger import Ledger, Row
    from rowlock.queue.record import Record
    from rowlock.settings import Settings

logger = logging.getLogger("rowlock.jobs")

# A held-back input waits until somebody drives it again; the ledger's statements know this date.
_NEVER = datetime(9999, 1, 2, tzinfo=UTC)


@dataclass(frozen=True)
class Workshop:
    """What is needed to make files. Opened when the first file is made, not when the program is read."""

    settings: Settings
    ledger: Callable[[], Ledger]
    store: Callable[[], ArtifactStore]
    databases: Callable[[], DatabaseManager]


class ExportHandler:
    """The handler of the flow `export.NAME`."""

    def __init__(self, exporter: Exporter, workshop: Workshop) -> None:
        self._exporter = exporter
        self._workshop = workshop
        self._signed = False

    def __call__(self, record: Record) -> None:
        job_key = record.key.partition("/")[0]
        self._begin(job_key)
        try:
            fields = self._exporter.validate(record.payload)
        except InvalidInput as error:  # the exporter's model has changed since; it will say so again
            raise Reject(str(error)) from error
        made = self._reusable(fields) or self._make(record, fields, job_key)
        self._complete(record, fields, job_key, made)

    def _begin(self, job_key: str) -> None:
        """The job runs from here on. An input of a job that has ended goes back, and takes its siblings with it."""
        ledger = self._workshop.ledger()
        job = ledger.run_safely("job_find", key=job_key)[0]
        if job.status in OPEN:
            if job.started_at is None:
                ledger.run_safely("job_begin", key=job_key)
        else:
            ledger.run_safely("job_hold_back", job=job.job_id)
            raise RetryLater(_NEVER.timestamp() - ledger.now(), f"its job {job_key} is {job.status}")

    # -- reuse -----------------------------------------------------------------------------------------------

    def _reusable(self, fields: BaseModel) -> dict[str, Any] | None:
        """A file that an earlier job made, if the settings allow it, its data cannot change any more, and it is there."""
        if not self._workshop.settings.reuse_enabled or self._may_change(fields):
            return None
        ledger, key = self._workshop.ledger(), self._exporter.key(fields)
        rows = ledger.run_safely("artifact_find", exporter=self._exporter.name, key=key)
        if not rows:
            return None
        if not self._workshop.store().exists(rows[0].s3_path):
            logger.warning("%s is gone from the storage; it is made again", rows[0].s3_path)
            ledger.run_safely("artifact_forget", exporter=self._exporter.name, key=key, path=rows[0].s3_path)
            return None
        return _result(rows[0])

    def _may_change(self, fields: BaseModel) -> bool:
        """A recent effective date may still change; an input without one says nothing about it."""
        date = getattr(fields, "effectiveDate", None)
        if not isinstance(date, int):
            return False
        now = datetime.fromtimestamp(self._workshop.ledger().now(), UTC)
        last = now - timedelta(days=self._workshop.settings.reuse_days)
        return date > int(last.strftime("%Y%m%d"))

    # -- make ------------------------------------------------------------------------------------------------

    def _make(self, record: Record, fields: BaseModel, job_key: str) -> Written:
        store = self._workshop.store()
        if not self._signed:
            self._sign(store)
        return write_export(
            self._exporter,
            fields,
            store,
            prefix=folder_of(job_key),
            token=record.token,
            check=record.check,
            progress=record.heartbeat,
            databases=self._workshop.databases(),
        )

    def _sign(self, store: ArtifactStore) -> None:
        """Before the first file: only the ledger that was the first to keep files here may sweep them."""
        if not store.belongs_to(self._workshop.ledger().identity):
            logger.warning(
                "%s is the storage of another ledger too: what lost attempts leave there is not swept. "
                "Give each ledger a prefix of its own (ROWLOCK_STORAGE_URL).",
                store.url,
            )
        self._signed = True

    def _complete(
        self, record: Record, fields: BaseModel, job_key: str, made: Written | dict[str, Any]
    ) -> None:
        """The registry and the completion are one commit: a stale holder's file counts nowhere."""
        with record.transaction() as tx:
            if isinstance(made, dict):
                tx.result = made
                return
            tx.result = {
                "path": made.path,
                "rows": made.rows,
                "bytes": made.bytes,
                "sha256": made.sha256,
                "reused": False,
            }
            self._workshop.ledger().borrow(tx.connection).all(
                "artifact_put",
                {
                    "exporter": self._exporter.name,
                    "key": self._exporter.key(fields),
                    "fields": fields.model_dump_json(),
                    "path": made.path,
                    "job_key": job_key,
                    "record_id": record.id,
                    "token": record.token,
                    "rows": made.rows,
                    "bytes": made.bytes,
                    "sha256": made.sha256,
                },
            )


def folder_of(job_key: str) -> str:
    """exports/2026/01/10/J20260110_000777: a job's key begins with its day."""
    day = job_key[1:9]
    return f"exports/{day[:4]}/{day[4:6]}/{day[6:]}/{job_key}"


def _result(artifact: Row) -> dict[str, Any]:
    return {
        "path": artifact.s3_path,
        "rows": artifact.row_count,
        "bytes": artifact.byte_count,
        "sha256": artifact.sha256,
        "reused": True,
    }
