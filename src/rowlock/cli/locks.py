"""`rowlock locks`: who holds which lock, who waits, who held it before; and taking one away."""

import getpass
import os
import socket
from typing import Annotated, Any

import typer

from rowlock.cli.ledgers import open_ledger
from rowlock.cli.options import AsJson, LedgerUrl, Limit, Reason
from rowlock.cli.output import ago, say, say_json, say_table, since, stamp
from rowlock.clock import in_words

group = typer.Typer(
    name="locks", no_args_is_help=True, help="Locks, leaders, services and limits: who holds them, who waits."
)

LockName = Annotated[
    str, typer.Argument(metavar="NAME", help="The lock; service:NAME, leader:NAME and limit:NAME for those.")
]


@group.command("list")
def list_(
    everyone: Annotated[bool, typer.Option("--all", help="Also those that are free.")] = False,
    as_json: AsJson = False,
    ledger: LedgerUrl = None,
) -> None:
    """List the locks that somebody holds or waits for.

    left is the lease's time; the holder's heartbeat renews it for as long as the holder lives.
    """
    from rowlock.leases.inspector import LockInspector

    with open_ledger(ledger) as opened:
        found = LockInspector(opened).locks(everyone=everyone)
    if as_json:
        say_json(found)
    elif not found:
        say("No locks yet." if everyone else "No lock is held or waited for. To see the free ones: --all")
    else:
        _say_slots(found)


def _say_slots(slots: list[dict[str, Any]]) -> None:
    several = any(slot["slots"] > 1 for slot in slots)
    columns = ["name", ">slot", ">token", "holder", "state", ">since", ">left", ">waiting", "note"]
    rows = [
        [
            slot["name"],
            slot["slot"],
            slot["token"],
            "" if slot["state"] == "free" else f"{slot['holder']} ({slot['holder_name'] or 'forgotten'})",
            _state(slot),
            ago(slot["held_for"]),
            _left(slot),
            slot["waiting"],
            slot["note"],
        ]
        for slot in slots
    ]
    _say_table_of_slots(columns, rows, at=1, several=several)


def _state(slot: dict[str, Any]) -> str:
    return str(slot["holder_state"] or "gone") if slot["state"] == "held" else str(slot["state"])


def _left(slot: dict[str, Any]) -> str:
    return in_words(slot["seconds_left"]) if slot["state"] == "held" else ""


@group.command()
def show(
    name: LockName,
    limit: Limit = 10,
    as_json: AsJson = False,
    ledger: LedgerUrl = None,
) -> None:
    """Show one lock: its holder, the line of those who wait, its last holdings, and whether any two overlapped.

    The check reads the whole history that is kept. The exit code is 1 if two holdings overlapped.
    """
    from rowlock.leases.inspector import LockInspector

    with open_ledger(ledger) as opened:
        found = LockInspector(opened).lock(name, history=limit)
        now = opened.now()
    if as_json:
        say_json(found)
    else:
        say(f"Lock {name}")
        for slot in found["slots"]:
            _say_slot(slot)
        _say_waiters(found["waiters"])
        _say_history(found["history"], now, several=len(found["slots"]) > 1)
        _say_check(found["check"])
    if not found["check"]["good"]:
        raise typer.Exit(1)


def _say_slot(slot: dict[str, Any]) -> None:
    which = f"slot {slot['slot']}" if slot["slots"] > 1 else "state"
    if slot["state"] == "free":
        say(
            f"  {which:<10}free; the last token was {slot['token'] - 1}"
            if slot["token"]
            else f"  {which:<10}free"
        )
        return
    say(f"  {which:<10}{slot['state']}, token {slot['token']}")
    say(f"  {'holder':<10}instance {slot['holder']} ({slot['holder_name'] or 'forgotten'}), {_holder(slot)}")
    say(f"  {'since':<10}{stamp(slot['acquired_at'])} ({ago(slot['held_for'])})")
    left = slot["seconds_left"]
    ends = f"in {in_words(left)}, unless it is renewed" if left > 0 else ago(-left)
    say(f"  {'ends':<10}{stamp(slot['expires_at'])} ({ends})")
    if slot["note"]:
        say(f"  {'note':<10}{slot['note']}")


