"""The journal: every request has a number, a line in the log and a place in the metrics, and every error an answer."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from rowlock import clock
from rowlock.server.problem import answer_to

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from rowlock.server.metrics import Metrics
    from rowlock.server.tokens import Caller

logger = logging.getLogger("rowlock.server")
access_log = logging.getLogger("rowlock.access")


@dataclass
class Visit:
    """What is known about the request in hand; in its scope as `rowlock`."""

    id: str = field(default_factory=lambda: uuid4().hex)
    caller: Caller | None = None
    status: int | None = None

    @property
    def urn(self) -> str:
        return f"urn:uuid:{self.id}"


class Journal:
    """The outermost middleware: nothing gets past it, neither an error nor an answer."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, ledger_name: str) -> None:
        self._app = app
        self._metrics = metrics
        self._ledger_name = ledger_name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        visit = scope["rowlock"] = Visit()
        began = clock.monotonic()

        async def numbered(message: Message) -> None:
            if message["type"] == "http.response.start":
                visit.status = message["status"]
                ours = [(b"x-request-id", visit.id.encode()), (b"x-content-type-options", b"nosniff")]
                message["headers"] = [*message.get("headers", []), *ours]
            await send(message)

        try:
            await self._app(scope, receive, numbered)
        except Exception as error:
            if visit.status is not None:  # the answer has begun: all that is left is to break it off
                logger.exception("request %s failed in the middle of its answer", visit.id)
                raise
            await self.tell(error, scope, receive, numbered)
        finally:
            self._note(scope, visit, clock.monotonic() - began)

    async def tell(self, error: Exception, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers with the problem that an error is."""
        visit: Visit = scope["rowlock"]
        answer = answer_to(error)
        if answer.hidden:
            logger.error("request %s: %s", visit.id, error, exc_info=error)
        if answer.problem.detail:
            # Where the ledger is, is nobody's business out there.
            answer.problem.detail = answer.problem.detail.replace(self._ledger_name, "the ledger")
        await answer.response(visit.urn)(scope, receive, send)

    def _note(self, scope: Scope, visit: Visit, seconds: float) -> None:
        route: Any = scope.get("route")
        status = visit.status or 499  # the caller went away before there was an answer
        template = route.path_format if route is not None else "none"
        self._metrics.note_request(scope["method"], template, status, seconds)
        # The path as it was sent, still quoted, so that it can forge no line; never the query or a header.
        path = scope.get("raw_path", b"").decode("ascii", "backslashreplace").partition("?")[0]
        peer = scope["client"][0] if scope.get("client") else "-"
        caller = visit.caller.name if visit.caller and visit.caller.name else "-"
        access_log.info(
            "%s %s %s %.1f ms peer=%s token=%r id=%s",
            scope["method"],
            path,
            status,
            seconds * 1000,
            peer,
            caller,
            visit.id,
        )
