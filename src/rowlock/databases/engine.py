"""Engines: how each dialect is connected to, and what its failures mean."""

from __future__ import annotations

import sqlite3
import time
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, event

from rowlock import clock
from rowlock.errors import ConfigurationError

if TYPE_CHECKING:
    from sqlalchemy.engine import URL, Engine

    from rowlock.settings import Settings

SQLITE_BUSY_SECONDS = 30
# The ledger's own statements are few, and each has one good plan, by index. It is made once, and not led astray by
# statistics that were taken when a table was empty; a compiler for queries has no place in a millisecond.
_CONTROL_OPTIONS = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c jit=off"


def open_engine(dialect: str, url: URL, settings: Settings, *, control: bool = False) -> Engine:
    """An engine whose connections are set up the way the ledger needs them.

    `control` is for connections that run nothing but the ledger's own statements.
    """
    match dialect:
        case "postgresql":
            return _postgresql(url, settings, control=control)
        case "sqlite":
            return _sqlite(url, settings)
    raise AssertionError(dialect)  # parse_url lets no other through


def _postgresql(url: URL, settings: Settings, *, control: bool) -> Engine:
    connect_args: dict[str, Any] = {
        "application_name": "rowlock",
        "connect_timeout": 5,
        # A peer that vanished without a word must not hold a thread beyond the lease.
        "tcp_user_timeout": int(settings.heartbeat_seconds * 1000),
        "keepalives_idle": max(1, int(settings.heartbeat_seconds)),
        "keepalives_interval": max(1, int(settings.heartbeat_seconds / 3)),
        "keepalives_count": 3,
    }
    connect_args = {k: v for k, v in connect_args.items() if k not in url.query}
    if settings.transaction_pooler:
        connect_args["prepare_threshold"] = None
    elif control:
        given = url.query.get("options", "")
        connect_args["options"] = (
            f"{given if isinstance(given, str) else ' '.join(given)} {_CONTROL_OPTIONS}".strip()
        )
    try:
        return create_engine(
            url,
            connect_args=connect_args,
            # Nearly every use is one statement that commits by itself; switching a connection there and back
            # costs more than a short statement does.
            isolation_level="AUTOCOMMIT",
            pool_size=settings.pool_size,
            max_overflow=0,
            pool_timeout=30,
            pool_reset_on_return="rollback",
            # The connection used last has its statements prepared, and its server process is still warm.
            pool_use_lifo=True,
        )
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"PostgreSQL needs the psycopg driver ({error}). Install it: pip install 'rowlock[postgres]'"
        ) from error


def _sqlite(url: URL, settings: Settings) -> Engine:
    engine = create_engine(
        url,
        pool_size=settings.pool_size,
        max_overflow=0,
        connect_args={"timeout": SQLITE_BUSY_SECONDS, "isolation_level": None, "check_same_thread": False},
    )
    event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # WAL: readers never wait for the writer. FULL: a commit survives a power cut, not just a crash.
    _enter_wal(connection)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    # The machine's clock is this ledger's clock: SQLite lives on one machine. A function, so that tests
    # can move it, and because SQLite before 3.42 has no sub-second clock that compares as a number.
    connection.create_function("ledger_time", 0, lambda: clock.wall())  # noqa: PLW0108 - looked up at each call


def _enter_wal(connection: sqlite3.Connection) -> None:
    """The file remembers WAL; only its very first users race for the switch, which does not wait by itself."""
    give_up = clock.monotonic() + SQLITE_BUSY_SECONDS
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or clock.monotonic() > give_up:
                raise
            time.sleep(0.01)


def is_connection_lost(error: BaseException) -> bool:
    """True when the database went away, as opposed to having refused the statement."""
    if isinstance(error, sqlite3.OperationalError):
        return any(word in str(error) for word in ("unable to open", "disk I/O error", "database is locked"))
    state = getattr(error, "sqlstate", None)
    if state is None:  # psycopg sets no state when the connection itself failed
        return type(error).__name__ in {"OperationalError", "InterfaceError", "ConnectionTimeout"}
    # 08 connection exceptions; 57P0x shutdowns; 53300 too many connections; 25P03 idle in transaction
    return state[:2] == "08" or state in {"57P01", "57P02", "57P03", "53300", "25P03", "25P04"}


def is_disk_full(error: BaseException) -> bool:
    if isinstance(error, sqlite3.Error):
        return "disk is full" in str(error)
    return getattr(error, "sqlstate", None) == "53100"


def is_conflict(error: BaseException) -> bool:
    """Serialization failures and deadlocks: rolled back by the database, safe to run again."""
    return getattr(error, "sqlstate", None) in {"40001", "40P01"}
