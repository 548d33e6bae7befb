"""The demo proves itself: real workers, one killed, one stopped beyond its lease."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from rowlock.proof.demo import Demo, DemoFailed, Tally


def rowlock(*arguments, cwd):
    command = [sys.executable, "-m", "rowlock.cli", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=150, check=False)


def test_a_small_demo_loses_nothing_and_repeats_nothing(tmp_path):
    done = rowlock("demo", "--records", "2500", "--json", "--picture", "end.svg", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    tally = json.loads(done.stdout.splitlines()[-1])
    assert tally["accepted"] == 2500
    assert tally["completed"] + tally["dead"] == 2500
    assert (tally["lost"], tally["duplicated"]) == (0, 0)
    assert tally["dead"] == 2
    assert tally["redriven"] == 12
    assert tally["takeovers"] >= 1
    assert tally["stale_refused"] >= 1
    assert "Nothing" in (tmp_path / "end.svg").read_text()


@pytest.mark.parametrize("bad", [{"lost": 1}, {"duplicated": 1}, {"completed": 9}])
def test_a_loss_or_a_duplicate_is_not_good(bad):
    good = {
        "accepted": 12, "completed": 10, "dead": 2, "redriven": 5, "lost": 0, "duplicated": 0,
        "takeovers": 1, "stale_refused": 1,
    }  # fmt: skip
    assert Tally(**good).good
    assert not Tally(**(good | bad)).good


def test_the_count_sees_a_duplicate_and_a_loss(tmp_path):
    """The effects table has no unique key: what must not happen can be seen if it does."""
    demo = Demo(tmp_path, 100)
    accepted = demo._prepare()
    with demo._app.ledger.transaction() as transaction:
        insert = "INSERT INTO processed_surveys VALUES (?, 1.0, 1, 1)"
        for survey in ("SURV-000001", "SURV-000002", "SURV-000002"):
            transaction.connection.exec_driver_sql(insert, (survey,))
    tally = demo._count(accepted, 0)
    assert (tally.lost, tally.duplicated) == (98, 1)
    demo._app.close()


def test_a_worker_that_fails_ends_the_demo_with_a_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("ROWLOCK_POOL_SIZE", "none")
    with pytest.raises(Exception, match="pool_size"):
        Demo(tmp_path, 100)
    monkeypatch.delenv("ROWLOCK_POOL_SIZE")
    demo = Demo(tmp_path, 100)
    monkeypatch.setenv("ROWLOCK_POOL_SIZE", "none")
    with pytest.raises(DemoFailed, match="ended with code"):
        demo.run()


def test_a_folder_that_is_in_use_is_refused(tmp_path):
    (tmp_path / "mine").write_text("keep")
    done = rowlock("demo", "--folder", str(tmp_path), cwd=tmp_path)
    assert done.returncode == 1
    assert "not an empty folder" in done.stderr
