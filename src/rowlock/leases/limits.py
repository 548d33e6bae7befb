"""The limits of a ledger, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlock import clock
from rowlock.ledger.limit_table import PREFIX

if TYPE_CHECKING:
    from rowlock.ledger.ledger import Ledger, Row


def list_limits(ledger: Ledger) -> list[dict[str, Any]]:
    """Every limit as a plain dict, with whoever holds its slots."""
    return [_as_dict(ledger, row) for row in ledger.limits.list()]


def _as_dict(ledger: Ledger, row: Row) -> dict[str, Any]:
    return {
        "limit": row.limit_name,
        "rate": row.rate,
        "burst": row.burst,
        "concurrency": row.concurrency,
        "in_use": row.in_use,
        "holders": _holders(ledger, row),
        "waiting": row.waiting,
        "wait_seconds": row.wait_seconds if row.rate else None,
        "uses": row.reserved if row.rate else None,
        "declared_by": row.declared_by,
        "declared_at": clock.as_datetime(row.declared_at),
    }


def _holders(ledger: Ledger, row: Row) -> list[dict[str, Any]]:
    if not row.in_use:
        return []
    slots = ledger.locks.look(PREFIX + row.limit_name, 2**15 - 1)
    return [
        {"instance": slot.holder, "name": slot.holder_name, "slot": slot.slot, "seconds": slot.held_for}
        for slot in slots
        if slot.holder is not None and slot.seconds_left > 0
    ]


def in_short_supply(row: Row) -> bool:
    """True when whoever comes now has to wait."""
    return row.wait_seconds > 0 or bool(row.concurrency and row.in_use >= row.concurrency)


def in_use(row: Row) -> str:
    """A limit's state in a few words."""
    parts = []
    if row.rate:
        parts.append(f"{row.rate}, the next free moment is {clock.in_words(row.wait_seconds)} away")
    if row.concurrency:
        waiting = f", {row.waiting} wait" if row.waiting else ""
        parts.append(f"{row.in_use} of {row.concurrency} slots are in use{waiting}")
    return "; ".join(parts)
