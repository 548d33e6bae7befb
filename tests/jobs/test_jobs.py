"""Jobs on the queue: counted by whoever settles their inputs, ended exactly once, driven again."""

from __future__ import annotations

import json
import threading
from collections import Counter

import pytest
from pydantic import BaseModel

from rowlock.errors import IdempotencyConflict, InvalidInput, InvalidJob, NotFound, Refused
from rowlock.jobs.exporter import Exporter
from rowlock.jobs.finalizer import END_FLOW, Finalizer
from rowlock.jobs.inputs import Entry
from rowlock.jobs.jobs import Jobs
from rowlock.ledger.rows import Failure
from tests.support.ledgers import claim, find, register, sql, take_over

FLOW = "export.levels"


class Levels:
    """An exporter, as far as jobs are concerned."""

    name = "levels"
    flow_name, max_attempts, max_deaths = FLOW, 3, 3

    def read_all(self, _inputs, _limit):
        return None

    def read(self, raw, limit):
        key = raw.get("indexKey")
        if not isinstance(key, str):
            raise InvalidInput("indexKey is a text", pointer="/indexKey")
        return Entry(key, f"{key}.csv", json.dumps(raw)[:limit])


@pytest.fixture
def settings(settings_for):
    return settings_for(lease_seconds=30, max_job_inputs=1000)


@pytest.fixture
def jobs(ledger):
    return Jobs(ledger, {"levels": Levels()})


@pytest.fixture
def worker(ledger):
    return register(ledger)


def submit(jobs, *names, **options):
    job, _ = jobs.submit([{"indexKey": name} for name in names], **options)
    return job


def complete(ledger, held, **result):
    import json

    with ledger.transaction() as transaction:
        assert ledger.complete(transaction, id=held.id, token=held.token, result=json.dumps(result))


def die(ledger, held, reason="no such index"):
    assert ledger.fail(1, [Failure(held.id, held.token, True, 0.0, reason, "failed", "E", "m", None, "fp")])


def stumble(ledger, held):
    assert ledger.fail(1, [Failure(held.id, held.token, False, 60.0, "?", "failed", "E", "m", None, "fp")])


def sum_holds(job) -> bool:
    parts = (job.pending, job.running, job.retry_wait, job.done, job.dead, job.cancelled)
    return job.total == sum(parts) and min(parts) >= 0


def events(jobs, job):
    return [event.kind for event in jobs.events(job.key)]


def test_a_job_from_its_submission_to_its_end(jobs, ledger, worker):
    job = submit(jobs, "A", "B", "C")
    assert job.key.startswith("J20")
    assert job.key.endswith(f"_{job.id:06d}")
    assert (job.status, job.total, job.pending, job.open) == ("SUBMITTED", 3, 3, True)
    first, second, third = claim(ledger, worker, flow=FLOW)
    job = jobs.get(job.key)
    assert (job.status, job.pending, job.running) == ("RUNNING", 0, 3)
    complete(ledger, first, path="s3://b/A.csv", rows=2, bytes=10, sha256="f")
    complete(ledger, second, path="s3://b/B.csv", reused=True)
    stumble(ledger, third)
    job = jobs.get(job.key)
    assert (job.status, job.done, job.reused, job.generated, job.retry_wait) == ("RUNNING", 2, 1, 1, 1)
    assert sum_holds(job)
    ledger.hurry([third.id])
    complete(ledger, claim(ledger, worker, flow=FLOW)[0], path="s3://b/C.csv")
    job = jobs.get(job.key)
    assert (job.status, job.done, job.open, job.ends) == ("COMPLETED", 3, False, 1)
    assert job.completed_at is not None
    assert events(jobs, job) == ["submitted", "completed"]
    inputs = jobs.inputs(job.key)
    assert [one.fields["indexKey"] for one in inputs] == ["A", "B", "C"]
    assert [(one.status, one.path, one.reused) for one in inputs][:2] == [
        ("SUCCEEDED", "s3://b/A.csv", False),
        ("SUCCEEDED", "s3://b/B.csv", True),
    ]
    assert (inputs[0].rows, inputs[0].bytes, inputs[0].sha256) == (2, 10, "f")


