"""Both clients against a real server and a real worker: everything that a caller can ask for, and what he is told."""

from __future__ import annotations

import hashlib
import json
from urllib.parse import urlsplit

import pytest

from rowlock import (
    ApiError,
    ConfigurationError,
    IdempotencyConflict,
    InvalidInput,
    InvalidJob,
    JobNotEnded,
    NotFound,
    Refused,
    StorageError,
)
from rowlock.client import AsyncClient, Client
from tests.client.careless_proxy import Say

NOBODY = "J20260110_000777"


def path_of(address):
    return urlsplit(address).path


@pytest.fixture
def done(client, named):
    """A job of three inputs that has completed."""
    return client.wait(client.submit(named("A", "B", "C")).job_id, timeout=60)


def test_a_job_from_its_submission_to_its_files(client, named):
    inputs = named("A", "B", "C")
    accepted = client.submit(inputs, exporter="index_levels", policy="continue", priority=7, deadline=600)
    assert accepted.status == "SUBMITTED"
    job = client.wait(accepted.job_id, timeout=60)
    assert job.error_message is None
    assert (job.status, job.total, job.done, job.files_generated) == ("COMPLETED", 3, 3, 3)
    assert (job.policy, job.priority, job.exporter, job.requested_by) == (
        "continue",
        7,
        "index_levels",
        "tests",
    )
    assert job.deadline_at is not None
    assert [one["indexKey"] for one in job.data_content] == [one["indexKey"] for one in inputs]
    assert client.job(accepted.job_id) == job
    assert [one.fields for one in client.inputs(accepted.job_id)] == inputs


def test_the_server_says_whether_it_is_ready(client):
    assert client.ready().status == "ready"


def test_what_is_only_validated_is_not_made(client, named):
    newest = next(client.jobs(), None)
    plan = client.validate(named("A", "B"), policy="continue", priority=3)
    assert (plan.valid, plan.total, plan.policy, plan.priority) == (True, 2, "continue", 3)
    assert next(client.jobs(), None) == newest
    with pytest.raises(InvalidJob):
        client.validate([])


def test_every_page_is_followed(client, named):
    inputs = named(*"ABCDE")
    keys = [client.submit([one]).job_id for one in inputs]
    found = [job.job_id for job in client.jobs(exporter="index_levels", page_size=2)]
    assert [key for key in found if key in keys] == keys[::-1]
    whole = client.submit(inputs).job_id
    assert [one.fields for one in client.inputs(whole, page_size=2)] == inputs
    assert len(list(client.inputs(whole, page_size=5))) == 5


def test_lists_are_filtered_on_every_page(client, named):
    job = client.submit(named("BAD1", "A", "BAD2", "B", "BAD3"), policy="continue").job_id
    assert client.wait(job, timeout=60).status == "FAILED"
    dead = list(client.inputs(job, status="DLQ", page_size=1))
    assert [one.fields["indexKey"].partition("-")[0] for one in dead] == ["BAD1", "BAD2", "BAD3"]
    assert dead[0].error.startswith("Reject: no levels for BAD1")
    assert all(one.status == "FAILED" for one in client.jobs(status="FAILED", page_size=1))


def test_dead_inputs_are_driven_again(client, service, named):
    inputs = named("BAD1", "BAD2", "A")
    job = client.submit(inputs, policy="continue").job_id
    client.wait(job, timeout=60)
    first, second = client.inputs(job, status="DLQ")
    for one in inputs[:2]:
        service.mend(one["indexKey"])
    assert client.redrive(job, [first.input_id]).redriven == 1
    assert client.wait(job, timeout=60).failed == 1
    redriven = client.redrive(job, status="DLQ", error_contains="BAD2")
    assert (redriven.job_id, redriven.redriven) == (job, 1)
    assert client.wait(job, timeout=60).status == "COMPLETED"
    with pytest.raises(Refused, match="no dead or cancelled"):
        client.redrive(job, input_ids=[second.input_id])


