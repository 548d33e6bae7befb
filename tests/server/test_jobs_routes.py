"""Jobs over HTTP: the contract's two examples, and what goes beyond them."""

from __future__ import annotations

import json
import re
import threading
from uuid import uuid4

import pytest

from rowlock import Reject
from rowlock.queue.inspector import Inspector
from rowlock.queue.retry import Backoff
from rowlock.server import event_stream
from rowlock.server.api import create_api
from rowlock.server.routes import jobs as routes
from rowlock.server.tokens import Role
from tests.server.conftest import client_of
from tests.support.waiting import eventually

ABC = {"indexKey": "ABC", "effectiveDate": 20240202, "asofindicator": "CLS"}
DEF = {"indexKey": "DEF", "effectiveDate": 20230506, "asofindicator": "ADJCLS"}
NOBODY = "J20260110_000777"
CONTRACT = [
    *("jobId", "status", "total", "pending", "running", "done", "failed", "filesGenerated", "filesReused"),
    *("errorMessage", "dataContent"),
]

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


@pytest.fixture
def broken():
    """Index keys that cannot be exported now."""
    return set()


@pytest.fixture
def storage(request, tmp_path):
    """Where files are kept: a folder, or what the test asks for."""
    if getattr(request, "param", "file") == "file":
        return {"storage_url": f"file://{tmp_path}/files"}
    server = request.getfixturevalue("s3")
    server.make_bucket("bucket")
    url = f"s3://bucket/{uuid4().hex}"
    return {"storage_url": url} | {f"storage_{name}": value for name, value in server.options.items()}


@pytest.fixture
def app(make_app, storage, broken):
    app = make_app(**storage, finalizer_seconds=0.05, webhook_hosts=["127.0.0.1"])

    @app.exporter("index_levels", max_attempts=2, backoff=Backoff(base=0.01, cap=0.01))
    def index_levels(fields):
        if fields.indexKey in broken:
            raise Reject(f"no levels for {fields.indexKey}")
        yield {"index": fields.indexKey, "level": 100}

    return app


@pytest.fixture(autouse=True)
def _quick_streams(monkeypatch):
    monkeypatch.setattr(event_stream, "POLL_SECONDS", 0.01)


def named(*names):
    return [{**ABC, "indexKey": name} for name in names]


def submit(client, *inputs, **more):
    answer = client.post("/jobs", json={"inputs": list(inputs), **more})
    assert answer.status_code == 202, answer.text
    return answer.json()["jobId"]


def ended(client, key):
    def look():
        return client.get(f"/jobs/{key}").json()

    eventually(lambda: look()["completedAt"] is not None, "the end of the job")
    return look()


def pointers(answer, status=422):
    assert answer.status_code == status, answer.text
    return [(part["in"], part["pointer"]) for part in answer.json()["errors"]]


def pages(client, address, what):
    """Every page, and what is on it."""
    while address is not None:
        answer = client.get(address).json()
        yield answer[what]
        address = answer["next"]


# -- the contract ------------------------------------------------------------------------------------------------


def test_a_submission_is_answered_as_the_contract_has_it(client):
    answer = client.post("/jobs", json={"inputs": [ABC, DEF]})
    assert answer.status_code == 202
    assert list(answer.json()) == ["jobId", "status"]
    assert answer.json()["status"] == "SUBMITTED"
    assert re.fullmatch(r"J[0-9]{8}_[0-9]{6}", answer.json()["jobId"])
    assert answer.headers["location"] == f"/jobs/{answer.json()['jobId']}"
    assert int(answer.headers["retry-after"]) > 0
    open_job = client.get(answer.headers["location"])
    assert open_job.headers["retry-after"] == answer.headers["retry-after"]
    assert (open_job.json()["status"], open_job.json()["dataContent"]) == ("SUBMITTED", None)


@pytest.mark.parametrize("storage", ["file", "s3"], indirect=True)
def test_a_completed_job_is_answered_as_the_contract_has_it(client, app):
    with app.worker():
        earlier = submit(client, DEF)
        ended(client, earlier)
        key = submit(client, ABC, DEF)
        job = ended(client, key)
    assert list(job)[: len(CONTRACT)] == CONTRACT
    assert {name: job[name] for name in CONTRACT[:-1]} == {
        "jobId": key, "status": "COMPLETED", "total": 2, "pending": 0, "running": 0, "done": 2, "failed": 0,
        "filesGenerated": 1, "filesReused": 1, "errorMessage": None,
    }  # fmt: skip
    root = app.store.url

    def path(job, name):
        return f"{root}/exports/{job[1:5]}/{job[5:7]}/{job[7:9]}/{job}/{name}.csv"

    assert json.dumps(job["dataContent"]) == json.dumps(
        [
            {**ABC, "s3Path": path(key, "ABC_20240202_CLS")},
            {**DEF, "s3Path": path(earlier, "DEF_20230506_ADJCLS")},
        ]
    )
    assert "retry-after" not in client.get(f"/jobs/{key}").headers


