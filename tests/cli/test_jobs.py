"""`rowlock jobs` on a real ledger, with a real worker."""

import json
import threading

import pytest
from tests.support.waiting import eventually

from rowlock.cli.loading import load_app

PROGRAM = """
from rowlock import Reject, Rowlock

app = Rowlock()

@app.exporter("index_levels")
def index_levels(fields):
    if fields.indexKey == "BAD":
        raise Reject("no levels for [BAD]")
    yield {"level": 100}
"""


def line(name):
    return json.dumps({"indexKey": name, "effectiveDate": 20240202, "asofindicator": "CLS"})


@pytest.fixture
def target(cli_ledger, cli_home, monkeypatch, request):
    """A program with an exporter, in a module that no other test has."""
    name = f"exports_{abs(hash(request.node.name))}"
    (cli_home / f"{name}.py").write_text(PROGRAM)
    monkeypatch.setenv("ROWLOCK_STORAGE_URL", f"file://{cli_home}/files")
    monkeypatch.setenv("ROWLOCK_FINALIZER_SECONDS", "0.05")
    monkeypatch.syspath_prepend(str(cli_home))
    return name


def submit(cli, target, *names, **options):
    text = "\n".join(line(name) for name in names)
    more = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    return cli.json("jobs", "submit", target, "--file", "-", *more, stdin=text)["jobId"]


def test_a_job_from_its_submission_to_its_end(cli, target):
    key = submit(cli, target, "A", "B")
    assert [job["jobId"] for job in cli.json("jobs", "list", "--status", "submitted")] == [key]
    assert "2 pending of 2" in cli.ok("jobs", "show", key)

    def work():
        with load_app(target) as app, app.worker():
            eventually(lambda: not app.jobs.get(key).open, "the end of the job")

    worker = threading.Thread(target=work)
    worker.start()
    told = cli.ok("jobs", "watch", key)
    worker.join()
    assert told.strip().endswith(f"{key} COMPLETED: 2 done of 2")
    assert cli.json("jobs", "show", key)["filesGenerated"] == 2


def test_what_died_is_shown_and_driven_again(cli, target):
    key = submit(cli, target, "BAD", "B", policy="continue")
    with load_app(target) as app, app.worker():
        eventually(lambda: not app.jobs.get(key).open, "the end of the job")
    assert "no levels for [BAD]" in cli.ok("jobs", "show", key)
    watched = cli("jobs", "watch", key)
    assert (watched.exit_code, "FAILED: 1 done, 1 dead of 2" in watched.stdout) == (1, True)
    assert cli.json("jobs", "redrive", key) == {"jobId": key, "status": "RUNNING", "redriven": 1}
    assert "1 done, 1 cancelled of 2" in cli.ok("jobs", "cancel", key)
    assert "ended already" in cli.refused("jobs", "cancel", key)


def test_the_body_of_a_post_may_be_submitted_and_its_key_makes_one_job(cli, target, cli_home):
    (cli_home / "body.json").write_text(f'{{"inputs": [{line("A")}]}}')
    arguments = ("jobs", "submit", target, "--file", "body.json", "--idempotency-key", "k")
    assert "1 inputs" in cli.ok(*arguments)
    assert "was made before" in cli.ok(*arguments)
    assert len(cli.json("jobs", "list")) == 1


def test_bad_inputs_are_refused_with_their_places(cli, target):
    refused = cli.refused("jobs", "submit", target, "--file", "-", stdin=f"{line('A')}\n{line('../x')}")
    assert "/inputs/1/indexKey" in refused
    assert "stdin, line 2 is not JSON" in cli.refused(
        "jobs", "submit", target, "--file", "-", stdin=f"{line('A')}\n{{"
    )
    assert "There is no job" in cli.refused("jobs", "show", "J20260110_000777")
    assert cli.ok("jobs", "list").strip() == "No jobs."


def test_inputs_are_driven_again_by_status_and_error(cli, target):
    key = submit(cli, target, "BAD", policy="continue")
    with load_app(target) as app, app.worker():
        eventually(lambda: not app.jobs.get(key).open, "the end of the job")
    assert "DLQ or CANCELLED" in cli.refused("jobs", "redrive", key, "--status", "done")
    assert "that fit" in cli.refused("jobs", "redrive", key, "--error", "disk is full")
    assert cli.json("jobs", "redrive", key, "--status", "dlq", "--error", "no levels")["redriven"] == 1


def test_why_says_what_a_job_waits_for_and_what_became_of_it(cli, target):
    key = submit(cli, target, "BAD", "A", "B", deadline="3600")
    told = cli.ok("why", key)
    assert f"Job {key} is SUBMITTED. 0 of its 3 inputs are settled" in told
    assert "It fails in" in told
    assert (
        "3 inputs are waiting for a worker. The first of them, input 1: No live worker takes the flow" in told
    )
    with load_app(target) as app, app.worker(concurrency=1):
        eventually(lambda: not app.jobs.get(key).open, "the end of the job")
        eventually(lambda: not app.jobs.get(key).running, "the end of its inputs")
        eventually(lambda: not app.ledger.run("jobs_leaking"), "what waits to be held back")
        left = app.jobs.get(key).pending + app.jobs.get(key).retry_wait
    found = cli.json("why", key)
    gates = [reason["gate"] for reason in found["reasons"]]
    assert (found["state"], gates) == ("FAILED", ["ended", *(["held back"] if left else []), "dead"])
    told = cli.ok("why", key)
    assert "1 input is dead, of 'Reject: no levels for [BAD]'" in told
    assert f"`rowlock jobs redrive {key}`" in told
    if left:
        assert f"because its job {key} has ended" in cli.ok(
            "why", f"export.index_levels/{key}/B/20240202/CLS"
        )
    cli.ok("jobs", "redrive", key)
    cli.ok("jobs", "cancel", key, "--yes")
    assert "are cancelled" in cli.ok("why", key)
    assert "There is no job" in cli.refused("why", "J20200101_000001")
