import pytest

from rowlock.queue.roles import describe, flows_taken


@pytest.fixture
def why(cli):
    """The gates of a record, and the whole paragraph."""

    def ask(record):
        found = cli.json("why", record)
        assert set(found) == {"record", "state", "reasons"}
        text = cli.ok("why", record)
        assert text.startswith(f"Record {found['record']['id']} (")
        assert text.count("\n") == 1
        assert all(reason["text"].endswith((".", ".)")) for reason in found["reasons"])
        return found, [reason["gate"] for reason in found["reasons"]], text

    return ask


@pytest.fixture
def queued(cli_ledger, cli_app):
    cli_app.enqueue("gentle", ["a", "b", "c"], key=lambda p: p)


def test_no_worker(why, queued, cli_app):
    _, gates, text = why("a")
    assert gates == ["no worker"]
    assert "No live worker takes the flow gentle" in text
    assert "rowlock worker" in text
    with cli_app.worker(["strict"]):
        found, gates, text = why("a")
        assert gates == ["no worker"]
        assert found["reasons"][0]["alive"] == 1
        assert "1 live instance does other work" in text
    with cli_app.processor():
        assert "have loops of their own" in why("a")[2]


def test_place_in_the_queue(why, queued, cli, cli_app):
    cli_app.enqueue("gentle", "first", key="first", priority=9)
    cli.ok("flows", "pause", "gentle", "--reason", "so that it stays")
    with cli_app.worker(["gentle"], name="w"):
        found, gates, text = why("c")
        assert gates == ["flow paused", "queue"]
        assert "paused (so that it stays)" in text
        assert found["reasons"][1]["ahead"] == 3
        assert found["reasons"][1]["workers"][0]["name"] == "w"
        assert "3 records are ahead" in text
        assert why("first")[0]["reasons"][1]["ahead"] == 0


def test_schedule(why, cli_ledger, cli):
    cli.ok("flows", "add", "gentle")
    cli.ok("enqueue", "gentle", "--payload", '{"id": "x"}', "--key", "id", "--run-at", "2199-01-01T00:00Z")
    found, gates, text = why("x")
    assert gates == ["schedule", "no worker"]
    assert found["reasons"][0]["run_at"] == "2199-01-01T00:00:00.000+00:00"
    assert "2199-01-01T00:00:00+00:00" in text
    assert "days" in text


def test_due_but_not_yet_ready(why, queued, cli_sql):
    cli_sql("UPDATE {}processing_queue SET ready = (1 = 0), run_at = created_at")
    found, gates, text = why("a")
    assert gates == ["schedule", "no worker"]
    assert found["reasons"][0]["in_seconds"] <= 0
    assert "Its time came" in text


def test_retry_after_an_error(why, queued, cli_app, cli_sql):
    with cli_app.processor() as processor:
        [record] = processor.claim_records_batch("gentle", 1)
        processor.mark_record_failed(record, TimeoutError("the site\nis slow"))
        _far_away(cli_sql)
        found, gates, text = why("a")
        assert gates[0] == "retry"
        assert found["reasons"][0]["error"]["message"] == "the site\nis slow"
        assert "after attempt 1 of 5 failed with TimeoutError: the site is slow" in text
        assert f"rowlock records retry {record.id}" in text


def test_postponed_by_its_handler_after_an_older_error(why, queued, cli_app, cli_sql, cli):
    with cli_app.processor() as processor:
        [record] = processor.claim_records_batch("gentle", 1)
        processor.mark_record_failed(record, ValueError("old"))
        cli.ok("records", "retry", "a")
        [record] = processor.claim_records_batch("gentle", 1)
        record.retry_later(3600)
        found, gates, text = why("a")
        assert gates[0] == "postponed"
        assert "old" not in text
        assert found["state"] == "retry_wait"


def test_draining(why, queued, cli):
    cli.ok("flows", "drain", "gentle")
    _, gates, text = why("a")
    assert gates == ["flow draining", "no worker"]
    assert "this one will still run" in text


def test_held_and_then_its_holder_dies(why, queued, cli_app, cli_sql):
    with cli_app.processor(name="me") as processor:
        [record] = processor.claim_records_batch("gentle", 1)
        record.heartbeat(0.25)
        found, gates, text = why("a")
        assert gates == ["held"]
        assert found["reasons"][0]["holder"] == processor.instance.id
        assert 0 < found["reasons"][0]["seconds_left"] <= 30
        assert "(me)" in text
        assert "25% done" in text

        cli_sql("UPDATE {}service_instances SET expires_at = started_at")
        found, gates, text = why("a")
        assert gates == ["holder dead"]
        assert "its lease ended" in text
        assert "no worker is alive" in text

        cli_sql(
            "UPDATE {}service_instances SET state = 'dead', ended_at = started_at, ended_reason = 'silence'"
        )
        assert "is dead since" in why("a")[2]
        assert "(silence)" in why("a")[2]


def test_settled(why, cli_ledger, cli_app, cli_die, cli):
    cli_die(bad=ValueError("no good"))
    found, gates, text = why("strict/bad")
    assert gates == ["dead"]
    assert "no good" in text
    assert f"rowlock records retry {found['record']['id']}" in text
    assert f"--fingerprint {found['reasons'][0]['fingerprint']}" in text
    cli_app.enqueue("gentle", ["good", "gone"], key=lambda p: p)
    with cli_app.processor() as processor:
        [record] = processor.claim_records_batch("gentle", 1)
        processor.mark_record_completed(record)
    assert why("good")[1] == ["completed"]
    assert "at the first attempt" in why("good")[2]
    cli.ok("records", "cancel", "gone", "--reason", "not needed")
    assert why("gone")[1] == ["cancelled"]
    assert "not needed" in why("gone")[2]


def test_roles_carry_any_flow_name():
    flows = ["plain", "with, comma", "50%", "%2C"]
    assert flows_taken(describe(flows=flows)) == flows
    assert flows_taken("processor") == []


def _far_away(cli_sql):
    """Jitter may have made the wait short: make it an hour, in either dialect's way to keep time."""
    try:
        cli_sql(
            "UPDATE {}processing_queue SET run_at = run_at + interval '1 hour' WHERE status = 'retry_wait'"
        )
    except Exception:  # noqa: BLE001 - SQLite keeps seconds
        cli_sql("UPDATE {}processing_queue SET run_at = run_at + 3600 WHERE status = 'retry_wait'")
