"""The doctor: is this ledger fit to work on? Small checks, each with a finding and what to do about it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rowlock import clock
from rowlock.clock import in_words
from rowlock.errors import LedgerError, SchemaMismatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlock.ledger.ledger import Ledger, Row

Verdict = Literal["ok", "warning", "problem"]

_OLDEST_POSTGRESQL = 13
_OLDEST_SQLITE = (3, 35)
# A worker's connections beside its handlers' pool: three for control, one to listen, one for the heartbeat.
_CONTROL_CONNECTIONS = 5
# The ledger's clock decides; a client's is only shown to people, so a small difference does no harm.
_CLOCK_SECONDS = 2.0
_OLD_TRANSACTION_SECONDS = 300.0
_OLD_SLOT_TRANSACTIONS = 100_000
_MANY_DEAD_ROWS = 50_000
_INDEX = re.compile(
    r"^(CREATE|DROP)\s+(?:UNIQUE\s+)?INDEX\s+(?:CONCURRENTLY\s+)?(?:IF\s+(?:NOT\s+)?EXISTS\s+)?([\w.\"]+)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found, and a sentence that says what to do if it is not ok."""

    check: str
    verdict: Verdict
    text: str


def examine(ledger: Ledger) -> list[Finding]:
    """Every check that makes sense for this ledger; the first ones decide whether the others can be asked."""
    reachable = _reachable(ledger)
    if reachable.verdict == "problem":
        return [reachable]
    findings = [reachable, _server_version(ledger), _schema(ledger)]
    if findings[-1].verdict == "problem":
        return findings
    return findings + [_safely(ledger, check) for check in _CHECKS[ledger.dialect]]


def _safely(ledger: Ledger, check: Callable[[Ledger], Finding]) -> Finding:
    """One check that is refused (a right is missing, perhaps) does not hide the others."""
    try:
        return check(ledger)
    except LedgerError as error:
        name = check.__name__.strip("_").replace("_", " ")
        return Finding(name, "warning", f"This could not be checked: {error}")


# -- every dialect -----------------------------------------------------------------------------------------


def _reachable(ledger: Ledger) -> Finding:
    started = clock.monotonic()
    try:
        ledger.run_safely("server")
    except LedgerError as error:
        return Finding(
            "reachable",
            "problem",
            f"{' '.join(str(error).split())} Check the URL, the network and the server.",
        )
    return Finding("reachable", "ok", f"{ledger} answered in {(clock.monotonic() - started) * 1000:.0f} ms.")


def _server_version(ledger: Ledger) -> Finding:
    row = ledger.run_safely("server")[0]
    if ledger.dialect == "postgresql":
        name, oldest, fits = "PostgreSQL", str(_OLDEST_POSTGRESQL), row.major >= _OLDEST_POSTGRESQL
    else:
        number = tuple(int(part) for part in row.version.split(".")[:2])
        name, oldest, fits = "SQLite", ".".join(map(str, _OLDEST_SQLITE)), number >= _OLDEST_SQLITE
    if fits:
        return Finding("server version", "ok", f"{name} {row.version}.")
    return Finding(
        "server version",
        "problem",
        f"{name} {row.version} is too old: Rowlock needs {oldest} or newer. Upgrade it.",
    )


def _schema(ledger: Ledger) -> Finding:
    try:
        ledger.schema.check()
    except SchemaMismatch as error:
        return Finding("schema", "problem", str(error))
    return Finding("schema", "ok", f"The tables are at version {ledger.schema.latest}, as this code needs.")


def _clock_difference(ledger: Ledger) -> Finding:
    if ledger.dialect == "sqlite":
        return Finding("clock", "ok", "The ledger uses this machine's clock.")
    before = clock.wall()
    theirs = ledger.now()
    after = clock.wall()
    # It was read at some moment in between: only what lies outside is a difference.
    ahead = theirs - after if theirs > after else min(0.0, theirs - before)
    if abs(ahead) <= _CLOCK_SECONDS:
        return Finding("clock", "ok", f"This machine and the ledger differ by {abs(ahead):.1f} s.")
    behind = "behind" if ahead > 0 else "ahead of"
    return Finding(
        "clock",
        "warning",
        f"This machine's clock is {in_words(abs(ahead))} {behind} the ledger's. Work is not harmed, the ledger's clock "
        "decides; but times given as run_at are this machine's. Set up NTP here.",
    )


def _indexes(ledger: Ledger) -> Finding:
    rows = ledger.run_safely("indexes", schema=ledger.settings.ledger_schema)
    valid = {row.name: bool(row.valid) for row in rows}
    missing = sorted(expected_indexes(ledger) - valid.keys())
    if missing:
        text = f"Missing: {', '.join(missing)}. Somebody dropped them; `rowlock migrate --sql` shows how to make them again."
        return Finding("indexes", "problem", text)
    broken = sorted(name for name, good in valid.items() if not good)
    if broken:
        text = f"Not valid, so not used: {', '.join(broken)}. Run REINDEX INDEX for each."
        return Finding("indexes", "problem", text)
    return Finding("indexes", "ok", f"All {len(valid)} are there and valid.")


