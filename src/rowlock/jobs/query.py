"""A query with `:name` parameters, taken apart once. Values never become part of its text on our side."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rowlock.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlalchemy import TextClause

# What a colon means nothing in: strings, quoted names, comments, casts, and dollar-quoted text. Then the parameter.
_TOKEN = re.compile(
    r"""(?P<skip>[eE]'(?:[^'\\]|''|\\.)*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | `[^`]*` | --[^\n]* | /\*.*?\*/
        | (?P<tag>\$(?:[A-Za-z_]\w*)?\$).*?(?P=tag) | ::)
      | :(?P<name>[A-Za-z_]\w*)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class SqlQuery:
    """Rows of a named database. `:name` stands for a field of the input, and is bound, never pasted."""

    database: str
    text: str
    pieces: tuple[str, ...] = field(init=False, repr=False)
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        text = self.text.strip().rstrip(";").rstrip()
        if not text:
            raise ConfigurationError("An exporter's query is empty.")
        pieces, names, start = [], [], 0
        for found in _parameters(text):
            pieces.append(text[start : found.start()])
            names.append(found["name"])
            start = found.end()
        object.__setattr__(self, "pieces", (*pieces, text[start:]))
        object.__setattr__(self, "names", tuple(names))

    def check(self, fields: Iterable[str], where: str) -> None:
        known = set(fields)
        for name in self.names:
            if name not in known:
                raise ConfigurationError(
                    f"{where}: the query has :{name}, and the input has no such field; it has {', '.join(sorted(known))}."
                )

    def clause(self) -> TextClause:
        """For SQLAlchemy, which would take any colon for a parameter."""
        from sqlalchemy import text  # noqa: PLC0415 - only whoever runs it needs it

        plain = [piece.replace(":", r"\:") for piece in self.pieces]
        bound = [f":{name}" for name in self.names]
        return text("".join(part for pair in zip(plain, [*bound, ""], strict=True) for part in pair))

    def filled(self, literals: Iterable[str]) -> str:
        """For COPY, which takes no parameters: with literals that the server itself has quoted."""
        # In brackets: nothing before or after can become part of a literal.
        inserted = [*(f"({literal})" for literal in literals), ""]
        return "".join(part for pair in zip(self.pieces, inserted, strict=True) for part in pair)


def _parameters(text: str) -> Iterator[re.Match[str]]:
    return (found for found in _TOKEN.finditer(text) if found["name"])
