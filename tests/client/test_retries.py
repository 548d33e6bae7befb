"""What is made again when an answer is lost, and what is not: behind a proxy that loses them."""

from __future__ import annotations

import socket
import threading
from itertools import pairwise

import pytest

from rowlock import ApiError, ApiUnavailable, LedgerUnavailable, StorageError, StorageRefused
from rowlock.client.retries import Retries
from rowlock.client.steps import Answer, Lost, Pause, Request, Send
from tests.client.careless_proxy import Cut, Say, Swallow, careless_proxy
from tests.support.waiting import eventually

UNAVAILABLE = Say(503, {"Retry-After": "0"}, b"<html>try later</html>")


def posts(proxy):
    return [one for one in proxy.seen if one.method == "POST"]


def mine(service, inputs):
    """The jobs that were made of these inputs."""
    [key] = {one["indexKey"] for one in inputs}
    return [
        job.key
        for job in service.app.jobs.list(limit=1000)
        if key in {one.fields["indexKey"] for one in service.app.jobs.inputs(job.key)}
    ]


@pytest.mark.parametrize("fault", [Swallow(), Cut(5), UNAVAILABLE, Say(502), Say(504), Say(429)], ids=repr)
def test_a_submission_whose_answer_is_lost_is_one_job(careless, service, proxy, named, fault):
    proxy.faults += [fault, fault]
    inputs = named("A")
    accepted = careless.submit(inputs)
    assert mine(service, inputs) == [accepted.job_id]
    keys = [one.headers["idempotency-key"] for one in posts(proxy)]
    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_a_key_of_ones_own_is_the_one_that_is_sent(careless, proxy, named):
    key = named("key")[0]["indexKey"]
    careless.submit(named("A"), idempotency_key=key)
    assert posts(proxy)[0].headers["idempotency-key"] == key


def test_an_error_that_is_final_is_not_tried_again(careless, proxy):
    with pytest.raises(LookupError):
        careless.job("J20260110_000777")
    with pytest.raises(ValueError, match="at least one input"):
        careless.submit([])
    assert len(proxy.seen) == 2


def test_everything_has_an_end(connect, service, proxy, named):
    client = connect(proxy.url, service.token, attempts=3)
    proxy.faults += [Swallow()] * 3
    with pytest.raises(ApiUnavailable, match="was tried 3 times"):
        client.job("J20260110_000777")
    proxy.faults += [UNAVAILABLE] * 3
    with pytest.raises(ApiError) as raised:
        client.submit(named("A"))
    assert raised.value.status == 503
    assert len(proxy.seen) == 6


def test_a_server_that_is_not_there_is_unavailable(connect):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    client = connect(f"http://127.0.0.1:{port}", attempts=2)
    with pytest.raises(ApiUnavailable, match="was tried 2 times"):
        client.job("J20260110_000777")
    with pytest.raises(ApiUnavailable, match="was tried once"):
        client.ready()


def test_what_the_server_says_about_itself_is_raised_by_its_name(careless, proxy):
    problem = (
        b'{"type": "urn:rowlock:problem:ledger-unavailable", "title": "x", "status": 503, "detail": "gone"}'
    )
    proxy.faults += [Say(503, {"Retry-After": "3600"}, problem)]
    with pytest.raises(LedgerUnavailable, match="gone"):
        careless.job("J20260110_000777")
    assert len(proxy.seen) == 1  # nobody waits an hour inside a call


def test_a_redrive_whose_answer_is_lost_is_not_made_twice(careless, client, service, proxy, named):
    inputs = named("BAD")
    job = client.submit(inputs).job_id
    client.wait(job, timeout=60)
    proxy.faults.append(Swallow())
    with pytest.raises(ApiUnavailable, match="It may have been done"):
        careless.redrive(job)
    proxy.faults.append(Say(502))
    with pytest.raises(ApiError):
        careless.redrive(job)
    assert len(posts(proxy)) == 2
    client.wait(job, timeout=60)
    service.mend(inputs[0]["indexKey"])
    proxy.faults.append(UNAVAILABLE)  # this one says that nothing was done
    assert careless.redrive(job).redriven == 1


def test_a_cancellation_whose_answer_is_lost_is_told_as_it_is(careless, client, service, proxy, named):
    [slow] = named("SLOW")
    job = client.submit([slow]).job_id
    proxy.faults.append(Swallow())
    assert careless.cancel(job).status == "CANCELLED"
    service.mend(slow["indexKey"])


def test_a_stream_that_breaks_goes_on_where_it_was(careless, client, service, proxy, named):
    [slow] = named("SLOW")
    job = client.submit([slow]).job_id
    proxy.faults += [Cut(300), Cut(40), Swallow(), UNAVAILABLE]
    told = []
    for event in careless.events(job):
        told.append(event)
        service.mend(slow["indexKey"])
    assert [event.kind for event in told if event.kind != "progress"] == ["submitted", "completed"]
    jobs = [event.job for event in told if event.job]
    assert all(before != after for before, after in pairwise(jobs))
    asked = [one.headers.get("last-event-id") for one in proxy.seen]
    assert asked[0] is None
    assert asked[1] == str(told[0].id)
    assert asked[-1] == str(max(event.id for event in told if event.id))


