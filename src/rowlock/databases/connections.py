"""Connections that others have opened: what is inside a session or a transaction, and how to run SQL on it."""

from __future__ import annotations

import re
import sqlite3
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from sqlalchemy import text
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from rowlock.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

_MARK = re.compile(r"\?")
# Told by name: none of them need be installed.
_DRIVERS = {"psycopg": "postgresql", "pymysql": "mysql"}


def unwrapped(given: Any) -> Any:
    """The connection of an ORM session, or of a transaction of ours; anything else as it is."""
    if isinstance(given, Connection):
        return given
    inner = getattr(given, "connection", None)
    if callable(inner) and not hasattr(given, "run_sync"):  # an ORM session, and no async one
        return inner()
    return inner if isinstance(inner, Connection) else given


class Borrowed(ABC):
    """Somebody's connection, inside their transaction: nothing is begun, committed or rolled back here.

    Statements say ? where a value goes, and nowhere else.
    """

    def __init__(self, dialect: str, driver: Any) -> None:
        self.dialect = dialect
        self.driver = driver  # the driver's own connection

    @abstractmethod
    def changed(self, statement: str, values: Sequence[Any]) -> int:
        """Runs it; how many rows it changed."""

    @abstractmethod
    def rows(self, statement: str, values: Sequence[Any]) -> list[Sequence[Any]]:
        """Runs it; what it returned."""


class BorrowedFromSqlalchemy(Borrowed):
    def __init__(self, connection: Connection) -> None:
        super().__init__(_family(connection.dialect.name), connection.connection.driver_connection)
        self._connection = connection

    def changed(self, statement: str, values: Sequence[Any]) -> int:
        return int(self._run(statement, values).rowcount)

    def rows(self, statement: str, values: Sequence[Any]) -> list[Sequence[Any]]:
        return list(self._run(statement, values).fetchall())

    def _run(self, statement: str, values: Sequence[Any]) -> Any:
        # Named, because that is what SQLAlchemy turns into whatever the driver wants.
        numbers = iter(range(len(values)))
        named = _MARK.sub(lambda _mark: f":v{next(numbers)}", statement)
        return self._connection.execute(text(named), {f"v{n}": value for n, value in enumerate(values)})


class BorrowedFromDriver(Borrowed):
    def changed(self, statement: str, values: Sequence[Any]) -> int:
        cursor = self._run(statement, values)
        try:
            return int(cursor.rowcount)
        finally:
            cursor.close()

    def rows(self, statement: str, values: Sequence[Any]) -> list[Sequence[Any]]:
        cursor = self._run(statement, values)
        try:
            # Whatever kind of rows the connection makes: in the order of the columns.
            return [tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in cursor.fetchall()]
        finally:
            cursor.close()

    def _run(self, statement: str, values: Sequence[Any]) -> Any:
        if self.dialect != "sqlite":
            statement = statement.replace("?", "%s")
        cursor = self.driver.cursor()
        try:
            cursor.execute(statement, tuple(values))
        except BaseException:
            cursor.close()
            raise
        return cursor


def borrowed(given: Any) -> Borrowed:
    """Makes a connection, a session or a transaction of somebody's ours to use."""
    connection = unwrapped(given)
    if isinstance(connection, Connection):
        return BorrowedFromSqlalchemy(connection)
    if isinstance(connection, sqlite3.Connection):
        return BorrowedFromDriver("sqlite", connection)
    for kind in type(connection).__mro__:
        if kind.__name__ == "Connection" and (home := kind.__module__.partition(".")[0]) in _DRIVERS:
            return BorrowedFromDriver(_DRIVERS[home], connection)
    hint = ""
    if hasattr(given, "run_sync"):
        hint = " From an async one: await connection.run_sync(lambda sync: …)."
    raise InvalidInput(
        "This takes an SQLAlchemy connection or session, a psycopg, sqlite3 or PyMySQL connection, or a transaction of "
        f"Rowlock's, not {type(given).__module__}.{type(given).__name__}.{hint}"
    )


def driver_error(error: BaseException) -> BaseException:
    """What the driver raised, without what SQLAlchemy put around it."""
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def _family(name: str) -> str:
    return "mysql" if name == "mariadb" else name