@on_sqlite
def test_a_large_job_names_its_files_in_pages(client, app, monkeypatch):
    monkeypatch.setattr(routes, "_MOST_CONTENT", 2)
    with app.worker():
        key = submit(client, *named("A", "B", "C"))
        job = ended(client, key)
    assert (job["done"], job["dataContent"], job["inputs"]) == (3, None, f"/jobs/{key}/inputs")
    everything = client.get(f"/jobs/{key}?content=all").json()
    assert [one["indexKey"] for one in everything["dataContent"]] == ["A", "B", "C"]


# -- submitting --------------------------------------------------------------------------------------------------


def test_the_same_idempotency_key_and_body_is_the_same_job_and_the_same_answer(client, app):
    def send(*inputs):
        return client.post("/jobs", json={"inputs": list(inputs)}, headers={"Idempotency-Key": "k-1"})

    first = send(ABC)
    with app.worker():
        ended(client, first.json()["jobId"])
    again = send(ABC)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["location"] == first.headers["location"]
    other = send(DEF)
    assert other.status_code == 422
    assert other.json()["type"] == "urn:rowlock:problem:idempotency-conflict"
    assert first.json()["jobId"] in other.json()["detail"]
    assert len(client.get("/jobs").json()["jobs"]) == 1


def test_validate_only_says_what_would_be_made_and_writes_nothing(client):
    order = {"inputs": [ABC, DEF], "priority": 7, "policy": "continue", "deadline": 60}
    answer = client.post("/jobs?validate_only=true", json=order)
    assert (answer.status_code, answer.json()) == (
        200,
        {
            "valid": True, "exporter": "index_levels", "total": 2, "policy": "continue", "priority": 7,
            "deadline": 60.0,
        },
    )  # fmt: skip
    bad = client.post("/jobs?validate_only=true", json={"inputs": [ABC, ABC]})
    assert pointers(bad) == [("body", "/inputs/1")]
    assert client.get("/jobs").json() == {"jobs": [], "next": None}


@on_sqlite
@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ({"inputs": []}, ["/inputs"]),
        ({}, ["/inputs"]),
        ({"inputs": [ABC, 7]}, ["/inputs/1"]),
        (
            {
                "inputs": [
                    ABC,
                    {**DEF, "effectiveDate": 20240230},
                    {**DEF, "indexKey": "../x"},
                    {**DEF, "more": 1},
                ]
            },
            ["/inputs/1/effectiveDate", "/inputs/2/indexKey", "/inputs/3/more"],
        ),
        ({"inputs": [ABC, DEF, ABC]}, ["/inputs/2"]),
        ({"inputs": [ABC], "exporter": "nothing"}, ["/exporter"]),
        ({"inputs": [ABC], "policy": "maybe"}, ["/policy"]),
        ({"inputs": [ABC], "priority": 101}, ["/priority"]),
        ({"inputs": [ABC], "deadline": 0}, ["/deadline"]),
        ({"inputs": [ABC], "deadline": 1e300}, ["/deadline"]),
        ({"inputs": [ABC], "deadline": True}, ["/deadline"]),
        ({"inputs": [ABC], "deadline": "60"}, ["/deadline"]),
        ({"inputs": [ABC], "webhookUrl": "http://10.0.0.1/"}, ["/webhookUrl"]),
        ({"inputs": [ABC], "webhookUrl": "http://["}, ["/webhookUrl"]),
        ({"inputs": [ABC], "webhookUrl": "http://127.0.0.1/\0"}, ["/webhookUrl"]),
        ({"inputs": [ABC], "prioritty": 1}, ["/prioritty"]),
    ],
)
def test_what_is_wrong_with_an_order_is_pointed_to(client, order, expected):
    assert pointers(client.post("/jobs", json=order)) == [("body", pointer) for pointer in expected]
    assert client.get("/jobs").json()["jobs"] == []


