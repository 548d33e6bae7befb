import os
import pty
import select
import signal
import sqlite3
import subprocess
import sys


def test_status_counts_every_state(cli, cli_ledger, cli_app, cli_die):
    cli_die(a=ValueError("no"))
    cli_app.enqueue("gentle", [1, 2, 3])
    cli.ok("enqueue", "gentle", "--payload", "4", "--run-at", "2199-01-01T00:00Z")
    with cli_app.processor() as processor:
        first, second = processor.claim_records_batch("gentle", 2)
        processor.mark_record_completed(first)
        found = cli.json("status")
        gentle, strict = found["flows"]
        assert (gentle["ready"], gentle["waiting"], gentle["processing"]) == (1, 1, 1)
        assert (gentle["completed_last_hour"], gentle["dead"], gentle["state"]) == (1, 0, "active")
        assert gentle["oldest_seconds"] >= 0
        assert (strict["dead"], strict["ready"]) == (1, 0)
        [alive] = found["instances"]
        assert (alive["id"], alive["holds"], alive["state"]) == (processor.instance.id, 1, "active")
        out = cli.ok("status")
        assert "Instances alive: 1 active; they hold 1 records" in out
        row = next(line for line in out.splitlines() if line.startswith("gentle"))
        assert row.split()[1:7] == ["1", "1", "1", "0", "0", "1"]
        processor.mark_record_completed(second)
    assert "No instance is alive" in cli.ok("status")


def test_a_paused_flow_shows_its_reason(cli, cli_sqlite):
    assert "No flows yet" in cli.ok("status")
    cli.ok("flows", "add", "f")
    cli.ok("flows", "pause", "f", "--reason", "the site is down")
    assert "paused: the site is down" in cli.ok("status")


def test_watch_shows_what_changes_until_ctrl_c(cli, cli_sqlite):
    cli.ok("flows", "add", "watched")
    terminal, other_end = pty.openpty()
    process = subprocess.Popen([sys.executable, "-m", "rowlock.cli", "status", "--watch"], stdout=other_end)
    os.close(other_end)
    try:
        _read_until(terminal, b"active")
        cli.ok("flows", "pause", "watched")
        _read_until(terminal, b"paused")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def _read_until(terminal, word):
    seen = b""
    while word not in seen:
        ready, _, _ = select.select([terminal], [], [], 20)
        assert ready, seen
        seen += os.read(terminal, 4096)


def test_looking_does_not_wait_for_a_writer(cli, cli_sqlite, cli_home, cli_die):
    cli_die(a=ValueError("no"))
    writer = sqlite3.connect(cli_home / "ledger.db", isolation_level=None)
    try:
        writer.execute("BEGIN IMMEDIATE")
        for command in (("status",), ("why", "a"), ("records", "list"), ("doctor",), ("migrate", "--check")):
            cli.ok(*command)
        writer.execute("ROLLBACK")
    finally:
        writer.close()
