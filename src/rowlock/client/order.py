"""What is sent to make a job, and to drive one again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowlock.jobs.job import Policy

Redrivable = Literal["DLQ", "CANCELLED"]


def job_order(
    inputs: Sequence[Mapping[str, Any]],
    *,
    exporter: str | None,
    policy: Policy,
    priority: int,
    deadline: float | None,
    webhook_url: str | None,
) -> dict[str, Any]:
    """As it was given: what is wrong with it is for the server to say, which says it best."""
    return _given(
        inputs=[dict(one) for one in inputs],
        exporter=exporter,
        policy=policy,
        priority=priority,
        deadline=deadline,
        webhookUrl=webhook_url,
    )


def redrive_order(
    input_ids: Sequence[int] | None, status: Redrivable | None, error_contains: str | None
) -> dict[str, Any]:
    ids = None if input_ids is None else list(input_ids)
    return _given(inputIds=ids, status=status, errorContains=error_contains)


def _given(**named: Any) -> dict[str, Any]:
    return {name: value for name, value in named.items() if value is not None}
