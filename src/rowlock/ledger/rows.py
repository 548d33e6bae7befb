"""What passes between the queue and the ledger: small named tuples, cheap enough for every record."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime


class Wish(NamedTuple):
    """So many records of a flow, behind a position in its order (rank is the priority, negated)."""

    flow: str
    limit: int
    rank: int
    after: int


class Held(NamedTuple):
    """A claimed record, as the ledger returns it; in the order of the claim's columns."""

    id: int
    token: int
    flow: str
    key: str
    payload: str
    attempt: int
    deaths: int
    priority: int
    created_at: datetime | float


class Completion(NamedTuple):
    id: int
    token: int
    result: str | None


class Release(NamedTuple):
    """A record that goes back unspent, after a delay, with the handler's reason if it gave one."""

    id: int
    token: int
    delay: float
    reason: str | None = None


class Failure(NamedTuple):
    """An attempt that did not complete: final ones are dead, the others wait for `delay` seconds."""

    id: int
    token: int
    final: bool
    delay: float
    reason: str
    outcome: str
    error_type: str
    message: str
    traceback: str | None
    fingerprint: str
    deaths: int = 0