def _holder(slot: dict[str, Any]) -> str:
    if slot["heartbeat_age"] is None:
        return "which the ledger has forgotten"
    return f"{slot['holder_state']}, last heartbeat {ago(slot['heartbeat_age'])}"


def _say_waiters(waiters: list[dict[str, Any]]) -> None:
    for place, one in enumerate(waiters, 1):
        name = one["instance_name"] or "forgotten"
        say(f"  waits {place:<4}instance {one['instance_id']} ({name}), for {in_words(one['waited'])}")


def _say_history(history: list[dict[str, Any]], now: float, *, several: bool) -> None:
    if not history:
        return
    say("\nLast holdings, newest first:")
    rows = [
        [
            one["slot"], one["token"], f"{one['holder']} ({one['holder_name'] or 'forgotten'})", stamp(one["acquired_at"]),
            stamp(one["ended_at"]), since(one["ended_at"], now), one["ended"], one["detail"],
        ]
        for one in history
    ]  # fmt: skip
    columns = [">slot", ">token", "holder", "from", "to", ">ended", "how", "detail"]
    _say_table_of_slots(columns, rows, at=0, several=several)


def _say_table_of_slots(columns: list[str], rows: list[list[Any]], *, at: int, several: bool) -> None:
    """The number of the slot is shown only where there is more than one."""
    if not several:
        for line in (columns, *rows):
            del line[at]
    say_table(columns, rows)


def _say_check(check: dict[str, Any]) -> None:
    count = check["holdings"]
    holdings = f"{count:,} holding{'s' if count != 1 else ''}"
    if check["good"]:
        say(f"\n{holdings}, none overlap, tokens rise.")
        return
    say(f"\n{holdings}, AND SOME OVERLAP:")
    for one in check["overlaps"]:
        ended = stamp(one["ended_before_at"]) or "not at all"
        say(
            f"  slot {one['slot']}: token {one['token']} (instance {one['holder']}) began {stamp(one['acquired_at'])}, and "
            f"token {one['token_before']} (instance {one['holder_before']}) ended {ended}."
        )
    say("Either the database's clock was set back, or this is a bug in Rowlock: please report it.")


@group.command()
def release(
    name: LockName,
    *,
    slot: Annotated[
        int | None, typer.Option(min=0, help="Which, if there are several.", show_default=False)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Even from a holder that is alive.")] = False,
    reason: Reason = None,
    as_json: AsJson = False,
    ledger: LedgerUrl = None,
) -> None:
    """Free a lock whose holder is gone; with --force, take it away from one that is alive.

    The token rises, so that fenced writes of the old holder are refused; its own heartbeat tells it within a third of
    the lease's time. Until then, what it does without a fence goes on. The history keeps who did this and why.
    """
    from rowlock.leases.operations import release as free
    from rowlock.leases.operations import who

    with open_ledger(ledger) as opened:
        held = free(opened, name, by=_me(), slot=slot, force=force, reason=reason)
    alive = held is not None and held["state"] == "held" and held["holder_alive"]
    if as_json:
        say_json({"name": name, "released": held is not None, "holder_alive": alive, "was": held})
    elif held is None:
        say(f"{name} is free already.")
    else:
        how = "had run out, and is free now" if held["state"] == "expired" else "is free now"
        say(f"{name} {how}; token {held['token']} of {who(held)} is refused from here on.")
    if held is not None and alive:
        typer.secho(
            f"Warning: {who(held)} is ALIVE. It may go on until it is told, {in_words(held['ttl_seconds'] / 3)} from now at "
            "the latest. Only fenced writes are safe until then.",
            err=True, fg=typer.colors.YELLOW, bold=True,
        )  # fmt: skip


def _me() -> str:
    """Who does this, for the history."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        user = f"uid {os.getuid()}"
    return f"{user}@{socket.gethostname()}"
