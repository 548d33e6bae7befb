"""Metrics for Prometheus: what the ledger says when it is asked, and what this server itself did.

The ledger is read once in a few seconds, however many scrape. No label holds the number of a record or an instance.
"""

from __future__ import annotations

import threading
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from rowlock import clock
from rowlock.leases.tally import BUCKETS, LONGER, SUM

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
    tallies: dict[str, dict[str, dict[str, float]]]
    schema_version: int


def read(ledger: Ledger) -> Reading:
    """A few statements, each over what is live only."""
    return Reading(
        flows=ledger.run_safely("metrics_flows"),
        instances={row.state: row.instances for row in ledger.run_safely("metrics_instances")},
        locks=ledger.run_safely("metrics_locks", limit=_LOCKS_SHOWN),
        services=ledger.run_safely("services"),
        totals=ledger.run_safely("totals")[0],
        tallies=_tallies(ledger),
        schema_version=ledger.schema.version(),
    )


def _tallies(ledger: Ledger) -> dict[str, dict[str, dict[str, float]]]:
    """Metric → flow or kind → part → total."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for row in ledger.run_safely("tallies"):
        found.setdefault(row.metric, {}).setdefault(row.subject, {})[row.part] = row.value
    return found


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
        yield from _attempts(reading)
        yield from _leases(reading)

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
    yield CounterMetricFamily(
        "rowlock_stale_writes_rejected", "Writes refused because their token was stale.", totals.stale_refused
    )
    yield CounterMetricFamily(
        "rowlock_takeovers", "Records taken over from dead instances.", totals.takeovers
    )


_ATTEMPTS = "attempts_"


def _attempts(reading: Reading) -> Iterator[Metric]:
    """What the workers counted, as of their last heartbeats."""
    claims = CounterMetricFamily(
        "rowlock_claims", "Records claimed, since the ledger began.", labels=["queue"]
    )
    for flow, parts in reading.tallies.get("claims", {}).items():
        claims.add_metric([flow], parts[""])
    done = CounterMetricFamily(
        "rowlock_completions", "Attempts that ended, since the ledger began.", labels=["queue", "outcome"]
    )
    for metric, flows in reading.tallies.items():
        if metric.startswith(_ATTEMPTS):
            for flow, parts in flows.items():
                done.add_metric([flow, metric.removeprefix(_ATTEMPTS)], parts[""])
    yield from (claims, done)
    yield _histogram(reading, "process_duration", "How long attempts took.")
    yield _histogram(
        reading, "queue_wait", "How long records waited, from being enqueued to their first claim."
    )


def _histogram(reading: Reading, metric: str, about: str) -> Metric:
    family = HistogramMetricFamily(f"rowlock_{metric}_seconds", about, labels=["queue"])
    for flow, parts in reading.tallies.get(metric, {}).items():
        buckets, total = [], 0.0
        for bound in (*map(str, BUCKETS), LONGER):
            total += parts.get(bound, 0.0)
            buckets.append((bound if bound != LONGER else "+Inf", total))
        family.add_metric([flow], buckets=buckets, sum_value=parts.get(SUM, 0.0))
    return family


def _leases(reading: Reading) -> Iterator[Metric]:
    renewals = CounterMetricFamily("rowlock_lease_renewals", "Leases and heartbeats.", labels=["result"])
    lost = CounterMetricFamily(
        "rowlock_leases_lost",
        "Leases that ended while they were held: expired, taken; and instances that lost all.",
        labels=["reason"],
    )
    for family, metric, kinds in (
        (renewals, "lease_renewals", ("renewed", "failed")),
        (lost, "leases_lost", ("expired", "taken", "instance")),
    ):
        for kind in kinds:
            family.add_metric([kind], _total(reading, metric, kind))
    yield from (renewals, lost)
    changes = _total(reading, "leader_changes")
    yield CounterMetricFamily(
        "rowlock_leader_changes", "Times a leader was elected, or a service moved.", changes
    )


def _total(reading: Reading, metric: str, subject: str = "") -> float:
    return reading.tallies.get(metric, {}).get(subject, {}).get("", 0.0)
