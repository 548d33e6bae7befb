"""Roles: what an instance tells the ledger about itself, so that others can say who takes which flow."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from collections.abc import Iterable


def describe(
    *, flows: Iterable[str] = (), services: Iterable[str] = (), schedules: Iterable[str] = ()
) -> str:
    """`worker:score_survey,export;service:edgar_monitor`: each role, and the names it has to do with."""
    roles = {"worker": flows, "service": services, "schedule": schedules}
    named = {role: ",".join(quote(name, safe=_PLAIN) for name in names) for role, names in roles.items()}
    return ";".join(f"{role}:{names}" for role, names in named.items() if names) or "program"


def flows_taken(roles: str) -> list[str]:
    """The flows that an instance with these roles takes; none if it is no worker."""
    for role in roles.split(";"):
        kind, _, names = role.partition(":")
        if kind == "worker":
            return [unquote(flow) for flow in names.split(",")]
    return []


# Everything but what the roles are written with: , ; : and the % of the quoting itself.
_PLAIN = "".join(chr(code) for code in range(32, 127) if chr(code) not in ",;:%")
