"""Every error Rowlock raises, in one tree.

RowlockError
├── ConfigurationError        a setting, a URL, a flow or an import that cannot work
│   ├── UnknownDialect        the ledger's URL names a database we do not speak
│   └── UnknownFlow           nobody has registered a flow of that name
├── InvalidInput              a value that was refused before anything was written
│   ├── InvalidPayload        not JSON, or too large
│   ├── InvalidKey            empty, too long, or not a string
│   ├── InvalidPriority       outside 0 … 100
│   ├── InvalidJob            a job with parts that are wrong; it says which
│   └── IdempotencyConflict   an idempotency key that was used for something else
├── LedgerError               the coordination database
│   ├── LedgerUnavailable     it cannot be reached now; trying again later may work
│   ├── LedgerFull            its disk is full
│   ├── SchemaMismatch        its tables are older or newer than this code
│   └── OutcomeUnknown        the connection broke during a commit and could not be re-read
├── StorageError              the place where files are kept
│   ├── StorageUnavailable    it cannot be reached now, or asks to slow down; trying again later may work
│   ├── StorageFull           there is no room for the file
│   └── StorageRefused        no such bucket, or no right to write there: trying again does not help
├── LeaseLost                 somebody else may act on this now: your write was refused
├── LockHeld                  somebody else holds the lock, and the wait for it is over
├── LimitReached              the limit's budget is used up, and the wait for it is over
├── FlowClosed                the flow drains and takes no new records
├── ApiError                  a client: the server's answer is an error that has no name of its own here
├── ApiUnavailable            a client: the server was not reached, or its answer was lost, at every attempt
├── JobNotEnded               a client: the wait for a job is over, and the job goes on
├── NotFound                  no such record, flow or instance
└── Refused                   the thing is not in a state that allows this

Two more are raised by handlers, to say how a record goes on: Reject and RetryLater.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class RowlockError(Exception):
    """The root of the tree: catch this to catch everything of ours."""


class ConfigurationError(RowlockError):
    """A setting, a URL, a flow or an import that cannot work as given."""


class UnknownDialect(ConfigurationError):
    """The ledger's URL names a database that Rowlock does not speak."""


class UnknownFlow(ConfigurationError):
    """Nobody has registered a flow of that name."""


class InvalidInput(RowlockError, ValueError):
    """A value was refused; nothing was written. `pointer` is the JSON pointer of the bad part, where there is one."""

    def __init__(self, message: str = "", *, pointer: str | None = None) -> None:
        super().__init__(message)
        self.pointer = pointer


class InvalidPayload(InvalidInput):
    """A payload or result is not JSON, or is larger than the limit."""


class InvalidKey(InvalidInput):
    """A key is empty, too long, or not a string."""


class InvalidPriority(InvalidInput):
    """A priority is outside 0 … 100."""


class Problem(NamedTuple):
    """One part that is wrong: a JSON pointer to it, and what is wrong with it."""

    pointer: str
    detail: str


class InvalidJob(InvalidInput):
    """A job was refused; `problems` points to each part that is wrong."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        shown = "; ".join(f"{problem.pointer}: {problem.detail}" for problem in problems[:5])
        more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
        super().__init__(f"{shown}{more}")


class IdempotencyConflict(InvalidInput):
    """An idempotency key was used before, for something else."""


class LedgerError(RowlockError):
    """The coordination database refused or failed."""


class LedgerUnavailable(LedgerError):
    """The ledger cannot be reached now."""


class LedgerFull(LedgerError):
    """The ledger's disk is full: free space there; nothing was half-written."""


class SchemaMismatch(LedgerError):
    """The ledger's tables are older or newer than this code."""


class OutcomeUnknown(LedgerError):
    """The connection broke during a commit, and the outcome could not be re-read."""


class StorageError(RowlockError):
    """The place where files are kept refused or failed; no file is half-written."""


class StorageUnavailable(StorageError):
    """The storage cannot be reached now, or asks to slow down."""


class StorageFull(StorageError):
    """The storage has no room: free some; nothing was half-written."""


class StorageRefused(StorageError):
    """No such bucket, or no right to write there: it has to be put right before trying again helps."""


class LeaseLost(RowlockError):
    """The token is stale: the thing was taken over, settled or revoked. Nothing was written."""


class LockHeld(RowlockError):
    """Somebody else holds the lock, and the wait for it is over."""


class LimitReached(RowlockError):
    """The limit's budget is used up for now, and the wait for it is over."""


class FlowClosed(RowlockError):
    """The flow drains: it finishes what it has and takes no new records."""


class ApiError(RowlockError):
    """A server answered with an error, or with something that is no answer; `errors` points to each bad part.

    An error that has a name of its own is raised under that name, with its ApiError as the cause.
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int,
        type: str = "about:blank",  # noqa: A002 - as RFC 9457 has it
        instance: str | None = None,
        errors: list[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(f"{detail} (status {status}{f', {instance}' if instance else ''})")
        self.detail = detail
        self.status = status
        self.type = type
        self.instance = instance
        self.errors = errors or []


class ApiUnavailable(RowlockError):
    """The server was not reached, or its answer was lost, at every attempt."""


class JobNotEnded(RowlockError, TimeoutError):
    """The wait for a job is over, and the job goes on."""


class NotFound(RowlockError, LookupError):
    """There is no such record, flow or instance."""


class Refused(RowlockError):
    """The thing is not in a state that allows this."""


class Reject(Exception):
    """Raise in a handler: this record can never succeed; it is dead now, with this reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RetryLater(Exception):
    """Raise in a handler: try again after so many seconds; the attempt is not spent."""

    def __init__(self, seconds: float, reason: str = "") -> None:
        if seconds < 0:
            raise InvalidInput(f"RetryLater({seconds}): the wait cannot be negative.")
        super().__init__(reason or f"again in {seconds:g} s")
        self.seconds = seconds
        self.reason = reason
