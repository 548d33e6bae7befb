"""Many copies of one program, one database, every piece of work done once.

PYTEST_DONT_REWRITE: pytest would warn whoever imported this before it, because the package has a pytest plugin.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rowlock.app import Rowlock
    from rowlock.crashes import crash_point
    from rowlock.databases.insert_once import insert_once
    from rowlock.errors import (
        ApiError,
        ApiUnavailable,
        ConfigurationError,
        FlowClosed,
        IdempotencyConflict,
        InvalidInput,
        InvalidJob,
        InvalidKey,
        InvalidPayload,
        InvalidPriority,
        JobNotEnded,
        LeaseLost,
        LedgerError,
        LedgerFull,
        LedgerUnavailable,
        LimitReached,
        LockHeld,
        NotFound,
        OutcomeUnknown,
        Refused,
        Reject,
        RetryLater,
        RowlockError,
        SchemaMismatch,
        StorageError,
        StorageFull,
        StorageRefused,
        StorageUnavailable,
        UnknownDialect,
        UnknownFlow,
    )
    from rowlock.leases.faces import DistributedLock, LeaderElection
    from rowlock.leases.leader import Leader
    from rowlock.leases.lease import Lease
    from rowlock.leases.limit import Limit, Permit
    from rowlock.leases.lock import Lock
    from rowlock.leases.service import ServiceRun
    from rowlock.leases.transaction import LeaseTransaction
    from rowlock.log import LogContext
    from rowlock.program import Program
    from rowlock.queue.breaker import Breaker
    from rowlock.queue.enqueue import Enqueued
    from rowlock.queue.letters import DeadLetters
    from rowlock.queue.outbox import Outbox
    from rowlock.queue.processor import DistributedProcessor
    from rowlock.queue.record import Record
    from rowlock.queue.retry import Backoff
    from rowlock.queue.transaction import RecordTransaction
    from rowlock.queue.worker import Worker
    from rowlock.settings import Settings

__all__ = [
    "ApiError",
    "ApiUnavailable",
    "Backoff",
    "Breaker",
    "ConfigurationError",
    "DeadLetters",
    "DistributedLock",
    "DistributedProcessor",
    "Enqueued",
    "FlowClosed",
    "IdempotencyConflict",
    "InvalidInput",
    "InvalidJob",
    "InvalidKey",
    "InvalidPayload",
    "InvalidPriority",
    "JobNotEnded",
    "Leader",
    "LeaderElection",
    "Lease",
    "LeaseLost",
    "LeaseTransaction",
    "LedgerError",
    "LedgerFull",
    "LedgerUnavailable",
    "Limit",
    "LimitReached",
    "Lock",
    "LockHeld",
    "LogContext",
    "NotFound",
    "Outbox",
    "OutcomeUnknown",
    "Permit",
    "Program",
    "Record",
    "RecordTransaction",
    "Refused",
    "Reject",
    "RetryLater",
    "Rowlock",
    "RowlockError",
    "SchemaMismatch",
    "ServiceRun",
    "Settings",
    "StorageError",
    "StorageFull",
    "StorageRefused",
    "StorageUnavailable",
    "UnknownDialect",
    "UnknownFlow",
    "Worker",
    "crash_point",
    "insert_once",
]

# Loaded when they are first asked for: `rowlock --help` must not wait for a database toolkit.
_HOMES = {
    "ApiError": "rowlock.errors",
    "ApiUnavailable": "rowlock.errors",
    "Backoff": "rowlock.queue.retry",
    "Breaker": "rowlock.queue.breaker",
    "ConfigurationError": "rowlock.errors",
    "DeadLetters": "rowlock.queue.letters",
    "DistributedLock": "rowlock.leases.faces",
    "DistributedProcessor": "rowlock.queue.processor",
    "Enqueued": "rowlock.queue.enqueue",
    "FlowClosed": "rowlock.errors",
    "IdempotencyConflict": "rowlock.errors",
    "InvalidInput": "rowlock.errors",
    "InvalidJob": "rowlock.errors",
    "InvalidKey": "rowlock.errors",
    "InvalidPayload": "rowlock.errors",
    "InvalidPriority": "rowlock.errors",
    "JobNotEnded": "rowlock.errors",
    "Leader": "rowlock.leases.leader",
    "LeaderElection": "rowlock.leases.faces",
    "Lease": "rowlock.leases.lease",
    "LeaseLost": "rowlock.errors",
    "LeaseTransaction": "rowlock.leases.transaction",
    "LedgerError": "rowlock.errors",
    "LedgerFull": "rowlock.errors",
    "LedgerUnavailable": "rowlock.errors",
    "Limit": "rowlock.leases.limit",
    "LimitReached": "rowlock.errors",
    "Lock": "rowlock.leases.lock",
    "LockHeld": "rowlock.errors",
    "LogContext": "rowlock.log",
    "NotFound": "rowlock.errors",
    "Outbox": "rowlock.queue.outbox",
    "OutcomeUnknown": "rowlock.errors",
    "Program": "rowlock.program",
    "Permit": "rowlock.leases.limit",
    "Record": "rowlock.queue.record",
    "RecordTransaction": "rowlock.queue.transaction",
    "Refused": "rowlock.errors",
    "Reject": "rowlock.errors",
    "RetryLater": "rowlock.errors",
    "Rowlock": "rowlock.app",
    "RowlockError": "rowlock.errors",
    "SchemaMismatch": "rowlock.errors",
    "ServiceRun": "rowlock.leases.service",
    "Settings": "rowlock.settings",
    "StorageError": "rowlock.errors",
    "StorageFull": "rowlock.errors",
    "StorageRefused": "rowlock.errors",
    "StorageUnavailable": "rowlock.errors",
    "UnknownDialect": "rowlock.errors",
    "UnknownFlow": "rowlock.errors",
    "Worker": "rowlock.queue.worker",
    "crash_point": "rowlock.crashes",
    "insert_once": "rowlock.databases.insert_once",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("rowlock")
    if name not in _HOMES:
        raise AttributeError(f"module 'rowlock' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
