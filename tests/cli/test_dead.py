import os
import pty
import subprocess
import sys

import pytest


@pytest.fixture
def letters(cli_ledger, cli_die):
    cli_die(a=ValueError("bad 1"), b=ValueError("bad 2"), c=KeyError("x"))


def test_dead_letters_alone_and_in_groups(cli, letters):
    found = cli.json("dead", "list")
    assert [one["key"] for one in found] == ["c", "b", "a"]
    large, small = cli.json("dead", "groups")
    assert (large["records"], small["records"]) == (2, 1)
    assert large["fingerprint"].startswith("ValueError-")
    assert large["last_at"].endswith("+00:00")
    chosen = cli.json("dead", "list", "--fingerprint", small["fingerprint"], "--flow", "strict")
    assert [one["key"] for one in chosen] == ["c"]
    assert len(cli.json("dead", "list", "--limit", 1)) == 1
    assert large["fingerprint"] in cli.ok("dead", "groups", "--flow", "strict")
    assert "bad 2" in cli.ok("dead", "list")
    cli.refused("dead", "list", "--flow", "typo")


def test_redrive_needs_to_be_told_what(cli, letters):
    cli.refused("dead", "redrive", code=2)
    cli.refused("dead", "redrive", "1", "--all", code=2)
    cli.refused("dead", "redrive", "1", "--limit", 2, code=2)
    assert len(cli.json("dead", "list")) == 3


def test_redrive_by_fingerprint(cli, letters):
    large = cli.json("dead", "groups")[0]["fingerprint"]
    assert cli.ok("dead", "redrive", "--fingerprint", large, "--dry-run") == "2\n"
    assert len(cli.json("dead", "list")) == 3, "a dry run changes nothing"
    assert "2 driven again" in cli.ok("dead", "redrive", "--fingerprint", large)
    assert [one["key"] for one in cli.json("dead", "list")] == ["c"]
    assert [one["status"] for one in cli.json("records", "list")] == ["dead", "pending", "pending"]


def test_redrive_all_with_a_limit_takes_the_oldest(cli, letters):
    assert cli.ok("dead", "redrive", "--all", "--limit", 2, "--dry-run") == "2\n"
    assert "2 driven again" in cli.ok("dead", "redrive", "--all", "--limit", 2, "--yes")
    assert [one["key"] for one in cli.json("dead", "list")] == ["c"]
    assert "1 driven again" in cli.ok("dead", "redrive", "--flow", "strict")
    assert cli.ok("dead", "list") == cli.ok("dead", "groups") == "No dead letters.\n"


def test_redrive_by_name(cli, letters):
    assert cli.ok("dead", "redrive", "a", "strict/b", "--dry-run") == "2\n"
    cli.ok("dead", "redrive", "a", "strict/b")
    assert [one["key"] for one in cli.json("dead", "list")] == ["c"]
    assert "is pending, not dead" in cli.refused("dead", "redrive", "a")


def test_a_bulk_redrive_asks_at_a_terminal(cli, cli_sqlite, cli_die):
    cli_die(a=ValueError("bad 1"), b=ValueError("bad 2"))
    terminal, other_end = pty.openpty()
    command = [sys.executable, "-m", "rowlock.cli", "dead", "redrive", "--all"]
    try:
        os.write(terminal, b"n\n")
        done = subprocess.run(command, stdin=other_end, capture_output=True, text=True, check=False)
        assert "Drive 2 dead letters again?" in done.stderr
        assert done.returncode == 1
        assert len(cli.json("dead", "list")) == 2
        subprocess.run([*command, "--yes"], stdin=other_end, capture_output=True, check=True)
    finally:
        os.close(terminal)
        os.close(other_end)
    assert cli.json("dead", "list") == []
