"""Named databases: where data comes from, beside the ledger. Engines with pools, opened at the first use."""

from __future__ import annotations

import os
import re
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from rowlock.databases.copy_out import CopyOut
from rowlock.databases.url import masked
from rowlock.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlalchemy.engine import URL, Connection, Engine

    from rowlock.settings import Settings

# What people call a database → the name of its dialect, and the driver we use unless the URL names one.
_DIALECTS = {"postgres": "postgresql", "sqlserver": "mssql", "mariadb": "mysql"}
_DRIVERS = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql"}
_POOL_SIZE = 5
_STREAM_ROWS = 5000


class DatabaseManager:
    """The databases of `[databases.NAME]` in rowlock.toml, and of PREFIX_NAME_CONNECTION_STRING in the environment.

    The environment wins. `with manager.reading("hub") as connection:` for data that is only read.
    """

    def __init__(self, settings: Settings) -> None:
        self._given = {
            name: (one.url.get_secret_value(), one.pool_size) for name, one in settings.databases.items()
        }
        if settings.database_prefix:
            self._given |= from_environment(settings.database_prefix, os.environ)
        self._lock = threading.Lock()
        self._engines: dict[tuple[str, bool], Engine] = {}
        self._copies: dict[str, CopyOut] = {}

    def __repr__(self) -> str:
        return f"<DatabaseManager {', '.join(f'{name}={masked(self.url(name))}' for name in self.names)}>"

    @property
    def names(self) -> list[str]:
        return sorted(self._given)

    def url(self, name: str) -> URL:
        if name not in self._given:
            raise ConfigurationError(
                f"There is no database {name!r}; there are: {', '.join(self.names) or 'none'}. "
                f"Add [databases.{name}] with its url to rowlock.toml."
            )
        return _parsed(name, self._given[name][0])

    def dialect(self, name: str) -> str:
        return self.url(name).get_backend_name()

    def engine(self, name: str) -> Engine:
        return self._engine(name, read_only=False)

    @contextmanager
    def reading(self, name: str) -> Iterator[Connection]:
        """A connection that sees one moment of the database, cannot change it, and streams what it reads."""
        options: dict[str, Any] = {"stream_results": True, "max_row_buffer": _STREAM_ROWS}
        if self.dialect(name) == "postgresql":
            options |= {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with self._engine(name, read_only=True).connect() as connection:
            yield connection.execution_options(**options)

    def copy_out(self, name: str) -> CopyOut:
        """The fast way out of PostgreSQL."""
        with self._lock:
            if name not in self._copies:
                self._copies[name] = CopyOut(self.url(name))
            return self._copies[name]

    def execute_query(
        self, name: str, query: str, params: Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Runs one statement in a transaction of its own; its rows as dicts."""
        with self.engine(name).begin() as connection:
            result = connection.execute(text(query), dict(params or {}))
            return [dict(row) for row in result.mappings()] if result.returns_rows else []

    def close(self) -> None:
        with self._lock:
            opened = [*self._engines.values()], [*self._copies.values()]
            self._engines.clear()
            self._copies.clear()
        for engine in opened[0]:
            engine.dispose()
        for copy in opened[1]:
            copy.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _engine(self, name: str, *, read_only: bool) -> Engine:
        url = self.url(name)
        sqlite = url.get_backend_name() == "sqlite"
        slot = (name, read_only and sqlite)  # the others say so for each transaction
        with self._lock:
            if slot not in self._engines:
                self._engines[slot] = _open(
                    name, _read_only(name, url) if slot[1] else url, self._given[name][1]
                )
            return self._engines[slot]


def from_environment(prefix: str, environment: Mapping[str, str]) -> dict[str, tuple[str, int]]:
    """`PREFIX_SURVEY_HUB_CONNECTION_STRING` → the database `survey_hub`; `…_TYPE` says what it is meant to be."""
    pattern = re.compile(rf"{re.escape(prefix)}_(\w+?)_(TYPE|CONNECTION_STRING)")
    found: dict[str, dict[str, str]] = {}
    for variable, value in environment.items():
        if match := pattern.fullmatch(variable):
            found.setdefault(match[1].lower(), {})[match[2]] = value
    databases = {}
    for name, values in found.items():
        if "CONNECTION_STRING" not in values:
            raise ConfigurationError(
                f"{prefix}_{name.upper()}_TYPE is set, and {prefix}_{name.upper()}_CONNECTION_STRING is not."
            )
        databases[name] = (values["CONNECTION_STRING"], _POOL_SIZE)
        _same_kind(name, values)
    return databases


def _same_kind(name: str, values: Mapping[str, str]) -> None:
    if "TYPE" not in values:
        return
    wanted = values["TYPE"].lower()
    backend = _parsed(name, values["CONNECTION_STRING"]).get_backend_name()
    if _DIALECTS.get(wanted, wanted) != backend:
        raise ConfigurationError(
            f"database {name!r}: its type is said to be {wanted!r}, and its URL is for {backend!r}."
        )


def _parsed(name: str, url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise ConfigurationError(
            f"database {name!r}: its URL cannot be read (it is not shown, because it may hold a password). "
            "It looks like postgresql://user:password@host:5432/database."
        ) from None
    family, plus, driver = parsed.drivername.partition("+")
    family = _DIALECTS.get(family, family)
    return parsed.set(drivername=f"{family}{plus}{driver}" if driver else _DRIVERS.get(family, family))


def _open(name: str, url: URL, pool_size: int) -> Engine:
    try:
        options: dict[str, Any] = {"connect_timeout": 5} if url.drivername == "postgresql+psycopg" else {}
        return create_engine(
            url,
            connect_args={key: value for key, value in options.items() if key not in url.query},
            pool_size=pool_size,
            max_overflow=0,
            pool_pre_ping=True,
        )
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        raise ConfigurationError(
            f"database {name!r} ({masked(url)}) needs a driver that is not here: {error}"
        ) from error


def _read_only(name: str, url: URL) -> URL:
    """SQLite makes a file that is not there, unless it is told not to."""
    if url.database in (None, "", ":memory:"):
        raise ConfigurationError(
            f"database {name!r}: a SQLite database in memory is empty for everybody else. Name a file."
        )
    file = str(url.database).removeprefix("file:")
    return url.set(database=f"file:{file}", query={**url.query, "mode": "ro", "uri": "true"})
