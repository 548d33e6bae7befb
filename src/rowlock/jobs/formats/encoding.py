"""The formats of files: what they are called, and who writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rowlock.jobs.exporter import Exporter

EXTENSIONS = {"csv": "csv", "jsonl": "jsonl", "parquet": "parquet"}
PACKED = {"gzip": ".gz", "zstd": ".zst"}
_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}
_PACKED_TYPES = {"gzip": "application/gzip", "zstd": "application/zstd"}


class Encoder(Protocol):
    """Turns batches into bytes; `rows` counts them."""

    rows: int

    def encode(self, batch: Any) -> bytes: ...

    def finish(self) -> bytes: ...


def content_type(format_: str, compression: str | None) -> str:
    return _PACKED_TYPES[compression] if compression and format_ != "parquet" else _TYPES[format_]


def encoder_of(exporter: Exporter) -> Encoder:
    match exporter.format:
        case "csv":
            from rowlock.jobs.formats.csv_lines import CsvEncoder  # noqa: PLC0415 - each brings its own libraries

            return CsvEncoder(exporter.columns)
        case "jsonl":
            from rowlock.jobs.formats.json_lines import JsonLinesEncoder  # noqa: PLC0415

            return JsonLinesEncoder()
    from rowlock.jobs.formats.parquet import ParquetEncoder  # noqa: PLC0415

    return ParquetEncoder(exporter.columns, exporter.schema, exporter.compression)
