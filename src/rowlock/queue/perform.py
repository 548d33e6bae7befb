"""Runs a handler on its record, or its batch, and says how it ended. Nothing a handler does is hidden."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from rowlock.errors import InvalidPayload, LeaseLost, Reject, RetryLater
from rowlock.log import at_work
from rowlock.queue.failure import ErrorReport
from rowlock.queue.outcome import Outcome
from rowlock.queue.payload import encode

if TYPE_CHECKING:
    from rowlock.queue.flow import Flow
    from rowlock.queue.record import Record

logger = logging.getLogger("rowlock.worker")


def perform(flow: Flow, records: list[Record]) -> list[Outcome]:
    """Runs a synchronous handler."""
    at_work.set(records)
    try:
        returned = flow.handler(records if flow.batch else records[0])
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a handler raises is the outcome
        return [raised(record, error) for record in records if not record_is_done(record, error)]
    return finished(flow, records, returned)


async def aperform(flow: Flow, records: list[Record]) -> list[Outcome]:
    """Runs an asynchronous handler. A cancellation passes through: whoever cancelled knows why."""
    at_work.set(records)
    try:
        returned = await flow.handler(records if flow.batch else records[0])
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a handler raises is the outcome
        return [raised(record, error) for record in records if not record_is_done(record, error)]
    return finished(flow, records, returned)


def finished(flow: Flow, records: list[Record], returned: Any) -> list[Outcome]:
    """The outcomes of a handler that returned."""
    if not flow.batch:
        return [_completed(records[0], returned)]
    if returned is None:
        returned = [None] * len(records)
    if not isinstance(returned, list) or len(returned) != len(records):
        error = InvalidPayload(
            f"flow {flow.name!r}: a batch handler returns None or a list with one result for each of its "
            f"{len(records)} records, not {type(returned).__name__}."
        )
        return [raised(record, error) for record in records if not record.settled]
    return [
        _completed(record, result)
        for record, result in zip(records, returned, strict=True)
        if record._state != "handed_in"  # noqa: SLF001 - it has been settled by hand
    ]


def _completed(record: Record, returned: Any) -> Outcome:
    if record._state == "settled":  # noqa: SLF001
        return Outcome(record, "settled")
    if record._state == "lost":  # noqa: SLF001
        return Outcome(record, "lost")
    try:
        limit = record._holder.ledger.settings.max_payload_bytes  # noqa: SLF001
        return Outcome(record, "completed", result=encode(returned, limit, "The result"))
    except InvalidPayload as error:
        return raised(record, error)


def record_is_done(record: Record, error: BaseException) -> bool:
    """A record that was settled before its handler raised stays settled; the error is told, not lost."""
    if record._state == "handed_in":  # noqa: SLF001
        logger.warning("%r was settled before its handler raised %r", record, error)
        return True
    return False


def raised(record: Record, error: BaseException) -> Outcome:
    """The outcome of a handler that raised."""
    if record._state == "settled":  # noqa: SLF001
        logger.warning("%r was completed in its transaction before its handler raised %r", record, error)
        return Outcome(record, "settled")
    match error:
        case Reject():
            return Outcome(record, "rejected", error=ErrorReport.of(error))
        case RetryLater():
            return Outcome(record, "postponed", delay=error.seconds, reason=error.reason or None)
        case LeaseLost() if record._state == "lost":  # noqa: SLF001
            return Outcome(record, "lost")
        case LeaseLost() if record.lost:
            # By the local clock alone; the ledger may still count it as ours. Not the handler's fault: hand it back.
            return Outcome(record, "postponed")
        case _:
            return Outcome(record, "failed", error=ErrorReport.of(error))
