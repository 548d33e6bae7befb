"""Why: what a lock waits for, in words a person can read. Everything is read from the ledger, by its clock."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any

from rowlock.clock import in_words
from rowlock.leases.inspector import LockInspector
from rowlock.leases.operations import who
from rowlock.leases.reason import Reason, reason

if TYPE_CHECKING:
    from rowlock.ledger.ledger import Ledger

_NAMED = 5  # waiters and holders beyond these are only counted


def explain_lock(ledger: Ledger, name: str) -> dict[str, Any]:
    """`{lock, state, reasons}`; each reason has its `gate`, its `text`, and what the text is made of."""
    inspector = LockInspector(ledger)
    slots, waiters = inspector.slots(name), inspector.waiters(name)
    held = [slot for slot in slots if slot["state"] == "held"]
    reasons = [_holding(slot) for slot in slots if slot["state"] != "free"]
    if len(held) < len(slots):
        reasons += [_free(inspector, name, len(slots) - len(held), len(slots))]
    if waiters:
        reasons += [_waiters(waiters)]
    state = "held" if len(held) == len(slots) else "free"
    return {
        "lock": {"name": name, "slots": len(slots), "held": len(held)},
        "state": state,
        "reasons": reasons,
    }


def _holding(slot: dict[str, Any]) -> Reason:
    note = f" ({slot['note']})" if slot["note"] else ""
    which = f"Slot {slot['slot']}" if slot["slots"] > 1 else "It"
    facts = {name: slot[name] for name in ("slot", "holder", "token", "acquired_at", "seconds_left", "note")}
    release = f"`rowlock locks release {quote(slot['name'])}`"
    text = f"{which} is held by {who(slot)}{note} since {in_words(slot['held_for'])}, token {slot['token']}"
    if slot["state"] == "expired":
        text = (
            f"{which} was held by {who(slot)}{note}, which let it run out {in_words(-slot['seconds_left'])} ago "
            f"(token {slot['token']}); whoever asks next has it."
        )
        return reason("expired", text, **facts)
    if not slot["holder_alive"]:
        text += (
            f"; that instance is {slot['holder_state'] or 'gone'}, and the lease runs out in "
            f"{in_words(slot['seconds_left'])}. To free it now: {release}."
        )
        return reason("holder dead", text, **facts)
    text += f"; the lease has {in_words(slot['seconds_left'])} left and is renewed while the instance lives"
    if slot["holder_state"] != "active":
        text += f". The instance is {slot['holder_state']}, its last heartbeat {in_words(slot['heartbeat_age'])} old"
    return reason("held", f"{text}.", **facts)


def _free(inspector: LockInspector, name: str, free: int, slots: int) -> Reason:
    text = f"{free} of its {slots} slots are free." if slots > 1 else "Whoever asks for it has it."
    for last in inspector.history(name, 1):
        detail = f" ({last['detail']})" if last["detail"] else ""
        text += f" It was last held by {who(last)}, for {in_words(last['held_for'])}, until it was {last['ended']}{detail}."
    return reason("free", text)


def _waiters(waiters: list[dict[str, Any]]) -> Reason:
    names = [
        f"instance {one['instance_id']} ({one['instance_name'] or 'forgotten'}) for {in_words(one['waited'])}"
        for one in waiters[:_NAMED]
    ]
    more = f" and {len(waiters) - _NAMED} more" if len(waiters) > _NAMED else ""
    text = f"{len(waiters)} wait{'s' if len(waiters) == 1 else ''} for it, in this order: {', '.join(names)}{more}."
    return reason("waiters", text, waiters=waiters)
