"""Parquet by pyarrow: a row group at a time, handed on as soon as it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlock.errors import ConfigurationError, Reject
from rowlock.jobs.formats.rows import Rows

if TYPE_CHECKING:
    import pyarrow as pa

# Enough for a reader to skip by, small enough to hold.
_GROUP_ROWS = 100_000
_GROUP_BYTES = 32 * 1024 * 1024


class Outlet:
    """A file for libraries that write to one: what they have written can be taken away."""

    closed = False

    def __init__(self) -> None:
        self._written = bytearray()
        self._position = 0

    def write(self, data: Any) -> int:
        self._written += data
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        self.closed = True

    def taken(self) -> bytes:
        data = bytes(self._written)
        self._written.clear()
        return data


class ParquetEncoder:
    """The schema is the exporter's, or the source's, or what the first batch shows."""

    def __init__(self, columns: tuple[str, ...] | None, schema: Any, compression: str | None) -> None:
        try:
            import pyarrow  # noqa: ICN001, PLC0415 - heavy: only whoever writes Parquet needs it
            from pyarrow import parquet  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise ConfigurationError(
                "Parquet needs pyarrow. Install it: pip install 'rowlock[jobs]'"
            ) from error
        self._pa, self._parquet = pyarrow, parquet
        self.rows = 0
        self._columns = columns
        self._schema: pa.Schema | None = schema
        self._compression = compression or "zstd"
        self._outlet = Outlet()
        self._writer: Any = None
        self._waiting: list[pa.RecordBatch] = []

    def encode(self, batch: Any) -> bytes:
        arrow = self._from_rows(batch) if isinstance(batch, Rows) else batch
        if self._schema is None:
            self._schema = arrow.schema
        self.rows += arrow.num_rows
        self._waiting += arrow.to_batches() if hasattr(arrow, "to_batches") else [arrow]
        held = sum(one.num_rows for one in self._waiting), sum(one.nbytes for one in self._waiting)
        if held[0] >= _GROUP_ROWS or held[1] >= _GROUP_BYTES:
            self._write_group()
        return self._outlet.taken()

    def finish(self) -> bytes:
        if self._schema is None:
            if self._columns is None:
                raise Reject(
                    "There are no rows, and a Parquet file needs columns: give columns=(…) or schema=… too."
                )
            self._schema = self._pa.schema([(column, self._pa.null()) for column in self._columns])
        self._write_group()
        self._writer.close()
        return self._outlet.taken()

    def _write_group(self) -> None:
        if self._writer is None:
            self._writer = self._parquet.ParquetWriter(
                self._outlet, self._schema, compression=self._compression
            )
        if self._waiting:
            self._writer.write_table(
                self._pa.Table.from_batches(self._waiting, self._schema), row_group_size=_GROUP_ROWS
            )
            self._waiting.clear()

    def _from_rows(self, batch: Rows) -> pa.RecordBatch:
        pa, schema = self._pa, self._schema or batch.schema
        columns: list[Any] = list(zip(*batch.values, strict=True)) or [() for _ in batch.columns]
        arrays = []
        for number, name in enumerate(batch.columns):
            wanted = schema.field(name).type if schema is not None else None
            values = columns[number]
            if wanted is not None and pa.types.is_string(wanted):
                values = [value if value is None or type(value) is str else str(value) for value in values]
            try:
                arrays.append(pa.array(values, type=wanted))
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
                raise Reject(
                    f"column {name!r}, after row {self.rows}: {error}. The first rows made it {wanted or 'nothing certain'}: "
                    "give the exporter a schema=…, or convert it in the query."
                ) from error
        return (
            pa.RecordBatch.from_arrays(arrays, schema=schema)
            if schema
            else pa.RecordBatch.from_arrays(arrays, batch.columns)
        )
