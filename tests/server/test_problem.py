"""Every error is a problem document: our own tree, what the framework raises, and what nobody foresaw."""

from __future__ import annotations

import logging

import pytest

from rowlock import errors
from rowlock.server.meanings import MEANINGS, Problem, error_of
from rowlock.server.problem import answer_to, pointer

ORDER = {"inputs": [{"index_key": "SPX", "effective": "2026-01-10"}]}
STATUSES = {
    "ConfigurationError": 500,
    "UnknownDialect": 500,
    "UnknownFlow": 404,
    "InvalidInput": 422,
    "InvalidPayload": 422,
    "InvalidKey": 422,
    "InvalidPriority": 422,
    "InvalidJob": 422,
    "IdempotencyConflict": 422,
    "LedgerError": 500,
    "LedgerUnavailable": 503,
    "LedgerFull": 507,
    "SchemaMismatch": 503,
    "OutcomeUnknown": 503,
    "StorageError": 500,
    "StorageUnavailable": 503,
    "StorageFull": 507,
    "StorageRefused": 502,
    "LimitReached": 429,
    "LeaseLost": 409,
    "LockHeld": 409,
    "FlowClosed": 409,
    "NotFound": 404,
    "Refused": 409,
    "RowlockError": 500,
}
# Only a client raises these.
OF_CLIENTS = {"ApiError", "ApiUnavailable", "JobNotEnded"}
# Their messages are about our own machines.
HIDDEN = {
    *("LedgerUnavailable", "LedgerFull", "SchemaMismatch", "OutcomeUnknown"),
    *("StorageUnavailable", "StorageFull", "StorageRefused"),
}


@pytest.fixture
def kind():
    return "sqlite"  # no database is asked anything here


def problem(answer, status):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert found["status"] == status
    assert found["title"]
    assert found["instance"] == f"urn:uuid:{answer.headers['x-request-id']}"
    return found


def test_every_error_of_ours_has_a_status(client):
    ours = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.RowlockError)
    }
    assert ours - OF_CLIENTS == set(STATUSES)
    for name, status in STATUSES.items():
        found = problem(client.get(f"/samples/errors/{name}"), status)
        hidden = status == 500 or name in HIDDEN
        assert ("hunter2" in found["detail"]) is not hidden, name


@pytest.mark.parametrize("meaning", MEANINGS, ids=lambda meaning: meaning.kind)
def test_a_client_reads_the_table_backwards(client, meaning):
    told = Problem.model_validate(
        problem(client.get(f"/samples/errors/{meaning.error.__name__}"), meaning.status)
    )
    read = error_of(told)
    assert type(read) is meaning.error
    assert str(read) == told.detail


def test_a_job_with_bad_parts_is_read_backwards_with_its_parts():
    wrong = errors.InvalidJob([errors.Problem("/inputs/3", "no"), errors.Problem("/inputs/4", "nor this")])
    read = error_of(answer_to(wrong).problem)
    assert isinstance(read, errors.InvalidJob)
    assert read.problems == wrong.problems


def test_a_problem_that_is_none_of_ours_is_no_error_of_ours():
    assert error_of(Problem(title="Not Found", status=404)) is None
    assert error_of(Problem(type="urn:rowlock:problem:new-in-2030", title="New", status=409)) is None


def test_a_ledger_that_is_away_says_when_to_come_back(client):
    assert client.get("/samples/errors/LedgerUnavailable").headers["retry-after"] == "2"


@pytest.mark.parametrize("name", ["RuntimeError", "lies", "LedgerError"])
def test_what_nobody_foresaw_tells_nothing_but_the_log_has_it_under_the_same_number(client, caplog, name):
    with caplog.at_level(logging.ERROR, "rowlock.server"):
        answer = client.get(f"/samples/errors/{name}")
    found = problem(answer, 500)
    assert set(found) == {"type", "title", "status", "detail", "instance"}
    assert "hunter2" not in answer.text
    [line] = caplog.records
    assert found["instance"].removeprefix("urn:uuid:") in line.getMessage()
    assert line.exc_info[1] is not None


