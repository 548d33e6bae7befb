"""`rowlock instances` and `rowlock drain`: who is alive, what they hold, and asking one to leave."""

import threading
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rowlock import clock
from rowlock.cli.ledgers import open_ledger
from rowlock.cli.options import AsJson, LedgerUrl
from rowlock.cli.output import ago, fail, say, say_json, say_table, since, stamp
from rowlock.errors import Refused

if TYPE_CHECKING:
    from rowlock.ledger.ledger import Ledger

_LOOK_SECONDS = 0.2
_SHOWN = 10


def instances(
    instance: Annotated[
        str | None, typer.Argument(metavar="INSTANCE", help="Only this one, in full: its number or its name.")
    ] = None,
    everyone: Annotated[
        bool, typer.Option("--all", help="Also those that ended more than an hour ago.")
    ] = False,
    as_json: AsJson = False,
    ledger: LedgerUrl = None,
) -> None:
    """List instances, newest first, with what they hold and what they did; or show one.

    A suspect has missed a heartbeat and is not yet dead. stale are writes that were refused, because their token was.
    """
    from rowlock.queue.inspector import Inspector

    with open_ledger(ledger) as opened:
        inspector = Inspector(opened)
        if instance is not None:
            found = inspector.instance_in_full(inspector.find_instance(instance))
            say_json(found) if as_json else _say_one(found, opened.now())
            return
        everybody = inspector.instances(everyone=everyone)
    if as_json:
        say_json(everybody)
    elif not everybody:
        say("No instances" + ("." if everyone else " of late. Start a worker: rowlock worker MODULE:APP"))
    else:
        _say_all(everybody)


def _say_all(everybody: list[dict[str, Any]]) -> None:
    rows = (
        (
            one["id"], one["name"], one["state"], ago(one["heartbeat_age"]), one["holds"], one["completed"],
            one["failed"], one["stale_refused"], one["takeovers"], one["version"], one["roles"], ", ".join(one["locks"]),
        )
        for one in everybody
    )  # fmt: skip
    columns = (
        ">id", "name", "state", ">heartbeat", ">records", ">done", ">failed", ">stale", ">taken", ">version", "roles",
        "locks",
    )  # fmt: skip
    say_table(columns, rows)


def _say_one(one: dict[str, Any], now: float) -> None:
    ended = f" ({one['ended_reason']}, {since(one['ended_at'], now)})" if one["ended_at"] else ""
    more = f" and {one['holds'] - _SHOWN:,} more" if one["holds"] > _SHOWN else ""
    records = ", ".join(f"{record['id']} ({record['flow']}/{record['key']})" for record in one["records"])
    facts = [
        ("state", one["state"] + ended),
        ("roles", one["roles"]),
        ("host", f"{one['hostname']}, pid {one['pid']}"),
        ("version", one["version"]),
        ("started", f"{stamp(one['started_at'])} ({since(one['started_at'], now)})"),
        ("heartbeat", f"{ago(one['heartbeat_age'])}; silent for {one['lease_seconds']:g} s, it is dead"),
        ("records", f"{records}{more}" or "none"),
        ("locks", ", ".join(one["locks"]) or "none"),
        (
            "did",
            (
                f"{one['completed']:,} completed, {one['failed']:,} failed, {one['takeovers']:,} taken over, "
                f"{one['stale_refused']:,} stale writes refused"
            ),
        ),
    ]
    say(f"Instance {one['id']}: {one['name']}")
    for name, value in facts:
        say(f"  {name:<11}{value}")


def drain(
    instance: Annotated[str, typer.Argument(metavar="INSTANCE", help="Its number, or its name.")],
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Return when it has left.")] = False,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="SECONDS", help="With --wait: give up after so long.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
    ledger: LedgerUrl = None,
) -> None:
    """Ask an instance to finish what it has and leave; it hears of it with its next heartbeat.

    A worker claims no more records and ends. A program that only takes locks goes on until it ends by itself.
    """
    from rowlock.queue.inspector import Inspector

    with open_ledger(ledger) as opened:
        inspector = Inspector(opened)
        id_ = inspector.find_instance(instance)
        if not opened.run_safely("instance_drain", id=id_):
            _refuse_the_gone(inspector.instance_in_full(id_), wait=wait)
        if wait:
            _wait(opened, id_, timeout)
        found = inspector.instance_in_full(id_)
    if as_json:
        say_json(found)
    elif found["state"] == "dead":
        fail(f"Instance {id_} ({found['name']}) died: {found['ended_reason']}. What it held goes to others.")
    elif found["state"] == "stopped":
        say(f"Instance {id_} ({found['name']}) has left.")
    else:
        say(f"Instance {id_} ({found['name']}) drains; it still holds {_holdings(found)}.")


def _refuse_the_gone(found: dict[str, Any], *, wait: bool) -> None:
    """One that drains already is no error; nor one that has left, for whoever waits for just that."""
    if found["state"] == "dead" or (found["state"] == "stopped" and not wait):
        raise Refused(
            f"Instance {found['id']} ({found['name']}) is already {found['state']}: {found['ended_reason']}. There is "
            "nobody to ask."
        )


def _wait(ledger: "Ledger", id_: int, timeout: float | None) -> None:
    from rowlock.queue.inspector import Inspector

    pause, inspector = threading.Event(), Inspector(ledger)
    give_up = None if timeout is None else clock.monotonic() + timeout
    while (found := inspector.instance_in_full(id_))["state"] not in ("stopped", "dead"):
        if found["seconds_left"] <= 0:
            fail(
                f"Instance {id_} ({found['name']}) fell silent while it drained. What it holds goes to others."
            )
        if give_up is not None and clock.monotonic() >= give_up:
            fail(
                f"Instance {id_} ({found['name']}) has not left in {timeout:g} s: it holds {_holdings(found)}."
            )
        pause.wait(_LOOK_SECONDS)


def _holdings(found: dict[str, Any]) -> str:
    locks = (
        f"the lock{'s' if len(found['locks']) > 1 else ''} {', '.join(found['locks'])}"
        if found["locks"]
        else "no lock"
    )
    return f"{found['holds']:,} record{'s' if found['holds'] != 1 else ''} and {locks}"
