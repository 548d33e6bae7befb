"""What producers yield, as batches: rows under one heading, Arrow batches, or bytes that are ready."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rowlock.errors import Reject

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS = 5000
_BATCH_BYTES = 256 * 1024


class Rows(NamedTuple):
    """Some rows, as tuples in the order of the columns."""

    columns: tuple[str, ...]
    values: list[Sequence[Any]]
    schema: pa.Schema | None = None


def gather(items: Iterable[Any], columns: tuple[str, ...] | None) -> Generator[Any, None, None]:
    """Batches of one kind from whatever a producer yields; Reject, with the row's number, where it is not of one kind."""
    gatherer: Any = None
    for number, item in enumerate(items, 1):
        kind = _kind(item, number)
        if gatherer is None:
            gatherer = kind(columns)
        elif type(gatherer) is not kind:
            raise Reject(
                f"item {number}: {type(item).__name__} after {gatherer.yields}. An exporter yields one kind of thing."
            )
        batch = gatherer.take(item, number)
        if batch is not None:
            yield batch
    if gatherer is not None and (last := gatherer.last()) is not None:
        yield last


class _Dicts:
    yields = "dicts"

    def __init__(self, columns: tuple[str, ...] | None) -> None:
        self._columns = columns
        self._values: list[Sequence[Any]] = []

    def take(self, item: Mapping[str, Any], number: int) -> Rows | None:
        if self._columns is None:
            self._columns = tuple(map(str, item))
        if len(item) != len(self._columns):
            raise self._other(item, number)
        try:
            self._values.append([item[column] for column in self._columns])
        except KeyError:
            raise self._other(item, number) from None
        return self.last() if len(self._values) >= _BATCH_ROWS else None

    def last(self) -> Rows | None:
        values, self._values = self._values, []
        return Rows(self._columns or (), values) if values else None

    def _other(self, item: Mapping[str, Any], number: int) -> Reject:
        return Reject(
            f"row {number} has the columns {', '.join(map(str, item))}, and the file has "
            f"{', '.join(self._columns or ())}. Every row of a file has the same columns."
        )


class _Tuples:
    yields = "tuples"

    def __init__(self, columns: tuple[str, ...] | None) -> None:
        if columns is None:
            raise Reject(
                "A producer that yields tuples needs columns=(…) in its exporter, for the file's heading."
            )
        self._columns = columns
        self._values: list[Sequence[Any]] = []

    def take(self, item: Sequence[Any], number: int) -> Rows | None:
        if len(item) != len(self._columns):
            raise Reject(
                f"row {number} has {len(item)} values, and the file has {len(self._columns)} columns."
            )
        self._values.append(item)
        return self.last() if len(self._values) >= _BATCH_ROWS else None

    def last(self) -> Rows | None:
        values, self._values = self._values, []
        return Rows(self._columns, values) if values else None


class _Arrow:
    yields = "Arrow batches"

    def __init__(self, _columns: tuple[str, ...] | None) -> None:
        self._schema: Any = None

    def take(self, item: Any, number: int) -> Any:
        if self._schema is None:
            self._schema = item.schema
        elif not item.schema.equals(self._schema):
            raise Reject(
                f"batch {number} has another schema than the first:\n{item.schema}\ninstead of\n{self._schema}"
            )
        return item

    def last(self) -> None:
        return None


class _Bytes:
    yields = "bytes"

    def __init__(self, _columns: tuple[str, ...] | None) -> None:
        self._gathered = bytearray()

    def take(self, item: bytes, _number: int) -> bytes | None:
        self._gathered += item
        return self.last() if len(self._gathered) >= _BATCH_BYTES else None

    def last(self) -> bytes | None:
        data = bytes(self._gathered)
        self._gathered.clear()
        return data or None


def _kind(item: Any, number: int) -> type[_Dicts | _Tuples | _Arrow | _Bytes]:
    if isinstance(item, Mapping):
        return _Dicts
    if isinstance(item, tuple | list):
        return _Tuples
    if isinstance(item, bytes | bytearray | memoryview):
        return _Bytes
    if type(item).__module__.startswith("pyarrow") and hasattr(item, "schema"):
        return _Arrow
    raise Reject(
        f"item {number} is {type(item).__name__}. An exporter yields dicts, tuples, Arrow batches or bytes."
    )
