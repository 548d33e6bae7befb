"""What an operator may do to a lock: free it, gently or by force."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any

from rowlock.clock import in_words
from rowlock.errors import NotFound, Refused
from rowlock.leases.inspector import LockInspector

if TYPE_CHECKING:
    from rowlock.ledger.ledger import Ledger


def release(
    ledger: Ledger,
    name: str,
    *,
    by: str,
    slot: int | None = None,
    force: bool = False,
    reason: str | None = None,
) -> dict[str, Any] | None:
    """Frees a slot of a lock; what it was, or None if it is free already.

    Without force only a holder that is gone loses it. Either way the token rises, so that whatever the holder may
    still write under its own is refused, and the history says who did it and why.
    """
    held = _choose(name, LockInspector(ledger).slots(name), slot)
    if held is None:
        return None
    if held["state"] == "held" and held["holder_alive"] and not force:
        raise Refused(_alive(held))
    detail = f"by {by}" + (f": {reason}" if reason else "")
    # Only the holding that was looked at: should another have begun meanwhile, it is none of ours to end.
    if ledger.locks.force(name, held["slot"], detail, held["token"]) is None:
        raise Refused(
            f"{name!r} changed hands just now: token {held['token']} is over. Look again: rowlock locks show {quote(name)}"
        )
    return held


def _choose(name: str, slots: list[dict[str, Any]], wanted: int | None) -> dict[str, Any] | None:
    if wanted is not None:
        found = [slot for slot in slots if slot["slot"] == wanted]
        if not found:
            raise NotFound(f"{name!r} has no slot {wanted}; it has 0 to {len(slots) - 1}.")
        slots = found
    held = [slot for slot in slots if slot["state"] != "free"]
    if len(held) > 1:
        numbers = ", ".join(str(slot["slot"]) for slot in held)
        raise Refused(f"{name!r} has {len(held)} slots in use: say which, --slot {numbers}.")
    return held[0] if held else None


def _alive(held: dict[str, Any]) -> str:
    name, holder = quote(held["name"]), held["holder"]
    return (
        f"{held['name']!r} is held by {who(held)}, which is alive: its last heartbeat is {in_words(held['heartbeat_age'])} "
        f"old, and it may be at work just now. Ask it to finish and leave: rowlock drain {holder}. To take the lock away "
        f"from it all the same: rowlock locks release {name} --force"
    )


def who(held: dict[str, Any]) -> str:
    """A slot's holder, for a sentence."""
    return f"instance {held['holder']} ({held['holder_name'] or 'forgotten by the ledger'})"
