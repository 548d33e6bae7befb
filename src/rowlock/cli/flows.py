"""`rowlock flows`: pause, resume, drain."""

from typing import Annotated, Any

import typer

from rowlock.cli.ledgers import open_ledger
from rowlock.cli.options import AsJson, LedgerUrl, Reason
from rowlock.cli.output import reason_of, say, say_json, say_table

group = typer.Typer(name="flows", no_args_is_help=True, help="Pause, resume and drain flows.")

FlowName = Annotated[str, typer.Argument(metavar="NAME", help="The flow.")]
_MAX_ATTEMPTS, _MAX_DEATHS = 5, 3


@group.command("list")
def list_(as_json: AsJson = False, ledger: LedgerUrl = None) -> None:
    """List flows with their state and limits."""
    from rowlock.queue.inspector import Inspector

    with open_ledger(ledger) as opened:
        found = Inspector(opened).flows()
    if as_json:
        say_json(found)
    elif not found:
        say("No flows yet. A worker registers its own; or: rowlock flows add NAME")
    else:
        rows = (
            (one["flow"], one["state"], reason_of(one), one["max_attempts"], one["max_deaths"], _live(one))
            for one in found
        )
        say_table(("flow", "state", "reason", ">max attempts", ">max deaths", ">live records"), rows)


def _live(flow: dict[str, Any]) -> int:
    return sum(int(flow[state]) for state in ("ready", "waiting", "processing", "retry_wait"))


@group.command()
def pause(name: FlowName, reason: Reason = None, ledger: LedgerUrl = None) -> None:
    """Claim no more records of a flow; what runs may finish, and new records are accepted."""
    _set(ledger, name, "paused", reason)
    say(f"{name} is paused. To go on: rowlock flows resume {name}")


@group.command()
def resume(name: FlowName, ledger: LedgerUrl = None) -> None:
    """Let a paused or draining flow work as usual."""
    _set(ledger, name, "active", None)
    say(f"{name} is active.")


@group.command()
def drain(name: FlowName, reason: Reason = None, ledger: LedgerUrl = None) -> None:
    """Accept no new records for a flow; what it has is worked off."""
    _set(ledger, name, "draining", reason)
    say(f"{name} drains: it takes no new records. To open it: rowlock flows resume {name}")


def _set(url: str | None, name: str, state: str, reason: str | None) -> None:
    from rowlock.queue.inspector import Inspector

    with open_ledger(url) as opened:
        Inspector(opened).flow(name)
        opened.set_flow_state(name, state, reason)


@group.command()
def add(
    name: FlowName,
    max_attempts: Annotated[
        int | None,
        typer.Option(min=1, help="After so many failed attempts a record is dead.", show_default="5"),
    ] = None,
    ledger: LedgerUrl = None,
) -> None:
    """Make a flow known before any worker does, so that it takes records.

    A worker that registers the flow sets its limits anew.
    """
    from rowlock.queue.payload import check_flow_name

    check_flow_name(name)
    with open_ledger(ledger) as opened:
        known = opened.run_safely("flow_find", flow=name)
        if known and max_attempts is None:
            say(f"{name} is there already, and stays as it is.")
            return
        opened.run_safely(
            "flow_register",
            flow=name,
            max_attempts=max_attempts or _MAX_ATTEMPTS,
            max_deaths=known[0].max_deaths if known else _MAX_DEATHS,
        )
    say(f"{name} {'has new limits' if known else 'takes records now'}.")