def test_counts_that_are_told_again_are_not_given_again(careless, client, service, proxy, named):
    [slow] = named("SLOW")
    job = client.submit([slow]).job_id
    eventually(lambda: client.job(job).started_at, "its start")
    proxy.faults += [Cut(), Cut(), Cut()]
    events = careless.events(job)
    assert [next(events).kind for _ in range(2)] == ["submitted", "progress"]
    following = threading.Thread(target=lambda: seen.extend(events))
    seen = []
    following.start()
    eventually(lambda: len(proxy.seen) == 4, "the fourth connection")
    service.mend(slow["indexKey"])
    following.join()
    assert [event.kind for event in seen] in (
        ["completed", "progress"],
        ["progress", "completed", "progress"],
    )
    assert all(event.job is None or event.job.done for event in seen)


def test_a_stream_that_never_tells_anything_has_an_end(connect, service, proxy, named):
    client = connect(proxy.url, service.token, attempts=3)
    job = client.submit(named("A")).job_id
    proxy.faults += [Say(200, {"Content-Type": "text/event-stream"})] * 3
    with pytest.raises(ApiUnavailable, match="before anything was told"):
        list(client.events(job))


def test_a_page_of_another_host_is_not_followed(careless, proxy):
    proxy.faults.append(Say(200, {}, b'{"jobs": [], "next": "@elsewhere.example/jobs"}'))
    with pytest.raises(ApiError, match="somewhere else"):
        list(careless.jobs())


# -- files ---------------------------------------------------------------------------------------------------


@pytest.fixture
def stored(client, named):
    """A job's one input, with its file."""
    job = client.wait(client.submit(named("A")).job_id, timeout=60)
    [one] = client.inputs(job.job_id)
    return job.job_id, one, f"/jobs/{job.job_id}/inputs/{one.input_id}/download"


def test_a_download_that_breaks_is_made_again_and_nothing_is_left_behind(careless, proxy, stored, tmp_path):
    job, one, _ = stored
    proxy.faults += [Cut(10**6), Cut(100), Swallow()]
    assert careless.download(job, one.input_id, to=tmp_path).stat().st_size == one.bytes
    assert len(list(tmp_path.iterdir())) == 1


def test_the_host_of_a_signed_address_is_not_shown_the_token(careless, service, proxy, stored, tmp_path):
    job, one, path = stored
    content = service.app.jobs.input(job, one.input_id).path
    with open(content.removeprefix("file://"), "rb") as file, careless_proxy(service.url) as bucket:  # noqa: PTH123
        bucket.faults += [Say(503), Say(200, {}, file.read())]
        signed = Say(307, {"Location": f"{bucket.url}/signed?signature=1"})
        proxy.faults += [Cut(10**6), signed, signed]
        assert careless.download(job, one.input_id, to=tmp_path).stat().st_size == one.bytes
    assert [(seen.path, "authorization" in seen.headers) for seen in proxy.seen[1:]] == [(path, True)] * 2
    assert [seen.path for seen in bucket.seen] == ["/signed?signature=1"] * 2
    assert not any("authorization" in seen.headers for seen in bucket.seen)
    assert service.token not in str(bucket.seen)


@pytest.mark.parametrize(("status", "error"), [(403, StorageRefused), (404, StorageError)])
def test_a_file_that_cannot_be_had_says_so(careless, proxy, stored, tmp_path, status, error):  # noqa: PLR0917
    job, one, _ = stored
    with careless_proxy("") as bucket:
        bucket.faults.append(Say(status))
        proxy.faults += [Cut(10**6), Say(307, {"Location": f"{bucket.url}/signed"})]
        with pytest.raises(error, match=str(status)):
            careless.download(job, one.input_id, to=tmp_path)
    assert list(tmp_path.iterdir()) == []


# -- the rules, without a network ------------------------------------------------------------------------------


def asked(answers, *, repeatable=True, attempts=5):
    """The pauses between requests that are answered so."""
    call = Retries(attempts).ask(Request("GET", "http://host", repeatable=repeatable))
    step, pauses = next(call), []
    for answer in answers:
        assert isinstance(step, Send)
        step = call.throw(answer) if isinstance(answer, Lost) else call.send(answer)
        assert isinstance(step, Pause)
        pauses.append(step.seconds)
        step = call.send(None)
    return pauses


def test_the_pause_is_what_the_server_asks_for():
    assert asked([Answer(503, {"retry-after": "7"}), Answer(429, {"retry-after": "11"})]) == [7, 11]
    [pause] = asked([Answer(503, {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"})])
    assert 0 <= pause <= 0.2
    assert asked([Answer(503, {"retry-after": "soon"})])[0] <= 0.2


def test_pauses_grow_and_are_not_the_same_for_everybody():
    rounds = [asked([Lost("gone", sent=True)] * 7, attempts=9) for _ in range(50)]
    for number in range(7):
        assert all(0 <= one[number] <= min(5.0, 0.2 * 2**number) for one in rounds)
        assert len({one[number] for one in rounds}) > 40


def test_what_was_never_sent_may_always_be_sent():
    assert asked([Lost("refused", sent=False)], repeatable=False)
