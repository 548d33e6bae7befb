"""Between our words and httpx2's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2

from rowlock.client.steps import Answer, Lost, Request

if TYPE_CHECKING:
    from collections.abc import Callable

# The server cannot have seen a request that ended so.
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


def request_of(request: Request, build: Callable[..., httpx2.Request]) -> httpx2.Request:
    more: dict[str, Any] = {} if request.timeout is None else {"timeout": request.timeout}
    return build(request.method, request.url, headers=request.headers, content=request.content, **more)


def answer_of(response: httpx2.Response, *, content: bool) -> Answer:
    return Answer(response.status_code, dict(response.headers.items()), response.content if content else b"")


def lost_of(error: httpx2.HTTPError) -> Lost:
    kind = type(error).__name__
    return Lost(f"{error} ({kind})" if str(error) else kind, sent=not isinstance(error, _NEVER_SENT))
