"""What an operator may do to a single record: let it run again, or now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rowlock.errors import NotFound, Refused

if TYPE_CHECKING:
    from rowlock.ledger.ledger import Ledger

Retried = Literal["redriven", "hurried"]


def retry(ledger: Ledger, record_id: int) -> Retried:
    """A dead or cancelled record is driven again; one that waits for its time may run now."""
    if ledger.redrive([record_id]):
        return "redriven"
    if ledger.hurry([record_id]):
        return "hurried"
    match status_of(ledger, record_id):
        case "processing":
            why = "a worker has it now. If it should not go on, cancel it first, then retry it"
        case "completed":
            why = "it has its result. To do the work again, enqueue it under another key"
        case _:
            why = f"nothing holds it back that a retry could end. See: rowlock why {record_id}"
    raise Refused(f"Record {record_id} is {status_of(ledger, record_id)}: {why}.")


def status_of(ledger: Ledger, record_id: int) -> str:
    rows = ledger.run_safely("record_find", id=record_id)
    if not rows:
        raise NotFound(f"There is no record {record_id}; its history may have been pruned.")
    return str(rows[0].status)