@on_sqlite
def test_a_job_knows_whose_token_made_it(client, bearer):
    answer = client.post("/jobs", json={"inputs": [ABC]}, headers=bearer[Role.SUBMIT])
    job = client.get(answer.headers["location"], headers=bearer[Role.READ]).json()
    assert job["requestedBy"] == "submit"
    cancelled = client.post(f"{answer.headers['location']}:cancel", headers=bearer[Role.OPERATE]).json()
    assert cancelled["errorMessage"] == "cancelled by operate"


# -- looking -----------------------------------------------------------------------------------------------------


def test_a_job_that_has_not_changed_is_not_sent_again(client, app):
    key = submit(client, ABC)
    first = client.get(f"/jobs/{key}")
    etag = first.headers["etag"]
    for known in (etag, f'"x", W/{etag}', "*"):
        again = client.get(f"/jobs/{key}", headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    with app.worker():
        ended(client, key)
    changed = client.get(f"/jobs/{key}", headers={"If-None-Match": etag})
    assert (changed.status_code, changed.json()["status"]) == (200, "COMPLETED")
    assert changed.headers["etag"] != etag


def test_jobs_come_in_pages_newest_first(client):
    made = [submit(client, ABC) for _ in range(5)]
    client.post(f"/jobs/{made[0]}:cancel")
    found = [[job["jobId"] for job in page] for page in pages(client, "/jobs?limit=2", "jobs")]
    assert found == [made[:2:-1], made[2:0:-1], made[:1]]
    chosen = "/jobs?limit=3&status=SUBMITTED&exporter=index_levels"
    assert [len(page) for page in pages(client, chosen, "jobs")] == [3, 1]
    assert client.get("/jobs?status=CANCELLED&limit=1").json()["next"] is None
    assert client.get("/jobs?exporter=other").json()["jobs"] == []
    assert pointers(client.get("/jobs?status=maybe&limit=0&cursor=x")) == [
        ("query", "/status"),
        ("query", "/limit"),
        ("query", "/cursor"),
    ]


def test_inputs_come_in_pages_in_their_order_with_what_became_of_them(client, app, broken):
    broken.add("BAD")
    with app.worker():
        key = submit(client, *named("A", "BAD", "C"), policy="continue")
        assert ended(client, key)["failed"] == 1
    found = [one for page in pages(client, f"/jobs/{key}/inputs?limit=2", "inputs") for one in page]
    assert [one["fields"]["indexKey"] for one in found] == ["A", "BAD", "C"]
    good, bad, _ = found
    assert (good["status"], good["attempts"], good["rows"], good["reused"]) == ("SUCCEEDED", 1, 1, False)
    assert len(good["sha256"]) == 64
    assert good["s3Path"].endswith("A_20240202_CLS.csv")
    assert good["settledAt"] >= good["claimedAt"] >= good["createdAt"]
    assert (bad["status"], bad["s3Path"], bad["download"]) == ("DLQ", None, None)
    assert "no levels for BAD" in bad["error"]
    dead = client.get(f"/jobs/{key}/inputs?status=DLQ").json()
    assert ([one["inputId"] for one in dead["inputs"]], dead["next"]) == ([bad["inputId"]], None)


@on_sqlite
@pytest.mark.parametrize("key", [NOBODY, "nonsense", "J20260110_00%00", "%ED%A0%80"])
def test_what_there_is_not(client, key):
    for method, address in [
        ("GET", f"/jobs/{key}"),
        ("GET", f"/jobs/{key}/inputs"),
        ("GET", f"/jobs/{key}/inputs/1/download"),
        ("GET", f"/jobs/{key}/events"),
        ("POST", f"/jobs/{key}:cancel"),
        ("POST", f"/jobs/{key}:redrive"),
    ]:
        answer = client.request(method, address)
        assert (answer.status_code, answer.json()["type"]) == (404, "urn:rowlock:problem:not-found"), address
        assert "no job" in answer.json()["detail"]


@on_sqlite
def test_an_action_is_not_the_name_of_a_job(client):
    answer = client.get(f"/jobs/{submit(client, ABC)}:cancel")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


# -- files -------------------------------------------------------------------------------------------------------


@on_sqlite
def test_a_file_in_a_folder_is_sent(client, app):
    key, waiting = submit(client, ABC), submit(client, *named("X"))
    client.post(f"/jobs/{waiting}:cancel")
    with app.worker():
        ended(client, key)
    [one] = client.get(f"/jobs/{key}/inputs").json()["inputs"]
    answer = client.get(one["download"], headers={"Accept": "text/csv"})
    assert (answer.status_code, answer.text.split()) == (200, ["index,level", "ABC,100"])
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="ABC_20240202_CLS.csv"'
    assert int(answer.headers["content-length"]) == one["bytes"]

    assert client.get(f"/jobs/{waiting}/inputs/{one['inputId']}/download").status_code == 404, "another job's"
    [other] = client.get(f"/jobs/{waiting}/inputs").json()["inputs"]
    refused = client.get(f"/jobs/{waiting}/inputs/{other['inputId']}/download")
    assert (refused.status_code, "it is CANCELLED" in refused.json()["detail"]) == (409, True)
    app.store.delete(one["s3Path"])
    assert client.get(one["download"]).status_code == 404


@on_sqlite
@pytest.mark.parametrize("storage", ["s3"], indirect=True)
def test_a_file_in_a_bucket_is_where_a_signed_address_leads(client, app):
    key = submit(client, ABC)
    with app.worker():
        ended(client, key)
    [one] = client.get(f"/jobs/{key}/inputs").json()["inputs"]
    answer = client.get(one["download"], follow_redirects=False)
    assert (answer.status_code, answer.headers["cache-control"]) == (307, "no-store")
    assert re.search("/bucket/.*/exports/.*ABC_20240202_CLS.csv.*Signature=", answer.headers["location"])


def test_a_deadline_ends_a_job_while_no_worker_lives_and_the_first_one_tells_of_it(client, app):
    key = submit(client, ABC, deadline=0.1)
    job = ended(client, key)
    assert (job["status"], job["errorMessage"], job["pending"]) == ("FAILED", "its deadline has passed", 1)
    eventually(lambda: end_records(app) == ["pending"], "the order to tell")
    with app.worker():
        eventually(lambda: end_records(app) == ["completed"], "the news")


def end_records(app):
    return [one["status"] for one in Inspector(app.ledger).records(flow="rowlock.job_end")]


# -- cancel and redrive --------------------------------------------------------------------------------------------


def test_a_job_is_cancelled_once(client):
    key = submit(client, ABC, DEF)
    job = client.post(f"/jobs/{key}:cancel").json()
    assert (job["status"], job["cancelled"], job["pending"], job["dataContent"]) == ("CANCELLED", 2, 0, [])
    again = client.post(f"/jobs/{key}:cancel")
    assert (again.status_code, again.json()["type"]) == (409, "urn:rowlock:problem:refused")


def test_dead_inputs_run_again_all_or_those_named(client, app, broken):
    broken.update(("A", "B", "C"))
    with app.worker():
        key = submit(client, *named("A", "B", "C"), policy="continue")
        assert (ended(client, key)["status"], client.get(f"/jobs/{key}").json()["failed"]) == ("FAILED", 3)
    ids = [one["inputId"] for one in client.get(f"/jobs/{key}/inputs").json()["inputs"]]
    assert client.post(f"/jobs/{key}:redrive", json={"inputIds": [ids[0], 999_999]}).status_code == 409
    assert pointers(client.post(f"/jobs/{key}:redrive", json={"inputIds": []})) == [("body", "/inputIds")]
    for text in ("\x00", "", "x" * 501):
        bad = client.post(f"/jobs/{key}:redrive", json={"errorContains": text})
        assert pointers(bad) == [("body", "/errorContains")]
    assert client.post(f"/jobs/{key}:redrive", json={"errorContains": "no such error"}).status_code == 409
    named_one = client.post(f"/jobs/{key}:redrive", json={"inputIds": [ids[0], ids[0]]})
    assert named_one.json() == {"jobId": key, "status": "RUNNING", "redriven": 1}
    assert client.post(f"/jobs/{key}:redrive").json()["redriven"] == 2
    broken.clear()
    with app.worker():
        assert (ended(client, key)["status"], client.get(f"/jobs/{key}").json()["done"]) == ("COMPLETED", 3)
    assert client.post(f"/jobs/{key}:redrive").status_code == 409


# -- events ------------------------------------------------------------------------------------------------------


def parsed(text):
    """(id, event, data) of each event, and the comments."""
    found = []
    for block in text.split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        if "event" in fields:
            found.append((fields.get("id"), fields["event"], json.loads(fields["data"])))
        else:
            found.append((None, "comment", fields[""]))
    return found


def test_events_are_told_as_they_happen_until_the_job_has_ended(client, app):
    key = submit(client, ABC)
    worker = threading.Thread(target=lambda: work(app, client, key))
    worker.start()
    answer = client.get(f"/jobs/{key}/events")
    worker.join()
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = parsed(answer.text)
    own = [(id_, kind) for id_, kind, _ in events if id_]
    assert [kind for _, kind in own] == ["submitted", "completed"]
    last = [data for _, kind, data in events if kind == "progress"][-1]
    assert (last["jobId"], last["status"], last["done"]) == (key, "COMPLETED", 1)

    resumed = parsed(client.get(f"/jobs/{key}/events", headers={"Last-Event-ID": own[0][0]}).text)
    assert [kind for id_, kind, _ in resumed if id_] == ["completed"]
    seen = client.get(f"/jobs/{key}/events", headers={"Last-Event-ID": own[1][0]})
    assert (seen.status_code, seen.content) == (204, b"")


def work(app, client, key):
    with app.worker():
        eventually(lambda: not app.jobs.get(key).open, "the end of the job")


@on_sqlite
def test_a_stream_shows_that_it_lives_and_has_an_end(client, monkeypatch):
    monkeypatch.setattr(event_stream, "HEARTBEAT_SECONDS", 0.0)
    monkeypatch.setattr(event_stream, "LONGEST_SECONDS", 0.2)
    key = submit(client, ABC)
    events = parsed(client.get(f"/jobs/{key}/events").text)
    assert [kind for _, kind, _ in events[:3]] == ["submitted", "progress", "comment"]
    assert [kind for _, kind, _ in events].count("progress") == 1, "only when something changes"


@on_sqlite
def test_streams_end_when_the_server_leaves_and_are_not_without_number(api, monkeypatch):
    with client_of(api) as client:
        key = submit(client, ABC)
        monkeypatch.setattr(event_stream, "MOST_STREAMS", 0)
        refused = client.get(f"/jobs/{key}/events")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "10")
        monkeypatch.setattr(event_stream, "MOST_STREAMS", 1)
        api.state.presence.drain()
        for _ in range(2):  # the first has given its place back
            assert client.get(f"/jobs/{key}/events").status_code == 200


