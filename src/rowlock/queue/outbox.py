"""The outbox: a row and the message about it, in one transaction, so that only the one who inserts it tells others."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rowlock.databases.connections import borrowed, driver_error
from rowlock.databases.insert_once import insert_once
from rowlock.errors import ConfigurationError
from rowlock.queue.payload import MAX_KEY_LENGTH, check_flow_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rowlock.ledger.ledger import Ledger
    from rowlock.queue.enqueue import Enqueuer


class Outbox:
    """`app.outbox("alerts")`: its messages are records of that flow, sent by its handler.

    Row and message are committed together or not at all: a crash after the commit loses no message, and a crash
    before it sends none.
    """

    def __init__(self, ledger: Ledger, enqueuer: Callable[[], Enqueuer], flow: str) -> None:
        self.flow = check_flow_name(flow)
        self._ledger = ledger
        self._enqueuer = enqueuer

    def __repr__(self) -> str:
        return f"<Outbox {self.flow}>"

    def insert_once(
        self,
        connection: Any,
        table: str,
        row: Mapping[str, Any],
        *,
        unique: Sequence[str],
        message: Any,
        priority: int = 0,
    ) -> bool:
        """`rowlock.insert_once`; if the row was new, `message` becomes a record of the flow in the same transaction.

        The record's key is made of the table and the row's unique values. A row that is deleted and inserted again
        is therefore not told about a second time, for as long as the record's history is kept.

        Args:
            connection: as for `insert_once`, and to the ledger's own database.
            table: its name, or `schema.table`.
            row: column → value.
            unique: the columns that say which row it is.
            message: the record's payload, a JSON value.
            priority: 0 (normal) to 100 (first).

        """
        self._refuse_elsewhere(connection)
        if not insert_once(connection, table, row, unique=unique):
            return False
        try:
            self._enqueuer().enqueue(
                self.flow,
                [message],
                key=lambda _message: _key(table, row, unique),
                priority=priority,
                connection=connection,
            )
        except Exception as error:
            if self._ledger.is_schema_missing(driver_error(error)):
                raise self._elsewhere("has no ledger's tables") from error
            raise
        return True

    def _refuse_elsewhere(self, connection: Any) -> None:
        """What can be told before anything is written."""
        on = borrowed(connection)
        if on.dialect != self._ledger.dialect:
            raise self._elsewhere(f"is a {on.dialect} database")
        if on.dialect == "sqlite":
            files = {name: file for _, name, file in on.rows("PRAGMA database_list", [])}
            if Path(files["main"]).resolve() != Path(str(self._ledger.url.database)).resolve():
                raise self._elsewhere(f"is the file {files['main'] or 'in memory'}")
        self._ledger.borrow(connection)  # in autocommit mode the row would be there before its message

    def _elsewhere(self, what: str) -> ConfigurationError:
        return ConfigurationError(
            f"outbox {self.flow!r}: the connection must be to the ledger's database, {self._ledger}, so that row and message "
            f"are one commit; this one {what}. Roll it back. For a table elsewhere: insert_once there, then app.enqueue "
            "with a key made of the same values."
        )


def _key(table: str, row: Mapping[str, Any], unique: Sequence[str]) -> str:
    values = json.dumps([row[column] for column in sorted(unique)], default=str)
    key = f"{table}{values}"
    if len(key) <= MAX_KEY_LENGTH:
        return key
    return f"{table[:180]}#{hashlib.sha256(key.encode()).hexdigest()}"
