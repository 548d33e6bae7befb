"""The example of a data team: two worker processes, every survey scored once."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "survey_scoring"


@pytest.fixture
def run(tmp_path):
    for source in EXAMPLE.glob("*.py"):
        shutil.copy(source, tmp_path)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ROWLOCK_")}

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_two_workers_score_every_survey_once(run, tmp_path):
    assert run("enqueue.py", "--sample", "300") == "300 accepted, 0 already known\n"
    assert run("enqueue.py") == "0 accepted, 300 already known\n"
    run("-m", "rowlock.cli", "worker", "tasks", "--processes", "2", "--until-empty")
    with closing(sqlite3.connect(tmp_path / "rowlock.db")) as ledger:
        scores = ledger.execute("SELECT count(*), count(DISTINCT survey_id) FROM survey_scores").fetchone()
        dead = ledger.execute(
            "SELECT reason, count(*) FROM processing_history WHERE status = 'dead'"
        ).fetchall()
        tokens = ledger.execute(
            "SELECT count(*) FROM survey_scores s JOIN processing_history h"
            " ON h.record_key = CAST(s.survey_id AS TEXT) AND h.token = s.token"
        ).fetchone()
        [live] = ledger.execute("SELECT count(*) FROM processing_queue").fetchone()
    assert scores == (297, 297)
    assert tokens == (297,)
    assert dead == [("Reject: the survey has no answers", 3)]
    assert live == 0
