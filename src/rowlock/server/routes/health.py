"""`/health`: whether this server lives, whether it can serve, and who else is there."""

from typing import Annotated, Literal

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from rowlock.queue.inspector import Inspector
from rowlock.server.problem import Refusal
from rowlock.server.route import GuardedRoute, TheLedger, needs
from rowlock.server.tokens import Role
from rowlock.server.views import Ready, Registry

router = APIRouter(route_class=GuardedRoute, tags=["health"])


class Live(BaseModel):
    status: Literal["live"]


@router.get("/health/live")
@needs(None)
async def live(request: Request) -> Live:
    """The process works: its event loop answers, and its heartbeat goes on. The ledger is not asked."""
    if not request.app.state.presence.alive:
        raise Refusal(
            503, "The heartbeat has stopped; this process should be started again.", kind="not-live"
        )
    return Live(status="live")


@router.get("/health/ready")
@needs(None)
async def ready(request: Request) -> Ready:
    """The ledger answers, its tables fit this code, and the server is not about to leave. Probes have no token."""
    if request.app.state.presence.draining:
        raise Refusal(
            503, "The server drains: it finishes what it has and takes nothing new.", kind="not-ready"
        )
    await request.app.state.readiness.check()
    return Ready(status="ready")


@router.get("/health/instances")
@needs(Role.READ)
async def instances(
    request: Request,
    ledger: TheLedger,
    limit: Annotated[int, Query(ge=1, le=10_000, description="So many at most.")] = 1000,
) -> Registry:
    """This server, every live instance and those of the last hour, with the age of their heartbeats and what they hold."""
    state = request.app.state
    access = "open" if await state.access.is_open() else "token"
    found = await run_sync(lambda: Inspector(ledger).instances(limit=limit))
    me = {"instance": state.presence.instance_id, "schema_version": ledger.schema.latest, "access": access}
    return Registry.model_validate({"server": me, "instances": found})
