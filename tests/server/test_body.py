"""Large bodies: read in the thread of their endpoint, with the errors that every body gets."""

from __future__ import annotations

import asyncio
import json

import pytest
from fastapi import APIRouter
from pydantic import BaseModel, field_validator

from rowlock.server.api import create_api
from rowlock.server.body import RawBody, read_body, takes
from rowlock.server.job_views import JobOrder
from rowlock.server.route import GuardedRoute, needs
from rowlock.server.tokens import Role
from tests.server import samples
from tests.server.conftest import client_of


class Pile(BaseModel):
    inputs: list[int]

    @field_validator("inputs")
    @classmethod
    def note(cls, inputs):
        seen.append(_is_on_a_loop())
        return inputs


seen: list[bool] = []
router = APIRouter(route_class=GuardedRoute, prefix="/piles")


@router.post("/own")
@needs(Role.SUBMIT)
@takes(Pile)
def own(body: RawBody) -> int:
    return len(read_body(Pile, body).inputs)


@router.post("/usual")
@needs(Role.SUBMIT)
def usual(pile: Pile) -> int:
    return len(pile.inputs)


def _is_on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@pytest.fixture
def client(app):
    with client_of(create_api(app, routers=[router, samples.router])) as client:
        yield client


def test_a_large_body_does_not_hold_up_the_event_loop(client):
    seen.clear()
    assert client.post("/piles/own", json={"inputs": [1, 2]}).json() == 2
    assert client.post("/piles/usual", json={"inputs": [1, 2]}).json() == 2
    assert seen == [False, True], "and the usual way would"


def test_the_order_of_a_job_is_such_a_body(app):
    [route] = [one for one in create_api(app).state.routes if (one.path, one.methods) == ("/jobs", {"POST"})]
    assert (route.takes, route.body_field) == (JobOrder, None)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"null", b"[]", b"7", b"\xff", b'{"inputs": ["x", 1, {}]}', b'{"inputs": 1}', b'"\\ud800"',
        b"[" * 100_000, b'{"inputs": [' + b"9" * 5000 + b"]}", b"NaN",
    ],
)  # fmt: skip
def test_its_errors_are_those_of_every_body(client, content):
    own, usual = (
        client.post(f"/piles/{name}", content=content, headers={"Content-Type": "application/json"})
        for name in ("own", "usual")
    )
    assert own.status_code == usual.status_code
    assert own.status_code in (400, 422)
    assert _told(own) == _told(usual)


@pytest.mark.parametrize("media", ["text/plain", "application/xml", ""])
def test_its_kind_is_looked_at_as_well(client, media):
    answer = client.post("/piles/own", content=b"{}", headers={"Content-Type": media})
    assert answer.status_code == 415


def test_it_is_in_the_document(client):
    document = client.get("/openapi.json").json()
    own, usual = (document["paths"][f"/piles/{name}"]["post"] for name in ("own", "usual"))
    assert json.dumps(own["requestBody"], sort_keys=True) == json.dumps(usual["requestBody"], sort_keys=True)
    assert set(own["responses"]) == set(usual["responses"])
    assert document["components"]["schemas"]["Pile"]["required"] == ["inputs"]


def _told(answer):
    problem = answer.json()
    parts = [part["pointer"] for part in problem.get("errors", [])]
    return problem["type"], problem["title"], parts
