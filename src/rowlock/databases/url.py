"""Database URLs: parsed once, and never shown with a secret in them."""

from __future__ import annotations

import re
from urllib.parse import quote_plus

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from rowlock.errors import ConfigurationError, UnknownDialect

# What users write → the dialect's name in our folders, and the driver we test.
_DRIVERS = {
    "postgresql": ("postgresql", "postgresql+psycopg"),
    "postgres": ("postgresql", "postgresql+psycopg"),
    "sqlite": ("sqlite", "sqlite"),
}
_SECRET_PARAMETER = re.compile(r"(?i)(password|passwd|pwd|secret|token|sslkey)")
_MASK = "***"


def parse_url(text: str) -> tuple[str, URL]:
    """The dialect's name, and the URL with the driver that Rowlock uses."""
    try:
        url = make_url(text)
    except ArgumentError:
        raise ConfigurationError(
            "The ledger's URL cannot be read (it is not shown, because it may hold a password). "
            "It looks like postgresql://user:password@host:5432/database or sqlite:///file.db."
        ) from None
    family = url.drivername.split("+", 1)[0]
    if family not in _DRIVERS:
        raise UnknownDialect(
            f"{masked(url)} is a {family!r} database, and the ledger speaks "
            f"{', '.join(sorted(set(_DRIVERS) - {'postgres'}))}. Use one of these for the ledger."
        )
    dialect, driver = _DRIVERS[family]
    if dialect == "sqlite" and url.database in (None, "", ":memory:"):
        raise ConfigurationError(
            "A ledger in memory is seen by one connection only, so nothing could be shared. "
            "Name a file: sqlite:///rowlock.db"
        )
    return dialect, url.set(drivername=driver)


def masked(url: URL | str) -> str:
    """The URL as it may be shown: no password, and no query parameter that looks like one."""
    url = make_url(url)
    query = {k: (_MASK if _SECRET_PARAMETER.search(k) else v) for k, v in url.query.items()}
    shown = url.set(query=query).render_as_string(hide_password=True)
    return shown.replace(f"={quote_plus(_MASK)}", f"={_MASK}")
