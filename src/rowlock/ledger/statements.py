"""The ledger's SQL: one statement a file, loaded once for each dialect and schema."""

from __future__ import annotations

from functools import cache
from importlib import resources

_ROOT = resources.files("rowlock.ledger")


@cache
def load_statements(dialect: str, schema: str) -> dict[str, str]:
    """Every statement of a dialect by name, its tables in the given schema."""
    folder = _ROOT / "sql" / dialect
    return {
        path.name.removesuffix(".sql"): in_schema(path.read_text(encoding="utf-8"), schema)
        for path in folder.iterdir()
        if path.name.endswith(".sql")
    }


@cache
def load_migrations(dialect: str, schema: str) -> dict[int, tuple[str, str]]:
    """Version → (name, SQL), in order."""
    folder = _ROOT / "migrations" / dialect
    found = sorted(path.name.removesuffix(".sql") for path in folder.iterdir() if path.name.endswith(".sql"))
    return {
        int(name[:4]): (name[5:], in_schema((folder / f"{name}.sql").read_text(encoding="utf-8"), schema))
        for name in found
    }


def in_schema(sql: str, schema: str) -> str:
    """The files say `rowlock.`, so that they run as they are; another schema takes its place here.

    The schema was checked to be a plain identifier when the settings were read.
    """
    return sql if schema == "rowlock" else sql.replace("rowlock.", f'"{schema}".')