def test_a_cancelled_job_stays_cancelled_and_one_that_has_completed_is_refused(client, service, named, done):
    [slow] = named("SLOW")
    job = client.submit([slow]).job_id
    assert client.cancel(job).status == "CANCELLED"
    assert client.cancel(job).status == "CANCELLED"
    service.mend(slow["indexKey"])
    with pytest.raises(Refused, match="has ended already: it is COMPLETED"):
        client.cancel(done.job_id)


def test_events_are_told_until_the_job_has_ended(client, service, named):
    inputs = named("SLOW", "A")
    job = client.submit(inputs).job_id
    told = []
    for event in client.events(job):
        told.append(event)
        if event.kind == "progress" and event.job.done == 1:
            service.mend(inputs[0]["indexKey"])
    assert [event.kind for event in told if event.kind != "progress"] == ["submitted", "completed"]
    assert [event.id for event in told if event.id] == sorted({event.id for event in told if event.id})
    assert told[0].at is not None
    assert told[-1].job == client.job(job).model_copy(update={"data_content": None})


def test_events_may_be_left_early(client, service, named):
    [slow] = named("SLOW")
    job = client.submit([slow]).job_id
    events = client.events(job)
    assert next(events).kind == "submitted"
    events.close()
    service.mend(slow["indexKey"])
    assert client.wait(job, timeout=60).status == "COMPLETED"


def test_a_wait_that_is_over_says_how_far_the_job_is(client, service, named):
    [slow, other] = named("SLOW", "A")
    job = client.submit([slow, other]).job_id
    with pytest.raises(JobNotEnded, match=f"Job {job} is .* after 0.05 s, with . of 2 inputs done"):
        client.wait(job, timeout=0.05)
    service.mend(slow["indexKey"])
    assert client.wait(job, timeout=60).status == "COMPLETED"


# -- files ---------------------------------------------------------------------------------------------------


def test_a_file_is_downloaded_whole_under_a_name_or_into_a_folder(client, done, tmp_path):
    one = next(iter(client.inputs(done.job_id)))
    named = client.download(done.job_id, one.input_id, to=tmp_path / "levels.csv")
    assert named == tmp_path / "levels.csv"
    assert hashlib.sha256(named.read_bytes()).hexdigest() == one.sha256
    inside = client.download(done.job_id, one.input_id, str(tmp_path))
    assert inside == tmp_path / one.s3_path.rpartition("/")[2]
    assert inside.read_bytes() == named.read_bytes()
    assert sorted(tmp_path.iterdir()) == sorted([named, inside])


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data.replace(b"1", b"2", 1)])
def test_a_file_that_is_not_what_the_ledger_says_is_not_kept(client, done, tmp_path, damage):
    one = next(iter(client.inputs(done.job_id)))
    with open(path_of(one.s3_path), "r+b") as file:  # noqa: PTH123
        data = damage(file.read())
        file.seek(0)
        file.write(data)
        file.truncate()
    target = tmp_path / "levels.csv"
    target.write_text("from before")
    with pytest.raises(StorageError, match="and the ledger says"):
        client.download(done.job_id, one.input_id, to=target)
    assert target.read_text() == "from before"
    assert list(tmp_path.iterdir()) == [target]