@pytest.mark.parametrize("note", ["x", None])  # read at once, and one by one
def test_the_key_of_one_input_may_be_the_file_name_of_another(ledger, note):
    class Market(BaseModel):
        name: str
        note: str | None

    exporter = Exporter(
        name="m", produce=lambda _: [], model=Market, key_fields=("name",), path="{name}.{ext}"
    )
    names = ["a", "a.csv", "a.csv.csv"]
    found = Jobs(ledger, {"m": exporter}).validate([{"name": name, "note": note} for name in names])
    assert list(found) == names
    with pytest.raises(InvalidJob, match="/inputs/1: makes the same file as /inputs/0"):
        Jobs(ledger, {"m": exporter}).validate([{"name": "a", "note": note}] * 2)


def test_the_last_two_inputs_settle_at_the_same_moment_and_the_job_ends_once(jobs, ledger, worker):
    for _ in range(15):
        job = submit(jobs, *(str(number) for number in range(8)))
        held = claim(ledger, worker, limit=8, flow=FLOW)
        barrier = threading.Barrier(8)

        def settle(one, barrier=barrier):
            barrier.wait()
            complete(ledger, one)

        threads = [threading.Thread(target=settle, args=(one,)) for one in held]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        job = jobs.get(job.key)
        assert (job.status, job.done, job.ends) == ("COMPLETED", 8, 1)
        assert Counter(events(jobs, job))["completed"] == 1


def test_a_dead_input_fails_the_job_at_once_and_the_rest_is_held_back(jobs, ledger, worker):
    job = submit(jobs, "A", "B", "C", "D")
    first, second = claim(ledger, worker, limit=2, flow=FLOW)
    die(ledger, first)
    job = jobs.get(job.key)
    assert (job.status, job.dead, job.ends) == ("FAILED", 1, 1)
    assert "no such index" in job.error_message
    finalizer(jobs, ledger).hold_back()
    assert claim(ledger, worker, flow=FLOW) == []
    complete(ledger, second)
    job = jobs.get(job.key)
    assert (job.status, job.done, job.pending, job.ends) == ("FAILED", 1, 2, 1)
    assert sum_holds(job)


def test_with_the_policy_to_continue_the_job_fails_only_at_its_end(jobs, ledger, worker):
    job = submit(jobs, "A", "B", policy="continue")
    first, second = claim(ledger, worker, flow=FLOW)
    die(ledger, first)
    assert jobs.get(job.key).status == "RUNNING"
    complete(ledger, second)
    assert jobs.get(job.key).status == "FAILED"


def test_a_redrive_opens_the_job_and_lets_go_what_was_held_back(jobs, ledger, worker):
    job = submit(jobs, "A", "B", "C")
    (first,) = claim(ledger, worker, limit=1, flow=FLOW)
    die(ledger, first)
    finalizer(jobs, ledger).hold_back()
    assert jobs.redrive(job.key) == 1
    job = jobs.get(job.key)
    assert (job.status, job.dead, job.pending, job.error_message) == ("RUNNING", 0, 3, None)
    for held in claim(ledger, worker, flow=FLOW):
        complete(ledger, held)
    job = jobs.get(job.key)
    assert (job.status, job.done, job.ends) == ("COMPLETED", 3, 2)
    assert events(jobs, job) == ["submitted", "failed", "redriven", "completed"]
    with pytest.raises(Refused, match="nothing to drive again"):
        jobs.redrive(job.key)


def test_one_input_may_be_driven_again_by_name(jobs, ledger, worker):
    job = submit(jobs, "A", "B", policy="continue")
    for held in claim(ledger, worker, flow=FLOW):
        die(ledger, held)
    one, other = (row.id for row in jobs.inputs(job.key, status="DLQ"))
    with pytest.raises(Refused, match="no dead or cancelled"):
        jobs.redrive(job.key, input_ids=[one, 999])
    assert jobs.redrive(job.key, input_ids=[one]) == 1
    assert jobs.get(job.key).dead == 1
    complete(ledger, claim(ledger, worker, flow=FLOW)[0])
    assert (jobs.get(job.key).status, jobs.get(job.key).dead) == ("FAILED", 1)
    assert find(ledger, other).status == "dead"


def test_inputs_are_driven_again_by_their_status_and_their_error(jobs, ledger, worker):
    job = submit(jobs, "A", "B", "C", policy="continue")
    first, second = claim(ledger, worker, limit=2, flow=FLOW)
    die(ledger, first, "no such table: levels")
    die(ledger, second, "100% of the disk is full")
    jobs.cancel(job.key)
    with pytest.raises(Refused, match="that fit"):
        jobs.redrive(job.key, error_contains="%table")
    with pytest.raises(Refused, match="that fit"):
        jobs.redrive(job.key, input_ids=[first.id], status="CANCELLED")
    assert jobs.redrive(job.key, error_contains="such table") == 1
    assert [one.id for one in jobs.inputs(job.key, status="PENDING")] == [first.id]
    assert jobs.redrive(job.key, status="CANCELLED") == 1
    assert [one.id for one in jobs.inputs(job.key, status="DLQ")] == [second.id]


