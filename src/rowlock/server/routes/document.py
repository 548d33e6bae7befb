"""`/openapi.json`: what this server offers."""

from typing import Any

from fastapi import APIRouter, Request

from rowlock.server.route import GuardedRoute, needs
from rowlock.server.tokens import Role

router = APIRouter(route_class=GuardedRoute)


@router.get("/openapi.json", include_in_schema=False)
@needs(Role.READ)
async def openapi(request: Request) -> dict[str, Any]:
    document: dict[str, Any] = request.app.openapi()
    return document
