"""How a command gets its ledger."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rowlock.errors import ConfigurationError

if TYPE_CHECKING:
    from rowlock.ledger.ledger import Ledger


@contextmanager
def open_ledger(url: str | None) -> Iterator["Ledger"]:
    """The ledger, its tables fit for this code. As in a program, a SQLite ledger is kept up to date by itself."""
    with connect(url) as ledger:
        require_file(ledger)
        if ledger.dialect == "sqlite" and ledger.schema.version() < ledger.schema.latest:
            ledger.schema.migrate()
        ledger.schema.check()
        yield ledger


def connect(url: str | None) -> "Ledger":
    """The ledger that the option or the settings name; nothing is connected or checked yet."""
    from rowlock.ledger.ledger import Ledger
    from rowlock.settings import load_settings

    return Ledger.open(load_settings(ledger_url=url))


def require_file(ledger: "Ledger") -> None:
    """SQLite would make an empty file in whatever folder this is, and then everything would seem to be gone."""
    if ledger.dialect == "sqlite" and not Path(str(ledger.url.database)).is_file():
        raise ConfigurationError(
            f"There is no ledger {ledger} here ({Path.cwd()}). Go to the folder that has it, name it with --ledger or "
            "ROWLOCK_LEDGER_URL, or make one: rowlock init"
        )
