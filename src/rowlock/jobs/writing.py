"""One attempt: an input becomes a file. It streams, whole or not at all, and is published only by whoever still holds it."""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowlock import clock
from rowlock.crashes import crash_point
from rowlock.errors import ConfigurationError, Reject, StorageError, StorageRefused
from rowlock.jobs.exporter import ExportContext
from rowlock.jobs.formats.compression import compressed
from rowlock.jobs.formats.encoding import encoder_of
from rowlock.jobs.formats.rows import gather
from rowlock.jobs.query import SqlQuery
from rowlock.jobs.sources import copied, selected

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from pydantic import BaseModel

    from rowlock.databases.manager import DatabaseManager
    from rowlock.jobs.exporter import Exporter
    from rowlock.jobs.storage import ArtifactStore, Staged

logger = logging.getLogger("rowlock.jobs")
_BEAT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Written:
    """A file that is there: its absolute URL, and what is in it. `rows` is None when the producer yielded bytes."""

    path: str
    key: str
    rows: int | None
    bytes: int
    sha256: str
    content_type: str


def write_export(
    exporter: Exporter,
    fields: BaseModel,
    store: ArtifactStore,
    *,
    prefix: str,
    token: int = 1,
    check: Callable[[], None] = lambda: None,
    progress: Callable[[float | None], None] = lambda _: None,
    databases: DatabaseManager | None = None,
) -> Written:
    """Makes the file of this input under `prefix`.

    Args:
        exporter: how it is made.
        fields: from what; the exporter has validated it.
        store: where to.
        prefix: the folder of its job, such as `exports/2026/01/10/J20260110_000777`.
        token: of the holding; every attempt has another one.
        check: raises LeaseLost when the holding has ended. Called between batches, and before the file appears.
        progress: called now and then; raises LeaseLost when the ledger says that it is over, as for a cancelled job.
        databases: for exporters that are a query.

    Reject is raised for what a second attempt would meet again; everything else may be tried again.

    """
    file = exporter.file(fields)
    context = ExportContext(exporter.name, exporter.key(fields), token, check, progress, databases)
    production = _Production(exporter, fields, context)
    try:
        with closing(production.chunks()) as chunks:
            packed = compressed(chunks, None if exporter.format == "parquet" else exporter.compression)
            staged = store.stage(file, packed, token=token, content_type=exporter.content_type)
        try:
            check()
            crash_point("before publishing")
            key = store.publish(staged, f"{prefix}/{file}", token=token)
            crash_point("published")
        finally:
            _discard(store, staged)
    except StorageRefused as error:
        raise Reject(str(error)) from error
    return Written(
        store.url_of(key), context.key, production.rows, staged.size, staged.sha256, staged.content_type
    )


def _discard(store: ArtifactStore, staged: Staged) -> None:
    try:
        store.discard(staged)
    except StorageError as error:  # no reason to lose a file that is there: it will be swept
        logger.warning("%s was left behind: %s", store.url_of(staged.key), error)


class _Production:
    """The bytes of one file, and how many rows they are."""

    def __init__(self, exporter: Exporter, fields: BaseModel, context: ExportContext) -> None:
        self._exporter, self._fields, self._context = exporter, fields, context
        self._beat = clock.monotonic()
        self.rows: int | None = None

    def chunks(self) -> Generator[bytes, None, None]:
        produce = self._exporter.produce
        if isinstance(produce, SqlQuery):
            databases = self._context.databases
            if databases is None:
                raise ConfigurationError(
                    f"exporter {self._exporter.name!r} is a query, and no databases were given."
                )
            values = {name: getattr(self._fields, name) for name in produce.names}
            if self._exporter.format == "csv" and databases.dialect(produce.database) == "postgresql":
                yield from self._copied(copied(databases, produce, values))
                return
            typed = self._exporter.format == "parquet"
            yield from self._encoded(selected(databases, produce, values, typed=typed))
            return
        arguments = (self._fields, self._context) if self._exporter.takes_context else (self._fields,)
        items = produce(*arguments)
        try:
            yield from self._encoded(gather(self._iterable(items), self._exporter.columns))
        finally:
            if callable(close := getattr(items, "close", None)):
                close()

    def _copied(self, pieces: Generator[bytes, None, int]) -> Iterator[bytes]:
        with closing(pieces):
            while True:
                try:
                    piece = next(pieces)
                except StopIteration as end:
                    self.rows = end.value
                    return
                self._check()
                yield piece

    def _encoded(self, batches: Generator[Any, None, None]) -> Iterator[bytes]:
        encoder = encoder_of(self._exporter)
        ready = False  # a producer of bytes has done the encoder's work
        with closing(batches):  # a query lets go of its connection now, not when it is collected
            for batch in batches:
                self._check()
                ready = isinstance(batch, bytes)
                data = batch if ready else encoder.encode(batch)
                if data:
                    yield data
        if not ready:
            if data := encoder.finish():
                yield data
            self.rows = encoder.rows

    def _iterable(self, items: Any) -> Iterable[Any]:
        if isinstance(items, bytes | str) or not hasattr(items, "__iter__"):
            raise Reject(
                f"exporter {self._exporter.name!r} returned {type(items).__name__}. It yields its rows, or returns a list of them."
            )
        return items  # type: ignore[no-any-return]

    def _check(self) -> None:
        self._context.check()
        if clock.monotonic() - self._beat > _BEAT_SECONDS:
            self._beat = clock.monotonic()
            self._context.progress(None)
