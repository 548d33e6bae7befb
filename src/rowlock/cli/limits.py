"""`rowlock limits`: budgets that the fleet shares, and who uses them."""

from collections import Counter
from typing import Any

from rowlock.cli.ledgers import open_ledger
from rowlock.cli.options import AsJson, LedgerUrl
from rowlock.cli.output import say, say_json, say_table
from rowlock.clock import in_words


def limits(as_json: AsJson = False, ledger: LedgerUrl = None) -> None:
    """List limits with what they allow, what is used now, and who waits.

    next free is when the next use may start; waiting counts those in line for a slot.
    """
    from rowlock.leases.limits import list_limits

    with open_ledger(ledger) as opened:
        found = list_limits(opened)
    if as_json:
        say_json(found)
    elif not found:
        say("No limits yet. A program declares one at its first use: app.limit(…)")
    else:
        columns = ("limit", ">rate", ">next free", ">in use", ">waiting", "holders")
        say_table(columns, (_row(one) for one in found))


def _row(limit: dict[str, Any]) -> tuple[Any, ...]:
    rate = limit["rate"] and limit["rate"] + (f" (bursts of {limit['burst']})" if limit["burst"] > 1 else "")
    in_use = f"{limit['in_use']} of {limit['concurrency']}" if limit["concurrency"] else None
    free = (
        None
        if limit["rate"] is None
        else "now"
        if limit["wait_seconds"] <= 0
        else in_words(limit["wait_seconds"])
    )
    return limit["limit"], rate, free, in_use, limit["waiting"] if in_use else None, _names(limit["holders"])


def _names(holders: list[dict[str, Any]]) -> str:
    counted = Counter(one["name"] or f"instance {one['instance']}" for one in holders)
    return ", ".join(name if times == 1 else f"{times} times {name}" for name, times in counted.items())
