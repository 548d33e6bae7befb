import signal

import pytest
from tests.support.waiting import eventually

from rowlock import Rowlock

PROGRAM = """
from rowlock import Rowlock
app = Rowlock()

@app.flow("slow")
def slow(record):
    with app.lock("inside"):
        open(f"started-{record.key}", "w").close()
        while not __import__("os").path.exists("go-on"):
            __import__("time").sleep(0.02)
"""


def test_instances_show_what_they_hold_and_did(cli, cli_ledger, cli_app, cli_sql):
    assert "No instances of late" in cli.ok("instances")
    cli_app.enqueue("gentle", [1, 2])
    with cli_app.processor(name="me") as processor:
        first, _second = processor.claim_records_batch("gentle", 2)
        processor.mark_record_completed(first)
        processor.instance.beat()
        [one] = cli.json("instances")
        assert (one["name"], one["state"], one["holds"], one["completed"]) == ("me", "active", 1, 1)
        assert one["heartbeat_age"] >= 0
        assert one["started_at"].endswith("+00:00")
        assert "me" in cli.ok("instances")
    [one] = cli.json("instances")
    assert one["state"] == "stopped"


def test_old_ones_are_shown_when_asked(cli, cli_sqlite, cli_app, cli_sql):
    with cli_app.processor():
        pass
    cli_sql("UPDATE {}service_instances SET ended_at = ended_at - 7200")
    assert cli.json("instances") == []
    assert len(cli.json("instances", "--all")) == 1


def test_a_worker_lists_its_flows(cli, cli_sqlite, cli_app):
    with cli_app.worker(["gentle"]):
        assert cli.json("instances")[0]["roles"] == "worker:gentle"


# -- one in full ---------------------------------------------------------------------------------------------------


def test_one_instance_with_its_records_and_locks(cli, cli_ledger, cli_app):
    cli_app.enqueue("gentle", ["a", "b"], key=lambda payload: payload)
    with cli_app.processor(name="me") as processor:
        claimed = processor.claim_records_batch("gentle", 2)
        found = cli.json("instances", "me")
        assert [one["key"] for one in found["records"]] == ["a", "b"]
        assert found["locks"] == []
        text = cli.ok("instances", found["id"])
        assert f"{claimed[0].id} (gentle/a), {claimed[1].id} (gentle/b)" in text
        with cli_app.lock("edgar"), cli_app.lock("halts"):
            mine = str(cli_app.locks.instance.id)
            assert sorted(cli.json("instances", mine)["locks"]) == ["edgar", "halts"]
            listed = {one["id"]: one for one in cli.json("instances")}
            assert sorted(listed[int(mine)]["locks"]) == ["edgar", "halts"]
            assert listed[found["id"]]["locks"] == []
            assert "edgar" in cli.ok("instances")
    assert "stopped (stopped" in cli.ok("instances", "me")


@pytest.mark.parametrize("command", [["instances"], ["drain"]])
def test_an_instance_that_nobody_knows(cli, cli_ledger, cli_app, command):
    assert "There is no instance 'nobody'" in cli.refused(*command, "nobody")
    assert "There is no instance '12345'" in cli.refused(*command, "12345")
    with cli_app.processor(name="twin") as first, Rowlock() as app, app.processor(name="twin") as second:
        error = cli.refused(*command, "twin")
        assert f"say which, {first.instance.id} or {second.instance.id}" in error
    with cli_app.processor(name="twin") as third:
        assert cli.json(*command, "twin")["id"] == third.instance.id, "the one that lives is meant"


# -- drain ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def draining(cli, cli_ledger, cli_home, cli_start, monkeypatch):
    """A worker that is in the middle of something."""
    # It hears of the drain with its next heartbeat, and must not lose its lease on a busy machine.
    monkeypatch.setenv("ROWLOCK_LEASE_SECONDS", "15")
    monkeypatch.setenv("ROWLOCK_GRACE_SECONDS", "120")
    (cli_home / "program.py").write_text(PROGRAM)
    cli.ok("flows", "add", "slow")
    cli.ok("enqueue", "slow", "--payload", '{"id": "x"}', "--key", "id")
    process = cli_start("worker", "program", "--name", "busy")
    eventually((cli_home / "started-x").exists, "the handler's start")
    return process


def test_a_worker_that_is_drained_finishes_and_leaves(cli, draining, cli_home):
    said = cli.ok("drain", "busy")
    assert "drains; it still holds 1 record" in said
    assert cli.json("instances", "busy")["state"] == "draining"
    assert "drains" in cli.ok("drain", "busy"), "asking twice is no error"
    cli.ok("enqueue", "slow", "--payload", '{"id": "y"}', "--key", "id")
    assert "has not left in 0 s: it holds 1 record" in cli.refused("drain", "busy", "--wait", "--timeout", 0)
    (cli_home / "go-on").touch()
    assert "has left" in cli.ok("drain", "busy", "--wait")
    draining.communicate(timeout=30)
    assert draining.returncode == 0
    assert {one["key"]: one["status"] for one in cli.json("records", "list")} == {
        "x": "completed",
        "y": "pending",
    }
    assert "is already stopped" in cli.refused("drain", "busy")
    assert "has left" in cli.ok("drain", "busy", "--wait"), "that is what was waited for"


def test_a_worker_that_dies_while_it_drains(cli, draining, cli_sql):
    draining.send_signal(signal.SIGKILL)
    draining.wait(30)
    cli_sql("UPDATE {}service_instances SET expires_at = started_at WHERE name = 'busy'")
    assert "fell silent" in cli.refused("drain", "busy", "--wait")
    with Rowlock() as app:
        app.ledger.run("bury_instances")
    assert "is already dead: no heartbeat" in cli.refused("drain", "busy")
