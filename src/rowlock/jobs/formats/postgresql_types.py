"""PostgreSQL's types as Arrow's. `numeric` without a precision, and whatever has no counterpart, becomes text."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

_TYPES = {
    16: pa.bool_(),
    17: pa.binary(),
    20: pa.int64(),
    21: pa.int16(),
    23: pa.int32(),
    700: pa.float32(),
    701: pa.float64(),
    1082: pa.date32(),
    1083: pa.time64("us"),
    1114: pa.timestamp("us"),
    1184: pa.timestamp("us", tz="UTC"),
}
_NUMERIC = 1700
_MAX_PRECISION = 38


def schema_of(description: Any) -> pa.Schema:
    return pa.schema([(column.name, _type(column)) for column in description])


def _type(column: Any) -> pa.DataType:
    if column.type_code == _NUMERIC and column.precision and column.precision <= _MAX_PRECISION:
        return pa.decimal128(column.precision, column.scale or 0)
    return _TYPES.get(column.type_code, pa.string())