def test_a_dead_letter_that_is_driven_again_past_the_job_opens_it_too(jobs, ledger, worker):
    job = submit(jobs, "A")
    die(ledger, claim(ledger, worker, flow=FLOW)[0])
    ledger.redrive([jobs.inputs(job.key)[0].id])
    assert jobs.get(job.key).open
    complete(ledger, claim(ledger, worker, flow=FLOW)[0])
    assert jobs.get(job.key).status == "COMPLETED"


def test_cancelling_revokes_what_runs(jobs, ledger, worker):
    job = submit(jobs, "A", "B")
    (held,) = claim(ledger, worker, limit=1, flow=FLOW)
    job = jobs.cancel(job.key, "not needed")
    assert (job.status, job.cancelled, job.pending, job.running, job.ends) == ("CANCELLED", 2, 0, 0, 1)
    with ledger.transaction() as transaction:
        assert not ledger.complete(transaction, id=held.id, token=held.token, result=None)
    with pytest.raises(Refused, match="ended already"):
        jobs.cancel(job.key)


def test_an_input_of_a_dead_worker_is_claimable_again_and_counts_where_it_is(
    jobs, ledger, ledger_clock, worker
):
    job = submit(jobs, "A")
    claim(ledger, worker, flow=FLOW)
    ledger_clock.advance(31)
    take_over(ledger)
    job = jobs.get(job.key)
    assert (job.running, job.pending) == (0, 1)
    complete(ledger, claim(ledger, register(ledger), flow=FLOW)[0])
    assert jobs.get(job.key).status == "COMPLETED"


def test_an_input_that_kills_its_workers_fails_the_job(jobs, ledger, ledger_clock):
    job = submit(jobs, "A")
    for _ in range(3):
        worker = register(ledger)
        for held in claim(ledger, worker, flow=FLOW):
            ledger.start([(held.id, held.token)])
        ledger_clock.advance(31)
        take_over(ledger)
    assert (jobs.get(job.key).status, jobs.get(job.key).dead) == ("FAILED", 1)


# -- submitting ------------------------------------------------------------------------------------------------


def test_the_same_idempotency_key_and_body_is_the_same_job(jobs):
    job, made = jobs.submit([{"indexKey": "A"}], idempotency_key="k")
    again, made_again = jobs.submit([{"indexKey": "A"}], idempotency_key="k")
    assert (again.key, made, made_again) == (job.key, True, False)
    with pytest.raises(IdempotencyConflict, match=job.key):
        jobs.submit([{"indexKey": "B"}], idempotency_key="k")


