"""A schedule: when a flow gets a record by itself. Each tick has a key of its own, so it is accepted once."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rowlock.errors import ConfigurationError
from rowlock.queue.payload import check_flow_name, check_priority

if TYPE_CHECKING:
    from collections.abc import Mapping

Missed = Literal["skip", "once", "all"]


@dataclass(frozen=True)
class Schedule:
    """What a program declares with `@app.schedule(…)`."""

    name: str
    cron: str
    flow: str
    tz: str = "UTC"
    missed: Missed = "once"
    late_after: float = 60.0
    payload: Mapping[str, Any] = field(default_factory=dict)
    priority: int = 0

    def __post_init__(self) -> None:
        check_flow_name(self.name)
        check_flow_name(self.flow)
        check_priority(self.priority)
        self._require(
            self.missed in ("skip", "once", "all"), f"missed={self.missed!r}: it is skip, once or all"
        )
        self._require(
            self.late_after > 0, f"late_after={self.late_after!r}: a tick needs a moment to be in time"
        )
        self._require(
            hasattr(self.payload, "keys"), "payload is a mapping; the tick's own fields are added to it"
        )
        try:
            zone = ZoneInfo(self.tz)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ConfigurationError(
                f"schedule {self.name!r}: there is no time zone {self.tz!r} here. Use a name such as Europe/Prague; on a "
                "system without time zones: pip install tzdata"
            ) from error
        self._check_cron(zone)

    def _check_cron(self, zone: ZoneInfo) -> None:
        from cronsim import CronSim, CronSimError  # noqa: PLC0415 - only who has schedules pays for it

        try:
            first = next(CronSim(self.cron, datetime(2000, 1, 1, tzinfo=zone)), None)
        except (CronSimError, AttributeError) as error:
            raise ConfigurationError(
                f"schedule {self.name!r}: {self.cron!r} is no cron expression ({error}). It is minute hour day month "
                "weekday, as in '0 6 * * 1-5', or six fields with seconds first."
            ) from error
        self._require(first is not None, f"{self.cron!r} never comes: check day and month")

    def _require(self, condition: bool, message: str) -> None:
        if not condition:
            raise ConfigurationError(f"schedule {self.name!r}: {message}.")

    # -- ticks ---------------------------------------------------------------------------------------------------

    def after(self, moment: datetime) -> datetime:
        """The first tick after a moment."""
        from cronsim import CronSim  # noqa: PLC0415

        return next(CronSim(self.cron, moment.astimezone(ZoneInfo(self.tz)))).astimezone(UTC)

    def before(self, moment: datetime) -> datetime:
        """The last tick before a moment."""
        from cronsim import CronSim  # noqa: PLC0415

        return next(CronSim(self.cron, moment.astimezone(ZoneInfo(self.tz)), reverse=True)).astimezone(UTC)

    def next_step(self, last: datetime, now: datetime) -> Step | None:
        """What is to be done about the ticks between the last one and now; None when none is due.

        A tick that is found late, but not later than `late_after`, is in time. What is later was missed, and the
        policy says what becomes of it: dropped, one record for all of them, or one for each.
        """
        first = self.after(last)
        if first > now:
            return None
        horizon = now - timedelta(seconds=self.late_after)
        if first >= horizon or self.missed == "all":
            return Step(first, fire=True, missed=first < horizon)
        return Step(self.before(horizon), fire=self.missed == "once", missed=True)

    def key(self, tick: datetime) -> str:
        return f"{self.name}@{tick.astimezone(UTC).isoformat()}"

    def payload_for(self, tick: datetime) -> dict[str, Any]:
        """The schedule's payload, and when the tick was, as its own time zone writes it."""
        return {
            **self.payload,
            "schedule": self.name,
            "tick": tick.astimezone(ZoneInfo(self.tz)).isoformat(),
        }


@dataclass(frozen=True)
class Step:
    """The schedule moves on to this tick; with a record, or without one."""

    tick: datetime
    fire: bool
    missed: bool
