"""The ledger: the only code that touches the coordination tables.

What is one statement in every dialect is written here; what needs several steps somewhere is abstract
here and written in `postgresql.py` and `sqlite.py`. A new dialect is a folder of SQL and one such file.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from rowlock.databases.engine import is_conflict, is_connection_lost, is_disk_full, open_engine
from rowlock.databases.url import masked, parse_url
from rowlock.errors import (
    FlowClosed,
    LedgerError,
    LedgerFull,
    LedgerUnavailable,
    SchemaMismatch,
    UnknownFlow,
)
from rowlock.ledger.breaker_table import BreakerTable
from rowlock.ledger.connection import LedgerConnection, Params, Row, borrow
from rowlock.ledger.limit_table import LimitTable
from rowlock.ledger.schema import Schema
from rowlock.ledger.statements import load_statements

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from sqlalchemy.engine import URL

    from rowlock.ledger.lock_table import LockTable
    from rowlock.ledger.rows import Completion, Failure, Held, Release, Wish
    from rowlock.settings import Settings

logger = logging.getLogger("rowlock.ledger")

# A conflict was rolled back by the database; a disconnect on the first try is often only a stale pooled
# connection. Both are worth another go for statements that are safe to repeat.
_TRIES = 3


class Ledger(ABC):
    """One coordination database."""

    dialect: ClassVar[str]
    single_statement_options: ClassVar[dict[str, Any]]
    transaction_options: ClassVar[dict[str, Any]]

    def __init__(self, url: URL, settings: Settings, *, control: bool = False) -> None:
        self.url = url
        self.settings = settings
        opened = open_engine(self.dialect, url, settings, control=control)
        self.engine = opened.execution_options(**self.transaction_options)
        self._single = opened.execution_options(**self.single_statement_options)
        self._driver_error: type[Exception] = opened.dialect.loaded_dbapi.Error
        self.statements = load_statements(self.dialect, settings.ledger_schema)
        self.channel = f"rowlock_{settings.ledger_schema}"
        self.schema = Schema(self)
        self.locks = self._lock_table()
        self.limits = LimitTable(self)
        self.breakers = BreakerTable(self)

    @staticmethod
    def open(settings: Settings, *, control: bool = False) -> Ledger:
        """The ledger that the settings name, in its dialect; nothing is connected yet.

        `control` is for the parts of Rowlock that run its own statements only: never lend such a connection.
        """
        from rowlock.ledger.postgresql import PostgresqlLedger  # noqa: PLC0415 - they import this module
        from rowlock.ledger.sqlite import SqliteLedger  # noqa: PLC0415

        dialect, url = parse_url(settings.ledger_url)
        kinds: dict[str, type[Ledger]] = {"postgresql": PostgresqlLedger, "sqlite": SqliteLedger}
        return kinds[dialect](url, settings, control=control)

    def __str__(self) -> str:
        return masked(self.url)

    def close(self) -> None:
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- running statements ---------------------------------------------------------------------------

    def run(self, name: str, /, **params: Any) -> list[Row]:
        """One statement, committed by itself."""
        with self.translated(), self._single.connect() as connection:
            return LedgerConnection(connection, self.statements).all(name, params)

    def run_safely(self, name: str, /, **params: Any) -> list[Row]:
        """One statement that does no harm when it runs twice: tried again when the connection was stale or lost."""
        for _ in range(_TRIES - 1):
            try:
                return self.run(name, **params)
            except LedgerUnavailable as error:
                logger.debug("%s is tried again: %s", name, error)
        return self.run(name, **params)

    @contextmanager
    def transaction(self) -> Iterator[LedgerConnection]:
        """Several statements, one commit."""
        with self.translated(), self.engine.begin() as connection:
            yield LedgerConnection(connection, self.statements)

    def borrow(self, connection: Any) -> LedgerConnection:
        """The caller's connection, inside the caller's transaction."""
        return borrow(connection, self.statements)

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Driver errors become ours: what happened, on what, and what to do."""
        try:
            yield
        except DBAPIError as error:
            raise self._translate(error.orig or error) from error
        except self._driver_error as error:  # where we speak to the driver past SQLAlchemy
            raise self._translate(error) from error
        except PoolTimeout as error:
            raise LedgerUnavailable(
                f"All {self.settings.pool_size} connections to {self} are in use. Raise ROWLOCK_POOL_SIZE, "
                "or hold record.transaction() for a shorter time."
            ) from error

    def _translate(self, error: BaseException) -> LedgerError:
        text = str(error).strip()
        if is_disk_full(error):
            return LedgerFull(f"The disk of {self} is full; nothing was written. Free space there. ({text})")
        if is_connection_lost(error):
            return LedgerUnavailable(f"{self} cannot be reached: {text}")
        if is_conflict(error):
            return LedgerUnavailable(f"{self} rolled back a conflict: {text}")
        if self.is_schema_missing(error):
            return SchemaMismatch(f"{self} has no ledger's tables here ({text}). Run: rowlock migrate")
        return LedgerError(f"{self} refused a statement: {text}")

    @abstractmethod
    def _lock_table(self) -> LockTable:
        """The tables of named leases, in this dialect."""

    @abstractmethod
    def is_schema_missing(self, error: BaseException) -> bool:
        """True when the tables are not there."""

    # -- what every dialect does in its own way --------------------------------------------------------

    @abstractmethod
    def enqueue(
        self,
        on: LedgerConnection | None,
        *,
        flow: str,
        keys: Sequence[str],
        payloads: Sequence[str],
        priority: int,
        run_at: datetime | None,
        batch: int,
        notify: bool,
        job: int | None = None,
    ) -> list[int]:
        """Accepts the records whose keys are new, all or nothing; the ids of those accepted, in order.

        With a job they are its inputs: whoever settles them counts them there.
        Raises UnknownFlow or FlowClosed, with nothing written.
        """

    @abstractmethod
    def exchange(
        self, holder: int, completions: Sequence[Completion], wishes: Sequence[Wish]
    ) -> tuple[set[int], list[Held]]:
        """Settles what is complete and claims what is wished for: (ids settled, records claimed)."""

    @abstractmethod
    def complete(self, on: LedgerConnection, *, id: int, token: int, result: str | None) -> bool:  # noqa: A002
        """Completes one record inside the transaction that carries its effects; False if the token is stale."""

    @abstractmethod
    def fail(self, holder: int | None, failures: Sequence[Failure]) -> set[int]:
        """Settles records that did not complete; the ids whose token was right."""

    @abstractmethod
    def release(self, holder: int | None, releases: Sequence[Release]) -> set[int]:
        """Hands records back, their attempt unspent; the ids whose token was right."""

    @abstractmethod
    def start(self, tokens: Sequence[tuple[int, int]]) -> set[int]:
        """Announces that suspect records start now; the ids whose token was right."""

    @abstractmethod
    def reread(self, tokens: dict[int, int]) -> dict[int, str]:
        """What became of settlings whose commit's reply was lost: id → held, settled or lost."""

    @abstractmethod
    def promote(self, limit: int) -> int:
        """Makes records ready whose time has come; how many."""

    @abstractmethod
    def takeover(self, limit: int) -> tuple[int, int]:
        """Takes records from dead instances: (returned to the queue, dead-lettered)."""

    @abstractmethod
    def cancel(self, ids: Sequence[int], reason: str) -> list[int]:
        """Cancels live records; the ids that were live."""

    @abstractmethod
    def hurry(self, ids: Sequence[int]) -> list[int]:
        """Lets records that wait run now; the ids that did wait."""

    @abstractmethod
    def redrive(self, ids: Sequence[int]) -> list[int]:
        """Makes dead or cancelled records pending again; the ids that were."""

    @abstractmethod
    def count_job(self, on: LedgerConnection, job: int, *, done: int, dead: int, cancelled: int) -> None:
        """Counts inputs by hand, for a repair; whoever settles inputs counts them in the same statement."""

    @abstractmethod
    def prune(self, seconds: float, *, dead_too: bool, limit: int) -> int:
        """Forgets records settled longer ago than that; how many, at most the limit."""

    @abstractmethod
    def set_flow_state(self, flow: str, state: str, reason: str | None) -> bool:
        """Pauses, resumes or drains a flow, and closes its breaker; False if there is none of that name."""

    @abstractmethod
    def wake(self, flow: str) -> None:
        """Tells idle workers in other processes that the flow has work; a no-op where nothing can."""

    # -- the same everywhere ----------------------------------------------------------------------------

    def held(self, holder: int) -> list[Held]:
        """What an instance holds, as the ledger knows it."""
        from rowlock.ledger.rows import Held  # noqa: PLC0415

        return [Held(*row) for row in self.run_safely("held", holder=holder)]

    def now(self) -> float:
        """The ledger's clock, in seconds since 1970."""
        return float(self.run_safely("time")[0].now)

    @property
    def identity(self) -> str:
        """Which ledger this is, whatever its address."""
        return str(self.run_safely("identity")[0].identity)


def check_open(flow: str, state: str | None) -> None:
    """A flow must be known, and not be draining, to take records."""
    if state is None:
        raise UnknownFlow(
            f"Nobody has registered a flow named {flow!r}. Check the name; or register it with @app.flow({flow!r}), "
            f"or run: rowlock flows add {flow}"
        )
    if state == "draining":
        raise FlowClosed(
            f"flow {flow!r} drains and takes no new records. To open it: rowlock flows resume {flow}"
        )


def chunks(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Pieces of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


__all__ = ["Ledger", "LedgerConnection", "Params", "Row", "check_open", "chunks"]
