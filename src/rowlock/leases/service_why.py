"""Why: where a service runs, what it waits for, and who would take over; read from the ledger, by its clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlock.clock import in_words
from rowlock.errors import NotFound
from rowlock.leases.reason import Reason, reason
from rowlock.ledger.reading import as_dict

if TYPE_CHECKING:
    from rowlock.ledger.ledger import Ledger


def explain_service(ledger: Ledger, name: str) -> dict[str, Any]:
    """`{service, state, reasons}`; each reason has its `gate`, its `text`, and what the text is made of."""
    services = {row.service_name: as_dict(row) for row in ledger.run_safely("services")}
    if name not in services:
        known = ", ".join(services) or "none"
        raise NotFound(
            f"No service {name!r} has ever run on {ledger}; there are: {known}. Start one: `rowlock run MODULE:APP`."
        )
    service = services[name]
    reasons = [_place(service), _history(service), _standby(service)]
    return {"service": {"name": name}, "state": service["state"], "reasons": reasons}


def _place(service: dict[str, Any]) -> Reason:
    facts = {key: service[key] for key in ("holder", "token", "seconds_left")}
    if service["holder"] is None:
        text = "No instance has it. Start one that declares it: `rowlock run MODULE:APP`."
        if service["standby"]:
            text = "No instance has it just now; the first in line takes it within moments."
        return reason("nobody", text, **facts)
    who = f"instance {service['holder']} ({service['holder_name'] or 'forgotten'})"
    if service["seconds_left"] <= 0:
        text = f"It was on {who}, whose lease ran out {in_words(-service['seconds_left'])} ago; the next in line takes it."
        return reason("expired", text, **facts)
    text = f"It is on {who}, token {service['token']}"
    if service["holder_state"] not in ("active", "draining"):
        text += f"; that instance is {service['holder_state']}, and another takes over in {in_words(service['seconds_left'])}."
        return reason("holder dead", text, **facts)
    if service["state"] != "running" and service["next_in"] is not None:
        due = service["next_in"]
        text += f"; it runs next {'in ' + in_words(due) if due > 0 else 'now'}"
    return reason("held", f"{text}.", **facts)


def _history(service: dict[str, Any]) -> Reason:
    facts = {key: service[key] for key in ("runs", "crashes", "crashes_in_row", "reason")}
    text = f"It has run {service['runs']:,} times"
    if service["crashes"]:
        text += f" and crashed {service['crashes']:,} times"
        if service["crashes_in_row"]:
            text += f", the last {service['crashes_in_row']:,} in a row: {service['reason']}"
    return reason("crashes" if service["crashes_in_row"] else "runs", f"{text.removesuffix('.')}.", **facts)


def _standby(service: dict[str, Any]) -> Reason:
    count = service["standby"]
    who = (
        "Nobody would take over."
        if not count
        else f"{count} instance{'s' if count > 1 else ''} would take over."
    )
    return reason("standby", who, standby=count)
