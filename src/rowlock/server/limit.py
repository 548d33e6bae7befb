"""The limit: a body that is too large or too slow is refused while it arrives, whatever it says about itself."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from rowlock import clock

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Nobody's honest body takes longer; whoever sends a byte a second must not hold a connection for ever.
BODY_SECONDS = 60.0
_CLOSE = {"Connection": "close"}  # the rest of the body is not read


class Limit:
    """Counts what is received; more than `max_bytes` is 413, later than `seconds` 408."""

    def __init__(self, app: ASGIApp, *, max_bytes: int, seconds: float = BODY_SECONDS) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isascii() and declared.isdigit() and int(declared) > self._max_bytes:
            raise self._too_large()
        deadline = clock.monotonic() + self._seconds
        received, complete = 0, False

        async def limited() -> Message:
            nonlocal received, complete
            if complete:  # from here on it is only told that the caller went away
                return await receive()
            try:
                async with asyncio.timeout(max(0.0, deadline - clock.monotonic())):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(
                    408, f"The body did not arrive within {self._seconds:g} seconds.", _CLOSE
                ) from None
            received += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if received > self._max_bytes:
                raise self._too_large()
            return message

        await self._app(scope, limited, send)

    def _too_large(self) -> HTTPException:
        # Starlette's own kind: FastAPI would take any other for a body that cannot be parsed.
        return HTTPException(
            413,
            f"The body is larger than {self._max_bytes:,} bytes (ROWLOCK_MAX_REQUEST_BYTES). Send less at a time.",
            _CLOSE,
        )