def test_an_input_without_a_file_has_no_download(client, named, tmp_path):
    job = client.submit(named("BAD")).job_id
    client.wait(job, timeout=60)
    [one] = client.inputs(job)
    with pytest.raises(Refused, match="has no file: it is DLQ"):
        client.download(job, one.input_id, to=tmp_path / "file")
    with pytest.raises(NotFound, match="has no input"):
        client.download(job, one.input_id + 10**6, to=tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


# -- errors --------------------------------------------------------------------------------------------------


def test_what_is_not_there_is_not_found(client):
    for call in (client.job, client.wait, client.cancel, client.redrive):
        with pytest.raises(NotFound, match=f"There is no job '{NOBODY}'") as raised:
            call(NOBODY)
    for call in (client.inputs, client.events):
        with pytest.raises(NotFound):
            list(call(NOBODY))
    cause = raised.value.__cause__
    assert isinstance(cause, ApiError)
    assert (cause.status, cause.type) == (404, "urn:rowlock:problem:not-found")
    assert cause.instance.startswith("urn:uuid:")
    assert cause.instance in str(cause)
    for name in ("", "../health/live?", "a/b", "ä"):
        with pytest.raises(NotFound):
            client.job(name)


def test_a_job_with_wrong_parts_says_which(client, named):
    [good] = named("A")
    with pytest.raises(InvalidJob) as raised:
        client.submit([good, {**good, "effectiveDate": 20240230}, {**good, "indexKey": "../up"}])
    assert [problem.pointer for problem in raised.value.problems] == [
        "/inputs/1/effectiveDate",
        "/inputs/2/indexKey",
    ]
    assert raised.value.__cause__.errors[0]["in"] == "body"
    with pytest.raises(InvalidJob, match="/priority"):
        client.submit([good], priority=101)
    with pytest.raises(InvalidInput, match="nothing was sent"):
        client.submit([{**good, "effectiveDate": float("nan")}])


def test_a_key_that_made_another_job_is_a_conflict(client, named):
    first, second = named("A", "B")
    key = first["indexKey"]
    job = client.submit([first], idempotency_key=key)
    assert client.submit([first], idempotency_key=key) == job
    with pytest.raises(IdempotencyConflict, match=job.job_id):
        client.submit([second], idempotency_key=key)
    assert client.submit([first]) != client.submit([first])


def test_a_role_that_may_not_is_an_api_error(connect, service, named):
    reader = connect(service.url, service.reader)
    with pytest.raises(ApiError) as raised:
        reader.submit(named("A"))
    assert raised.value.status == 403
    assert all(job.status == "CANCELLED" for job in reader.jobs(status="CANCELLED"))


def test_a_wrong_address_is_told_as_that(connect, service, proxy):
    client = connect(f"{service.url}/else", service.token)
    with pytest.raises(ApiError, match="nothing at this address"):
        list(client.jobs())
    client = connect(proxy.url)
    proxy.faults += [Say(200, {}, b"<html>welcome</html>"), Say(301, {"Location": "https://other.example"})]
    with pytest.raises(ApiError, match="not how a Rowlock server answers"):
        client.ready()
    with pytest.raises(ApiError, match=r"look at https://other\.example"):
        client.ready()


# -- the token -----------------------------------------------------------------------------------------------


def test_a_token_is_never_shown(connect, service, monkeypatch):
    secret = "rl_wrong-and-secret"  # noqa: S105
    client = connect(service.url, secret)
    with pytest.raises(ApiError, match="unknown, revoked or expired") as raised:
        client.job("J20260110_000777")
    assert raised.value.status == 401
    assert secret not in f"{client!r} {raised.value} {raised.value!r} {vars(raised.value)}"
    monkeypatch.setenv("ROWLOCK_TOKEN", service.token)
    assert list(connect(service.url).jobs(exporter="nobodys")) == []


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_what_cannot_be_an_address_or_a_token_is_refused_without_showing_it(kind):
    for address in ("localhost:8080", "ftp://host", "http://", "/jobs"):
        with pytest.raises(ConfigurationError, match="address"):
            kind(address)
    for address in ("http://me:hunter2@host", "https://host?token=hunter2"):
        with pytest.raises(ConfigurationError) as raised:
            kind(address)
        assert "hunter2" not in str(raised.value)
    with pytest.raises(ConfigurationError) as raised:
        kind("http://host", "hunter2\r\nX-Evil: 1")
    assert "hunter2" not in str(raised.value)
    with pytest.raises(ConfigurationError, match="timeout"):
        kind("http://host", timeout=0)


def test_names_of_a_newer_server_are_ignored(careless, proxy, done, client):
    newer = client.job(done.job_id).model_dump(mode="json", by_alias=True) | {"mood": "good"}
    proxy.faults.append(Say(200, {"Content-Type": "application/json"}, json.dumps(newer).encode()))
    assert careless.job(done.job_id) == done
