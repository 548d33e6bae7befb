"""A nemesis: one kind of fault. It strikes when it is told to, and may leave something to be undone later."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from sqlalchemy import create_engine
from sqlalchemy.exc import DBAPIError

from rowlock.clock import monotonic
from rowlock.databases.url import parse_url
from rowlock.proof.journal import Fault
from rowlock.proof.routes import IN_THE_CLEAR

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from rowlock.proof.arena import Arena
    from rowlock.proof.fleet import Fleet, Member
    from rowlock.proof.journal import Journal
    from rowlock.proof.lookout import Lookout, View
    from rowlock.proof.routes import Routes


@dataclass
class Ground:
    """Where it strikes."""

    arena: Arena
    routes: Routes
    fleet: Fleet
    lookout: Lookout
    journal: Journal
    random: random.Random
    pending: list[tuple[float, Callable[[], float | None]]] = field(default_factory=list)

    @property
    def lease(self) -> float:
        return self.arena.settings.lease_seconds

    def later(self, seconds: float, act: Callable[[], float | None]) -> None:
        """Does this then; if it returns a number, once more after so many seconds."""
        self.pending.append((monotonic() + seconds, act))

    def do_what_is_due(self) -> None:
        now = monotonic()
        due = [entry for entry in self.pending if entry[0] <= now]
        self.pending = [entry for entry in self.pending if entry[0] > now]
        for _, act in due:
            again = act()
            if again is not None:
                self.later(again, act)

    def end_everything(self) -> None:
        """Whatever still lasts ends now."""
        while self.pending:
            self.pending = [(0.0, act) for _, act in self.pending]
            self.do_what_is_due()


class Nemesis(ABC):
    name: ClassVar[str]
    share: ClassVar[float]  # strikes for each kill of the schedule

    def __init__(self, ground: Ground) -> None:
        self.ground = ground

    @classmethod
    def missing(cls, arena: Arena) -> str | None:
        """Why it cannot strike here; None when it can."""
        del arena
        return None

    @abstractmethod
    def strike(self) -> bool:
        """One fault; False when there was nobody to strike."""

    def note(self, detail: str, member: Member | None = None, view: View | None = None) -> Fault:
        fault = Fault(
            kind=self.name,
            detail=detail,
            at=view.at if view else self.ground.lookout.now(),
            second=self.ground.journal.second,
            pid=member.pid if member else None,
            route=member.route.name if member else None,
            holdings=view.holdings if view else [],
            has_lock=bool(view and view.has_lock),
        )
        return self.ground.journal.fault(fault)


def no_proxy(arena: Arena) -> str | None:
    """Why no proxy of ours can stand between the workers and the ledger; None when one can."""
    if arena.dialect != "postgresql" or arena.server is not None:
        return only_postgresql(arena)
    url = parse_url(arena.settings.ledger_url)[1]
    if url.host is None or url.host.startswith("/"):
        return "the proxy needs a server with a TCP address, and the URL names none"
    engine = create_engine(url.update_query_dict(IN_THE_CLEAR), connect_args={"connect_timeout": 5})
    try:
        engine.connect().close()
    except DBAPIError as error:
        return f"the proxy has to read the protocol, and this server does not speak it without TLS ({error.orig})"
    finally:
        engine.dispose()
    return None


def only_postgresql(arena: Arena) -> str | None:
    return (
        None
        if arena.dialect == "postgresql"
        else "a SQLite ledger is a file: there is no server and no network"
    )
