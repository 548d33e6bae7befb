"""Many copies of one program, one database, every piece of work done once."""

from importlib.metadata import version

from rowlock.app import Rowlock
from rowlock.errors import (
    ConfigurationError,
    FlowClosed,
    InvalidInput,
    InvalidKey,
    InvalidPayload,
    InvalidPriority,
    LeaseLost,
    LedgerError,
    LedgerFull,
    LedgerUnavailable,
    NotFound,
    OutcomeUnknown,
    Refused,
    Reject,
    RetryLater,
    RowlockError,
    SchemaMismatch,
    UnknownDialect,
    UnknownFlow,
)
from rowlock.queue.enqueue import Enqueued
from rowlock.queue.letters import DeadLetters
from rowlock.queue.processor import DistributedProcessor
from rowlock.queue.record import Record
from rowlock.queue.retry import Backoff
from rowlock.queue.transaction import RecordTransaction
from rowlock.queue.worker import Worker
from rowlock.settings import Settings

__version__ = version("rowlock")

__all__ = [
    "Backoff",
    "ConfigurationError",
    "DeadLetters",
    "DistributedProcessor",
    "Enqueued",
    "FlowClosed",
    "InvalidInput",
    "InvalidKey",
    "InvalidPayload",
    "InvalidPriority",
    "LeaseLost",
    "LedgerError",
    "LedgerFull",
    "LedgerUnavailable",
    "NotFound",
    "OutcomeUnknown",
    "Record",
    "RecordTransaction",
    "Refused",
    "Reject",
    "RetryLater",
    "Rowlock",
    "RowlockError",
    "SchemaMismatch",
    "Settings",
    "UnknownDialect",
    "UnknownFlow",
    "Worker",
]
