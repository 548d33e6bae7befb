"""The result: ratios with their targets, for people and as JSON."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence


class Target(NamedTuple):
    key: str
    what: str
    sign: str
    bound: float | None


TARGETS = (
    Target("drain_vs_floor", "drain, async handler ÷ bare loop with the same statement", "≥", 0.5),
    Target("drain_sync_vs_floor", "drain, sync handler ÷ the same", "≥", 0.5),
    Target("drain_vs_pgqueuer", "drain, async handler ÷ PgQueuer", "≥", 2.0),
    Target("drain_sync_vs_pgqueuer", "drain, sync handler ÷ PgQueuer", "≥", 2.0),
    Target("drain_vs_procrastinate", "drain, async handler ÷ Procrastinate", "", None),
    Target("two_vs_one", "two worker processes ÷ one, async", "≥", 1.5),
    Target("two_vs_one_sync", "two worker processes ÷ one, sync", "≥", 1.5),
    Target("drain_end_vs_start", "last fifth of a long drain ÷ first", "≥", 0.95),
    Target("enqueue_vs_copy", "bulk enqueue, one call ÷ COPY", "≥", 0.5),
    Target("enqueue_calls_vs_copy", "bulk enqueue, calls of 5,000 ÷ COPY in pieces", "≥", 0.5),
    Target("enqueue_single_vs_insert", "enqueue of one ÷ bare INSERT", "", None),
    Target("latency_vs_notify", "idle pickup p50 ÷ bare NOTIFY p50", "≤", 3.0),
    Target("latency_vs_durable", "idle pickup p50 ÷ bare INSERT + NOTIFY, then UPDATE", "", None),
    Target("claim_1m_vs_10k", "claim with many pending ÷ with 10,000", "≤", 1.3),
    Target("claim_history_1m_vs_empty", "settle and claim with a long history ÷ with none", "≤", 1.3),
)
_MEETS = {"≥": operator.ge, "≤": operator.le}


def verdict(target: Target, value: float | None) -> str:
    if value is None:
        return "[yellow]not measured"
    if target.bound is None:
        return ""
    return "[green]pass" if _MEETS[target.sign](value, target.bound) else "[red]FAIL"


def show(results: dict[str, Any]) -> None:
    extra = [
        (f"bytes of WAL a record, {side}", "-" if size is None else f"{size:.0f}", "", "")
        for side, size in results["wal_bytes"].items()
    ]
    show_ratios("Rowlock's queue", TARGETS, results, extra)


def show_ratios(
    title: str,
    targets: Sequence[Target],
    results: dict[str, Any],
    extra: Sequence[tuple[str, str, str, str]] = (),
) -> None:
    """The ratios beside their targets, and whatever else there is to say."""
    table = Table(
        title=f"{title}, {results['raw']['cores']} cores, PostgreSQL {results['raw']['postgresql']}"
    )
    for name, justify in (("ratio", "left"), ("measured", "right"), ("target", "right"), ("", "left")):
        table.add_column(name, justify=justify)
    for target in targets:
        value = results[target.key]
        bound = "" if target.bound is None else f"{target.sign} {target.bound:g}"
        table.add_row(target.what, "-" if value is None else f"{value:.2f}", bound, verdict(target, value))
    for row in extra:
        table.add_row(*row)
    Console(width=110).print(table)
