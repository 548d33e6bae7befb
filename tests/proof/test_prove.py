"""`rowlock prove`: real processes, really killed, on both ledgers; and what it says when it cannot."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

from rowlock.proof.nemeses import NEMESES
from rowlock.proof.sample import FLOWS, samples
from rowlock.proof.schedule import draw

KEYS = {
    "records", "lost", "duplicated", "phantom", "kills", "kills_mid_flight", "stops", "database_crashes", "commit_losses",
    "takeovers", "stale_refused", "recovery_p50_s", "recovery_p99_s",
}  # fmt: skip


def prove(*options, cwd):
    command = [sys.executable, "-m", "rowlock.cli", "prove", *options]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=175, check=False)


def figures(done):
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["lost"], told["duplicated"], told["phantom"]) == (0, 0, 0)
    assert told["good"]
    assert told.keys() >= KEYS
    return told


def test_thirty_thousand_records_survive_forty_kills_on_postgresql(tmp_path):
    told = figures(
        prove(
            "--postgres", "--records", "30000", "--kills", "44", "--workers", "5", "--json",
            "--faults", "kill,stop,term,backend,commit-loss,crash", cwd=tmp_path,
        )
    )  # fmt: skip
    assert told["records"] == 30000
    assert told["kills_mid_flight"] >= 40
    assert told["stops_over_lease"] >= 10
    assert told["backends_terminated"] >= 2
    assert told["commit_losses"] + told["reply_losses"] >= 5
    assert told["commit_losses"] >= 1
    assert told["database_crashes"] >= 1
    assert told["takeovers"] >= 40
    assert told["stale_refused"] >= 1
    assert told["redriven"] >= 1


def test_a_run_on_sqlite_with_everything_that_there_is(tmp_path):
    done = prove(
        "--records", "2000", "--kills", "6", "--seed", "5", "--json", "--html", "proof.html", "--figures", "proof.json",
        "--folder", "kept",
        cwd=tmp_path,
    )  # fmt: skip
    told = figures(done)
    assert told["seed"] == 5
    assert told["faults"] == ["kill", "stop", "term"]
    assert told["kills_mid_flight"] >= 6
    assert "clock" in told["skipped"]
    assert "without clock: a SQLite ledger lives on one machine" in done.stdout
    kept = {path.name for path in (tmp_path / "kept").iterdir()}
    assert {"facts.db", "journal.jsonl", "ledger.db"} <= kept
    assert json.loads((tmp_path / "proof.json").read_text()) == told
    check_page((tmp_path / "proof.html").read_text())


def check_page(html):
    assert "Nothing was lost" in html
    assert "<svg" in html
    assert "--seed 5" in html
    assert not re.search(r"""(?:src|href|url)\s*[=(]\s*["']?\s*(?:https?:)?//""", html), "it loads something"
    assert "<script" not in html


def test_on_a_given_server_nothing_is_left_behind(postgres, tmp_path):
    """In a schema and a database of its own, which are gone afterwards."""
    database = f"mine_{uuid4().hex[:8]}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {database}")
        databases = (
            "SELECT array_agg(datname ORDER BY datname) FROM pg_database WHERE datname LIKE 'rowlock_proof%'"
        )
        url = urlsplit(postgres.url)._replace(path=f"/{database}").geturl()
        told = figures(
            prove(
                "--ledger",
                url,
                "--records",
                "800",
                "--kills",
                "2",
                "--faults",
                "kill,backend",
                "--json",
                cwd=tmp_path,
            )
        )
        assert told["backends_terminated"] >= 1
        assert connection.execute(databases).fetchone()[0] is None
    with psycopg.connect(url) as connection:
        schemas = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'rowlock%'"
        assert connection.execute(schemas).fetchone()[0] == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--faults", "kill,earthquake"], "There is no fault 'earthquake'"),
        (["--faults", "crash"], "there is no server and no network"),
        (["--faults", "clock"], "whose clock is the ledger's"),
        (["--postgres", "--ledger", "sqlite:///x.db"], "give one of them"),
        (["--ledger", "sqlite:///here.db"], "exists already"),
        (["--folder", "."], "not an empty folder"),
        (["--ledger", "oracle://x"], "the ledger speaks"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(options, words, tmp_path):
    (tmp_path / "here.db").write_text("")
    done = prove("--records", "100", *options, cwd=tmp_path)
    assert done.returncode == 1
    assert words in " ".join(done.stderr.split())


def test_a_given_server_is_not_crashed(postgres, tmp_path):
    done = prove("--ledger", postgres.url, "--faults", "crash", "--records", "100", cwd=tmp_path)
    assert done.returncode == 1
    assert "only a server that the run itself has started may be crashed" in " ".join(done.stderr.split())


# -- what is drawn from the seed ---------------------------------------------------------------------------------


def test_a_seed_draws_the_same_records_and_the_same_faults():
    assert list(samples(7, 0, 500)) == list(samples(7, 0, 500))
    assert list(samples(7, 0, 500)) != list(samples(8, 0, 500))
    assert draw(7, NEMESES, 50) == draw(7, NEMESES, 50)
    assert draw(7, NEMESES, 50) != draw(8, NEMESES, 50)


def test_a_sample_has_every_kind_of_record_and_a_schedule_every_fault():
    assert {record.flow for record in samples(1, 0, 20_000)} == set(FLOWS)
    strikes = draw(1, NEMESES, 40)
    assert set(strikes) == set(NEMESES)
    assert strikes.count("kill") == 40
