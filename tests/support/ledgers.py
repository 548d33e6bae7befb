"""Ledgers for tests: real SQLite files, real PostgreSQL schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from rowlock.ledger.rows import Held, Wish
from rowlock.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from rowlock.ledger.ledger import Ledger

FROM_START = (-32768, 0)


def make_settings(kind: str, folder: Path, server_url: str | None, **overrides) -> Settings:
    """Settings for an empty ledger of its own."""
    if kind == "sqlite":
        url, schema = f"sqlite:///{folder}/{uuid4().hex}.db", "rowlock"
    else:
        url, schema = server_url, f"t_{uuid4().hex[:16]}"
    return Settings(ledger_url=url, ledger_schema=schema, **overrides)


def sql(ledger: Ledger, text: str, params: object = None) -> list:
    """Runs SQL of the test's own; tables without a schema are the ledger's."""
    if ledger.dialect == "postgresql":
        text = text.replace("{s}", f'"{ledger.settings.ledger_schema}".')
    else:
        text = text.replace("{s}", "")
    with ledger.engine.begin() as connection:
        result = (
            connection.exec_driver_sql(text) if params is None else connection.exec_driver_sql(text, params)
        )
        return list(result.fetchall()) if result.returns_rows else []


def register(ledger: Ledger, lease: float = 30.0) -> int:
    """An instance, by hand."""
    rows = ledger.run(
        "instance_register", name="test", hostname="here", pid=1, version="0", roles="", lease=lease
    )
    return rows[0].id


def beat(ledger: Ledger, instance: int) -> bool:
    counters = {"completed": 0, "failed": 0, "stale_refused": 0, "takeovers": 0}
    return bool(ledger.run("instance_beat", id=instance, **counters))


def add_flow(ledger: Ledger, flow: str = "f", max_attempts: int = 5, max_deaths: int = 3) -> None:
    ledger.run("flow_register", flow=flow, max_attempts=max_attempts, max_deaths=max_deaths)


def put(
    ledger: Ledger, *keys: str, flow: str = "f", priority: int = 0, run_at=None, batch: int = 1
) -> list[int]:
    return ledger.enqueue(
        None,
        flow=flow,
        keys=list(keys),
        payloads=[f'{{"key":"{key}"}}' for key in keys],
        priority=priority,
        run_at=run_at,
        batch=batch,
        notify=False,
    )


def claim(ledger: Ledger, instance: int, limit: int = 10, flow: str = "f") -> list[Held]:
    _, held = ledger.exchange(instance, [], [Wish(flow, limit, *FROM_START)])
    return sorted(held, key=lambda row: (-row.priority, row.id))


def find(ledger: Ledger, record_id: int):
    rows = ledger.run("record_find", id=record_id)
    assert len(rows) == 1, f"record {record_id} is in {len(rows)} places"
    return rows[0]


def take_over(ledger: Ledger) -> tuple[int, int]:
    ledger.run("bury_instances")
    return ledger.takeover(1000)
