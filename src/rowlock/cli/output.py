"""What commands print: tables for people, JSON for programs, and errors on stderr."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from rowlock.clock import in_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console
    from rich.table import Table

# In a pipe a row is a line, whatever its length: it may be searched and cut.
_PIPE_WIDTH = 1000
_CELL_LIMIT = 120


def say(text: str) -> None:
    """A line on stdout."""
    typer.echo(printable(text))


def note(text: str) -> None:
    """A line on stderr."""
    typer.echo(printable(text), err=True)


def fail(text: str, code: int = 1) -> NoReturn:
    typer.secho(f"Error: {printable(text)}", err=True, fg=typer.colors.RED)
    raise typer.Exit(code)


def say_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, default=_as_json))


def say_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    console().print(make_table(columns, rows))


def make_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> "Table":
    """A table; a column whose name begins with > holds numbers and is never broken."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        if column.startswith(">"):
            table.add_column(column[1:], justify="right", no_wrap=True)
        else:
            table.add_column(column, overflow="fold")
    for row in rows:
        # Text, not markup: a key such as [red] is a key.
        table.add_row(*(Text(_cell(value)) for value in row))
    return table


def console() -> "Console":
    from rich.console import Console

    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(width=_PIPE_WIDTH if piped else None, highlight=False)


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator["Callable[[int], None]"]:
    """A bar on stderr, on a terminal only; call what it gives with how much is done."""
    from rich.console import Console
    from rich.progress import Progress

    err = Console(stderr=True)
    with Progress(console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


def confirm(question: str, *, yes: bool) -> None:
    """Asks a person at a terminal; a script is taken at its word."""
    if not yes and sys.stdin.isatty():
        typer.confirm(question, abort=True, err=True)


def ago(seconds: float | None) -> str:
    return "" if seconds is None else f"{in_words(seconds)} ago"


def since(moment: datetime | None, now: float) -> str:
    """How long ago, or in how long."""
    if moment is None:
        return ""
    seconds = now - moment.timestamp()
    return ago(seconds) if seconds >= 0 else f"in {in_words(-seconds)}"


def reason_of(flow: dict[str, Any]) -> str:
    """Why a flow is paused; and if it was its breaker, what comes next by itself."""
    parts = [flow["reason"] or ""]
    if flow["breaker"] == "probing":
        parts.append("probing now")
    elif flow["breaker"]:
        parts.append(f"probes in {in_words(flow['probe_seconds'])}")
    return "; ".join(filter(None, parts))


def stamp(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone(UTC).isoformat(timespec="milliseconds")


def printable(text: str) -> str:
    """Without control characters: what a handler raised must not drive somebody's terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    text = printable(str(value)).split("\n", 1)[0]
    return text if len(text) <= _CELL_LIMIT else f"{text[: _CELL_LIMIT - 1]}…"


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return stamp(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
