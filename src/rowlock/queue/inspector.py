"""The inspector: reads of the queue for people, as plain dicts. It changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlock.errors import InvalidInput, NotFound, Refused, UnknownFlow
from rowlock.leases.inspector import LockInspector
from rowlock.ledger.reading import as_dict
from rowlock.queue.payload import decode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowlock.ledger.ledger import Ledger

LIVE = ("pending", "processing", "retry_wait")
SETTLED = ("completed", "dead", "cancelled")
NEWEST = 2**63 - 1
_RECORDS_SHOWN = 10


class Inspector:
    """What is in one ledger. Times are aware datetimes, payloads and results are values."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    # -- flows and instances -------------------------------------------------------------------------------

    def flows(self) -> list[dict[str, Any]]:
        """Every flow, with its records counted."""
        return [as_dict(row) for row in self._ledger.run_safely("flows")]

    def flow(self, name: str) -> dict[str, Any]:
        rows = self._ledger.run_safely("flow_find", flow=name)
        if not rows:
            known = [flow["flow"] for flow in self.flows()]
            raise UnknownFlow(
                f"There is no flow {name!r} in {self._ledger}; there are: {', '.join(known) or 'none'}."
            )
        return as_dict(rows[0])

    def instances(self, *, everyone: bool = False, limit: int = 1000) -> list[dict[str, Any]]:
        """The live instances and those of the last hour, or everyone who is remembered; `locks` are those they hold."""
        rows = self._ledger.run_safely("instances", everyone=everyone, limit=limit)
        held = LockInspector(self._ledger).held_names()
        return [as_dict(row) | {"locks": held.get(row.id, [])} for row in rows]

    # -- records --------------------------------------------------------------------------------------------

    def records(
        self,
        *,
        flow: str | None = None,
        status: str | None = None,
        limit: int = 50,
        before: int | None = None,
    ) -> list[dict[str, Any]]:
        """Records, newest first: those of one status, or live and settled ones together."""
        if status is not None and status not in LIVE + SETTLED:
            raise InvalidInput(f"status {status!r}: it is one of {', '.join(LIVE + SETTLED)}.")
        if flow is not None:
            self.flow(flow)
        wanted = {
            "flow": flow,
            "status": status,
            "limit": limit,
            "before": NEWEST if before is None else before,
        }
        found: dict[int, dict[str, Any]] = {}
        if status is None or status in LIVE:
            found |= {row.id: as_dict(row) for row in self._ledger.run_safely("live_records", **wanted)}
        if status is None or status in SETTLED:
            # Read last: a record that is settled between the two reads is shown once, as it is now.
            found |= {row.id: as_dict(row) for row in self._ledger.run_safely("settled_records", **wanted)}
        return [found[id_] for id_ in sorted(found, reverse=True)][:limit]

    def record(self, record_id: int) -> dict[str, Any]:
        """Everything about one record: what it carries, who holds it, and every attempt that did not complete."""
        rows = self._ledger.run_safely("record_find", id=record_id)
        if not rows:
            raise NotFound(f"There is no record {record_id} in {self._ledger}; it may have been pruned.")
        record = as_dict(rows[0])
        for flag in ("ready", "started"):  # SQLite keeps them as 0 and 1
            record[flag] = bool(record[flag])
        record["payload"] = decode(record["payload"])
        record["result"] = decode(record["result"])
        record["attempts"] = self.attempts(record_id)
        record["held_by"] = self.instance(record["holder"]) if record["status"] == "processing" else None
        return record

    def attempts(self, record_id: int) -> list[dict[str, Any]]:
        return [as_dict(row) for row in self._ledger.run_safely("attempts", id=record_id)]

    def instance(self, instance_id: int | None) -> dict[str, Any] | None:
        rows = self._ledger.run_safely("instance_find", id=instance_id)
        return as_dict(rows[0]) if rows else None

    def instance_in_full(self, instance_id: int) -> dict[str, Any]:
        """One instance with the names of the locks it holds, and the first of its records."""
        found = self.instance(instance_id)
        if found is None:
            raise NotFound(f"There is no instance {instance_id} in {self._ledger}; it may have been pruned.")
        held = sorted(self._ledger.held(instance_id))[:_RECORDS_SHOWN]
        records = [{"id": row.id, "flow": row.flow, "key": row.key, "token": row.token} for row in held]
        locks = LockInspector(self._ledger).held_names().get(instance_id, [])
        return found | {"locks": locks, "records": records}

    def find_instance(self, text: str) -> int:
        """The id that a person means: a number, or a name; of several with that name, the one that lives."""
        if text.isascii() and text.isdigit() and int(text) <= NEWEST and self.instance(int(text)):
            return int(text)
        rows = self._ledger.run_safely("instance_by_name", name=text)
        alive = [row.id for row in rows if row.alive]
        if len(alive) > 1:
            raise Refused(f"{len(alive)} live instances are named {text!r}: say which, {_either(alive)}.")
        if not rows:
            raise NotFound(
                f"There is no instance {text!r} in {self._ledger}. An instance is named by its number or its name; see: "
                "rowlock instances --all"
            )
        return int(alive[0] if alive else rows[0].id)

    def find(self, text: str) -> int:
        """The id that a person means: a number, FLOW/KEY, or a key that only one flow has."""
        if text.isascii() and text.isdigit() and int(text) <= NEWEST:
            rows = self._ledger.run_safely("record_find", id=int(text))
            if rows:
                return int(text)
        for flow, key in _readings(text):
            rows = self._ledger.run_safely("record_by_key", key=key, flow=flow)
            if len(rows) > 1:
                names = " and ".join(f"{row.flow_name}/{key}" for row in rows)
                raise Refused(f"More than one flow has a record with the key {key!r}: say which, {names}.")
            if rows:
                return int(rows[0].id)
        raise NotFound(
            f"There is no record {text!r} in {self._ledger}. A record is named by its number, by FLOW/KEY, or by a key "
            "that only one flow has; its history may have been pruned."
        )


def _either(ids: list[int]) -> str:
    return " or ".join(str(id_) for id_ in sorted(ids))


def _readings(text: str) -> Iterator[tuple[str | None, str]]:
    """Every way to read FLOW/KEY (both may have a / in them), then the whole as a key."""
    for at, character in enumerate(text):
        if character == "/":
            yield text[:at], text[at + 1 :]
    yield None, text
