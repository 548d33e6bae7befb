"""JSON Lines: one object a line, UTF-8. What JSON has no word for is written as text."""

from __future__ import annotations

import json
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from rowlock.errors import Reject
from rowlock.jobs.formats.rows import Rows


class JsonLinesEncoder:
    def __init__(self) -> None:
        self.rows = 0
        self._encode = json.JSONEncoder(
            ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_text
        ).encode

    def encode(self, batch: Any) -> bytes:
        if isinstance(batch, Rows):
            lines = [dict(zip(batch.columns, row, strict=True)) for row in batch.values]
        else:
            lines = batch.to_pylist()
        try:
            text = "".join(f"{self._encode(line)}\n" for line in lines)
        except ValueError as error:
            raise Reject(
                f"after row {self.rows}: {error}. JSON has no such number: give None, or text."
            ) from error
        self.rows += len(lines)
        return text.encode()

    def finish(self) -> bytes:
        return b""


def _text(value: Any) -> str:
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal() | UUID():  # a float would lose digits
            return str(value)
    raise Reject(f"{type(value).__name__} cannot be written as JSON: convert it in the exporter.")
