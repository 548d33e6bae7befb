"""Logs that say who speaks: the instance, and the record or the lock that the code at work was given.

The library uses stdlib logging and sets nothing up. A program adds `LogContext()` to its handlers; `rowlock worker`
does that by itself. Nothing is formatted, or even read, before a line is really written.
"""

from __future__ import annotations

import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

LogFormat = Literal["text", "json"]
FIELDS = ("instance", "flow", "record", "token", "lock", "lock_token")
_SHOWN_RECORDS = 3
# What every LogRecord has: whatever else is there came from the caller, as `extra`.
_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "rowlock", *FIELDS}


class AtWork(Protocol):
    """A record, as far as a log line is concerned."""

    id: int
    flow: str
    token: int

    @property
    def instance_id(self) -> int: ...


class Held(Protocol):
    """A lease, as far as a log line is concerned."""

    @property
    def name(self) -> str: ...
    @property
    def token(self) -> int: ...


# What the code at work was given. Tasks inherit them; so does `asyncio.to_thread`.
at_work: ContextVar[Sequence[AtWork]] = ContextVar("rowlock_at_work", default=())
_held: ContextVar[tuple[Held, ...]] = ContextVar("rowlock_held", default=())
# The instances of this process, by whoever is one.
_instances: dict[int, int] = {}


def hold(lease: Held) -> None:
    """From here on, lines of this task or thread name the lease."""
    _held.set((*_held.get(), lease))


def let_go(lease: Held) -> None:
    # Not by resetting a token: a block may be left in another context than it was entered in.
    _held.set(tuple(one for one in _held.get() if one is not lease))


def instance_is(owner: object, instance_id: int | None) -> None:
    """This process is, or is no longer, an instance; it may be more than one."""
    if instance_id is None:
        _instances.pop(id(owner), None)
    else:
        _instances[id(owner)] = instance_id


def context() -> dict[str, Any]:
    """What a line that is written just here should carry."""
    found: dict[str, Any] = {}
    records = at_work.get()
    if records:
        found["instance"] = records[0].instance_id
        found["flow"] = records[0].flow
        if len(records) == 1:
            found |= {"record": records[0].id, "token": records[0].token}
        else:
            some = ",".join(str(record.id) for record in records[:_SHOWN_RECORDS])
            found["record"] = some if len(records) <= _SHOWN_RECORDS else f"{some},… ({len(records)})"
    elif ids := list(_instances.values()):
        found["instance"] = ids[0] if len(ids) == 1 else ",".join(map(str, ids))
    leases = _held.get()
    if leases:
        found |= {"lock": leases[-1].name, "lock_token": leases[-1].token}
    return found


class LogContext(logging.Filter):
    """Add it to a handler: `handler.addFilter(LogContext())`. It lets every line through.

    Each line then has `instance`, `flow`, `record`, `token`, `lock` and `lock_token`, empty where there is none, for
    a format such as `%(levelname)s [%(rowlock)s] %(message)s`; `rowlock` is all of them together.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        found = context()
        record.rowlock = " ".join(f"{name}={value}" for name, value in found.items())
        for name in FIELDS:
            if name not in record.__dict__:  # what the caller says with `extra` stays
                setattr(record, name, found.get(name, ""))
        return True


class TextFormatter(logging.Formatter):
    """One line for people."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(process)d %(levelname)s %(name)s%(brackets)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name for it
        said = getattr(record, "rowlock", "")
        record.brackets = f" [{said}]" if said else ""
        return super().formatMessage(record)


class JsonFormatter(logging.Formatter):
    """One JSON object a line, for whatever collects a container's output."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
            "thread": record.threadName,
        }
        line |= {name: value for name in FIELDS if (value := getattr(record, name, "")) != ""}
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        return json.dumps(line, default=str, ensure_ascii=False)


_FORMATTERS: dict[LogFormat, type[logging.Formatter]] = {"text": TextFormatter, "json": JsonFormatter}
_chosen: LogFormat | None = None


def set_up(chosen: LogFormat, level: int = logging.INFO) -> None:
    """Logs of this process go to stderr; unless the program has set up its own."""
    global _chosen  # noqa: PLW0603 - one set-up for one process
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_FORMATTERS[chosen]())
    handler.addFilter(LogContext())
    logging.basicConfig(handlers=[handler], level=level)
    _chosen = chosen


def chosen_format() -> LogFormat | None:
    """How this process was set up, if it was: its children are set up likewise."""
    return _chosen
