"""The HTTP interface of one app."""

from __future__ import annotations

from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from anyio.to_thread import run_sync
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from rowlock.databases.url import masked, parse_url
from rowlock.errors import ConfigurationError
from rowlock.server.access import Access
from rowlock.server.event_stream import EventStreams
from rowlock.server.guard import Guard
from rowlock.server.journal import Journal
from rowlock.server.limit import Limit
from rowlock.server.meanings import Problem
from rowlock.server.metrics import Metrics
from rowlock.server.order_document import describe_order
from rowlock.server.presence import Presence
from rowlock.server.readiness import Readiness
from rowlock.server.route import GuardedRoute
from rowlock.server.routes import ROUTERS
from rowlock.server.tokens import Role

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from fastapi import APIRouter
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from rowlock.app import Rowlock

_ABOUT = (
    "Many copies of one program, one database, every piece of work done once. Every error is a problem document "
    "(RFC 9457); `X-Request-Id` and its `instance` are the number of the request in the server's log."
)


def create_api(app: Rowlock, *, routers: Sequence[APIRouter] = ()) -> FastAPI:
    """The HTTP interface of an app, for any ASGI server; `rowlock serve` runs it.

    Routers of your own are guarded and described like ours if they are built with
    `APIRouter(route_class=GuardedRoute)`; others are refused.
    """
    found = [*ROUTERS, *routers]
    routes = [_guarded(route) for router in found for route in router.routes]
    presence, access = Presence(app), Access(lambda: app.ledger)
    metrics = Metrics(lambda: app.ledger)
    name = masked(parse_url(app.settings.ledger_url)[1])

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await run_sync(presence.begin)
        yield
        await run_sync(presence.end)

    api = FastAPI(
        title="Rowlock",
        version=version("rowlock"),
        description=_ABOUT,
        openapi_url=None,  # ours is guarded like everything else
        redirect_slashes=False,
        lifespan=lifespan,
        exception_handlers={HTTPException: _pass_on, RequestValidationError: _pass_on},
        # From the outside in: whoever is refused has sent no body that anybody read.
        middleware=[
            Middleware(Journal, metrics=metrics, ledger_name=name),
            Middleware(Guard, access=access, public={route.path for route in routes if route.role is None}),
            Middleware(Limit, max_bytes=app.settings.max_request_bytes),
        ],
    )
    api.state.rowlock, api.state.presence = app, presence
    api.state.streams = EventStreams(app, presence)
    api.state.access, api.state.metrics, api.state.routes = access, metrics, routes
    api.state.readiness = Readiness(lambda: app.ledger)
    api.router.route_class = GuardedRoute
    for router in found:
        api.include_router(router)
    api.openapi = _described(api.openapi, app)  # type: ignore[method-assign]
    return api


def _guarded(route: BaseRoute) -> GuardedRoute:
    if not isinstance(route, GuardedRoute):
        raise ConfigurationError(
            f"{route!r} is not guarded: build its router with APIRouter(route_class=GuardedRoute)."
        )
    return route


def _described(generate: Callable[[], dict[str, Any]], app: Rowlock) -> Callable[[], dict[str, Any]]:
    """FastAPI's document, with what our routes refer to."""

    def openapi() -> dict[str, Any]:
        document = generate()
        components = document.setdefault("components", {})
        problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        parts = problem.pop("$defs")
        components.setdefault("schemas", {}).update(parts, Problem=problem)
        components["schemas"]["JobOrder"] = describe_order(components["schemas"]["JobOrder"], app)
        components["securitySchemes"] = {
            "bearer": {
                "type": "http",
                "scheme": "bearer",
                "description": "A token of `rowlock tokens create`; each operation's `x-rowlock-role` is the least role "
                f"it takes, of {', '.join(Role)}.",
            }
        }
        return document

    return openapi


async def _pass_on(request: Request, error: Exception) -> Response:
    """The journal answers every error; FastAPI's own handlers would answer these two before it."""
    if isinstance(error, HTTPException) and error.status_code == 405:
        # The framework names the methods of the first route at this address, and there may be several.
        here = (route for route in request.app.state.routes if route.path_regex.match(request.scope["path"]))
        error.headers = {"Allow": ", ".join(sorted({method for route in here for method in route.methods}))}
    raise error