def test_many_submissions_with_one_idempotency_key_make_one_job(jobs):
    made = []

    def submit_it():
        made.append(jobs.submit([{"indexKey": "A"}], idempotency_key="k"))

    threads = [threading.Thread(target=submit_it) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({job.key for job, _ in made}) == 1
    assert [new for _, new in made].count(True) == 1


@pytest.mark.parametrize(
    ("inputs", "pointers"),
    [
        ([], ["/inputs"]),
        ([{"indexKey": "A"}, {"indexKey": 1}, {}], ["/inputs/1/indexKey", "/inputs/2/indexKey"]),
        ([{"indexKey": "A"}, {"indexKey": "A"}], ["/inputs/1"]),
        ([{"indexKey": str(number)} for number in range(1001)], ["/inputs"]),
    ],
)
def test_a_bad_job_points_to_each_bad_part_and_writes_nothing(jobs, ledger, inputs, pointers):
    with pytest.raises(InvalidJob) as refused:
        jobs.submit(inputs)
    assert [problem.pointer for problem in refused.value.problems] == pointers
    assert jobs.list() == []


def test_an_unknown_exporter_policy_or_job(jobs):
    with pytest.raises(InvalidJob, match="there are: levels"):
        jobs.submit([{"indexKey": "A"}], exporter="x")
    with pytest.raises(InvalidJob, match="fail_fast"):
        jobs.submit([{"indexKey": "A"}], policy="maybe")
    with pytest.raises(NotFound):
        jobs.get("J20260101_000001")


def test_lists_are_paged_by_position(jobs):
    made = [submit(jobs, "A").key for _ in range(5)]
    first = jobs.list(limit=2)
    assert [job.key for job in first] == made[:2:-1]
    assert [job.key for job in jobs.list(before=first[-1].id)] == made[2::-1]
    assert jobs.list(status="COMPLETED") == []
    job = submit(jobs, *(str(number) for number in range(30)))
    assert [one.fields["indexKey"] for one in jobs.all_inputs(job.key)] == [
        str(number) for number in range(30)
    ]


# -- the finalizer -----------------------------------------------------------------------------------------------


def finalizer(jobs, ledger, enqueue=None):
    return Finalizer(ledger, jobs, None, enqueue)


def test_the_end_of_a_job_goes_into_the_outbox_once(jobs, ledger, worker):
    told = []
    job = submit(jobs, "A")
    complete(ledger, claim(ledger, worker, flow=FLOW)[0])
    one = finalizer(jobs, ledger, lambda *args, **named: told.append((args, named["key"])))
    one.announce()
    one.announce()
    assert told == [((END_FLOW, {"job": job.key, "end": 1}), f"{job.key}#1")]


def test_a_deadline_that_has_passed_fails_the_job(jobs, ledger, ledger_clock, worker):
    job = submit(jobs, "A", "B", deadline=60)
    ledger_clock.advance(59)
    finalizer(jobs, ledger).end_late()
    assert jobs.get(job.key).open
    ledger_clock.advance(2)
    finalizer(jobs, ledger).end_late()
    job = jobs.get(job.key)
    assert (job.status, job.error_message) == ("FAILED", "its deadline has passed")
    assert claim(ledger, register(ledger), flow=FLOW) == []


def test_counts_that_were_changed_by_hand_are_repaired_and_the_job_ends(jobs, ledger, worker, caplog):
    job = submit(jobs, "A", "B")
    first, second = claim(ledger, worker, flow=FLOW)
    complete(ledger, first)
    sql(ledger, "UPDATE {s}export_job SET done = 0")
    complete(ledger, second)
    assert jobs.get(job.key).open
    assert finalizer(jobs, ledger).repair() == 1
    assert (jobs.get(job.key).status, jobs.get(job.key).done) == ("COMPLETED", 2)
    assert "repaired" in caplog.text
    assert finalizer(jobs, ledger).repair() == 0


def test_a_job_whose_inputs_have_been_forgotten_is_not_repaired(jobs, ledger, worker):
    job = submit(jobs, "A", "B")
    complete(ledger, claim(ledger, worker, limit=1, flow=FLOW)[0])
    assert ledger.prune(0, dead_too=False, limit=10) == 1
    assert finalizer(jobs, ledger).repair() == 0
    assert jobs.get(job.key).done == 1


def test_a_job_is_forgotten_with_its_last_input(jobs, ledger, ledger_clock, worker):
    done, failed = submit(jobs, "A"), submit(jobs, "B")
    first, second = claim(ledger, worker, flow=FLOW)
    complete(ledger, first)
    die(ledger, second)
    ledger_clock.advance(100)
    ledger.prune(50, dead_too=False, limit=10)
    ledger.run("prune_jobs", seconds=50)
    assert jobs.get(done.key), "its end has not been told yet"
    finalizer(jobs, ledger, lambda *_, **__: None).announce()
    ledger.run("prune_jobs", seconds=50)
    with pytest.raises(NotFound):
        jobs.get(done.key)
    assert jobs.get(failed.key).dead == 1, "a dead letter stays, and its job with it"
    assert sql(ledger, "SELECT DISTINCT job_id FROM {s}export_job_event") == [(failed.id,)]


def test_a_list_filters_by_the_status_that_it_shows(jobs, ledger, worker):
    job = submit(jobs, "A")
    assert [one.key for one in jobs.list(status="SUBMITTED")] == [job.key]
    claim(ledger, worker, flow=FLOW)
    assert [one.key for one in jobs.list(status="RUNNING")] == [job.key]
    assert jobs.list(status="SUBMITTED") == []


def test_inputs_are_counted_once_a_minute_and_not_at_every_turn(jobs, ledger, monkeypatch):
    one, counted = finalizer(jobs, ledger), []
    monkeypatch.setattr(one, "repair", lambda: counted.append(1))
    one.turn()
    one.turn()
    assert counted == [1]
