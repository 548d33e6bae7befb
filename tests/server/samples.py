"""Routes that only tests have: bodies, every role, and every error."""

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from rowlock import errors
from rowlock.server.meanings import BadPart
from rowlock.server.problem import Refusal
from rowlock.server.route import GuardedRoute, needs, problems
from rowlock.server.tokens import Role

router = APIRouter(route_class=GuardedRoute, prefix="/samples")


class Input(BaseModel):
    index_key: str = Field(min_length=1, max_length=50)
    effective: date


class Order(BaseModel):
    inputs: list[Input] = Field(min_length=1)
    tags: dict[str, int] = {}


class Count(BaseModel):
    inputs: int


@router.post("/orders", status_code=202)
@needs(Role.SUBMIT)
def submit(order: Order, limit: Annotated[int, Query(ge=1, le=10)] = 5) -> Count:
    return Count(inputs=min(limit, len(order.inputs)))


@router.post("/orders/{number}/cancel")
@needs(Role.OPERATE)
def cancel(number: int) -> Count:
    return Count(inputs=number)


@router.delete("/orders/{number}")
@needs(Role.ADMIN)
def delete(number: int) -> Count:
    return Count(inputs=number)


@router.get("/errors/{name}", responses=problems(409, 507))
@needs(Role.READ)
def fail(name: str) -> Count:
    if name == "pointed":
        error = errors.InvalidInput("20261332 is no date.")
        error.pointer = "/inputs/3/effectiveDate"
        raise error
    if name == "InvalidJob":
        raise errors.InvalidJob([errors.Problem("/inputs", "the password is hunter2")])
    if name == "refusal":
        raise Refusal(
            409, "No.", kind="no", errors=[BadPart(pointer=f"/{n}", detail="No.") for n in "ab"], seen=2
        )
    if name == "lies":
        return {"inputs": "many"}
    raise getattr(errors, name, RuntimeError)("the password is hunter2")
