"""Leases against their floors: interleaved, in one run; a ratio is the median of the rounds' own ratios.

Run it from the repository's root: python -m bench.leases [--quick] [--rounds N]

- A *pair* takes a free lock and gives it back. Its floor is a bare pair in psycopg, prepared, each statement committed
  by itself: INSERT … ON CONFLICT DO UPDATE … RETURNING, then an UPDATE that frees the row. Both of these wait for the
  disk; Rowlock's release need not (see lock_release.sql), so there is a second floor whose UPDATE does not either, and
  a third comparison in which nothing waits for the disk: what the software alone costs.
- A *hand-over* is a release in one process until the lock is held in another that waits. Its floors: a NOTIFY between
  two processes, which writes nothing; and an UPDATE with a NOTIFY, answered by an UPDATE ("durable").
- *Renewals*: the statements that the server counts while one instance holds 1,000 leases, each due at the same time.
  On a server of its own: counting statements costs something, which no other figure shall pay.

As a side script: python -m bench.leases (wait|durable) URL
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from importlib.metadata import version
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg

from bench.latency import _sample, _start, _summary
from bench.server import ROOT, Server, say
from bench.table import Target, show_ratios
from rowlock import Rowlock

if TYPE_CHECKING:
    from collections.abc import Callable

RESULTS = ROOT / "bench" / "results" / "leases.json"
TARGETS = (
    Target("pair_vs_bare", "acquire + release ÷ bare INSERT … ON CONFLICT + UPDATE", "≤", 1.6),
    Target("pair_vs_bare_async", "the same ÷ a pair whose UPDATE does not wait for the disk", "", None),
    Target("pair_vs_bare_no_disk", "the same where neither side waits for the disk at all", "", None),
    Target("acquire_vs_bare", "acquire ÷ bare INSERT … ON CONFLICT", "≤", 1.6),
    Target("release_vs_bare", "release ÷ bare UPDATE", "≤", 1.6),
    Target("handover_vs_notify", "hand-over p50 ÷ bare NOTIFY p50", "", None),
    Target("handover_vs_durable", "hand-over p50 ÷ UPDATE + NOTIFY, then UPDATE, p50", "", None),
    Target("renewals_a_heartbeat", "statements that renew 1,000 leases, a heartbeat", "≤", 1.0),
    Target("sqlite_pair_vs_bare", "SQLite: acquire + release ÷ the bare pair", "", None),
)
_TAKE = """
INSERT INTO bare (name, token, holder, expires_at) VALUES (%(name)s, 1, %(holder)s, clock_timestamp() + interval '60 s')
ON CONFLICT (name) DO UPDATE
SET token = bare.token + 1, holder = excluded.holder, expires_at = excluded.expires_at
WHERE bare.holder IS NULL OR bare.expires_at <= clock_timestamp()
RETURNING token
"""
_FREE = """
UPDATE bare SET holder = NULL, expires_at = clock_timestamp() WHERE name = %(name)s AND token = %(token)s RETURNING token
"""
_TABLE = "CREATE TABLE bare (name text PRIMARY KEY, token bigint, holder bigint, expires_at timestamptz) WITH (fillfactor = 50)"
_HELD = 1000


class Size(NamedTuple):
    pairs: int
    block: int
    handovers: int
    renewals: int


FULL = Size(1500, 25, 100, 3)
QUICK = Size(100, 10, 20, 1)


# -- taking and giving back ------------------------------------------------------------------------------------


def pairs(server: Server, size: Size) -> dict[str, Any]:
    """Microseconds for each step; the sides take turns, a few pairs at a time."""
    with server.ledger() as (app, url), psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_TABLE)
        no_disk = f"{url}?options=-c%20synchronous_commit%3Doff"
        with psycopg.connect(no_disk, autocommit=True) as quick, Rowlock(no_disk) as quick_app:
            sides: dict[str, Callable[[], tuple[int, int]]] = {
                "bare": lambda: _bare(connection, connection),
                "bare_async": lambda: _bare(connection, quick),
                "rowlock": lambda: _rowlock(app),
                "bare_no_disk": lambda: _bare(quick, quick),
                "rowlock_no_disk": lambda: _rowlock(quick_app),
            }
            return _in_turn(sides, size)


def sqlite_pairs(size: Size) -> dict[str, Any]:
    """The same on a file: what is one statement there is several steps under one write lock here."""
    import sqlite3  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        bare = sqlite3.connect(f"{folder}/bare.db", isolation_level=None)
        bare.execute("PRAGMA journal_mode = WAL")
        bare.execute("PRAGMA synchronous = FULL")
        bare.execute(
            "CREATE TABLE bare (name TEXT PRIMARY KEY, token INTEGER, holder INTEGER, expires_at REAL)"
        )
        with Rowlock(f"sqlite:///{folder}/rowlock.db") as app:
            found = _in_turn({"bare": lambda: _bare_sqlite(bare), "rowlock": lambda: _rowlock(app)}, size)
        bare.close()
        return found


def _in_turn(sides: dict[str, Callable[[], tuple[int, int]]], size: Size) -> dict[str, Any]:
    for once in sides.values():
        for _ in range(20):
            once()
    taken: dict[str, list[tuple[int, int]]] = {name: [] for name in sides}
    for _ in range(size.pairs // size.block):
        for name, once in sides.items():
            taken[name] += [once() for _ in range(size.block)]
    return {name: _steps(samples) for name, samples in taken.items()}


def _steps(samples: list[tuple[int, int]]) -> dict[str, float]:
    return {
        "acquire_us": median(first for first, _ in samples) / 1e3,
        "release_us": median(second for _, second in samples) / 1e3,
        "pair_us": median(first + second for first, second in samples) / 1e3,
    }


def _bare(take: psycopg.Connection[Any], free: psycopg.Connection[Any]) -> tuple[int, int]:
    began = time.perf_counter_ns()
    token = take.execute(_TAKE, {"name": "x", "holder": 1}, prepare=True).fetchone()[0]
    between = time.perf_counter_ns()
    free.execute(_FREE, {"name": "x", "token": token}, prepare=True).fetchone()
    return between - began, time.perf_counter_ns() - between


def _bare_sqlite(connection: Any) -> tuple[int, int]:
    began = time.perf_counter_ns()
    now = time.time()
    (token,) = connection.execute(
        "INSERT INTO bare VALUES ('x', 1, 1, ?) ON CONFLICT (name) DO UPDATE SET token = token + 1, holder = 1, "
        "expires_at = excluded.expires_at WHERE holder IS NULL OR bare.expires_at <= ? RETURNING token",
        (now + 60, now),
    ).fetchone()
    between = time.perf_counter_ns()
    connection.execute(
        "UPDATE bare SET holder = NULL, expires_at = ? WHERE name = 'x' AND token = ?", (now, token)
    )
    return between - began, time.perf_counter_ns() - between


def _rowlock(app: Rowlock) -> tuple[int, int]:
    began = time.perf_counter_ns()
    lease = app.lock("x", ttl=60).acquire()
    between = time.perf_counter_ns()
    lease.release()
    return between - began, time.perf_counter_ns() - between


# -- handing over ----------------------------------------------------------------------------------------------


def handover(server: Server, samples: int) -> dict[str, Any]:
    """Milliseconds from before the release to the lock held in another process."""
    taken: dict[str, list[float]] = {"notify": [], "durable": [], "handover": []}
    with server.ledger() as (app, url), psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_TABLE)
        connection.execute("INSERT INTO bare VALUES ('x', 1, NULL, now())")
        notify = _start("bench.latency", "notify", url)
        durable = _start("bench.leases", "durable", url)
        waiter = _start("bench.leases", "wait", url)
        _listeners(connection, 2)
        for _ in range(samples):
            taken["notify"].append(_sample(notify, lambda: connection.execute("NOTIFY notify")))
            taken["durable"].append(_sample(durable, lambda: connection.execute(_FREE_AND_TELL)))
            taken["handover"].append(_hand_over(app, connection, waiter))
        waiter.communicate(b"", timeout=30)
        for listener in (notify, durable):
            listener.terminate()
            listener.communicate(timeout=30)
    return {name: _summary(values) for name, values in taken.items()}


_FREE_AND_TELL = "WITH f AS (UPDATE bare SET holder = NULL) SELECT pg_notify('durable', '')"


def _hand_over(app: Rowlock, connection: psycopg.Connection[Any], waiter: Any) -> float:
    lease = app.lock("x", ttl=60).acquire()
    waiter.stdin.write(b"wait\n")
    waiter.stdin.flush()
    while connection.execute("SELECT count(*) FROM rowlock.lock_waiters").fetchone()[0] == 0:
        time.sleep(0.002)
    return _sample(waiter, lease.release)


def _listeners(connection: psycopg.Connection[Any], count: int) -> None:
    query = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
    while connection.execute(query).fetchone()[0] < count:
        time.sleep(0.05)


def _wait(url: str) -> None:
    """For each line: waits in line for the lock, says when it has it, gives it back."""
    with Rowlock(url) as app:
        for _ in sys.stdin:
            with app.lock("x", ttl=60):
                print(time.monotonic_ns(), flush=True)


def _durable(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as other, psycopg.connect(url, autocommit=True) as listening:
        listening.execute("LISTEN durable")
        for _ in listening.notifies():
            other.execute(_TAKE, {"name": "x", "holder": 1}, prepare=True)
            print(time.monotonic_ns(), flush=True)


# -- renewing --------------------------------------------------------------------------------------------------


def renewals(server: Server, rounds: int) -> dict[str, Any]:
    """What the server itself counted (pg_stat_statements) while every lease was due so many times.

    n_tup_upd would not do: an idle connection reports it up to ten seconds later.
    """
    with server.ledger() as (app, url), psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION pg_stat_statements")
        leases = [app.lock(f"lease {number}", ttl=600).acquire() for number in range(_HELD)]
        keeper = app.locks.keeper
        connection.execute("SELECT pg_stat_statements_reset()")
        for _ in range(rounds):
            for lease in leases:
                keeper._renew_at[lease.held_slot] = 0.0  # noqa: SLF001 - due now, and not in a third of a ttl
            keeper.renew()
        query = (
            "SELECT sum(calls)::int, sum(rows)::int, sum(total_exec_time) / sum(calls) FROM pg_stat_statements "
            "WHERE query LIKE '%renewed_at = %' AND query LIKE '%SKIP LOCKED%'"
        )
        calls, rows, mean = connection.execute(query).fetchone()
    return {
        "leases": _HELD,
        "rounds": rounds,
        "statements": calls,
        "rows_renewed": rows,
        "statements_a_round": calls / rounds,
        "rows_a_statement": rows / calls,
        "server_ms_a_statement": mean,
    }


# -- the whole -------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a smoke test, no figures to quote")
    parser.add_argument("--rounds", type=int, help="how often each is measured (5; quick: 1)")
    options = parser.parse_args()
    size, count = (QUICK, 1) if options.quick else (FULL, 5)
    with Server() as server, Server({"shared_preload_libraries": "pg_stat_statements"}) as counting:
        sides = {
            "pairs": lambda: pairs(server, size),
            "sqlite": lambda: sqlite_pairs(size),
            "handover": lambda: handover(server, size.handovers),
            "renewals": lambda: renewals(counting, size.renewals),
        }
        rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in sides}
        for number in range(options.rounds or count):
            for name, measure in sides.items():
                rounds[name].append(measure())
                say(f"round {number + 1}  {name}: {json.dumps(rounds[name][-1])}")
        raw = {
            "cores": os.cpu_count(),
            "postgresql": server.version(),
            "python": platform.python_version(),
            "versions": {name: version(name) for name in ("rowlock", "sqlalchemy", "psycopg")},
            "size": size._asdict(),
        }
    results = _ratios(rounds) | {"raw": raw | {"rounds": rounds}}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    show_ratios("Rowlock's leases", TARGETS, results)


def _ratios(rounds: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    def ratio(kind: str, above: str, below: str, figure: str) -> float:
        return median(one[above][figure] / one[below][figure] for one in rounds[kind])

    return {
        "pair_vs_bare": ratio("pairs", "rowlock", "bare", "pair_us"),
        "pair_vs_bare_async": ratio("pairs", "rowlock", "bare_async", "pair_us"),
        "pair_vs_bare_no_disk": ratio("pairs", "rowlock_no_disk", "bare_no_disk", "pair_us"),
        "acquire_vs_bare": ratio("pairs", "rowlock", "bare", "acquire_us"),
        "release_vs_bare": ratio("pairs", "rowlock", "bare", "release_us"),
        "handover_vs_notify": ratio("handover", "handover", "notify", "p50"),
        "handover_vs_durable": ratio("handover", "handover", "durable", "p50"),
        "renewals_a_heartbeat": max(one["statements_a_round"] for one in rounds["renewals"]),
        "sqlite_pair_vs_bare": ratio("sqlite", "rowlock", "bare", "pair_us"),
    }


if __name__ == "__main__":
    if sys.argv[1:2] in (["wait"], ["durable"]):
        {"wait": _wait, "durable": _durable}[sys.argv[1]](sys.argv[2])
    else:
        main()
