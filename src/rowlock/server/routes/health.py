"""`/health`: whether this server lives, whether it can serve, and who else is there."""

from typing import Annotated, Literal

import anyio
from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from rowlock.errors import LedgerError, SchemaMismatch
from rowlock.ledger.ledger import Ledger
from rowlock.queue.inspector import Inspector
from rowlock.server.problem import Refusal
from rowlock.server.route import GuardedRoute, TheLedger, needs
from rowlock.server.tokens import Role
from rowlock.server.views import Instances, Ready

router = APIRouter(route_class=GuardedRoute, tags=["health"])

# Whoever asks whether we are ready does not want to wait for a network that swallows packets.
_READY_SECONDS = 5.0


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
@needs(Role.READ)
async def ready(request: Request) -> Ready:
    """The ledger answers, its tables fit this code, and the server is not about to leave."""
    state = request.app.state
    if state.presence.draining:
        raise Refusal(
            503, "The server drains: it finishes what it has and takes nothing new.", kind="not-ready"
        )
    try:
        with anyio.fail_after(_READY_SECONDS):
            version = await run_sync(_version, state.rowlock.ledger, abandon_on_cancel=True)
    except TimeoutError:
        raise Refusal(
            503, f"The ledger did not answer within {_READY_SECONDS:g} s.", kind="not-ready"
        ) from None
    return Ready(
        status="ready",
        schema_version=version,
        instance=state.presence.instance_id,
        access="open" if await state.access.is_open() else "token",
    )


def _version(ledger: Ledger) -> int:
    try:
        ledger.schema.check()
    except SchemaMismatch:
        raise
    except LedgerError as error:
        raise Refusal(503, "The ledger cannot be reached now.", kind="not-ready") from error
    return ledger.schema.latest


@router.get("/health/instances")
@needs(Role.READ)
def instances(
    ledger: TheLedger,
    limit: Annotated[int, Query(ge=1, le=10_000, description="So many at most.")] = 1000,
) -> Instances:
    """Every live instance and those of the last hour, with the age of their heartbeats and what they hold."""
    return Instances.model_validate({"instances": Inspector(ledger).instances(limit=limit)})
