"""The arena: the databases of one run. Nothing of the user's is touched: a schema, a database and files of our own."""

from __future__ import annotations

import logging
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self
from uuid import uuid4

from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError

from rowlock.databases.local_postgres import LocalPostgres
from rowlock.databases.url import masked, parse_url
from rowlock.errors import ConfigurationError
from rowlock.ledger.ledger import Ledger
from rowlock.proof.workload import Program, open_second, schema_of, tables
from rowlock.settings import Settings

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

logger = logging.getLogger("rowlock.proof")

# No unique key anywhere: what must not happen can be seen if it does.
_EFFECTS = "(record_id bigint, flow text, record_key text, token bigint, instance bigint, at {time})"
_SECOND = (
    "CREATE TABLE proof_log (flow text, record_key text, PRIMARY KEY (flow, record_key))",
    "CREATE TABLE proof_effects (record_id bigint, flow text, record_key text, token bigint, instance bigint)",
)
_POOL = 16  # each handler of a worker may have a transaction open
_MAX_CONNECTIONS = 400


class Arena:
    """Where a run takes place: a SQLite file, a schema on a given PostgreSQL, or a server of its own."""

    def __init__(self, folder: Path, *, ledger_url: str | None, own_server: bool, lease: float) -> None:
        self.folder = folder
        self.server: LocalPostgres | None = None
        self._url = ledger_url
        self._own_server = own_server
        self._lease = lease
        self.name = f"rowlock_proof_{uuid4().hex[:10]}"
        self._second_database: str | None = None
        self.settings: Settings
        self.second_url: str
        self.ledger: Ledger

    @property
    def dialect(self) -> str:
        return self.ledger.dialect

    def __enter__(self) -> Self:
        try:
            self._open()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if "ledger" in self.__dict__:
            if self.server is None and self.dialect == "postgresql":
                self._drop()
            self.ledger.close()
        if self.server is not None:
            self.server.remove()

    def program(self, seed: int, records: int) -> Program:
        return Program(
            self.settings.model_dump(mode="json", exclude_unset=True),
            self.second_url,
            seed,
            records,
            str(self.folder),
        )

    def versions(self) -> dict[str, str]:
        with self.ledger.engine.connect() as connection:
            query = "SHOW server_version" if self.dialect == "postgresql" else "SELECT sqlite_version()"
            return {self.dialect: str(connection.exec_driver_sql(query).scalar())}

    # -- opening and leaving -----------------------------------------------------------------------------------

    def _open(self) -> None:
        dialect, parsed = parse_url(self._ledger_url())
        schema = self.name if dialect == "postgresql" else "rowlock"
        url = self._named(parsed, self.name)
        self.settings = Settings(
            ledger_url=url, ledger_schema=schema, lease_seconds=self._lease, grace_seconds=self._lease,
            poll_seconds=0.25, pool_size=_POOL,
        )  # fmt: skip
        self.ledger = Ledger.open(
            self.settings.model_copy(update={"ledger_url": self._named(parsed, f"{self.name}_run")})
        )
        self.ledger.schema.migrate()
        self._make_tables()
        self.second_url = self._make_second(parsed)

    @staticmethod
    def _named(url: URL, name: str) -> str:
        """So that the workers' sessions can be told from our own, and from those of other programs."""
        if url.get_backend_name() == "postgresql":
            url = url.update_query_dict({"application_name": name})
        return url.render_as_string(hide_password=False)

    def _ledger_url(self) -> str:
        if self._own_server:
            self.server = LocalPostgres(
                options={"max_connections": str(_MAX_CONNECTIONS), "shared_buffers": "256MB"}
            )
            self.server.create()
            self.server.start()
            return self.server.url
        if self._url is None:
            return f"sqlite:///{self.folder / 'ledger.db'}"
        dialect, parsed = parse_url(self._url)
        if dialect == "sqlite" and Path(str(parsed.database)).exists():
            raise ConfigurationError(
                f"{masked(parsed)} exists already, and a proof makes a ledger of its own: name a new file."
            )
        return self._url

    def _make_tables(self) -> None:
        schema = schema_of(self.settings)
        names = tables(schema)
        time = "timestamptz" if schema else "double precision"
        order = "bigint GENERATED ALWAYS AS IDENTITY" if schema else "integer PRIMARY KEY AUTOINCREMENT"
        with self.ledger.transaction() as transaction:
            for sql in (
                f"CREATE TABLE {names['effects']} {_EFFECTS.format(time=time)}",
                f"CREATE TABLE {names['cures']} (record_id bigint)",
                f"CREATE TABLE {names['fenced']} (seq {order}, token bigint, pid bigint, at {time})",
            ):
                transaction.connection.exec_driver_sql(sql)

    def _make_second(self, ledger: URL) -> str:
        """Another database on the same server, where we may make one; another file otherwise."""
        url = f"sqlite:///{self.folder / 'second.db'}"
        if self.dialect == "postgresql" and self._may_create():
            self._second_database = self.name
            url = self._named(ledger.set(database=self.name), self.name)
        engine = open_second(url)
        with engine.connect() as connection:
            if engine.dialect.name == "sqlite":
                connection.exec_driver_sql("PRAGMA journal_mode = WAL")
            for sql in _SECOND:
                connection.execute(text(sql))
            connection.commit()
        engine.dispose()
        return url

    def _may_create(self) -> bool:
        try:
            self._administer(f'CREATE DATABASE "{self.name}"')
        except DBAPIError as error:
            logger.info("the second database is a file: %s", error.orig)
            return False
        return True

    def _drop(self) -> None:
        with suppress(
            DBAPIError
        ):  # what is left has our name on it; the error that ended the run is told instead
            self._administer(f'DROP SCHEMA IF EXISTS "{self.name}" CASCADE')
            if self._second_database:
                self._administer(f'DROP DATABASE IF EXISTS "{self._second_database}" WITH (FORCE)')

    def _administer(self, sql: str) -> None:
        engine = create_engine(parse_url(self.settings.ledger_url)[1], isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql(sql)
        finally:
            engine.dispose()


def empty_folder(wanted: Path) -> Path:
    """A new folder, or one with nothing in it."""
    if wanted.exists() and (not wanted.is_dir() or any(wanted.iterdir())):
        raise ConfigurationError(
            f"{wanted} is not an empty folder; name one that is, or that does not exist yet."
        )
    wanted.mkdir(parents=True, exist_ok=True)
    return wanted.resolve()


def find_program(name: str) -> str | None:
    """A program of the system's; administrators' folders are not on everybody's path."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
