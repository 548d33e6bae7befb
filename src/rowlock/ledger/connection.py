"""One way to run the ledger's statements, whoever opened the connection."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from sqlalchemy.engine import Connection

from rowlock import clock
from rowlock.databases.connections import unwrapped
from rowlock.errors import InvalidInput, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Row = Any  # a named tuple of the driver's or SQLAlchemy's making
Params = dict[str, Any]


class LedgerConnection:
    """Runs named statements on an SQLAlchemy connection."""

    def __init__(self, connection: Any, statements: Mapping[str, str]) -> None:
        self.connection = connection
        self._statements = statements

    def all(self, name: str, params: Params) -> list[Row]:
        """Every row that the statement returns; none for one that returns nothing."""
        result = self.connection.exec_driver_sql(self._statements[name], params)
        return list(result.fetchall()) if result.returns_rows else []

    def one(self, name: str, params: Params) -> Row | None:
        rows = self.all(name, params)
        return rows[0] if rows else None

    def many(self, name: str, params: Sequence[Params]) -> int:
        """Runs the statement once for each set of parameters; how many rows changed in all."""
        if not params:
            return 0
        return int(self.connection.exec_driver_sql(self._statements[name], list(params)).rowcount)


class BorrowedConnection(LedgerConnection):
    """The caller's own driver connection, inside the caller's own transaction."""

    def all(self, name: str, params: Params) -> list[Row]:
        cursor = self.connection.cursor()
        try:
            cursor.execute(self._statements[name], params)
            return list(cursor.fetchall()) if cursor.description else []
        finally:
            cursor.close()

    def many(self, name: str, params: Sequence[Params]) -> int:
        cursor = self.connection.cursor()
        try:
            cursor.executemany(self._statements[name], params)
            return int(cursor.rowcount)
        finally:
            cursor.close()


def borrow(connection: Any, statements: Mapping[str, str]) -> LedgerConnection:
    """Makes the caller's connection ours to use, without beginning or ending its transaction."""
    connection = unwrapped(connection)
    if isinstance(connection, Connection):
        driver = connection.connection.driver_connection
        if isinstance(driver, sqlite3.Connection):
            _lend_clock(driver)
        return LedgerConnection(connection, statements)
    if isinstance(connection, sqlite3.Connection):
        if connection.isolation_level is None and not connection.in_transaction:
            raise Refused("The connection is in autocommit mode: BEGIN a transaction, then enqueue in it.")
        _lend_clock(connection)
        return BorrowedConnection(connection, statements)
    if type(connection).__module__.startswith("psycopg") and hasattr(connection, "cursor"):
        if connection.autocommit and connection.info.transaction_status.name == "IDLE":
            raise Refused(
                "The connection is in autocommit mode: open `with connection.transaction():` first."
            )
        return BorrowedConnection(connection, statements)
    raise InvalidInput(
        f"connection= takes an SQLAlchemy connection or session, a psycopg or a sqlite3 connection, not "
        f"{type(connection).__name__}. From an async session: await session.run_sync(lambda s: app.enqueue(…, connection=s))"
    )


def _lend_clock(connection: sqlite3.Connection) -> None:
    connection.create_function("ledger_time", 0, lambda: clock.wall())  # noqa: PLW0108 - looked up at each call