def test_an_error_with_a_pointer_leads_to_the_bad_part(client):
    found = problem(client.get("/samples/errors/pointed"), 422)
    assert found["errors"] == [
        {"in": "body", "pointer": "/inputs/3/effectiveDate", "detail": "20261332 is no date."}
    ]


def test_a_refusal_may_name_several_parts_and_more(client):
    found = problem(client.get("/samples/errors/refusal"), 409)
    assert found["type"] == "urn:rowlock:problem:no"
    assert [part["pointer"] for part in found["errors"]] == ["/a", "/b"]
    assert found["seen"] == 2


def test_every_bad_part_of_a_body_has_its_pointer_and_no_value(client):
    body = {
        "inputs": [{"index_key": "SPX", "effective": "hunter2"}, {"effective": "2026-01-10"}],
        "tags": {"a/b~c": "hunter2"},
    }
    answer = client.post("/samples/orders?limit=11", json=body)
    found = problem(answer, 422)
    assert "hunter2" not in answer.text
    assert {(part["in"], part["pointer"]) for part in found["errors"]} == {
        ("query", "/limit"),
        ("body", "/inputs/0/effective"),
        ("body", "/inputs/1/index_key"),
        ("body", "/tags/a~1b~0c"),
    }
    assert all(part["detail"] for part in found["errors"])


def test_pointers_are_escaped():
    assert pointer(["a/b", "c~d", 3]) == "/a~1b/c~0d/3"
    assert pointer([]) == ""


def test_a_missing_body_is_one_bad_part(client):
    found = problem(client.post("/samples/orders"), 422)
    assert [(part["in"], part["pointer"]) for part in found["errors"]] == [("body", "")]


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[" * 100_000, b"nope"])
def test_a_body_that_is_not_json_is_400(client, body):
    answer = client.post("/samples/orders", content=body, headers={"content-type": "application/json"})
    assert problem(answer, 400)["detail"]


def test_lone_surrogates_and_nuls_are_bad_parts(client):
    answer = client.post(
        "/samples/orders",
        content=rb'{"inputs": [{"index_key": "\ud800", "effective": "2026-01-10"}]}',
        headers={"content-type": "application/json"},
    )
    assert problem(answer, 422)["errors"][0]["pointer"] == "/inputs/0/index_key"


def test_addresses_and_methods_that_there_are_not(client):
    assert "/openapi.json" in problem(client.get("/nothing"), 404)["detail"]
    problem(client.get("/flows/"), 404)
    answer = client.put("/flows")
    problem(answer, 405)
    assert answer.headers["allow"] == "GET"


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("application/json", 202),
        ("application/*", 202),
        ("text/html, */*;q=0.1", 202),
        ("", 202),
        ("text/html", 406),
        ("application/json;q=0", 406),
        ("application/json; q=0.0, text/html", 406),
    ],
)
def test_only_what_was_asked_for_is_answered(client, accept, status):
    assert client.post("/samples/orders", json=ORDER, headers={"accept": accept}).status_code == status


@pytest.mark.parametrize(
    ("kind_of_body", "status"),
    [
        ("application/json; charset=utf-8", 202),
        ("application/vnd.order+json", 202),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("", 415),
        ("nonsense", 415),
    ],
)
def test_only_json_bodies_are_taken(client, kind_of_body, status):
    body = b'{"inputs": [{"index_key": "SPX", "effective": "2026-01-10"}]}'
    answer = client.post("/samples/orders", content=body, headers={"content-type": kind_of_body})
    assert answer.status_code == status


def test_where_the_ledger_is_is_not_told(client, app):
    found = problem(client.get("/records/99/why"), 404)
    assert found["detail"] == "There is no record 99 in the ledger; it may have been pruned."
    assert app.ledger.url.database not in str(found)
