"""Routes: each says who may call it, and everything that holds for all of them is done here, before a body is read.

    router = APIRouter(route_class=GuardedRoute)

    @router.get("/flows")
    @needs(Role.READ)
    def flows(ledger: TheLedger) -> Flows: ...

A route that does not say who may call it cannot be built.
"""

from __future__ import annotations

from email.message import Message
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import Depends, Request
from fastapi.datastructures import DefaultPlaceholder
from fastapi.routing import APIRoute
from pydantic import Field

from rowlock.errors import ConfigurationError
from rowlock.ledger.ledger import Ledger
from rowlock.server.problem import MEDIA_TYPE, Refusal
from rowlock.server.views import BIGGEST

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from starlette.responses import Response

    from rowlock.server.tokens import Role

Endpoint = TypeVar("Endpoint", bound="Callable[..., Any]")

# What may be answered by every route; by one with parameters; by one with a body.
_ALWAYS = (401, 403, 406, 413, 421, 500, 503)
_WITH_PARAMETERS = (422,)
_WITH_PATH = (404, 422)
_WITH_BODY = (400, 408, 415, 422)


def needs(role: Role | None) -> Callable[[Endpoint], Endpoint]:
    """Declares the least role that may call an endpoint; None lets everybody in."""

    def declare(endpoint: Endpoint) -> Endpoint:
        endpoint.role = role  # type: ignore[attr-defined]
        return endpoint

    return declare


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For `responses=`: these are answered with a problem."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"content": content} for status in statuses}


class GuardedRoute(APIRoute):
    """A route with a role."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        if not hasattr(endpoint, "role"):
            raise ConfigurationError(
                f"The route {path} does not say who may call it: put @needs(Role.…) over {endpoint.__name__}."
            )
        self.role: Role | None = endpoint.role
        super().__init__(path, endpoint, **options)
        self.responses = {**problems(*self._statuses()), **self.responses}
        if self.role is not None:
            extra = {"security": [{"bearer": []}], "x-rowlock-role": self.role.value}
            self.openapi_extra = {**extra, **(self.openapi_extra or {})}

    def _statuses(self) -> list[int]:
        found = set(_ALWAYS) if self.role is not None else {406, 413, 500, 503}
        if self.dependant.query_params or self.dependant.header_params:
            found.update(_WITH_PARAMETERS)
        if self.dependant.path_params:
            found.update(_WITH_PATH)
        if self.body_field is not None:
            found.update(_WITH_BODY)
        return sorted(found)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def checked(request: Request) -> Response:
            if self.role is not None:
                _check_role(request, self.role)
            _check_accept(request, _media_types(self))
            if self.body_field is not None:
                _check_content_type(request)
            return await handle(request)

        return checked


def _check_role(request: Request, needed: Role) -> None:
    caller = request.scope["rowlock"].caller
    if caller is None or not caller.role.covers(needed):
        has = "nothing" if caller is None else caller.role.value
        raise Refusal(
            403,
            f"This needs the role {needed.value}, and the token has {has}.",
            kind="role-too-low",
            headers={
                "WWW-Authenticate": f'Bearer realm="rowlock", error="insufficient_scope", scope="{needed.value}"'
            },
        )


def _check_accept(request: Request, offered: list[str]) -> None:
    if "*/*" in offered:  # a file is what it is
        return
    wanted = [part.strip() for header in request.headers.getlist("accept") for part in header.split(",")]
    ranges = {"*/*", *offered, *(f"{one.partition('/')[0]}/*" for one in offered)}
    for part in filter(None, wanted):
        media, *parameters = (piece.strip().lower() for piece in part.split(";"))
        if media in ranges and not any(_is_zero(parameter) for parameter in parameters):
            return
    if any(wanted):
        raise Refusal(
            406, f"This address answers in {', '.join(offered)}; the Accept header takes none of that."
        )


def _is_zero(parameter: str) -> bool:
    """`q=0`, which means: not this one."""
    name, _, value = parameter.partition("=")
    return name.strip() == "q" and value.strip().rstrip("0") in ("", "0.", ".")


def _check_content_type(request: Request) -> None:
    if request.headers.get("content-length", "0") == "0" and "transfer-encoding" not in request.headers:
        return  # there is no body, and whether there must be one is the endpoint's to say
    message = Message()
    message["content-type"] = given = request.headers.get("content-type", "")
    kind = message.get_content_type() if given else ""
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise Refusal(
            415, f"Send the body as application/json, not as {given or 'nothing in particular'}.",
            headers={"Accept": "application/json"},
        )  # fmt: skip


def _media_types(route: APIRoute) -> list[str]:
    kind = route.response_class
    usual = str((kind.value if isinstance(kind, DefaultPlaceholder) else kind).media_type)
    return [usual, *route.responses.get(route.status_code or 200, {}).get("content", {})]


def _the_ledger(request: Request) -> Ledger:
    ledger: Ledger = request.app.state.rowlock.ledger
    return ledger


TheLedger = Annotated[Ledger, Depends(_the_ledger)]
RecordId = Annotated[int, Field(ge=1, le=BIGGEST, description="The record's number.", examples=[1])]
