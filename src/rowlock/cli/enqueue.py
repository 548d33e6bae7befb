"""`rowlock enqueue`: records from a file, from a pipe, or one from the command line."""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NoReturn, TextIO

import typer

from rowlock.cli.ledgers import open_ledger
from rowlock.cli.options import AsJson, LedgerUrl
from rowlock.cli.output import progress, say, say_json
from rowlock.errors import InvalidInput, InvalidKey

_SHOW_EVERY = 1000


def enqueue(
    flow: Annotated[str, typer.Argument(metavar="FLOW", help="A flow that is registered.")],
    *,
    file: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="A file with one JSON value a line; - reads stdin."),
    ] = None,
    payload: Annotated[str | None, typer.Option(metavar="JSON", help="One payload.")] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="FIELD", help="The field that is the key, such as id or customer.id."),
    ] = None,
    priority: Annotated[int, typer.Option(help="0 (normal) to 100 (first).")] = 0,
    run_at: Annotated[
        str | None, typer.Option(metavar="TIME", help="Not before this time, such as 2030-01-31T08:00Z.")
    ] = None,
    as_json: AsJson = False,
    ledger: LedgerUrl = None,
) -> None:
    """Enqueue records: all of them, or none.

    A (flow, key) that is known already is not enqueued again.

    Example: rowlock enqueue score_survey --file surveys.jsonl --key id
    """
    from rowlock.queue.enqueue import Enqueuer

    if (file is None) == (payload is None):
        raise typer.BadParameter("Give one of --file PATH and --payload JSON.")
    due = _moment(run_at)
    with open_ledger(ledger) as opened:
        limit = opened.settings.max_payload_bytes
        if payload is not None:
            incoming = list(_read([payload], "--payload", key, limit))
        else:
            with open_text(str(file)) as (stream, name):
                incoming = list(_shown(_read(stream, name, key, limit)))
        keys = iter([line.key for line in incoming])
        done = Enqueuer(opened, {}).enqueue(
            flow,
            [line.payload for line in incoming],
            # They were made, and checked, line by line: an error could name its line.
            key=None if key is None else lambda _payload: next(keys),
            priority=priority,
            run_at=due,
        )
    if as_json:
        say_json({"flow": flow, "accepted": done.accepted, "known": done.known, "ids": done.ids})
    else:
        say(f"{done.accepted:,} accepted, {done.known:,} already known.")


class Line(NamedTuple):
    payload: Any
    key: str


def _read(lines: Iterable[str], name: str, field: str | None, limit: int) -> Iterator[Line]:
    """Payloads with their keys; the first bad line is named, and nothing has been written by then."""
    from rowlock.queue.payload import check_key, encode

    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        where = f"{name}, line {number}"
        try:
            payload = json.loads(text, parse_constant=_not_json)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{where} is not JSON: {error}. Nothing was enqueued.") from None
        encode(payload, limit, where)
        yield Line(payload, "" if field is None else check_key(_pick(payload, field, where), where))


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")


def _pick(payload: Any, field: str, where: str) -> Any:
    """The value under a dotted path; numbers count into lists."""
    value = payload
    for part in field.split("."):
        try:
            value = value[int(part)] if isinstance(value, list) else value[part]
        except (KeyError, IndexError, TypeError, ValueError):
            raise InvalidKey(f"{where} has no {field!r} to make its key of. Nothing was enqueued.") from None
    return value


def _shown(lines: Iterator[Line]) -> Iterator[Line]:
    with progress("reading") as show:
        for count, line in enumerate(lines, 1):
            if count % _SHOW_EVERY == 0:
                show(count)
            yield line


@contextmanager
def open_text(path: str) -> Iterator[tuple[TextIO, str]]:
    """A file, or stdin for -, and what to call it in an error."""
    if path == "-":
        yield sys.stdin, "stdin"
        return
    try:
        with Path(path).open(encoding="utf-8-sig") as stream:
            yield stream, path
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8: {error}. Nothing was enqueued.") from error


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"--run-at {text!r} is not a time such as 2030-01-31T08:00Z.") from None
    if moment.tzinfo is None:
        raise typer.BadParameter(f"--run-at {text!r} has no time zone. Add one: {text}Z, or {text}+02:00.")
    return moment
