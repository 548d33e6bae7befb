"""Every nemesis by its name, in the order in which they are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlock.proof.nemeses.databases import Backend, CommitLoss, Crash
from rowlock.proof.nemeses.networks import Partition, PoolerDeath
from rowlock.proof.nemeses.processes import Clock, Kill, Stop, Term

if TYPE_CHECKING:
    from rowlock.proof.nemesis import Nemesis

NEMESES: dict[str, type[Nemesis]] = {
    nemesis.name: nemesis
    for nemesis in (Kill, Stop, Term, Backend, Crash, Partition, CommitLoss, PoolerDeath, Clock)
}
