"""The example of an index-data team: both exporters by hand, and the demo from end to end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rowlock import Rowlock
from rowlock.client import Client
from tests.server.process import ServerProcess
from tests.support.ledgers import make_settings
from tests.support.waiting import eventually

EXAMPLE = Path(__file__).parents[2] / "examples" / "index_export"


@pytest.fixture
def environment():
    return {name: value for name, value in os.environ.items() if not name.startswith("ROWLOCK_")}


@pytest.fixture
def run(tmp_path, environment):
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)

    def run(*arguments, code=0):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        return done.stdout

    return run


def submit(run, tmp_path, exporter, *index_keys):
    inputs = [{"indexKey": key, "effectiveDate": 20240131, "asofindicator": "CLS"} for key in index_keys]
    (tmp_path / "inputs.json").write_text(json.dumps({"inputs": inputs}))
    command = (
        "-m",
        "rowlock.cli",
        "jobs",
        "submit",
        "exports",
        "--exporter",
        exporter,
        "--policy",
        "continue",
    )
    return json.loads(run(*command, "--file", "inputs.json", "--json"))["jobId"]


def test_both_exporters_make_their_files_and_an_unknown_index_is_dead_until_it_is_loaded(run, tmp_path):
    assert run("market.py", "--indices", "3") == "market.db has 11 indices\n"
    function = submit(run, tmp_path, "index_levels", "WORLD", "IDX0002", "MOON")
    query = submit(run, tmp_path, "closing_levels", "TECH")
    work = ("-m", "rowlock.cli", "worker", "exports", "--until-empty")
    run(*work)
    shown = run("-m", "rowlock.cli", "jobs", "show", function)
    assert "2 done, 1 dead of 3" in shown
    assert "there are no levels of MOON up to 20240131" in shown
    run("-c", "from market import *; Market(Path('market.db')).load(['MOON'])")
    run("-m", "rowlock.cli", "jobs", "redrive", function)
    run(*work)
    for job in (function, query):
        assert "COMPLETED" in run("-m", "rowlock.cli", "jobs", "show", job)
    [world] = (tmp_path / "exports").rglob("WORLD_*.csv")
    lines = world.read_text().splitlines()
    assert lines[:3] == [
        "index,day,level,change_percent",
        "WORLD,20240102,3187.42,",
        "WORLD,20240103,3198.76,0.3558",
    ]
    assert len(lines) == 23
    assert len(list((tmp_path / "exports").rglob("TECH_*.parquet"))) == 1


def left_running(folder) -> list[str]:
    """Processes that were started in this demo's temporary folder and are still there."""
    listed = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if str(folder) in line]


@pytest.mark.usefixtures("s3")  # it skips where no S3 server starts
def test_the_demo_ends_with_one_right_file_for_each_input(tmp_path, environment):
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "demo.py"), "--inputs", "40", "--json"],
        cwd=tmp_path, env=environment | {"TMPDIR": str(tmp_path)}, capture_output=True, text=True, timeout=150, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    tally = json.loads(done.stdout.splitlines()[-1])
    assert tally["bytes"] > 0
    assert {name: tally[name] for name in ("files", "dead", "redriven", "reused", "generated", "differences")} == {
        "files": 60, "dead": 7, "redriven": 7, "reused": 40, "generated": 20, "differences": 0,
    }  # fmt: skip
    assert tally["retried"] > 0
    assert "SIGKILL: worker" in done.stdout
    assert done.stdout.count("dead: Reject: there are no levels of NEW") == 7
    assert left_running(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


# -- the demo's own eyes: what it would not see, it could not promise ------------------------------------------


@pytest.fixture
def finished(tmp_path, monkeypatch):
    """A completed job with its manifest, in a folder: the facts, the job's key, its inputs, and where its files are."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    from facts import Facts

    settings = make_settings(
        "sqlite", tmp_path, None, storage_url=f"file://{tmp_path}/files", finalizer_seconds=0.05
    )
    ordered = [
        {"indexKey": key, "effectiveDate": 20240131, "asofindicator": "CLS"}
        for key in ("WORLD", "TECH", "GOLD")
    ]
    with Rowlock(settings=settings) as app:
        app.exporter("index_levels")(lambda fields: [{"index": fields.indexKey}])
        job, _ = app.jobs.submit(ordered)
        server = ServerProcess(settings)
        try:
            with Client(server.url) as client:
                facts = Facts(client, app.store)
                with app.worker():
                    eventually(lambda: facts.manifests(job.key), "the manifest")
                [manifest] = (tmp_path / "files").rglob("manifest.json")
                yield facts, job.key, ordered, manifest.parent
        finally:
            server.end()


def test_the_demo_sees_nothing_where_nothing_is_wrong(finished):
    facts, key, ordered, _ = finished
    assert list(facts.differences(key, ordered)) == []
    assert facts.files == 3


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (
            lambda folder: (folder / "TECH_20240131_CLS.csv").write_text("index\nTECK\n"),
            "is not what the ledger says",
        ),
        (lambda folder: (folder / "TECH_20240131_CLS.csv").unlink(), "is not there"),
        (lambda folder: (folder / "TECH_20240131_CLS.2.csv").touch(), "1 times more than it should be"),
        (lambda folder: (folder / "manifest.json").write_text('{"files": []}'), "lists other files"),
    ],
)
def test_the_demo_sees_a_file_that_is_wrong_missing_or_too_many(finished, damage, told):
    facts, key, ordered, folder = finished
    damage(folder)
    [difference] = facts.differences(key, ordered)
    assert told in difference


def test_the_demo_sees_an_input_that_is_missing(finished):
    facts, key, ordered, _ = finished
    assert list(facts.differences(key, ordered[:-1])) == ["the job has other inputs than were ordered"]
