"""`/metrics`: Prometheus can read it, it says what the ledger says, and its counters never fall."""

from __future__ import annotations

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from rowlock import Backoff
from rowlock.server import metrics
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    monkeypatch.setattr(metrics, "_FRESH_SECONDS", 0.0)


@pytest.fixture
def app(make_app):
    return make_app(lease_seconds=1)  # totals come with the heartbeat


@pytest.fixture
def busy(app):
    """Two that are done, one dead, one that waits for its second try, two that nobody has looked at."""

    @app.flow("score", max_attempts=1)
    def score(record):
        if record.payload == "bad":
            raise ValueError("bad")

    @app.flow("send", backoff=Backoff(3600, 3600))
    def send(record):
        raise ValueError("down")

    app.flow("idle")(lambda record: None)
    app.enqueue("score", [1, 2, "bad"])
    app.enqueue("send", [1])
    app.enqueue("idle", [1, 2])
    with app.worker(["score", "send"]) as worker:
        eventually(lambda: samples_of_ledger(app) == (2, 2), "the work")
        worker.stop()
    return app


def samples_of_ledger(app):
    row = app.ledger.run("totals")[0]
    flows = {one.flow_name: one for one in app.ledger.run("metrics_flows")}
    return (row.completed, row.failed) if flows["send"].retry_wait else (0, 0)


def scrape(client, parser=parse, **headers):
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200, answer.text
    families = list(parser(answer.text))
    for family in families:
        assert family.name.startswith("rowlock_")
        assert family.documentation
    return answer, {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def test_it_says_what_the_ledger_says(client, busy):
    with busy.lock("edgar"):
        answer, found = scrape(client)
    assert answer.headers["content-type"].startswith("text/plain; version=")
    expected = {
        ("rowlock_items", "idle", "pending"): 2,
        ("rowlock_items", "pending", "score"): 0,
        ("rowlock_items", "retry_wait", "send"): 1,
        ("rowlock_dead_items", "score"): 1,
        ("rowlock_dead_items", "send"): 0,
        ("rowlock_claims_total", "score"): 3,
        ("rowlock_completions_total", "completed", "score"): 2,
        ("rowlock_completions_total", "failed", "score"): 1,
        ("rowlock_completions_total", "failed", "send"): 1,
        ("rowlock_process_duration_seconds_count", "score"): 3,
        ("rowlock_queue_wait_seconds_count", "score"): 3,
        ("rowlock_queue_wait_seconds_bucket", "+Inf", "score"): 3,
        ("rowlock_lease_renewals_total", "failed"): 0,
        ("rowlock_leases_lost_total", "expired"): 0,
        ("rowlock_leader_changes_total",): 0,
        ("rowlock_stale_writes_rejected_total",): 0,
        ("rowlock_takeovers_total",): 0,
        ("rowlock_instances", "active"): 1,
        ("rowlock_instances", "dead"): 0,
    }
    assert {name: found[name] for name in expected} == expected
    assert found["rowlock_oldest_pending_age_seconds", "idle"] > 0
    assert found["rowlock_oldest_pending_age_seconds", "score"] == 0
    assert found["rowlock_lock_held_seconds", "edgar"] >= 0
    assert 0 < found["rowlock_process_duration_seconds_sum", "score"] < 60
    assert 0 < found["rowlock_queue_wait_seconds_sum", "score"] < 60
    assert found["rowlock_locks_held",] >= 1
    assert sum(name[0] == "rowlock_build_info" for name in found) == 1


def test_openmetrics_when_that_is_asked_for(client):
    answer, found = scrape(client, parse_openmetrics, accept="application/openmetrics-text; version=1.0.0")
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert found["rowlock_takeovers_total",] == 0


def test_what_was_pruned_still_counts(client, busy, app_clock):
    before = scrape(client)[1]
    app_clock.advance(86400)
    busy.ledger.run("prune_instances", seconds=3600)
    busy.ledger.run("prune_instances", seconds=3600)
    after = scrape(client)[1]
    assert after["rowlock_instances", "stopped"] < before["rowlock_instances", "stopped"]
    counters = [name for name in before if name[0].endswith("_total") and "http" not in name[0]]
    assert {name: after[name] for name in counters} == {name: before[name] for name in counters}


def test_requests_are_counted_by_route_and_not_by_address(client):
    for address in ("/records/1/why", "/records/2/why", "/nothing/1", "/nothing/2"):
        client.get(address)
    client.request("BREW", "/flows")
    _, found = scrape(client)
    assert found["rowlock_http_requests_total", "/records/{id}/why", "404", "GET"] == 2
    assert found["rowlock_http_requests_total", "404", "GET", "none"] == 2
    assert found["rowlock_http_requests_total", "/flows", "405", "other"] == 1
    assert found["rowlock_http_request_duration_seconds_count", "/records/{id}/why", "GET"] == 2


def test_many_scrapes_read_the_ledger_once(client, monkeypatch):
    asked = []
    read = metrics.read
    monkeypatch.setattr(metrics, "read", lambda ledger: asked.append(1) or read(ledger))
    monkeypatch.setattr(metrics, "_FRESH_SECONDS", 1e9)
    for _ in range(5):
        scrape(client)
    assert len(asked) == 1


def test_only_the_longest_held_locks_are_named(client, app, monkeypatch):
    monkeypatch.setattr(metrics, "_LOCKS_SHOWN", 2)
    leases = [app.try_lock(f"order-{number}") for number in range(4)]
    _, found = scrape(client)
    assert sorted(name[1] for name in found if name[0] == "rowlock_lock_held_seconds") == [
        "order-0",
        "order-1",
    ]
    assert found["rowlock_locks_held",] == 4
    for lease in leases:
        lease.release()
