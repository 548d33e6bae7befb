"""Jobs from end to end: real workers, real files, reuse, dead letters, re-drive, manifest, webhook."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rowlock import Reject
from rowlock.errors import InvalidJob
from rowlock.leases.inspector import LockInspector
from rowlock.queue.retry import Backoff
from tests.support.ledgers import sql
from tests.support.waiting import eventually


@pytest.fixture
def broken():
    """Index keys that cannot be exported now."""
    return set()


@pytest.fixture
def app(make_app, tmp_path, broken):
    app = make_app(storage_url=f"file://{tmp_path}/files", finalizer_seconds=0.05, webhook_secret="s3cret")  # noqa: S106
    declare(app, broken)
    return app


def declare(app, broken):
    @app.exporter("index_levels", max_attempts=2, backoff=Backoff(base=0.01, cap=0.01))
    def index_levels(fields):
        if fields.indexKey in broken:
            raise LookupError(f"no levels for {fields.indexKey}")
        if fields.indexKey == "NEVER":
            raise Reject("there will never be such an index")
        for day in range(3):
            yield {"index": fields.indexKey, "day": day, "level": 100 + day}


def inputs(*names, date=20240202):
    return [{"indexKey": name, "effectiveDate": date, "asofindicator": "CLS"} for name in names]


def ended(app, job, times=1):
    eventually(lambda: app.jobs.get(job.key).ends >= times, "the end of the job")
    return app.jobs.get(job.key)


def content(path):
    return Path(urlsplit(path).path).read_bytes()


def test_each_input_becomes_a_file_under_its_path_with_its_checksum(app):
    job, _ = app.jobs.submit(inputs("ABC", "DEF"))
    with app.worker():
        job = ended(app, job)
        assert (job.status, job.done, job.generated, job.reused) == ("COMPLETED", 2, 2, 0)
        day = job.key[1:9]
        for one in app.jobs.inputs(job.key):
            folder = f"exports/{day[:4]}/{day[4:6]}/{day[6:]}/{job.key}"
            assert one.path.endswith(f"/{folder}/{one.fields['indexKey']}_20240202_CLS.csv")
            assert hashlib.sha256(content(one.path)).hexdigest() == one.sha256
            assert (len(content(one.path)), one.rows) == (one.bytes, 3)
        manifest = Path(urlsplit(one.path).path).with_name("manifest.json")
        eventually(manifest.exists, "the manifest")
    files = json.loads(manifest.read_text())["files"]
    assert [file["indexKey"] for file in files] == ["ABC", "DEF"]
    assert files[0]["sha256"] == app.jobs.inputs(job.key)[0].sha256


def test_a_job_has_started_as_soon_as_its_first_input_runs(app):
    going = threading.Event()

    @app.exporter("patient")
    def patient(fields):
        going.wait(30)
        yield {"n": 1}

    job, _ = app.jobs.submit(inputs("ABC", "DEF"), exporter="patient")
    with app.worker():
        eventually(lambda: app.jobs.get(job.key).started_at, "its start")
        assert app.jobs.get(job.key).done == 0
        going.set()
        ended(app, job)


def test_a_later_job_reuses_files_whose_data_cannot_change(app):
    first, _ = app.jobs.submit(inputs("ABC"))
    with app.worker():
        ended(app, first)
        second, _ = app.jobs.submit(inputs("ABC", "DEF"))
        second = ended(app, second)
        assert (second.reused, second.generated) == (1, 1)
        (old,) = app.jobs.inputs(first.key)
        reused = app.jobs.inputs(second.key)[0]
        assert (reused.path, reused.sha256, reused.reused) == (old.path, old.sha256, True)

        Path(urlsplit(old.path).path).unlink()
        third = ended(app, app.jobs.submit(inputs("ABC"))[0])
        assert third.reused == 0, "a file that is gone is made again"

        recent = inputs("ABC", date=int(third.key[1:9]))
        ended(app, app.jobs.submit(recent)[0])
        again = ended(app, app.jobs.submit(recent)[0])
        assert again.reused == 0, "a recent effective date may still change"


def test_a_dead_input_fails_the_job_and_a_redrive_completes_it(app, broken):
    broken.add("BAD")
    job, _ = app.jobs.submit(inputs("BAD", *(f"X{number}" for number in range(30))))
    with app.worker(concurrency=1):
        job = ended(app, job)
        assert job.status == "FAILED"
        assert "no levels for BAD" in job.error_message
        eventually(lambda: app.jobs.get(job.key).running == 0)
        [dead] = app.jobs.inputs(job.key, status="DLQ")
        assert (dead.attempts, dead.fields["indexKey"]) == (2, "BAD")
        broken.clear()
        assert app.jobs.redrive(job.key) == 1
        job = ended(app, job, times=2)
    assert (job.status, job.done, job.total) == ("COMPLETED", 31, 31)


def test_what_can_never_succeed_is_dead_at_once(app):
    job, _ = app.jobs.submit(inputs("NEVER"))
    with app.worker():
        ended(app, job)
    [dead] = app.jobs.inputs(job.key)
    assert (dead.status, dead.attempts) == ("DLQ", 1)
    assert "never be such an index" in dead.error


def test_an_input_that_the_exporter_does_not_take_any_more_is_dead_at_once(app):
    job, _ = app.jobs.submit(inputs("ABC"))
    sql(app.ledger, """UPDATE {s}processing_queue SET payload = '{"indexKey": "ABC"}'""")
    with app.worker():
        ended(app, job)
    [dead] = app.jobs.inputs(job.key)
    assert (dead.status, dead.attempts) == ("DLQ", 1)
    assert "effectiveDate" in dead.error


@pytest.mark.parametrize("retrying", [0, 1, 1000, 1001, 1700, 2495])
def test_counts_are_right_whichever_of_them_is_large(app, retrying):
    job, _ = app.jobs.submit(inputs(*(f"X{number}" for number in range(2500))))
    sql(app.ledger, "UPDATE {s}processing_queue SET status = 'processing' WHERE id <= 5")
    sql(
        app.ledger,
        f"UPDATE {{s}}processing_queue SET status = 'retry_wait' WHERE id > 5 AND id <= {5 + retrying}",
    )
    job = app.jobs.get(job.key)
    assert (job.running, job.retry_wait, job.pending) == (5, retrying, 2495 - retrying)


def test_a_zero_byte_in_one_input_hides_no_other(app):
    @app.exporter("notes", input={"type": "object", "properties": {"indexKey": {}}, "required": ["indexKey"]})
    def notes(fields):
        yield {"note": fields.indexKey}

    job, _ = app.jobs.submit([{"indexKey": "a\x00b"}, {"indexKey": "c"}], exporter="notes")
    found = sql(app.ledger, "SELECT index_key FROM {s}export_job_input ORDER BY input_id")
    assert found[1] == ("c",)
    assert app.jobs.inputs(job.key)[0].fields == {"indexKey": "a\x00b"}


def test_a_job_that_has_ended_claims_nothing_more(app, broken):
    """Whatever comes back to the queue afterwards bounces, and stays."""
    job, _ = app.jobs.submit(inputs("ABC", "DEF"))
    app.jobs.fail(job.key, "somebody said so")
    sql(app.ledger, "UPDATE {s}processing_queue SET ready = true, run_at = created_at")
    with app.worker():
        eventually(lambda: app.jobs.get(job.key).pending + app.jobs.get(job.key).retry_wait == 2)
        eventually(
            lambda: not sql(app.ledger, "SELECT 1 FROM {s}processing_queue WHERE ready OR holder IS NOT NULL")
        )
    assert app.jobs.get(job.key).done == 0


# -- webhooks --------------------------------------------------------------------------------------------------


@pytest.fixture
def receiver():
    """A receiver that refuses the first call."""
    got = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((dict(self.headers), body))
            self.send_response(503 if len(got) == 1 else 204)
            self.end_headers()

        def log_message(self, *_):
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    server.got = got
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_webhook_is_signed_and_sent_again_until_it_is_taken(make_app, tmp_path, receiver):
    app = make_app(
        storage_url=f"file://{tmp_path}/files",
        finalizer_seconds=0.05,
        webhook_secret="s3cret",  # noqa: S106
        webhook_hosts=["127.0.0.1"],
    )
    declare(app, set())
    url = f"http://127.0.0.1:{receiver.server_port}/hook"
    job, _ = app.jobs.submit(inputs("ABC"), webhook_url=url)
    with app.worker():
        eventually(lambda: len(receiver.got) == 1, "the first try")
        eventually(lambda: sql(app.ledger, "SELECT 1 FROM {s}processing_queue WHERE status = 'retry_wait'"))
        app.ledger.hurry([row[0] for row in sql(app.ledger, "SELECT id FROM {s}processing_queue")])
        eventually(lambda: len(receiver.got) == 2, "the second")
    (first, _), (headers, body) = receiver.got
    assert json.loads(body)["jobId"] == job.key
    assert json.loads(body)["status"] == "COMPLETED"
    moment, digest = (part.split("=")[1] for part in headers["X-Rowlock-Signature"].split(","))
    expected = hmac.new(b"s3cret", f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
    assert digest == expected
    assert first["Idempotency-Key"] == headers["Idempotency-Key"]


def test_the_finalizers_lease_is_as_long_as_its_instances(make_app, tmp_path):
    app = make_app(storage_url=f"file://{tmp_path}/files", finalizer_seconds=0.05, lease_seconds=7)
    declare(app, set())
    inspector = LockInspector(app.ledger)
    with app.worker():
        held = lambda: [name for names in inspector.held_names().values() for name in names]  # noqa: E731
        eventually(lambda: "rowlock.finalizer" in held(), "the election")
        [slot] = inspector.slots("rowlock.finalizer")
    assert slot["ttl_seconds"] == 7


@pytest.mark.parametrize("url", ["http://127.0.0.1/x", "file:///etc/passwd", "not a url"])
def test_webhooks_go_only_where_the_settings_allow(app, url):
    with pytest.raises(InvalidJob, match="webhookUrl"):
        app.jobs.submit(inputs("ABC"), webhook_url=url)
