"""insert_once: of any number of concurrent callers, exactly one inserts the row and is told so.

The database decides, by a unique index. Only a conflict on *that* index counts as "it is there already": every other
error is raised, as it is by a plain INSERT, and unlike by INSERT IGNORE.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from rowlock.databases.connections import borrowed, driver_error
from rowlock.errors import ConfigurationError, InvalidInput, UnknownDialect

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowlock.databases.connections import Borrowed

_QUOTES = {"mysql": ("`", "`"), "mssql": ("[", "]")}
_LONGEST_NAME = 128
_NO_SUCH_INDEX = "42P10"  # PostgreSQL's state for an ON CONFLICT without its index
_DUPLICATE = 1062
# A row that was in the way and is gone when we look was deleted in between; that does not happen for ever.
_TRIES = 3


class Insertion(NamedTuple):
    """What is to be inserted, checked."""

    table: tuple[str, ...]  # schema, table
    row: Mapping[str, Any]
    unique: tuple[str, ...]

    @property
    def key(self) -> list[Any]:
        return [self.row[column] for column in self.unique]


def insert_once(connection: Any, table: str, row: Mapping[str, Any], *, unique: Sequence[str]) -> bool:
    """Inserts the row unless there is one with the same values in the columns `unique`; True if it was inserted.

    Of any number of callers, on any number of machines, one gets True. It runs in your transaction and neither
    commits nor rolls back: who is the one is settled by your commit.

    Args:
        connection: an SQLAlchemy connection or session; a psycopg, sqlite3 or PyMySQL connection; or the `tx` of
            `record.transaction()` and `lease.transaction()`. From an async one:
            `await tx.run_sync(lambda tx: insert_once(tx, …))`.
        table: its name, or `schema.table`.
        row: column → value.
        unique: the columns that say which row it is. They need a unique index on just these columns;
            ConfigurationError says which to create.

    """
    wanted = checked(table, row, unique)
    on = borrowed(connection)
    if on.dialect not in _DIALECTS:
        raise UnknownDialect(
            f"insert_once speaks {', '.join(sorted(_DIALECTS))}, and this connection is to a {on.dialect!r} database."
        )
    return _DIALECTS[on.dialect](on, wanted)


def checked(table: str, row: Mapping[str, Any], unique: Sequence[str]) -> Insertion:
    """Names are checked, and quoted later; a key that can never be equal to another is refused."""
    if not isinstance(row, Mapping) or not row:
        raise InvalidInput(f"insert_once({table!r}): row is a dict of columns and values, not {row!r}.")
    if isinstance(unique, str) or not unique or len(set(unique)) != len(unique):
        raise InvalidInput(
            f"insert_once({table!r}): unique is a list of columns, such as ['accession_number'], not {unique!r}."
        )
    parts = tuple(table.split(".")) if isinstance(table, str) else ()
    if not 1 <= len(parts) <= 2:
        raise InvalidInput(f"insert_once: the table is named NAME or SCHEMA.NAME, not {table!r}.")
    for name in (*parts, *row, *unique):
        if not (isinstance(name, str) and name.isidentifier() and len(name) <= _LONGEST_NAME):
            raise InvalidInput(
                f"insert_once({table!r}): {name!r} is no name for a table or a column: letters, digits and _."
            )
    for column in unique:
        if row.get(column) is None:
            raise InvalidInput(
                f"insert_once({table!r}): the unique column {column!r} needs a value. A missing one or None equals "
                "nothing, not even itself: the row would be inserted again and again."
            )
    return Insertion(parts, row, tuple(unique))


# -- PostgreSQL and SQLite -----------------------------------------------------------------------------------------


def on_conflict_statement(wanted: Insertion) -> str:
    return f"{_insert(wanted)} VALUES ({_marks(wanted.row)}) ON CONFLICT ({_names(wanted.unique)}) DO NOTHING"


def _insert_on_conflict(on: Borrowed, wanted: Insertion) -> bool:
    try:
        return on.changed(on_conflict_statement(wanted), list(wanted.row.values())) == 1
    except Exception as error:
        told = driver_error(error)
        if getattr(told, "sqlstate", None) == _NO_SUCH_INDEX or "ON CONFLICT clause does not match" in str(
            told
        ):
            raise _no_index(wanted) from error
        raise


# -- MariaDB and MySQL ----------------------------------------------------------------------------------------------

# ON DUPLICATE KEY UPDATE would take a conflict on any unique key for ours, and its row count depends on a flag of
# the client's. A plain INSERT does neither: its error names the key.

_INDEXES = """
SELECT index_name, column_name, sub_part FROM information_schema.statistics
WHERE table_schema = coalesce(?, database()) AND table_name = ? AND non_unique = 0
"""
# By connection: asking before every insert would double its cost.
_known_indexes: WeakKeyDictionary[Any, dict[tuple[tuple[str, ...], tuple[str, ...]], set[str]]] = (
    WeakKeyDictionary()
)


def plain_statement(wanted: Insertion) -> str:
    return f"{_insert(wanted, 'mysql')} VALUES ({_marks(wanted.row)})"


def look_statement(wanted: Insertion) -> str:
    """Reads what is committed now, whatever this transaction has read before."""
    where = " AND ".join(f"{_name(column, 'mysql')} = ?" for column in wanted.unique)
    return f"SELECT 1 FROM {_table(wanted, 'mysql')} WHERE {where} LIMIT 1 LOCK IN SHARE MODE"  # noqa: S608 - names are checked


def _insert_or_look(on: Borrowed, wanted: Insertion) -> bool:
    ours = _unique_indexes(on, wanted)
    for tries_left in reversed(range(_TRIES)):
        try:
            on.changed(plain_statement(wanted), list(wanted.row.values()))
        except Exception as error:
            told = driver_error(error)
            if not told.args or told.args[0] != _DUPLICATE:
                raise
            # By name, because a value may be stored otherwise than it was given (rounded, say). By value, because
            # of several keys that are in the way only one is named.
            if _named_index(str(told.args[-1])) in ours or on.rows(look_statement(wanted), wanted.key):
                return False
            if not tries_left:
                raise
        else:
            return True
    raise AssertionError  # the last try returns or raises


def _unique_indexes(on: Borrowed, wanted: Insertion) -> set[str]:
    known = _known_indexes.setdefault(on.driver, {})
    place = (wanted.table, wanted.unique)
    if place not in known:
        schema = wanted.table[0] if len(wanted.table) > 1 else None
        columns: dict[str, set[str]] = {}
        for index, column, part in on.rows(_INDEXES, [schema, wanted.table[-1]]):
            # An index on the beginning of a column calls different values equal: it is none of ours.
            columns.setdefault(index, set()).add(column.lower() if part is None else "")
        found = {index for index, of in columns.items() if of == {name.lower() for name in wanted.unique}}
        if not found:
            raise _no_index(wanted)
        known[place] = found
    return known[place]


def _named_index(message: str) -> str:
    """The key that a duplicate entry's error names at its end; MySQL 8 writes the table before it."""
    before, _, _ = message.rpartition("'")
    return before.rpartition("'")[2].rpartition(".")[2]


