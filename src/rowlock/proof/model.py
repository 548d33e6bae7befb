"""The protocol as a table: every transition of a record, of a named lease and of an instance, and what tokens do.

The table is executable: `Machine` plays it. The tests compare the ledger with it after every step they invent, and
the tables in docs/explanation/state-machines.md are written from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

NOTHING = "-"
TIME = "(time)"

Token = Literal["0", "same", "+1"]


class Transition(NamedTuple):
    """One arrow. `fenced`: it names a token, and is refused if that is not the thing's own."""

    action: str
    sources: tuple[str, ...]
    target: str
    who: str
    postgresql: str  # the statement; or several, each of which can do it
    sqlite: str  # the steps, in one transaction
    token: Token
    fenced: bool = False
    holds: bool = False  # whoever does it is the holder afterwards; otherwise nobody is, or the holder stays


_LIVE = ("pending", "processing", "retry_wait")

RECORD = (
    Transition("enqueue", (NOTHING,), "pending", "any program", "enqueue", "enqueue_keys, enqueue_records", "0"),
    Transition("promote", ("retry_wait", "pending"), "pending", "any live instance, when its time has come",
               "promote", "promote", "same"),
    Transition("hurry", ("retry_wait", "pending"), "pending", "an operator", "hurry", "hurry", "same"),
    Transition("claim", ("pending",), "processing", "a worker whose own lease runs, if the flow is not paused",
               "claim, exchange", "claim", "+1", holds=True),
    Transition("start", ("processing",), "processing", "the holder, of a record whose worker died before",
               "start", "start", "same", fenced=True),
    Transition("progress", ("processing",), "processing", "the holder", "progress", "progress", "same", fenced=True),
    Transition("complete", ("processing",), "completed", "the holder", "exchange, complete",
               "complete_history, leave_queue", "same", fenced=True),
    Transition("fail", ("processing",), "retry_wait", "the holder, with attempts left", "fail",
               "fail_log, fail_later", "+1", fenced=True),
    Transition("fail for good", ("processing",), "dead", "the holder: last attempt, Reject, or too many deaths", "fail",
               "fail_log, fail_dead, leave_queue", "same", fenced=True),
    Transition("hand back", ("processing",), "pending", "the holder, as it stops", "release", "release", "+1", fenced=True),
    Transition("postpone", ("processing",), "retry_wait", "the holder: RetryLater", "release",
               "release, release_log", "+1", fenced=True),
    Transition("take over", ("processing",), "pending", "any live instance, once the holder is dead or stopped",
               "takeover", "takeover_log, takeover_return", "+1"),
    Transition("bury", ("processing",), "dead", "any live instance, once the holder died too often on it",
               "takeover", "takeover_log, takeover_dead, leave_queue", "+1"),
    Transition("cancel", _LIVE, "cancelled", "an operator", "cancel", "cancel_history, cancel_queue", "+1"),
    Transition("redrive", ("dead", "cancelled"), "pending", "an operator", "redrive",
               "redrive_queue, redrive_log, redrive_history", "+1"),
    Transition("prune", ("completed", "cancelled", "dead"), NOTHING,
               "one elected instance, after the retention time; the dead only by an operator", "prune_history",
               "prune_keys, prune_attempts, prune_history", "same"),
)  # fmt: skip

LEASE = (
    Transition("create", (NOTHING,), "free", "whoever wants it first", "lock_create", "lock_create", "0"),
    Transition("take", ("free",), "held", "the first in line", "lock_take", "lock_free, lock_take", "+1", holds=True),
    Transition("take again", ("held", "expired"), "held", "the same request, whose reply was lost", "lock_take",
               "lock_free, lock_take", "same", holds=True),
    Transition("take over", ("expired",), "held", "the first in line", "lock_take",
               "lock_free, lock_ended, lock_take", "+1", holds=True),
    Transition("renew", ("held",), "held", "the holder, three times in a ttl", "locks_renew", "locks_renew", "same",
               fenced=True),
    Transition("fence", ("held",), "held", "the holder, last in its own transaction", "lock_fence", "lock_fence", "same",
               fenced=True),
    Transition("expire", ("held",), "expired", "nobody: the ledger's clock passes the deadline", TIME, TIME, "same"),
    Transition("release", ("held", "expired"), "free", "the holder", "lock_release", "lock_ended, lock_freed", "+1",
               fenced=True),
    Transition("force", ("held", "expired"), "free", "an operator", "lock_force", "lock_held, lock_ended, lock_freed", "+1"),
)  # fmt: skip

INSTANCE = (
    Transition("register", (NOTHING,), "active", "the process, at its start; the id is new", "instance_register",
               "instance_register", "same"),
    Transition("beat", ("active", "draining"), "active", "the instance; a draining one stays draining",
               "instance_beat", "instance_beat", "same"),
    Transition("drain", ("active",), "draining", "an operator", "instance_drain", "instance_drain", "same"),
    Transition("stop", ("active", "draining"), "stopped", "the instance, as it leaves", "instance_end", "instance_end", "same"),
    Transition("die", ("active", "draining"), "dead", "any live instance, after one lease of silence",
               "bury_instances", "bury_instances", "same"),
    Transition("give up", ("active", "draining"), "dead", "the instance itself, when it could not renew in time",
               "instance_end", "instance_end", "same"),
)  # fmt: skip


@dataclass
class Thing:
    """One record, lease or instance."""

    state: str = NOTHING
    token: int = 0
    holder: object = None


@dataclass
class Machine:
    """Plays a table on any number of things, and remembers every holding that it ever gave out."""

    transitions: Sequence[Transition]
    things: dict[Hashable, Thing] = field(default_factory=dict)
    holdings: list[tuple[Hashable, int]] = field(default_factory=list)

    def do(self, action: str, key: Hashable, *, token: int | None = None, holder: object = None) -> bool:
        """Plays one action; False, and nothing changes, where the table has no such arrow or the token is stale."""
        thing = self.things.get(key, Thing())
        arrow = self._arrow(action, thing.state)
        if arrow is None or (arrow.fenced and token != thing.token):
            return False
        thing.token += arrow.token == "+1"  # noqa: S105 - no password
        if arrow.holds:
            thing.holder = holder
            self.holdings.append((key, thing.token))
        elif arrow.target not in (thing.state, "expired"):
            thing.holder = None
        thing.state = arrow.target
        self.things[key] = thing
        return True

    def within(self, *states: str) -> list[Hashable]:
        """The things in one of these states."""
        return [key for key, thing in self.things.items() if thing.state in states]

    def held_by(self, holder: object) -> list[Hashable]:
        return [key for key, thing in self.things.items() if thing.holder == holder]

    def _arrow(self, action: str, state: str) -> Transition | None:
        known = [arrow for arrow in self.transitions if arrow.action == action]
        if not known:
            raise KeyError(f"The table has no action {action!r}.")
        return next((arrow for arrow in known if state in arrow.sources), None)


def rows(transitions: Iterable[Transition]) -> list[list[str]]:
    """The table as people read it: action, from, to, who, token, statement, steps on SQLite."""
    return [
        [
            arrow.action,
            ", ".join(arrow.sources),
            arrow.target,
            arrow.who,
            ("must match; " if arrow.fenced else "") + {"0": "0", "same": "stays", "+1": "+ 1"}[arrow.token],
            _code(arrow.postgresql),
            _code(arrow.sqlite),
        ]
        for arrow in transitions
    ]


def _code(names: str) -> str:
    return names if names == TIME else ", ".join(f"`{name}`" for name in names.split(", "))
