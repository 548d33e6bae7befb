"""Events of a job, from server-sent events."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rowlock.errors import ApiError
from rowlock.server.job_views import JobView

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a job: submitted, completed, failed, cancelled, redriven; or its progress, with the job."""

    kind: str
    id: int | None = None
    at: datetime | None = None
    detail: str | None = None
    job: JobView | None = None


class Messages:
    """Takes bytes as they come, and gives whole events (the format of WHATWG's server-sent events)."""

    def __init__(self) -> None:
        self._rest = b""
        self._fields: dict[str, str] = {}

    def feed(self, data: bytes) -> Iterator[Event]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            text = line.removesuffix(b"\r").decode(errors="replace")
            if not text:
                fields, self._fields = self._fields, {}
                if "data" in fields:
                    yield _event(fields)
            elif not text.startswith(":"):  # that is only a sign of life
                name, _, value = text.partition(":")
                value = value.removeprefix(" ")
                known = self._fields.get(name)
                self._fields[name] = f"{known}\n{value}" if name == "data" and known is not None else value


def _event(fields: dict[str, str]) -> Event:
    kind = fields.get("event", "message")
    try:
        if kind == "progress":
            return Event(kind, job=JobView.model_validate_json(fields["data"]))
        told: dict[str, Any] = json.loads(fields["data"])
        at = datetime.fromisoformat(told["at"])
        return Event(kind, int(fields["id"]), at, told.get("detail"))
    except (ValueError, TypeError, KeyError) as error:
        raise ApiError(f"This is not how a Rowlock server tells an event: {error!r}.", status=200) from None
