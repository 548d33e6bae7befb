"""Enqueue: records are checked, given their keys, and accepted all together or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from rowlock.errors import InvalidInput, InvalidKey, UnknownFlow
from rowlock.queue.announcer import Announcer
from rowlock.queue.payload import check_flow_name, check_key, check_priority, encode

if TYPE_CHECKING:
    from rowlock.ledger.ledger import Ledger, LedgerConnection
    from rowlock.queue.flow import Flow

Key = str | int | Callable[[Any], str | int] | None


@dataclass(frozen=True, slots=True)
class Enqueued:
    """How many records were accepted, how many were known already, and the ids of those accepted, in order."""

    accepted: int
    known: int
    ids: list[int]


class Enqueuer:
    """Puts records into flows' queues."""

    def __init__(self, ledger: Ledger, flows: Mapping[str, Flow]) -> None:
        self._ledger = ledger
        self._flows = flows
        self._announcer = Announcer(ledger)

    def close(self) -> None:
        self._announcer.close()

    def enqueue(
        self,
        flow: str,
        payloads: Any,
        *,
        key: Key = None,
        priority: int = 0,
        run_at: datetime | None = None,
        connection: Any = None,
    ) -> Enqueued:
        check_flow_name(flow)
        check_priority(priority)
        if run_at is not None and (not isinstance(run_at, datetime) or run_at.tzinfo is None):
            raise InvalidInput(
                "run_at is a datetime with a time zone, such as datetime.now(UTC) + timedelta(hours=1)."
            )
        batch = secrets.randbits(62)
        records, given = self._prepare(flow, payloads, key, batch)
        if not records:
            return Enqueued(0, given, [])
        on = None if connection is None else self._ledger.borrow(connection)
        send = partial(
            self._ledger.enqueue,
            on,
            flow=flow,
            keys=list(records),
            payloads=list(records.values()),
            priority=priority,
            run_at=run_at,
            batch=batch,
            # In the caller's own transaction only the commit itself can tell when it is time.
            notify=on is not None or self._announcer.may_notify(flow),
        )
        try:
            ids = send()
        except UnknownFlow:
            if flow not in self._flows:
                raise
            self._register(self._flows[flow], on)
            ids = send()
        return Enqueued(len(ids), given - len(ids), ids)

    def _register(self, flow: Flow, on: LedgerConnection | None) -> None:
        if on is None:
            self._ledger.run_safely("flow_register", **flow.limits)
        else:
            on.all("flow_register", flow.limits)

    def _prepare(self, flow: str, payloads: Any, key: Key, batch: int) -> tuple[dict[str, str], int]:
        """Key → JSON, each key once, and how many payloads there were. Nothing is written before all are good."""
        if isinstance(payloads, (str, bytes, Mapping)) or not isinstance(payloads, Iterable):
            payloads = [payloads]
        elif key is not None and not callable(key):
            raise InvalidKey("For several payloads key= is a function: key=lambda payload: payload['id'].")
        limit = self._ledger.settings.max_payload_bytes
        records: dict[str, str] = {}
        count = 0
        for count, payload in enumerate(payloads, 1):
            what = f"flow {flow!r}, payload {count}"
            text = encode(payload, limit, what)
            # A record without a key gets one of its own, so that an enqueue whose reply is lost can be repeated.
            name = f"{batch:016x}-{count}" if key is None else _key_of(payload, key, what)
            records.setdefault(name, text)
        return records, count


def _key_of(payload: Any, key: Key, what: str) -> str:
    if not callable(key):
        return check_key(key, what)
    try:
        found = key(payload)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise InvalidKey(
            f"{what}: key= raised {error!r}; every payload needs what the key is made of."
        ) from error
    return check_key(found, what)
