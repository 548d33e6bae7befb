"""`rowlock why`: what a record or a lock waits for, or what became of it."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rowlock.cli.ledgers import open_ledger
from rowlock.cli.options import AsJson, LedgerUrl
from rowlock.cli.output import say, say_json
from rowlock.errors import NotFound

if TYPE_CHECKING:
    from rowlock.ledger.ledger import Ledger

_LOCK = "lock:"


def why(
    thing: Annotated[
        str,
        typer.Argument(
            metavar="RECORD|LOCK",
            help="A record: a number, FLOW/KEY, or a key that only one flow has. Or lock:NAME.",
        ),
    ],
    as_json: AsJson = False,
    ledger: LedgerUrl = None,
) -> None:
    """Say in words what a record or a lock waits for, or what became of it.

    Example: rowlock why score_survey/survey-17

    Example: rowlock why lock:edgar_monitor
    """
    with open_ledger(ledger) as opened:
        found = _explain(opened, thing)
    if as_json:
        say_json(found)
        return
    if "lock" in found:
        name = f"Lock {found['lock']['name']}"
    else:
        record = found["record"]
        name = f"Record {record['id']} ({record['flow']}/{record['key']})"
    say(" ".join([f"{name} is {found['state']}.", *(reason["text"] for reason in found["reasons"])]))


def _explain(ledger: "Ledger", thing: str) -> dict[str, Any]:
    """A lock when it is called one, then a record, then a lock."""
    from rowlock.leases.inspector import LockInspector
    from rowlock.leases.why import explain_lock
    from rowlock.queue.inspector import Inspector
    from rowlock.queue.why import explain

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
