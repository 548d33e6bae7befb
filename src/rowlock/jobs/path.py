"""A path template: checked when an exporter is declared, filled with nothing but safe parts."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from string import Formatter
from typing import TYPE_CHECKING, Any, NamedTuple

from rowlock.errors import ConfigurationError, InvalidInput
from rowlock.jobs.inputs import check_safe, is_safe, pointer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

# File systems take 255; an attempt's token and checksum may come to it, and the built-in input's longest name fits.
MAX_NAME_BYTES = 220
_LITERAL = re.compile(r"[A-Za-z0-9._+=@/-]*")
OURS = {"ext", "key"}
# Texts that could be another value's: "1" is not 1.
_OTHER_TYPE = re.compile(r"[-+0-9].*|true|false")


@dataclass(frozen=True, slots=True)
class PathTemplate:
    """`{indexKey}_{effectiveDate}.{ext}`: fields of the input, `{ext}` of the format, `{key}` a hash of the input's key."""

    text: str
    fields: tuple[str, ...] = field(init=False)
    _form: str = field(
        init=False, repr=False
    )  # with %s for each of these, which is filled several times as fast
    _names: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        try:
            parsed = list(Formatter().parse(self.text))
        except ValueError as error:
            raise self._wrong(str(error)) from error
        names = []
        for literal, name, form, conversion in parsed:
            if not _LITERAL.fullmatch(literal):
                raise self._wrong(f"{literal!r} has other characters than letters, digits and . _ + = @ / -")
            if name is None:
                continue
            if not name.isidentifier() or form or conversion:
                raise self._wrong(f"{{{name}}} must be the plain name of a field")
            names.append(name)
        object.__setattr__(self, "fields", tuple(dict.fromkeys(names)))
        object.__setattr__(
            self, "_form", "".join(text + ("" if name is None else "%s") for text, name, *_ in parsed)
        )
        object.__setattr__(self, "_names", tuple(names))
        trial = self.text.format(**dict.fromkeys(names, "x"))
        if any(part.startswith(".") or ".." in part or not part for part in trial.split("/")):
            raise self._wrong(
                "its parts between slashes are not empty, do not begin with a dot and have no two dots in a row"
            )

    def check(self, known: Collection[str], key: Collection[str]) -> None:
        """Every field is there, and two inputs that differ never have the same path."""
        for name in self.fields:
            if name not in known and name not in OURS:
                raise self._wrong(
                    f"there is no field {name!r} in the input; there are {', '.join(sorted(known))}"
                )
        missing = [name for name in key if name not in self.fields]
        if missing and "key" not in self.fields:
            raise self._wrong(
                f"inputs that differ only in {', '.join(missing)} would have the same path: name them, or {{key}}"
            )

    def fill(self, values: Mapping[str, Any], *, ext: str, key: Key) -> str:
        """The path; InvalidInput with a pointer if a value is not safe there."""
        parts = {**key.parts, "ext": ext}
        for name in self.fields:
            if name == "key":
                parts[name] = hashed(key.text)
            elif name not in parts:
                parts[name] = self._part(name, values[name])
        path = self._form % tuple(parts[name] for name in self._names)
        if len(path) > MAX_NAME_BYTES:
            self._check_length(path)
        return path

    def fill_all(self, columns: Mapping[str, Sequence[str]]) -> list[str]:
        """The paths of many inputs, from texts that are safe."""
        return list(map(self._form.__mod__, zip(*(columns[name] for name in self._names), strict=True)))

    @staticmethod
    def _check_length(path: str) -> None:
        for part in path.split("/"):
            if len(part) > MAX_NAME_BYTES:
                raise InvalidInput(
                    f"{part!r} is longer than {MAX_NAME_BYTES} characters, too long for a file's name."
                )

    def _part(self, name: str, value: Any) -> str:
        if value is None or isinstance(value, dict | list):
            raise InvalidInput(f"/{name}: {value!r} cannot be part of a path.", pointer=pointer_of([name]))
        try:
            return check_safe(plain(value))
        except ValueError as error:
            raise InvalidInput(f"/{name}: {error}", pointer=pointer_of([name])) from None

    def _wrong(self, why: str) -> ConfigurationError:
        return ConfigurationError(f"The path {self.text!r} cannot be used: {why}.")


def plain(value: Any) -> str:
    """A field's value as text, the same in every process; nothing is no text."""
    if type(value) is str:
        return value
    if type(value) is int:
        return str(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(getattr(value, "value", value)) if not hasattr(value, "isoformat") else str(value.isoformat())


def hashed(key: str, length: int = 16) -> str:
    """What `{key}` stands for."""
    return hashlib.sha256(key.encode()).hexdigest()[:length]


class Key(NamedTuple):
    """The identity of an input, and those of its fields that may be part of a path as they are."""

    text: str
    parts: Mapping[str, str]


def key_of(
    values: Mapping[str, Any],
    names: Collection[str],
    encode: Callable[[Any], str],
    loose: Collection[str] = (),
) -> Key:
    """The values of these fields, readable if they are plain, otherwise a hash of them. Loose ones may be of any type."""
    parts = {name: plain(values[name]) for name in names}
    text = "/".join(parts.values())
    mistakable = any(isinstance(values[name], str) and _OTHER_TYPE.fullmatch(parts[name]) for name in loose)
    if len(text) < MAX_NAME_BYTES and not mistakable and all(map(is_safe, parts.values())):
        return Key(text, parts)  # no part has a slash: two different inputs never read the same
    return Key(hashed(encode({name: values[name] for name in names}), 64), {})