# -- SQL Server -------------------------------------------------------------------------------------------------------


def where_not_exists_statement(wanted: Insertion) -> str:
    """The range stays locked from the look to the end of the transaction, so that nobody comes in between.

    Written from SQL Server's documentation; our tests check the text, and have no server to run it on.
    """
    where = " AND ".join(f"{_name(column, 'mssql')} = ?" for column in wanted.unique)
    there = f"SELECT 1 FROM {_table(wanted, 'mssql')} WITH (UPDLOCK, SERIALIZABLE) WHERE {where}"  # noqa: S608 - names are checked
    return f"{_insert(wanted, 'mssql')} SELECT {_marks(wanted.row)} WHERE NOT EXISTS ({there})"


def _insert_where_not_exists(on: Borrowed, wanted: Insertion) -> bool:
    return on.changed(where_not_exists_statement(wanted), [*wanted.row.values(), *wanted.key]) == 1


_DIALECTS: dict[str, Callable[[Borrowed, Insertion], bool]] = {
    "postgresql": _insert_on_conflict,
    "sqlite": _insert_on_conflict,
    "mysql": _insert_or_look,
    "mssql": _insert_where_not_exists,
}

# -- small things -------------------------------------------------------------------------------------------------------


def _insert(wanted: Insertion, dialect: str = "") -> str:
    return f"INSERT INTO {_table(wanted, dialect)} ({_names(wanted.row, dialect)})"


def _table(wanted: Insertion, dialect: str = "") -> str:
    return ".".join(_name(part, dialect) for part in wanted.table)


def _names(columns: Mapping[str, Any] | Sequence[str], dialect: str = "") -> str:
    return ", ".join(_name(column, dialect) for column in columns)


def _name(name: str, dialect: str = "") -> str:
    """Quoted; it was checked to have no quotes in it."""
    left, right = _QUOTES.get(dialect, ('"', '"'))
    return f"{left}{name}{right}"


def _marks(row: Mapping[str, Any]) -> str:
    return ", ".join("?" for _ in row)


def _no_index(wanted: Insertion) -> ConfigurationError:
    table, columns = ".".join(wanted.table), ", ".join(wanted.unique)
    return ConfigurationError(
        f"insert_once: {table} has no unique index on exactly ({columns}), so the database cannot tell whether a row is "
        f"there already. Create one: CREATE UNIQUE INDEX {'_'.join((wanted.table[-1], *wanted.unique, 'once'))[:60]} "
        f"ON {table} ({columns})"
    )
