"""Rows for people: plain dicts, under the names that people use."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any

from rowlock import clock

if TYPE_CHECKING:
    from rowlock.ledger.connection import Row

_NAMES = {
    "flow_name": "flow",
    "lock_name": "name",
    "record_key": "key",
    "schedule_name": "schedule",
    "service_name": "service",
}


def as_dict(row: Row) -> dict[str, Any]:
    """A row under the names that people use, its timestamps as datetimes in UTC."""
    return {
        _NAMES.get(name, name): _value(name, value)
        for name, value in row._mapping.items()  # noqa: SLF001 - SQLAlchemy's public name for it
    }


def _value(name: str, value: Any) -> Any:
    if name.endswith("_at"):
        moment = clock.as_datetime(value)
        return moment and moment.astimezone(UTC)
    return value
