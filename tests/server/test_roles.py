"""Who may call what: every route and every role, taken from the routes that there are."""

from __future__ import annotations

import pytest
from fastapi import APIRouter

from rowlock import ConfigurationError
from rowlock.server.api import create_api
from rowlock.server.route import GuardedRoute, needs
from rowlock.server.tokens import Role

# Every route that there is: one that comes without a line here has not been thought about.
MATRIX = {
    "GET /openapi.json": "read",
    "GET /health/live": None,
    "GET /health/ready": None,
    "GET /health/instances": "read",
    "GET /metrics": "read",
    "GET /flows": "read",
    "GET /instances": "read",
    "GET /records/{id}/why": "read",
    "POST /jobs": "submit",
    "GET /jobs": "read",
    "GET /jobs/{jobId}": "read",
    "GET /jobs/{jobId}/inputs": "read",
    "GET /jobs/{jobId}/inputs/{inputId}/download": "read",
    "GET /jobs/{jobId}/events": "read",
    "POST /jobs/{jobId}:cancel": "operate",
    "POST /jobs/{jobId}:redrive": "operate",
}


def test_every_route_is_in_the_matrix(app):
    found = {f"{method} {path}": role for method, path, role in calls(create_api(app))}
    assert found == MATRIX


def calls(api):
    """(method, path, role) of every operation, those of the document included."""
    found = {
        (method, route.path_format, route.role)
        for route in api.state.routes
        for method in sorted(route.methods)
    }
    documented = {(method.upper(), path) for path, item in api.openapi()["paths"].items() for method in item}
    assert documented <= {(method, path) for method, path, _ in found}
    return sorted(found, key=lambda call: call[:2])


def status(client, method, path, headers):
    named = path.format(id=1, number=1, name="refusal", jobId="J20260110_000777", inputId=1)
    return client.request(method, named, headers=headers).status_code


def test_every_route_and_every_role(client, api, bearer):
    seen = {}
    for method, path, needed in calls(api):
        for role, headers in {None: {}, "bad": {"Authorization": "Bearer rl_nobody"}, **bearer}.items():
            code = status(client, method, path, headers)
            if needed is None:
                expected = "in"
            elif role is None or role == "bad":
                expected = 401
            else:
                expected = "in" if list(Role).index(role) >= list(Role).index(needed) else 403
            seen[method, path, role] = ("in" if code not in (401, 403) else code, expected)
    assert {call: both for call, both in seen.items() if both[0] != both[1]} == {}
    assert len(seen) >= (len(MATRIX) + 4) * 6


def test_only_the_sign_of_life_is_for_everybody(api):
    public = [(method, path) for method, path, role in calls(api) if role is None]
    assert public == [("GET", "/health/live"), ("GET", "/health/ready")]


def test_what_there_is_not_is_not_told_to_strangers(client, bearer):
    assert client.get("/nothing").status_code == 401
    assert client.get("/nothing", headers=bearer[Role.READ]).status_code == 404
    assert client.put("/flows").status_code == 401


def test_the_document_says_which_role_an_operation_takes(client, bearer):
    document = client.get("/openapi.json", headers=bearer[Role.READ]).json()
    assert document["openapi"].startswith("3.1")
    operation = document["paths"]["/samples/orders"]["post"]
    assert (operation["x-rowlock-role"], operation["security"]) == ("submit", [{"bearer": []}])
    assert set(operation["responses"]) == {
        "202", "400", "401", "403", "406", "408", "413", "415", "421", "422", "500", "503"
    }  # fmt: skip
    for code, answer in operation["responses"].items():
        assert list(answer["content"]) == [
            "application/json" if code == "202" else "application/problem+json"
        ]
    assert "security" not in document["paths"]["/health/live"]["get"]


def test_a_role_that_is_too_low_is_refused_before_the_body_is_looked_at(client, bearer):
    answer = client.post("/samples/orders", content=b"{", headers=bearer[Role.READ])
    assert answer.status_code == 403
    assert 'error="insufficient_scope", scope="submit"' in answer.headers["www-authenticate"]
    assert "needs the role submit" in answer.json()["detail"]


def test_a_route_that_names_no_role_cannot_be_built():
    router = APIRouter(route_class=GuardedRoute)
    with pytest.raises(ConfigurationError, match="does not say who may call it"):
        router.get("/forgotten")(lambda: None)


def test_nor_can_it_be_added_behind_our_back(app, api):
    plain = APIRouter()
    plain.get("/forgotten")(needs(Role.READ)(lambda: None))
    with pytest.raises(ConfigurationError, match="is not guarded"):
        create_api(app, routers=[plain])
    with pytest.raises(ConfigurationError, match="does not say who may call it"):
        api.get("/forgotten")(lambda: None)
