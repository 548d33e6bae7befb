"""Answers: a view of what the server has, or the error that it tells of."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from rowlock.errors import ApiError, RowlockError
from rowlock.server.meanings import Problem, error_of

if TYPE_CHECKING:
    from rowlock.client.steps import Answer

View = TypeVar("View", bound=BaseModel)


def parse(answer: Answer, view: type[View]) -> View:
    """Names that a newer server has and we do not are left out."""
    try:
        return view.model_validate_json(answer.content)
    except ValidationError as error:
        raise ApiError(
            f"This is not how a Rowlock server answers ({error.error_count()} parts are wrong): is the address right?",
            status=answer.status,
        ) from None


def problem_of(answer: Answer) -> Problem | None:
    """The problem document of an answer, if it is one."""
    try:
        return Problem.model_validate_json(answer.content)
    except ValidationError:
        return None


def raise_for(answer: Answer) -> None:
    """Raises what the server tells of: an error of ours, with the ApiError as its cause, or the ApiError."""
    if answer.status < 300 or answer.status == 304:
        return
    problem = problem_of(answer)
    cause = _api_error(answer, problem)
    error: RowlockError | None = None if problem is None else error_of(problem)
    if error is None:
        raise cause
    raise error from cause


def _api_error(answer: Answer, problem: Problem | None) -> ApiError:
    if problem is not None:
        parts = [part.model_dump(by_alias=True) for part in problem.errors or []]
        return ApiError(
            problem.detail or problem.title,
            status=answer.status,
            type=problem.type,
            instance=problem.instance,
            errors=parts,
        )
    if answer.status < 400:
        where = answer.headers.get("location", "nowhere")
        return ApiError(f"The server says to look at {where}. Is the address right?", status=answer.status)
    return ApiError(
        "The answer says nothing more; it may come from something in between.", status=answer.status
    )
