"""What happens to the database: sessions end, the server crashes, commits happen and nobody is told."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from rowlock.clock import monotonic
from rowlock.proof.nemesis import Nemesis, no_proxy, only_postgresql

if TYPE_CHECKING:
    from rowlock.proof.arena import Arena

_MOST_SESSIONS = 3
_LOSS_SECONDS = 2.0
_LOOK_AGAIN = 0.01


class Backend(Nemesis):
    """pg_terminate_backend: a few of the workers' sessions end in the middle of whatever they do."""

    name: ClassVar[str] = "backend"
    share: ClassVar[float] = 0.2

    @classmethod
    def missing(cls, arena: Arena) -> str | None:
        return only_postgresql(arena)

    def strike(self) -> bool:
        ground = self.ground
        rows = ground.lookout.query(
            """SELECT pid FROM pg_stat_activity WHERE application_name = :name
               ORDER BY (state <> 'idle') DESC, pid LIMIT 40""",
            name=ground.arena.name,
        )
        if not rows:
            return False
        view = ground.lookout.view()
        chosen = ground.random.sample(rows, min(len(rows), ground.random.randint(1, _MOST_SESSIONS)))
        for row in chosen:
            ground.lookout.query("SELECT pg_terminate_backend(:pid)", pid=row[0])
        self.note(f"{len(chosen)} sessions", view=view)
        return True


class Crash(Nemesis):
    """The server stops at once, without a checkpoint, and recovers from its log."""

    name: ClassVar[str] = "crash"
    share: ClassVar[float] = 0.02

    @classmethod
    def missing(cls, arena: Arena) -> str | None:
        if arena.server is None and arena.dialect == "postgresql":
            return "only a server that the run itself has started may be crashed (--postgres)"
        return only_postgresql(arena)

    def strike(self) -> bool:
        server = self.ground.arena.server
        assert server is not None  # noqa: S101 - see missing
        view = self.ground.lookout.view()
        fault = self.note("immediate", view=view)
        server.crash()
        fault.lasted = self.ground.journal.second - fault.second
        return True


class CommitLoss(Nemesis):
    """A commit happens, its reply is dropped and the connection cut: did it happen, or not?"""

    name: ClassVar[str] = "commit-loss"
    share: ClassVar[float] = 0.2

    @classmethod
    def missing(cls, arena: Arena) -> str | None:
        return no_proxy(arena)

    def strike(self) -> bool:
        ground, proxy = self.ground, self.ground.routes.proxy
        assert proxy is not None  # noqa: S101 - it is there when this fault was chosen
        if not any(member.route.name == "proxy" for member in ground.fleet.workers()):
            return False
        explicit = ground.random.random() < 0.75
        before = proxy.lost_commits + proxy.lost_replies
        proxy.lose_commit(explicit=explicit)
        give_up = monotonic() + _LOSS_SECONDS
        while proxy.lost_commits + proxy.lost_replies == before:
            if monotonic() > give_up:
                return proxy.forgive() == 0 and self._noted(explicit=explicit)
            time.sleep(_LOOK_AGAIN)
        return self._noted(explicit=explicit)

    def _noted(self, *, explicit: bool) -> bool:
        self.note("COMMIT" if explicit else "statement")
        return True
