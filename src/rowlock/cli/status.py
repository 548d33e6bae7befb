"""`rowlock status`: what waits, what runs, what died."""

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rowlock.cli.ledgers import open_ledger
from rowlock.cli.options import AsJson, LedgerUrl
from rowlock.cli.output import console, make_table, reason_of, say_json
from rowlock.clock import in_words
from rowlock.errors import LedgerUnavailable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rowlock.ledger.ledger import Ledger

_EVERY_SECONDS = 1.0
_ALIVE = ("active", "draining", "suspect")
_COLUMNS = ("flow", ">ready", ">waiting", ">running", ">retry", ">dead", ">done/h", ">oldest", "state")


def status(
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show it live, until Ctrl-C.")] = False,
    as_json: AsJson = False,
    ledger: LedgerUrl = None,
) -> None:
    """Show every flow with its records counted, and who is alive.

    ready may run now, waiting is scheduled for later, retry waits after an error, done/h were completed in the
    last hour, oldest is how long the oldest ready record waits.
    """
    if watch and as_json:
        raise typer.BadParameter("--watch and --json cannot go together.")
    with open_ledger(ledger) as opened:
        if watch:
            _watch(opened)
        elif as_json:
            say_json(_read(opened))
        else:
            console().print(_render(_read(opened)))


def _read(ledger: "Ledger") -> dict[str, Any]:
    from rowlock.queue.inspector import Inspector

    inspector = Inspector(ledger)
    alive = [one for one in inspector.instances() if one["state"] in _ALIVE]
    return {"ledger": str(ledger), "flows": inspector.flows(), "instances": alive}


def _render(found: dict[str, Any]) -> "RenderableType":
    from rich.console import Group

    if not found["flows"]:
        return f"No flows yet in {found['ledger']}. A worker registers its own; or: rowlock flows add NAME"
    rows = (
        (
            flow["flow"],
            flow["ready"],
            flow["waiting"],
            flow["processing"],
            flow["retry_wait"],
            flow["dead"],
            flow["completed_last_hour"],
            "" if flow["oldest_seconds"] is None else in_words(flow["oldest_seconds"]),
            ": ".join(filter(None, (flow["state"], reason_of(flow)))),
        )
        for flow in found["flows"]
    )
    return Group(make_table(_COLUMNS, rows), "", _alive(found["instances"]))


def _alive(instances: list[dict[str, Any]]) -> str:
    if not instances:
        return "No instance is alive. Start a worker: rowlock worker MODULE:APP"
    states = Counter(one["state"] for one in instances)
    parts = ", ".join(f"{states[state]} {state}" for state in _ALIVE if states[state])
    held = sum(one["holds"] for one in instances)
    return f"Instances alive: {parts}; they hold {held:,} records."


def _watch(ledger: "Ledger") -> None:
    import threading

    from rich.live import Live

    pause = threading.Event()
    try:
        with Live(_render(_read(ledger)), console=console(), auto_refresh=False) as live:
            while not pause.wait(_EVERY_SECONDS):
                live.update(_try_to_read(ledger), refresh=True)
    except KeyboardInterrupt:
        return


def _try_to_read(ledger: "Ledger") -> "RenderableType":
    """An outage is worth watching too."""
    try:
        return _render(_read(ledger))
    except LedgerUnavailable as error:
        return str(error)
