"""The queue's read side: flows, instances, and why a record is where it is."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from rowlock.queue.inspector import Inspector
from rowlock.queue.why import explain
from rowlock.server.route import GuardedRoute, RecordId, TheLedger, needs
from rowlock.server.tokens import Role
from rowlock.server.views import Flows, Instances, Why

router = APIRouter(route_class=GuardedRoute, tags=["queue"])


@router.get("/flows")
@needs(Role.READ)
def flows(ledger: TheLedger) -> Flows:
    """Every flow, with its records counted."""
    return Flows.model_validate({"flows": Inspector(ledger).flows()})


@router.get("/instances")
@needs(Role.READ)
def instances(
    ledger: TheLedger,
    *,
    everyone: Annotated[
        bool, Query(alias="all", description="Also those that ended more than an hour ago.")
    ] = False,
    limit: Annotated[int, Query(ge=1, le=10_000, description="So many at most, newest first.")] = 1000,
) -> Instances:
    """The live instances and those of the last hour."""
    return Instances.model_validate(
        {"instances": Inspector(ledger).instances(everyone=everyone, limit=limit)}
    )


@router.get("/records/{id}/why")
@needs(Role.READ)
def why(ledger: TheLedger, id: Annotated[RecordId, Path()]) -> Why:  # noqa: A002 - its name in the address
    """What a record waits for, or what became of it, in words a person can read."""
    return Why.model_validate(explain(ledger, id))
