"""How fast records are accepted: one at a time against a bare INSERT, in bulk against COPY."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import psycopg

from bench.server import FLOW, payloads

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.server import Server

_COLUMNS = "flow_name, record_key, payload, status, ready, created_at, run_at"
_INSERT = f"""
INSERT INTO plain ({_COLUMNS}) VALUES (%s, %s, %s, 'pending', true, clock_timestamp(), clock_timestamp())
"""
_PIECE = 5000


def measure(server: Server, count: int, singles: int) -> dict[str, float]:
    """Rates in rows a second; every bulk load goes into tables of its own."""
    figures = {}
    rows = payloads(count)
    for name, load in (
        ("copy", _copy),
        ("one_call", _one_call),
        ("copy_5000", _copy_pieces),
        ("calls_5000", _calls),
    ):
        with server.ledger() as (app, url), psycopg.connect(url, autocommit=True) as connection:
            plain_table(connection)
            _ = app.ledger
            figures[name] = count / _timed(lambda: load(app, connection, rows))  # noqa: B023 - called at once
    with server.ledger() as (app, url), psycopg.connect(url, autocommit=True) as connection:
        plain_table(connection)
        figures |= _singles(app, connection, singles)
        time.sleep(0.05)  # the last of a burst is announced a moment later
    return figures


def plain_table(connection: psycopg.Connection[Any]) -> None:
    connection.execute("CREATE TABLE plain (LIKE rowlock.processing_queue INCLUDING ALL)")


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _key(payload: dict[str, Any]) -> str:
    return str(payload["id"])


def _one_call(app: Any, _connection: object, rows: list[dict[str, Any]]) -> None:
    app.enqueue(FLOW, rows, key=_key)


def _calls(app: Any, _connection: object, rows: list[dict[str, Any]]) -> None:
    for start in range(0, len(rows), _PIECE):
        app.enqueue(FLOW, rows[start : start + _PIECE], key=_key)


def _copy(_app: object, connection: psycopg.Connection[Any], rows: list[dict[str, Any]]) -> None:
    copy_rows(connection, rows, _key)


def copy_rows(
    connection: psycopg.Connection[Any],
    rows: list[dict[str, Any]],
    key: Callable[[dict[str, Any]], str],
    job: str = "\\N",
) -> None:
    """The fastest way in that the driver has: text, escaped and joined by hand."""
    end = f"\tpending\tt\tnow\tnow\t{job}\n"
    lines = [f"{FLOW}\t{key(row)}\t{json.dumps(row).replace(chr(92), chr(92) * 2)}{end}" for row in rows]
    with connection.cursor() as cursor, cursor.copy(f"COPY plain ({_COLUMNS}, job_id) FROM STDIN") as copy:
        copy.write("".join(lines))


def _copy_pieces(app: object, connection: psycopg.Connection[Any], rows: list[dict[str, Any]]) -> None:
    for start in range(0, len(rows), _PIECE):
        _copy(app, connection, rows[start : start + _PIECE])


def _singles(app: Any, connection: psycopg.Connection[Any], count: int) -> dict[str, float]:
    """One row, one commit; the two take turns, so that both see the same disk."""
    seconds = {"insert": 0.0, "enqueue": 0.0}
    for number, row in enumerate(payloads(count)):
        values = (FLOW, str(number), json.dumps(row))
        seconds["insert"] += _timed(lambda: connection.execute(_INSERT, values))  # noqa: B023 - called at once
        seconds["enqueue"] += _timed(lambda: app.enqueue(FLOW, row, key=str(number)))  # noqa: B023
    return {"single_insert": count / seconds["insert"], "single_enqueue": count / seconds["enqueue"]}
