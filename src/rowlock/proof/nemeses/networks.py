"""What happens to the network between workers and ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rowlock.proof.arena import find_program
from rowlock.proof.nemesis import Nemesis, no_proxy, only_postgresql

if TYPE_CHECKING:
    from rowlock.proof.arena import Arena
    from rowlock.proof.journal import Fault
    from rowlock.proof.nemesis import Ground

_POOLER_DOWN = 0.3
_WAYS = ["reset", "slow", "silent", "silent"]


class Partition(Nemesis):
    """Latency, silence (a half-open connection), a reset; and a cable that is pulled, where there are namespaces."""

    name: ClassVar[str] = "partition"
    share: ClassVar[float] = 0.1

    @classmethod
    def missing(cls, arena: Arena) -> str | None:
        return no_proxy(arena)

    def __init__(self, ground: Ground) -> None:
        super().__init__(ground)
        self._busy: set[str] = set()  # routes that something lasts on

    def strike(self) -> bool:
        ground = self.ground
        way = ground.random.choice(_WAYS + (["cable"] * 3 if ground.routes.namespace else []))
        seconds = ground.random.uniform(0.3, 2.5) * ground.lease
        route = "namespace" if way == "cable" else "proxy"
        if route in self._busy:
            return False
        pids = [member.pid for member in ground.fleet.workers() if member.route.name == route]
        if not pids:
            return False
        fault = self.note(way, view=ground.lookout.view(*pids))
        fault.route = route
        self._begin(way)
        if way != "reset":
            self._busy.add(route)
            ground.later(seconds, lambda: self._end(way, fault))
        return True

    def _begin(self, way: str) -> None:
        proxy, namespace = self.ground.routes.proxy, self.ground.routes.namespace
        assert proxy is not None  # noqa: S101 - it is there when this fault was chosen
        if way == "cable" and namespace:
            namespace.cut()
        elif way == "reset":
            proxy.reset()
        else:
            proxy.set_mood("slow" if way == "slow" else "silent")

    def _end(self, way: str, fault: Fault) -> None:
        proxy, namespace = self.ground.routes.proxy, self.ground.routes.namespace
        assert proxy is not None  # noqa: S101
        fault.lasted = self.ground.journal.second - fault.second
        self._busy.discard(str(fault.route))
        if way == "cable" and namespace:
            namespace.mend()
            return
        if way == "silent" and self.ground.random.random() < 0.5:
            proxy.reset()  # what was under way never arrives
        proxy.set_mood("through")


class PoolerDeath(Nemesis):
    """PgBouncer dies, with every connection through it, and comes back."""

    name: ClassVar[str] = "pooler"
    share: ClassVar[float] = 0.03

    @classmethod
    def missing(cls, arena: Arena) -> str | None:
        if arena.server is None and arena.dialect == "postgresql":
            return "PgBouncer is put before a server that the run itself has started (--postgres)"
        if find_program("pgbouncer") is None:
            return "PgBouncer is not installed"
        return only_postgresql(arena)

    def strike(self) -> bool:
        pooler = self.ground.routes.pooler
        assert pooler is not None  # noqa: S101 - it is there when this fault was chosen
        if not pooler.up:
            return False
        pids = [member.pid for member in self.ground.fleet.workers() if member.route.name == "pooler"]
        fault = self.note("killed", view=self.ground.lookout.view(*pids) if pids else None)
        pooler.kill()

        def back() -> None:
            pooler.start()
            fault.lasted = self.ground.journal.second - fault.second

        self.ground.later(_POOLER_DOWN, back)
        return True