# -- the document --------------------------------------------------------------------------------------------------


@on_sqlite
def test_the_document_says_what_an_input_is_and_which_exporters_there_are(client, app):
    order = client.get("/openapi.json").json()["components"]["schemas"]["JobOrder"]
    inputs = order["properties"]["inputs"]
    assert inputs["items"]["required"] == ["indexKey", "effectiveDate", "asofindicator"]
    assert (inputs["minItems"], inputs["maxItems"], inputs["uniqueItems"]) == (1, 100_000, True)
    assert order["properties"]["exporter"]["enum"] == ["index_levels", None]
    assert order["required"] == ["inputs"]
    assert client.post("/jobs", json=order["examples"][0]).status_code == 202


@on_sqlite
def test_the_document_has_a_kind_of_order_for_each_of_several_exporters(app):
    app.exporter("regions", input={"type": "object", "properties": {"name": {"type": "string"}}})(list)
    with client_of(create_api(app)) as client:
        order = client.get("/openapi.json").json()["components"]["schemas"]["JobOrder"]
        levels, regions = order["oneOf"]
        assert [kind["properties"]["exporter"]["const"] for kind in (levels, regions)] == [
            "index_levels",
            "regions",
        ]
        assert regions["properties"]["inputs"]["items"]["properties"] == {"name": {"type": "string"}}
        assert regions["required"] == ["inputs", "exporter"]
        assert client.post("/jobs", json=levels["examples"][0]).status_code == 202
        assert pointers(client.post("/jobs", json={"inputs": [ABC]})) == [("body", "/exporter")]


@on_sqlite
def test_the_document_says_where_webhooks_may_go(make_app, app, client):
    def address(document):
        return document.json()["components"]["schemas"]["JobOrder"]["properties"]["webhookUrl"]["anyOf"]

    allowed, nothing = address(client.get("/openapi.json"))
    assert re.search(allowed["pattern"], "http://127.0.0.1:8080/hook")
    assert nothing == {"type": "null"}
    with client_of(create_api(make_app())) as closed:
        assert address(closed.get("/openapi.json")) == [{"type": "null"}]


@on_sqlite
def test_every_method_of_an_address_is_named(client):
    answer = client.put("/jobs")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST")
