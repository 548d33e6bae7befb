"""A ledger that is thrown away: empty, in a database of its own, with the user's own app pointed at it for a while."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Self
from uuid import uuid4

from sqlalchemy.engine import make_url

from rowlock.databases.engine import open_engine
from rowlock.databases.local_postgres import find_binaries
from rowlock.databases.url import parse_url
from rowlock.errors import ConfigurationError
from rowlock.ledger.ledger import Ledger
from rowlock.ledger.ledger_clock import LedgerClock
from rowlock.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from rowlock.app import Rowlock


def why_no_postgresql() -> str | None:
    """Why no private PostgreSQL server can be started here; None if one can."""
    if find_spec("psycopg") is None:
        return "PostgreSQL needs the psycopg driver. Install it: pip install 'rowlock[postgres]'"
    try:
        find_binaries()
    except ConfigurationError as error:
        return str(error)
    return None


class ThrowAwayLedger:
    """`url` is where it is now; `begin_anew` makes another, just as empty, for everyone it was lent to."""

    def __init__(self, folder: Path, server: str | None) -> None:
        self.kind = "sqlite" if server is None else "postgresql"
        self._folder = folder
        self._server = server
        self._lent: dict[int, tuple[Rowlock, Settings]] = {}
        self._create()

    def _create(self) -> None:
        name = f"rowlock_{uuid4().hex[:16]}"
        if self._server is None:
            self.url = f"sqlite:///{self._folder}/{name}.db"
        else:
            self._administer(f'CREATE DATABASE "{name}"')
            self.url = make_url(self._server).set(database=name).render_as_string(hide_password=False)
        self.ledger = Ledger.open(self._settings(Settings()))
        self.ledger.schema.migrate()
        self.clock = LedgerClock(self.ledger)

    def _remove(self) -> None:
        self.clock.reset()
        self.ledger.close()
        if self._server is not None:
            name = make_url(self.url).database
            self._administer(f'DROP DATABASE "{name}" WITH (FORCE)')

    def _administer(self, statement: str) -> None:
        assert self._server is not None  # noqa: S101 - only a server is administered
        dialect, url = parse_url(self._server)
        engine = open_engine(dialect, url, Settings())
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql(statement)
        finally:
            engine.dispose()

    def _settings(self, base: Settings) -> Settings:
        """One record in hand at a time, so that a test sees the same order every time; otherwise the program's own."""
        return base.model_copy(
            update={
                "ledger_url": self.url,
                "ledger_schema": "rowlock",
                "transaction_pooler": False,
                "max_prefetch": 0,
                "poll_seconds": min(base.poll_seconds, 0.1),
            }
        )

    # -- apps ------------------------------------------------------------------------------------------------

    def lend(self, app: Rowlock) -> Rowlock:
        """Points an app here until the end; what it had opened elsewhere is closed."""
        if id(app) not in self._lent:
            self._lent[id(app)] = app, app.settings
        self._point(app)
        return app

    def _point(self, app: Rowlock) -> None:
        app.close()
        app.settings = self._settings(self._lent[id(app)][1])

    def check(self, app: Rowlock) -> None:
        """Nothing here ever runs on a ledger that somebody keeps."""
        if app.settings.ledger_url != self.url:
            raise ConfigurationError(
                "This app is not on the throw-away ledger of this test. Point it there first: rowlock_app(app)"
            )

    # -- life ------------------------------------------------------------------------------------------------

    def begin_anew(self) -> None:
        """An empty database in place of this one."""
        for app, _ in self._lent.values():
            app.close()
        self._remove()
        self._create()
        for app, _ in self._lent.values():
            self._point(app)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for app, settings in self._lent.values():
            app.close()
            app.settings = settings
        self._lent.clear()
        self._remove()
