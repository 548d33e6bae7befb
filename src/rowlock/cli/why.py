"""`rowlock why`: what a record, a job, a service or a lock waits for, or what became of it."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rowlock.cli.ledgers import open_ledger
from rowlock.cli.options import AsJson, LedgerUrl
from rowlock.cli.output import say, say_json
from rowlock.errors import NotFound

if TYPE_CHECKING:
    from rowlock.ledger.ledger import Ledger

_LOCK, _SERVICE = "lock:", "service:"


def why(
    thing: Annotated[
        str,
        typer.Argument(
            metavar="RECORD|JOB|LOCK|SERVICE",
            help="A record: a number, FLOW/KEY, or a key that only one flow has. A job, as in J20260110_000777. "
            "Or lock:NAME, or service:NAME.",
        ),
    ],
    as_json: AsJson = False,
    ledger: LedgerUrl = None,
) -> None:
    """Say in words what a record, a job, a lock or a service waits for, or what became of it.

    Example: rowlock why score_survey/survey-17

    Example: rowlock why J20260110_000777

    Example: rowlock why lock:edgar_monitor
    """
    with open_ledger(ledger) as opened:
        found = _explain(opened, thing)
    if as_json:
        say_json(found)
        return
    say(" ".join([f"{_name(found)} is {found['state']}.", *(reason["text"] for reason in found["reasons"])]))


def _name(found: dict[str, Any]) -> str:
    match found:
        case {"record": record}:
            return f"Record {record['id']} ({record['flow']}/{record['key']})"
        case {"job": job}:
            return f"Job {job['key']}"
        case {"service": service}:
            return f"Service {service['name']}"
    return f"Lock {found['lock']['name']}"


def _explain(ledger: "Ledger", thing: str) -> dict[str, Any]:
    """A job, a service or a lock when it is called one, then a record, then a lock."""
    from rowlock.jobs.jobs import KEY
    from rowlock.jobs.why import explain_job
    from rowlock.leases.inspector import LockInspector
    from rowlock.leases.service_why import explain_service
    from rowlock.leases.why import explain_lock
    from rowlock.queue.inspector import Inspector
    from rowlock.queue.why import explain

    if KEY.fullmatch(thing):
        return explain_job(ledger, thing)
    if thing.startswith(_SERVICE):
        return explain_service(ledger, thing.removeprefix(_SERVICE))
    locks = LockInspector(ledger)
    if thing.startswith(_LOCK) and locks.exists(thing.removeprefix(_LOCK)):
        return explain_lock(ledger, thing.removeprefix(_LOCK))
    try:
        record = Inspector(ledger).find(thing)
    except NotFound:
        if locks.exists(thing):
            return explain_lock(ledger, thing)
        if thing.startswith(_LOCK):
            locks.slots(thing.removeprefix(_LOCK))  # says that there is none
        raise
    return explain(ledger, record)
