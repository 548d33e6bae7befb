import os
import pty
import subprocess
import sys

import pytest


@pytest.fixture
def some(cli_sqlite, cli_app, cli_die):
    """1 dead, 2 completed, 3 processing, 4 pending, 5 scheduled."""
    cli_die(a=ValueError("no good"))
    cli_app.enqueue("gentle", [{"n": n} for n in "bcd"], key=lambda p: p["n"])
    with cli_app.processor(name="me") as processor:
        first, _second = processor.claim_records_batch("gentle", 2)
        processor.mark_record_completed(first, {"done": [1, None]})
        yield processor


@pytest.fixture
def five(some, cli):
    cli.ok("enqueue", "gentle", "--payload", '"later"', "--run-at", "2199-01-01T00:00Z")
    return some


def test_list_shows_live_and_settled_newest_first(cli, five):
    found = cli.json("records", "list")
    assert [one["id"] for one in found] == [5, 4, 3, 2, 1]
    assert [one["status"] for one in found] == ["pending", "pending", "processing", "completed", "dead"]
    assert all(one["created_at"].endswith("+00:00") for one in found)
    assert [one["id"] for one in cli.json("records", "list", "--limit", 2)] == [5, 4]
    assert [one["id"] for one in cli.json("records", "list", "--limit", 2, "--before", 4)] == [3, 2]
    assert [one["id"] for one in cli.json("records", "list", "--flow", "strict")] == [1]
    out = cli.ok("records", "list")
    assert "held by" in out
    assert "no good" in out
    assert "\x1b" not in out
    assert "--before 4" in cli("records", "list", "--limit", 2).stderr


@pytest.mark.parametrize(
    ("status", "ids"),
    [
        ("pending", [5, 4]),
        ("processing", [3]),
        ("completed", [2]),
        ("dead", [1]),
        ("cancelled", []),
        ("retry_wait", []),
    ],
)
def test_list_by_status(cli, five, status, ids):
    assert [one["id"] for one in cli.json("records", "list", "--status", status)] == ids


def test_list_says_so_when_there_is_nothing(cli, five):
    assert cli.ok("records", "list", "--status", "cancelled", "--flow", "gentle") == (
        "No records that are cancelled in gentle.\n"
    )
    assert "one of pending" in cli.refused("records", "list", "--status", "lost")
    assert "there are: gentle, strict" in cli.refused("records", "list", "--flow", "typo")


def test_show_tells_everything(cli, five):
    dead = cli.json("records", "show", "strict/a")
    assert dead["payload"] == {"key": "a"}
    [attempt] = dead["attempts"]
    assert (attempt["outcome"], attempt["error_type"], attempt["message"]) == (
        "failed",
        "ValueError",
        "no good",
    )
    assert "ValueError: no good" in attempt["traceback"]
    assert cli.json("records", "show", "b")["result"] == {"done": [1, None]}
    held = cli.json("records", "show", "3")["held_by"]
    assert held["name"] == "me"
    assert held["seconds_left"] > 0
    out = cli.ok("records", "show", "1")
    assert "Attempt 1 failed" in out
    assert "ValueError: no good" in out
    assert '{"done": [1, null]}' in cli.ok("records", "show", "2")


def test_names_of_records(cli, cli_sqlite, cli_app):
    for flow in ("strict", "gentle"):
        cli_app.enqueue(flow, flow, key="same")
    cli_app.enqueue("gentle", "slashed", key="a/b")
    cli_app.enqueue("gentle", "a number", key=777)
    error = cli.refused("records", "show", "same")
    assert "gentle/same and strict/same" in error
    assert cli.json("records", "show", "strict/same")["payload"] == "strict"
    assert cli.json("records", "show", "gentle/a/b")["payload"] == "slashed"
    assert cli.json("records", "show", "a/b")["payload"] == "slashed"
    assert cli.json("records", "show", "777")["payload"] == "a number"
    assert cli.json("records", "show", "1")["payload"] == "strict", "a number is an id first"
    assert "FLOW/KEY" in cli.refused("records", "show", "nothing")
    assert "no record" in cli.refused("records", "show", "99999999999999999999999")


def test_cancel(cli, five, cli_app):
    assert "2 cancelled" in cli.ok("records", "cancel", "3", "d", "3", "--reason", "a mistake")
    gone = cli.json("records", "show", "d")
    assert (gone["status"], gone["reason"]) == ("cancelled", "a mistake")
    result = cli("records", "cancel", "5", "1")
    assert result.exit_code == 1
    assert "1 cancelled" in result.stdout
    assert "record 1 is already dead" in result.stderr


def test_cancel_asks_at_a_terminal(cli, five):
    terminal, other_end = pty.openpty()
    command = [sys.executable, "-m", "rowlock.cli", "records", "cancel", "4"]
    try:
        os.write(terminal, b"n\n")
        done = subprocess.run(command, stdin=other_end, capture_output=True, text=True, check=False)
        assert "Cancel 1 record?" in done.stderr
        assert done.returncode == 1
        assert cli.json("records", "show", "4")["status"] == "pending"
        subprocess.run([*command, "--yes"], stdin=other_end, capture_output=True, check=True)
    finally:
        os.close(terminal)
        os.close(other_end)
    assert cli.json("records", "show", "4")["status"] == "cancelled"


def test_retry(cli, five, cli_app):
    assert "Record 1 is driven again" in cli.ok("records", "retry", "1")
    assert cli.json("records", "show", "1")["status"] == "pending"
    assert cli.json("records", "show", "5")["ready"] is False
    assert "Record 5 may run now" in cli.ok("records", "retry", "5")
    assert cli.json("records", "show", "5")["ready"] is True
    assert "it has its result" in cli.refused("records", "retry", "2")
    assert "a worker has it now" in cli.refused("records", "retry", "3")
    assert "rowlock why 4" in cli.refused("records", "retry", "4")
    result = cli("records", "retry", "nothing", "2")
    assert result.exit_code == 1
    assert "'nothing'" in result.stderr
    assert "Record 2" in result.stderr
