"""Export jobs whose workers are killed in the middle of an upload, stopped beyond their lease, killed after publishing."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from uuid import uuid4

import pytest

from rowlock import Rowlock
from rowlock.jobs.handling import folder_of
from rowlock.ledger.ledger import Ledger
from tests.support.ledgers import sql
from tests.support.waiting import eventually

NAMES = [*(f"LARGE{number}" for number in range(3)), *(f"X{number}" for number in range(8))]
NEVER = "never"


class Worker:
    """A process that stands still at its moment."""

    def __init__(self, settings, folder, moment):
        folder.mkdir()
        self._folder = folder
        given = settings.model_dump(include=GIVEN) | {
            "storage_secret_access_key": settings.storage_secret_access_key.get_secret_value()
        }
        environment = os.environ | {f"ROWLOCK_{name.upper()}": str(value) for name, value in given.items()}
        command = [sys.executable, "-m", "tests.chaos.exports", moment, str(folder)]
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(command, env=environment, stderr=log)

    def reach(self):
        eventually((self._folder / "reached").exists, "the moment")

    @property
    def pid(self):
        return self._process.pid

    def signal(self, number):
        self._process.send_signal(number)

    def go_on(self):
        (self._folder / "go on").touch()
        self.signal(signal.SIGCONT)

    @property
    def said(self):
        return (self._folder / "log").read_text()

    def end(self):
        self._process.send_signal(signal.SIGCONT)
        self._process.kill()
        self._process.wait(20)


GIVEN = {
    "ledger_url", "ledger_schema", "lease_seconds", "poll_seconds", "max_prefetch", "finalizer_seconds", "storage_url",
    "storage_endpoint", "storage_region", "storage_access_key_id",
}  # fmt: skip


@pytest.fixture(params=["file", "s3"])
def app(request, settings_for, tmp_path):
    options = {"storage_url": (tmp_path / "files").as_uri()}
    if request.param == "s3":
        server = request.getfixturevalue("s3")
        server.make_bucket("tests")
        options = {"storage_url": f"s3://tests/{uuid4().hex}"}
        options |= {f"storage_{name}": value for name, value in server.options.items()}
    quick = {"lease_seconds": 1.5, "poll_seconds": 0.2, "finalizer_seconds": 0.1, "max_prefetch": 0}
    settings = settings_for(**quick, **options)
    with Ledger.open(settings) as ledger:
        ledger.schema.migrate()
    app = Rowlock(settings=settings)

    @app.exporter("index_levels")
    def index_levels(fields):
        raise AssertionError("the workers make the files")

    yield app
    app.close()


@pytest.fixture
def start(app, tmp_path):
    workers = []

    def start(moment=NEVER):
        workers.append(Worker(app.settings, tmp_path / f"worker-{len(workers)}", moment))
        return workers[-1]

    yield start
    for worker in workers:
        worker.end()


def content(app, path):
    return b"".join(app.store.read(path))


def maker(data):
    """Whose file it is."""
    return int(data.split(b"\n", 1)[0].rpartition(b" ")[2])


@pytest.mark.timeout(300)
def test_each_input_has_exactly_one_artifact_whatever_becomes_of_its_workers(app, start):
    given = [{"indexKey": name, "effectiveDate": 20240202, "asofindicator": "CLS"} for name in NAMES]
    job, _ = app.jobs.submit(given)

    # Each has one of the large ones: in the middle; whole, and it has checked its lease; there, and nothing says so.
    killed, stopped, late = map(start, ("in the middle of an upload", "before publishing", "published"))
    for one in (killed, stopped, late):
        one.reach()
    killed.signal(signal.SIGKILL)
    stopped.signal(signal.SIGSTOP)
    late.signal(signal.SIGKILL)
    worker = start()
    eventually(lambda: not app.jobs.get(job.key).open, "the end of the job")
    stopped.go_on()
    eventually(lambda: "LeaseLost" in stopped.said or "refused" in stopped.said, "the refusal")
    manifest = f"{folder_of(job.key)}/manifest.json"
    eventually(lambda: app.store.exists(manifest), "the manifest")

    job = app.jobs.get(job.key)
    assert (job.status, job.done, job.generated, job.ends) == ("COMPLETED", 11, 11, 1)
    assert [event.kind for event in app.jobs.events(job.key)] == ["submitted", "completed"]
    found = app.jobs.inputs(job.key)
    assert [one.fields["indexKey"] for one in found] == NAMES
    for one in found:
        data = content(app, one.path)
        assert (len(data), hashlib.sha256(data).hexdigest()) == (one.bytes, one.sha256)
        assert data.startswith(one.fields["indexKey"].encode())
        assert maker(data) == worker.pid
    artifacts = sql(app.ledger, "SELECT s3_path, sha256, byte_count FROM {s}export_artifact")
    assert sorted(artifacts) == sorted((one.path, one.sha256, one.bytes) for one in found)
    told = json.loads(content(app, app.store.url_of(manifest)))["files"]
    assert [file["path"] for file in told] == [one.path for one in found]
    settled = sql(app.ledger, "SELECT id FROM {s}processing_history WHERE flow_name = 'export.index_levels'")
    assert sorted(row[0] for row in settled) == sorted(one.id for one in found)

    # What the others left is there, under names of its own, and is known for what it is.
    kept = {one.path for one in found} | {app.store.url_of(manifest)}
    lost = [
        content(app, one.key) for one in app.store.list("exports") if app.store.url_of(one.key) not in kept
    ]
    assert {maker(data) for data in lost} == {stopped.pid, late.pid}
