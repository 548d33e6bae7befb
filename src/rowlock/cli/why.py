"""`rowlock why`: what a record waits for, or what became of it."""

from rowlock.cli.ledgers import open_ledger
from rowlock.cli.options import AsJson, LedgerUrl, RecordName
from rowlock.cli.output import say, say_json


def why(record: RecordName, as_json: AsJson = False, ledger: LedgerUrl = None) -> None:
    """Say in words what a record waits for, or what became of it.

    Example: rowlock why score_survey/survey-17
    """
    from rowlock.queue.inspector import Inspector
    from rowlock.queue.why import explain

    with open_ledger(ledger) as opened:
        found = explain(opened, Inspector(opened).find(record))
    if as_json:
        say_json(found)
        return
    name = found["record"]
    say(
        " ".join(
            [
                f"Record {name['id']} ({name['flow']}/{name['key']}) is {found['state']}.",
                *(r["text"] for r in found["reasons"]),
            ]
        )
    )
