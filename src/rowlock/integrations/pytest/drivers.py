"""Where the commits of SQLAlchemy, sqlite3 and psycopg can be seen: any engine, any connection opened from now on."""

from __future__ import annotations

import sqlite3
from functools import wraps
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sqlalchemy.engine.default import DefaultDialect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowlock.integrations.pytest.boundaries import Boundaries


def watch_sqlalchemy(boundaries: Boundaries) -> None:
    """Every dialect that is loaded. What a driver below commits under the same call is not counted again."""

    def watched(commit: Any) -> Any:
        @wraps(commit)
        def do_commit(self: Any, connection: Any) -> None:
            with boundaries.commit(really=_in_transaction(connection)):
                commit(self, connection)

        return do_commit

    for dialect in _with_children(DefaultDialect):
        if "do_commit" in vars(dialect):
            dialect.do_commit = watched(dialect.do_commit)  # type: ignore[method-assign]


def _with_children(kind: type[DefaultDialect]) -> Iterator[type[DefaultDialect]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _with_children(child)


def _in_transaction(connection: Any) -> bool:
    """Whether a commit has anything to commit; drivers that we do not know are believed."""
    driver = getattr(connection, "driver_connection", None) or connection
    if isinstance(driver, sqlite3.Connection):
        return driver.in_transaction
    if type(driver).__module__.startswith("psycopg"):
        return bool(driver.info.transaction_status.name != "IDLE")
    return True


# -- sqlite3 ---------------------------------------------------------------------------------------------------------


def watch_sqlite(boundaries: Boundaries) -> None:
    connect: Any = sqlite3.connect

    @wraps(connect)
    def watched(*arguments: Any, factory: Any = sqlite3.Connection, **options: Any) -> Any:
        return connect(*arguments, factory=_connection(factory, boundaries), **options)

    vars(sqlite3)["connect"] = vars(sqlite3.dbapi2)["connect"] = watched


def _connection(base: Any, boundaries: Boundaries) -> Any:
    class Watched(base):  # type: ignore[misc]
        def cursor(self, factory: Any = _cursor(sqlite3.Cursor, boundaries)) -> Any:  # noqa: B008 - one for all
            return super().cursor(factory)

        def execute(self, sql: str, *parameters: Any) -> Any:
            return self.cursor().execute(sql, *parameters)  # sqlite3's own would not ask `cursor`

        def executemany(self, sql: str, *parameters: Any) -> Any:
            return self.cursor().executemany(sql, *parameters)

        def executescript(self, script: str) -> Any:
            return self.cursor().executescript(script)

        def commit(self) -> None:
            with boundaries.commit(really=self.in_transaction):
                super().commit()

        def __exit__(self, kind: object, *rest: object) -> Any:
            with boundaries.commit(really=kind is None and self.in_transaction):
                return super().__exit__(kind, *rest)

    return Watched


def _cursor(base: Any, boundaries: Boundaries) -> Any:
    class Watched(base):  # type: ignore[misc]
        def execute(self, sql: str, *parameters: Any) -> Any:
            with boundaries.statement(sql, commits_itself=self._commits_itself()):
                return super().execute(sql, *parameters)

        def executemany(self, sql: str, *parameters: Any) -> Any:
            with boundaries.statement(sql, commits_itself=self._commits_itself()):
                return super().executemany(sql, *parameters)

        def executescript(self, script: str) -> Any:
            with boundaries.statement(script, commits_itself=True):
                return super().executescript(script)

        def _commits_itself(self) -> bool:
            connection = self.connection
            automatic = connection.isolation_level is None or getattr(connection, "autocommit", None) is True
            return automatic and not connection.in_transaction

    return Watched


# -- psycopg ---------------------------------------------------------------------------------------------------------


def watch_psycopg(boundaries: Boundaries) -> None:
    """Its classes themselves: connections that are open already are seen too."""
    if find_spec("psycopg") is None:
        return
    import psycopg  # noqa: PLC0415 - only where it is installed

    for connection, cursor in (
        (psycopg.Connection, psycopg.Cursor),
        (psycopg.AsyncConnection, psycopg.AsyncCursor),
    ):
        asynchronous = connection is psycopg.AsyncConnection
        _wrap(
            connection,
            "commit",
            lambda self, *_: boundaries.commit(really=_in_transaction(self)),
            asynchronous,
        )
        for name in ("execute", "executemany"):
            _wrap(cursor, name, lambda self, *given: _statement(boundaries, self, given[0]), asynchronous)
    for transaction, leave, asynchronous in (
        (psycopg.Transaction, "__exit__", False),
        (psycopg.AsyncTransaction, "__aexit__", True),
    ):
        _wrap(transaction, leave, lambda self, kind, *_: _leave(boundaries, self, kind), asynchronous)
        _note_outermost(transaction)


def _wrap(kind: Any, name: str, around: Any, asynchronous: bool) -> None:
    method = getattr(kind, name)
    if asynchronous:

        @wraps(method)
        async def awatched(self: Any, *arguments: Any, **options: Any) -> Any:
            with around(self, *arguments):
                return await method(self, *arguments, **options)

        setattr(kind, name, awatched)
        return

    @wraps(method)
    def watched(self: Any, *arguments: Any, **options: Any) -> Any:
        with around(self, *arguments):
            return method(self, *arguments, **options)

    setattr(kind, name, watched)


def _statement(boundaries: Boundaries, cursor: Any, query: Any) -> Any:
    connection = cursor.connection
    text = (
        query.decode()
        if isinstance(query, bytes)
        else query
        if isinstance(query, str)
        else query.as_string(connection)
    )
    return boundaries.statement(
        text, commits_itself=connection.autocommit and not _in_transaction(connection)
    )


def _note_outermost(transaction: Any) -> None:
    """A block inside a transaction is a savepoint, and commits nothing."""
    begin = transaction.__init__

    @wraps(begin)
    def noted(self: Any, connection: Any, *arguments: Any, **options: Any) -> None:
        begin(self, connection, *arguments, **options)
        self.commits = not _in_transaction(connection)

    transaction.__init__ = noted


def _leave(boundaries: Boundaries, transaction: Any, kind: Any) -> Any:
    return boundaries.commit(really=kind is None and transaction.commits)
