"""The rows of a query, from a named database: COPY for CSV from PostgreSQL, batches of a server-side cursor otherwise."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from rowlock.databases.engine import is_connection_lost
from rowlock.errors import Reject
from rowlock.jobs.formats.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from rowlock.databases.manager import DatabaseManager
    from rowlock.jobs.query import SqlQuery

BATCH_ROWS = 5000
# What a second try meets again: no such table or right, a value that cannot be read, a write where none is allowed.
_WRONG_CLASSES = ("0A", "21", "22", "25006", "28", "2F", "3D", "3F", "42")
_SQLITE_WRONG = ("no such", "syntax error", "readonly", "ambiguous", "unrecognized token", "incomplete input")


def copied(
    databases: DatabaseManager, query: SqlQuery, values: Mapping[str, Any]
) -> Generator[bytes, None, int]:
    """CSV, written by PostgreSQL; returns the number of rows."""
    with _explained(query):
        return (
            yield from databases.copy_out(query.database).csv(
                query.filled, [values[name] for name in query.names]
            )
        )


def selected(
    databases: DatabaseManager, query: SqlQuery, values: Mapping[str, Any], *, typed: bool
) -> Generator[Rows, None, None]:
    """Rows in batches; the first one comes even if it is empty, for its heading. `typed` for formats with types."""
    bound = {name: values[name] for name in query.names}
    with (
        _explained(query),
        databases.reading(query.database) as connection,
        connection.execute(query.clause(), bound) as result,
    ):
        columns = tuple(result.keys())
        postgresql = databases.dialect(query.database) == "postgresql"
        schema = _schema(result.cursor) if typed and postgresql else None
        empty = True
        while batch := result.fetchmany(BATCH_ROWS):
            empty = False
            yield Rows(columns, batch, schema)  # type: ignore[arg-type]
        if empty:
            yield Rows(columns, [], schema)


def _schema(cursor: Any) -> Any:
    """The columns' own types, so that a file's schema does not hang on its first rows."""
    from rowlock.jobs.formats.postgresql_types import schema_of  # noqa: PLC0415 - it needs pyarrow

    return schema_of(cursor.description)


@contextmanager
def _explained(query: SqlQuery) -> Iterator[None]:
    """Wrong SQL is dead at once; a database that cannot be reached is tried again."""
    try:
        yield
    except DBAPIError as error:
        if error.orig is not None and _is_wrong(error, error.orig):
            raise Reject(_told(query, error.orig)) from error
        raise
    except Exception as error:
        state = getattr(error, "sqlstate", None)
        if state is not None and str(state).startswith(_WRONG_CLASSES):  # asyncpg's
            raise Reject(_told(query, error)) from error
        raise


def _is_wrong(error: DBAPIError, cause: BaseException) -> bool:
    state = getattr(cause, "sqlstate", None)
    if state is not None:
        return str(state).startswith(_WRONG_CLASSES)
    if isinstance(cause, sqlite3.Error):
        return any(word in str(cause) for word in _SQLITE_WRONG)
    return not isinstance(error, OperationalError | InterfaceError) and not is_connection_lost(cause)


def _told(query: SqlQuery, error: BaseException) -> str:
    return f"the query on database {query.database!r} fails: {str(error).strip()}"
