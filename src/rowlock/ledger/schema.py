"""The ledger's tables: numbered, forward-only migrations, and a clear word when code and tables differ."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import DBAPIError

from rowlock.errors import SchemaMismatch
from rowlock.ledger.statements import in_schema, load_migrations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowlock.ledger.ledger import Ledger

_VERSION_TABLE = """
CREATE TABLE IF NOT EXISTS rowlock.ledger_version (
    version     integer PRIMARY KEY,
    name        text NOT NULL,
    applied_at  text NOT NULL
)"""


class Schema:
    """The version of one ledger's tables."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._postgresql = ledger.dialect == "postgresql"
        self._name = ledger.settings.ledger_schema
        self.migrations = load_migrations(ledger.dialect, self._name)
        self.latest = max(self.migrations)

    def version(self) -> int:
        """The newest migration that the ledger has; 0 when it has no tables at all."""
        # As a single statement: on SQLite a transaction would wait for whoever writes now.
        engine = self._ledger.engine.execution_options(**self._ledger.single_statement_options)
        with self._ledger.translated(), engine.connect() as connection:
            try:
                found = connection.exec_driver_sql(
                    self._sql("SELECT max(version) FROM rowlock.ledger_version")
                )
                return int(found.scalar() or 0)
            except DBAPIError as error:
                if error.orig is not None and self._ledger.is_schema_missing(error.orig):
                    return 0
                raise

    def check(self) -> None:
        """Refuses to work on tables that are older or newer than this code."""
        version = self.version()
        if version < self.latest:
            state = f"is at version {version}" if version else "has no tables yet"
            raise SchemaMismatch(
                f"{self._ledger} {state}; this code needs {self.latest}. Run: rowlock migrate"
            )
        if version > self.latest:
            raise SchemaMismatch(
                f"{self._ledger} is at version {version}, newer than this code, which knows {self.latest}. "
                "Upgrade rowlock here; a ledger is never taken back."
            )

    def migrate(self) -> list[str]:
        """Brings the tables up to date; safe when several instances start at once. The names applied."""
        if self.version() > self.latest:
            self.check()
        applied = []
        with self._ledger.translated(), self._ledger.engine.begin() as connection:
            driver: Any = connection.connection.driver_connection
            self._begin(driver)
            version = driver.execute(
                self._sql("SELECT coalesce(max(version), 0) FROM rowlock.ledger_version")
            )
            current = int(version.fetchone()[0])
            for number, (name, sql) in self.migrations.items():
                if number > current:
                    self._script(driver, sql)
                    self._script(driver, self._note(number, name))
                    applied.append(f"{number:04d}_{name}")
        return applied

    def script(self) -> str:
        """The SQL of every migration, for those who let nobody but themselves change their database."""
        parts = [f'CREATE SCHEMA IF NOT EXISTS "{self._name}";\n'] if self._postgresql else []
        parts.append(self._sql(_VERSION_TABLE).strip() + ";\n")
        for number, (name, sql) in self.migrations.items():
            parts += [f"-- {number:04d}_{name}\n{sql}", self._note(number, name) + ";\n"]
        return "\n".join(["BEGIN;\n", *parts, "COMMIT;\n"])

    def _begin(self, driver: Any) -> None:
        if self._postgresql:
            # Before anything else: CREATE … IF NOT EXISTS is itself a race.
            driver.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [f"rowlock migration {self._name}"])
            driver.execute(f'CREATE SCHEMA IF NOT EXISTS "{self._name}"')
        driver.execute(self._sql(_VERSION_TABLE))

    def _note(self, number: int, name: str) -> str:
        now = "clock_timestamp()::text" if self._postgresql else "datetime('now')"
        # Both values are ours: a number, and the name of a file in this package.
        return self._sql(f"INSERT INTO rowlock.ledger_version VALUES ({number}, '{name}', {now})")  # noqa: S608

    def _script(self, driver: Any, sql: str) -> None:
        for statement in [sql] if self._postgresql else _split(sql):
            driver.execute(statement)

    def _sql(self, sql: str) -> str:
        return in_schema(sql, self._name) if self._postgresql else sql.replace("rowlock.", "")


def _split(script: str) -> Iterator[str]:
    """Statements one by one: sqlite3's executescript() would commit before it runs."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement
