"""CSV as RFC 4180 quotes it: UTF-8, a heading, lines that end with a newline. NULL is an empty field."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

from rowlock.jobs.formats.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

_AS_IT_IS = {str, int, float}


class CsvEncoder:
    """Rows by Python's own writer, Arrow batches by Arrow's."""

    def __init__(self, columns: tuple[str, ...] | None) -> None:
        self.rows = 0
        self._columns = columns
        self._text = io.StringIO(newline="")
        self._writer = csv.writer(self._text, lineterminator="\n")
        self._headed = False

    def encode(self, batch: Any) -> bytes:
        if isinstance(batch, Rows):
            self.rows += len(batch.values)
            self._head(batch.columns)
            self._writer.writerows([_fields(row) for row in batch.values])
            return self._taken()
        self.rows += batch.num_rows
        return self._arrow(batch)

    def finish(self) -> bytes:
        if self._columns is not None:
            self._head(self._columns)
        return self._taken()

    def _head(self, columns: Sequence[str]) -> None:
        if not self._headed:
            self._headed = True
            self._writer.writerow(columns)

    def _taken(self) -> bytes:
        data = self._text.getvalue().encode()
        self._text.seek(0)
        self._text.truncate()
        return data

    def _arrow(self, batch: Any) -> bytes:
        from pyarrow import BufferOutputStream  # noqa: PLC0415 - whoever yields a batch has it
        from pyarrow.csv import WriteOptions, write_csv  # noqa: PLC0415

        sink = BufferOutputStream()
        write_csv(batch, sink, WriteOptions(include_header=not self._headed))
        self._headed = True
        return bytes(sink.getvalue())


def _fields(row: Sequence[Any]) -> list[Any]:
    return [value if type(value) in _AS_IT_IS else _text(value) for value in row]


def _text(value: Any) -> Any:
    """As PostgreSQL would write it, where Python would not."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case bytes() | bytearray() | memoryview():
            return f"\\x{bytes(value).hex()}"
        case dict() | list():
            return json.dumps(value, ensure_ascii=False, default=str)
    return value
