"""`rowlock instances`: who is alive, and what they did."""

from typing import Annotated

import typer

from rowlock.cli.ledgers import open_ledger
from rowlock.cli.options import AsJson, LedgerUrl
from rowlock.cli.output import ago, say, say_json, say_table


def instances(
    everyone: Annotated[
        bool, typer.Option("--all", help="Also those that ended more than an hour ago.")
    ] = False,
    as_json: AsJson = False,
    ledger: LedgerUrl = None,
) -> None:
    """List instances, newest first, with what they hold and what they did.

    A suspect has missed a heartbeat and is not yet dead. stale are writes that were refused, because their token was.
    """
    from rowlock.queue.inspector import Inspector

    with open_ledger(ledger) as opened:
        found = Inspector(opened).instances(everyone=everyone)
    if as_json:
        say_json(found)
    elif not found:
        say("No instances" + ("." if everyone else " of late. Start a worker: rowlock worker MODULE:APP"))
    else:
        rows = (
            (
                one["id"], one["name"], one["state"], ago(one["heartbeat_age"]), one["holds"], one["completed"],
                one["failed"], one["stale_refused"], one["takeovers"], one["version"],
            )
            for one in found
        )  # fmt: skip
        columns = (
            ">id", "name", "state", ">heartbeat", ">holds", ">done", ">failed", ">stale", ">taken", ">version",
        )  # fmt: skip
        say_table(columns, rows)
