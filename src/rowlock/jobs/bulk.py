"""All inputs of a job at once, column by column: several times as fast as one by one, if there is nothing to say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from rowlock.jobs.inputs import MAX_PART_LENGTH, SAFE
from rowlock.jobs.path import MAX_NAME_BYTES, OURS, hashed, plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowlock.jobs.path import PathTemplate

# With possessive repetition, so that a long column is not tried again in other ways.
_SAFE_LINES = re.compile(rf"(?:{SAFE}\n)*+")
# Few enough that they are gone again before anybody counts them.
_PIECE = 1000


class _Piece(NamedTuple):
    keys: list[str]
    files: list[str]
    payloads: list[str]


class Bulk:
    """Reads many inputs of one exporter; its answers are those that `Exporter.read` gives for each."""

    def __init__(
        self, model: type[BaseModel], key_fields: Sequence[str], template: PathTemplate, ext: str
    ) -> None:
        self._adapter = TypeAdapter(list[model])  # type: ignore[valid-type]
        self._serializer = model.__pydantic_serializer__
        self._key_fields = key_fields
        self._template = template
        self._ext = ext

    def read(self, inputs: Sequence[Mapping[str, Any]], limit: int) -> dict[str, str] | None:
        """Key → payload of each; None if one of them has to be looked at: wrong, twice, long, or not plain."""
        found: dict[str, str] = {}
        files: set[str] = set()
        for start in range(0, len(inputs), _PIECE):
            piece = inputs[start : start + _PIECE]
            read = self._read(piece, limit)
            if read is None:
                return None
            found.update(zip(read.keys, read.payloads, strict=True))
            files.update(read.files)
        return found if len(found) == len(files) == len(inputs) else None

    def _read(self, inputs: Sequence[Mapping[str, Any]], limit: int) -> _Piece | None:
        try:
            models = self._adapter.validate_python(inputs)
            payloads = list(map(self._serializer.to_json, models))
        except (ValidationError, PydanticSerializationError):
            return None
        lines = b"\n".join(payloads)  # JSON has no line breaks of its own
        if max(map(len, payloads)) > limit or b"null" in lines:
            return None
        columns = self._columns([vars(one) for one in models])
        if not all(map(_are_safe, columns.values())):
            return None
        keys = list(map("/".join, zip(*(columns[name] for name in self._key_fields), strict=True)))
        # A field of the input may have one of these names; in a path it is ours that counts.
        columns["ext"] = [self._ext] * len(keys)
        if "key" in self._template.fields:
            columns["key"] = list(map(hashed, keys))
        files = self._template.fill_all(columns)
        if max(map(len, keys)) >= MAX_NAME_BYTES or max(map(len, files)) > MAX_NAME_BYTES:
            return None
        return _Piece(keys, files, lines.decode().split("\n"))

    def _columns(self, values: list[Mapping[str, Any]]) -> dict[str, list[str]]:
        wanted = {*self._key_fields, *(name for name in self._template.fields if name not in OURS)}
        return {name: _texts([one[name] for one in values]) for name in wanted}


def _texts(values: list[Any]) -> list[str]:
    return values if set(map(type, values)) == {str} else list(map(plain, values))


def _are_safe(texts: list[str]) -> bool:
    lines = "\n".join(texts) + "\n"
    return (
        max(map(len, texts)) <= MAX_PART_LENGTH
        and lines.count("\n") == len(texts)
        and _SAFE_LINES.fullmatch(lines) is not None
    )
