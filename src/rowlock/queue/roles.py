"""Roles: what an instance tells the ledger about itself, so that others can say who takes which flow."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterable

_WORKER = "worker:"


def worker_roles(flows: Iterable[str]) -> str:
    """`worker:score_survey,export`: a worker, and the flows it takes."""
    return _WORKER + ",".join(flow.replace("%", "%25").replace(",", "%2C") for flow in flows)


def flows_taken(roles: str) -> list[str]:
    """The flows that a worker with these roles takes; none for anything else."""
    if not roles.startswith(_WORKER):
        return []
    return [unquote(flow) for flow in roles.removeprefix(_WORKER).split(",")]
