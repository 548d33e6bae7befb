"""`rowlock services`: what runs on exactly one instance, and where."""

from typing import Any

import typer

from rowlock.cli.ledgers import open_ledger
from rowlock.cli.options import AsJson, LedgerUrl
from rowlock.cli.output import say, say_json, say_table
from rowlock.clock import in_words

group = typer.Typer(name="services", no_args_is_help=True, help="See which instance runs which service.")


@group.command("list")
def list_(as_json: AsJson = False, ledger: LedgerUrl = None) -> None:
    """List services: where each runs, what it does now, how often it crashed, and why.

    standby are the instances that would take over.
    """
    from rowlock.ledger.reading import as_dict

    with open_ledger(ledger) as opened:
        found = [as_dict(row) for row in opened.run_safely("services")]
    if as_json:
        say_json(found)
    elif not found:
        say("No service has run yet. Declare one with @app.service(…), then: rowlock run MODULE:APP")
    else:
        rows = (
            (
                one["service"], one["state"], _where(one), one["token"], one["standby"], one["runs"], one["crashes"],
                _next(one), one["reason"],
            )
            for one in found
        )  # fmt: skip
        say_table(
            ("service", "state", "on", ">token", ">standby", ">runs", ">crashes", ">next", "reason"), rows
        )


def _where(service: dict[str, Any]) -> str:
    if service["holder"] is None:
        return "nobody"
    return f"{service['holder']} ({service['holder_name']})"


def _next(service: dict[str, Any]) -> str:
    if service["holder"] is None or service["next_in"] is None or service["state"] == "running":
        return ""
    return f"in {in_words(service['next_in'])}"