def expected_indexes(ledger: Ledger) -> set[str]:
    """The indexes that the migrations leave behind."""
    names: set[str] = set()
    for _name, sql in ledger.schema.migrations.values():
        for verb, address in _INDEX.findall(sql):
            name = address.rsplit(".", 1)[-1].strip('"')
            names = names | {name} if verb == "CREATE" else names - {name}
    return names


def _dead_holders(ledger: Ledger) -> Finding:
    row = ledger.run_safely("held_by_dead")[0]
    if not row.records:
        return Finding("dead holders", "ok", "No record is held by a dead instance.")
    held = f"{row.records:,} records are held by {row.instances} instances that are dead or silent"
    if ledger.run_safely("instances_alive"):
        return Finding("dead holders", "warning", f"{held}; a live worker takes them over within moments.")
    return Finding(
        "dead holders",
        "problem",
        f"{held}, and no worker is alive to take them over. Start one: rowlock worker MODULE:APP",
    )


# -- PostgreSQL --------------------------------------------------------------------------------------------


def _connections(ledger: Ledger) -> Finding:
    row = ledger.run_safely("connections")[0]
    live = len(ledger.run_safely("instances_alive"))
    each = ledger.settings.pool_size + _CONTROL_CONNECTIONS
    need = live * each
    sums = f"{live} live instances may open {each} each, {need} in all; the server has {row.places} places, {row.taken} taken"
    if need > row.places:
        return Finding(
            "connections",
            "warning",
            f"{sums}. Lower ROWLOCK_POOL_SIZE, raise max_connections, or put PgBouncer in between.",
        )
    if row.taken > row.places * 0.9:
        return Finding(
            "connections", "warning", f"{sums}: almost none is free. Raise max_connections, or close some."
        )
    return Finding("connections", "ok", f"{sums}.")


def _vacuum_blockers(ledger: Ledger) -> Finding:
    old = [row for row in ledger.run_safely("vacuum_blockers") if _is_old(row)]
    if old:
        text = (
            "Vacuum cannot remove what these may still see, and claims grow slower: "
            f"{'; '.join(map(_blocker, old))}. End the session (SELECT pg_terminate_backend(pid)), drop the slot, "
            "or finish the prepared transaction."
        )
        return Finding("vacuum", "warning", text)
    text = "Nothing old holds vacuum back"
    if not ledger.run_safely("sees_all_sessions")[0].sees_all:
        text += (
            ", as far as this account can see: GRANT pg_read_all_stats to it, to see other accounts' sessions"
        )
    return Finding("vacuum", "ok", f"{text}.")


def _is_old(row: Row) -> bool:
    if row.age_seconds is not None:
        return bool(row.age_seconds > _OLD_TRANSACTION_SECONDS)
    return bool(row.state == "inactive" or row.age_transactions > _OLD_SLOT_TRANSACTIONS)


def _blocker(row: Row) -> str:
    name = f" {row.application_name!r}" if row.application_name else ""
    pid = f", pid {row.pid}" if row.pid else ""
    age = (
        in_words(row.age_seconds) if row.age_seconds is not None else f"{row.age_transactions:,} transactions"
    )
    return f"{row.kind}{name}{pid}, {row.state}, {age} old"


def _dead_rows(ledger: Ledger) -> Finding:
    rows = ledger.run_safely("dead_rows", schema=ledger.settings.ledger_schema)
    live, dead = (rows[0].live, rows[0].dead) if rows else (0, 0)
    text = f"processing_queue has {dead:,} dead rows beside {live:,} live ones"
    if dead > _MANY_DEAD_ROWS and dead > live:
        advice = "Autovacuum is held back or switched off: see the check of vacuum, then run VACUUM on it."
        return Finding("dead rows", "warning", f"{text}. {advice}")
    return Finding("dead rows", "ok", f"{text}.")


# -- SQLite ------------------------------------------------------------------------------------------------


def _journal_mode(ledger: Ledger) -> Finding:
    mode: Any = ledger.run_safely("journal_mode")[0][0]
    if mode == "wal":
        return Finding("journal mode", "ok", "WAL: readers do not wait for the writer.")
    return Finding(
        "journal mode",
        "problem",
        f"The journal mode is {mode}, not WAL. A file on a network drive cannot have it: move the ledger to a local "
        "disk, or to PostgreSQL.",
    )


_EVERYWHERE = [_clock_difference, _indexes, _dead_holders]
_CHECKS: dict[str, list[Callable[[Ledger], Finding]]] = {
    "postgresql": [*_EVERYWHERE, _connections, _vacuum_blockers, _dead_rows],
    "sqlite": [*_EVERYWHERE, _journal_mode],
}
