"""Metrics for Prometheus: what the ledger says when it is asked, and what this server itself did.

The ledger is read once in a few seconds, however many scrape. No label holds the number of a record or an instance.
"""

from __future__ import annotations

import threading
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from rowlock import clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client import Metric

    from rowlock.ledger.ledger import Ledger

_FRESH_SECONDS = 5.0
# Locks are named by users, perhaps after orders or customers: the longest held ones are those one wants to see.
_LOCKS_SHOWN = 100
_STATES = ("active", "suspect", "draining", "stopped", "dead")


class Reading(NamedTuple):
    """The ledger at one moment."""

    flows: list[Any]
    instances: dict[str, int]
    locks: list[Any]
    services: list[Any]
    totals: Any
    schema_version: int


def read(ledger: Ledger) -> Reading:
    """A few statements, each over what is live only."""
    return Reading(
        flows=ledger.run_safely("metrics_flows"),
        instances={row.state: row.instances for row in ledger.run_safely("metrics_instances")},
        locks=ledger.run_safely("metrics_locks", limit=_LOCKS_SHOWN),
        services=ledger.run_safely("services"),
        totals=ledger.run_safely("totals")[0],
        schema_version=ledger.schema.version(),
    )


class LedgerCollector(Collector):
    """Reads the ledger at a scrape, unless it has just done so."""

    def __init__(self, ledger: Callable[[], Ledger]) -> None:
        self._ledger = ledger
        self._reading: Reading | None = None
        self._read_at = float("-inf")
        self._lock = threading.Lock()

    def describe(self) -> list[Metric]:
        return []  # otherwise registering it would read the ledger

    def collect(self) -> Iterator[Metric]:
        reading = self._read()
        yield from _items(reading)
        yield from _instances(reading)
        yield from _locks(reading)
        yield from _totals(reading)

    def _read(self) -> Reading:
        with self._lock:
            if self._reading is None or clock.monotonic() - self._read_at >= _FRESH_SECONDS:
                self._reading = read(self._ledger())
                self._read_at = clock.monotonic()
            return self._reading


class Metrics:
    """The registry of one server."""

    def __init__(self, ledger: Callable[[], Ledger]) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(LedgerCollector(ledger))
        self._requests = Counter(
            "rowlock_http_requests",
            "Requests this server answered.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "rowlock_http_request_duration_seconds",
            "How long they took.",
            ["method", "route"],
            registry=self.registry,
        )

    def note_request(self, method: str, route: str, status: int, seconds: float) -> None:
        # A method is whatever the caller says it is; a label must not be.
        known = method if method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS") else "other"
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(known, route).observe(seconds)


def _items(reading: Reading) -> Iterator[Metric]:
    items = GaugeMetricFamily("rowlock_items", "Live records.", labels=["queue", "state"])
    oldest = GaugeMetricFamily(
        "rowlock_oldest_pending_age_seconds", "Age of the oldest record that could run.", labels=["queue"]
    )
    dead = GaugeMetricFamily("rowlock_dead_items", "Dead letters.", labels=["queue"])
    for flow in reading.flows:
        for state in ("pending", "processing", "retry_wait"):
            items.add_metric([flow.flow_name, state], getattr(flow, state))
        oldest.add_metric([flow.flow_name], max(0.0, flow.oldest_seconds or 0.0))
        dead.add_metric([flow.flow_name], flow.dead)
    yield from (items, oldest, dead)


def _instances(reading: Reading) -> Iterator[Metric]:
    instances = GaugeMetricFamily("rowlock_instances", "Instances the ledger remembers.", labels=["state"])
    for state in _STATES:
        instances.add_metric([state], reading.instances.get(state, 0))
    build = GaugeMetricFamily("rowlock_build_info", "This server.", labels=["version", "schema_version"])
    build.add_metric([version("rowlock"), str(reading.schema_version)], 1)
    yield from (instances, build)


def _locks(reading: Reading) -> Iterator[Metric]:
    count = reading.locks[0].held if reading.locks else 0
    yield GaugeMetricFamily(
        "rowlock_locks_held", "Slots of locks, leaders and services that are held.", count
    )
    held = GaugeMetricFamily(
        "rowlock_lock_held_seconds",
        f"For how long they have been held; the {_LOCKS_SHOWN} longest.",
        labels=["lock"],
    )
    for lock in reading.locks:
        held.add_metric([lock.lock_name], max(0.0, lock.held_seconds))
    runs = CounterMetricFamily("rowlock_service_runs", "Runs of a service.", labels=["service"])
    crashes = CounterMetricFamily("rowlock_service_crashes", "Runs that raised.", labels=["service"])
    for service in reading.services:
        runs.add_metric([service.service_name], service.runs)
        crashes.add_metric([service.service_name], service.crashes)
    yield from (held, runs, crashes)


def _totals(reading: Reading) -> Iterator[Metric]:
    totals = reading.totals
    done = CounterMetricFamily(
        "rowlock_completions", "Attempts that ended, since the ledger began.", labels=["outcome"]
    )
    done.add_metric(["completed"], totals.completed)
    done.add_metric(["failed"], totals.failed)
    yield done
    yield CounterMetricFamily(
        "rowlock_stale_writes_rejected", "Writes refused because their token was stale.", totals.stale_refused
    )
    yield CounterMetricFamily(
        "rowlock_takeovers", "Records taken over from dead instances.", totals.takeovers
    )
