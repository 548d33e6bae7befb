"""The queue against its floor and its peers: interleaved, in one run; a ratio is the median of the rounds' own ratios.

Run it from the repository's root: python -m bench.queue [--quick] [--rounds N] [--skip-peers]
(Not as a script: beside it, Python's own `queue` would be found here.)
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from functools import reduce
from importlib.metadata import version
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from bench import claims, drains, enqueue, latency, peers
from bench.server import ROOT, Server, say
from bench.table import show

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RESULTS = ROOT / "bench" / "results" / "queue.json"


class Size(NamedTuple):
    drain: int
    long_drain: int
    singles: int
    latency: int
    many: int
    claim_samples: int
    procrastinate: int
    window: float


FULL = Size(50_000, 200_000, 300, 100, 1_000_000, 40, 3000, 2.5)
QUICK = Size(10_000, 20_000, 50, 30, 50_000, 12, 1500, 1.0)
_LEAST_LATENCY_SAMPLES = 200


def main() -> None:
    options = _options()
    size = QUICK if options.quick else FULL
    pythons = _peers(options)
    with Server() as server:
        raw: dict[str, Any] = {
            "cores": os.cpu_count(),
            "postgresql": server.version(),
            "python": platform.python_version(),
            "versions": {name: version(name) for name in ("rowlock", "sqlalchemy", "psycopg")},
            "size": size._asdict(),
        }
        contestants = _contestants(server, size, pythons, options.rounds)
        rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in contestants}
        for number in range(options.rounds):
            for name, measure in contestants.items():
                rounds[name].append(measure())
                say(f"round {number + 1} of {options.rounds}  {name}: {_brief(rounds[name][-1])}")
        raw["claims"] = claims.measure(server, size.many, size.claim_samples)
        say(f"claims: {_brief(raw['claims'])}")
        raw["snapshot"] = claims.under_snapshot(server, size.drain, size.claim_samples)
        say(f"under an old snapshot: {_brief(raw['snapshot'])}")
    results = _ratios(rounds, raw["claims"]) | {"raw": raw | {"rounds": rounds}}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    show(results)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, one round: a smoke test, no figures to quote"
    )
    parser.add_argument("--rounds", type=int, help="how often each is measured (3; quick: 1)")
    parser.add_argument("--skip-peers", action="store_true", help="only Rowlock and the floors")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


def _peers(options: argparse.Namespace) -> dict[str, Path | None]:
    names = ("pgqueuer", "procrastinate")
    if options.skip_peers:
        return dict.fromkeys(names)
    return {name: peers.interpreter(name, install=not options.quick) for name in names}


def _contestants(
    server: Server, size: Size, pythons: dict[str, Path | None], rounds: int
) -> dict[str, Callable[[], dict[str, Any]]]:
    """What takes its turn in every round."""
    count = size.drain
    found: dict[str, Callable[[], dict[str, Any]]] = {
        "floor": lambda: drains.floor(server, count),
        "async": lambda: drains.rowlock(server, count, kind="async"),
        "sync": lambda: drains.rowlock(server, count, kind="sync"),
        "async_2": lambda: drains.rowlock(server, count, kind="async", processes=2),
        "sync_2": lambda: drains.rowlock(server, count, kind="sync", processes=2),
        "long": lambda: drains.long_drain(server, size.long_drain),
        "enqueue": lambda: enqueue.measure(server, count, size.singles),
        "latency": lambda: latency.measure(server, max(size.latency, _LEAST_LATENCY_SAMPLES // rounds)),
    }
    if python := pythons["pgqueuer"]:
        found["pgqueuer"] = lambda: peers.pgqueuer(server, python, count)
    if other := pythons["procrastinate"]:
        found["procrastinate"] = lambda: peers.procrastinate(server, other, size.procrastinate, size.window)
    return found


def _ratios(rounds: dict[str, list[dict[str, Any]]], claim: dict[str, Any]) -> dict[str, Any]:
    """The median over the rounds of each round's ratio; None where a side is missing."""

    def ratio(above: str, below: str) -> float | None:
        pairs = zip(_taken(rounds, above), _taken(rounds, below), strict=False)
        found = [one / other for one, other in pairs]
        return median(found) if found else None

    def wal(side: str) -> float | None:
        sizes = _taken(rounds, f"{side} wal_bytes")
        return median(sizes) if sizes else None

    analysed = claim["analysed"]
    small, many, history = analysed["small"], analysed["pending_many"], analysed["history_many"]
    return {
        "drain_vs_floor": ratio("async rate", "floor rate"),
        "drain_sync_vs_floor": ratio("sync rate", "floor rate"),
        "drain_vs_pgqueuer": ratio("async rate", "pgqueuer rate"),
        "drain_sync_vs_pgqueuer": ratio("sync rate", "pgqueuer rate"),
        "drain_vs_procrastinate": ratio("async rate", "procrastinate rate"),
        "two_vs_one": ratio("async_2 rate", "async rate"),
        "two_vs_one_sync": ratio("sync_2 rate", "sync rate"),
        "drain_end_vs_start": ratio("long end", "long start"),
        "enqueue_vs_copy": ratio("enqueue one_call", "enqueue copy"),
        "enqueue_calls_vs_copy": ratio("enqueue calls_5000", "enqueue copy_5000"),
        "enqueue_single_vs_insert": ratio("enqueue single_enqueue", "enqueue single_insert"),
        "latency_vs_notify": ratio("latency pickup p50", "latency notify p50"),
        "latency_vs_durable": ratio("latency pickup p50", "latency durable p50"),
        "claim_1m_vs_10k": many["claim_ms"] / small["claim_ms"],
        "claim_history_1m_vs_empty": history["exchange_ms"] / small["exchange_ms"],
        "wal_bytes": {"rowlock": wal("async"), "pgqueuer": wal("pgqueuer")},
    }


def _taken(rounds: dict[str, list[dict[str, Any]]], path: str) -> list[float]:
    """One figure of every round; its path is the contestant's name, then keys."""
    side, *keys = path.split()
    return [reduce(lambda found, key: found[key], keys, one) for one in rounds.get(side, [])]


def _brief(figures: dict[str, Any]) -> str:
    return " ".join(_words(figures))


def _words(figures: dict[str, Any], prefix: str = "") -> list[str]:
    words = []
    for name, value in figures.items():
        if isinstance(value, dict):
            words += _words(value, f"{prefix}{name}.")
        else:
            words.append(
                f"{prefix}{name}={value:,.4g}" if isinstance(value, float) else f"{prefix}{name}={value}"
            )
    return words


if __name__ == "__main__":
    main()
