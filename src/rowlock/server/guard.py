"""The guard: nobody gets further without a token, unless the ledger has none and the caller is on this machine.

Without tokens, whatever runs in a browser here could call us too: a page whose name was made to lead to 127.0.0.1, or
one that posts across origins. So in that mode the Host must be a name of this machine, and a browser's request that
could change something must come from our own pages.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from rowlock.server.access import ANYBODY, Access
from rowlock.server.problem import Refusal

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Receive, Scope, Send

    from rowlock.server.tokens import Caller

_OUR_NAMES = ("localhost", "127.0.0.1", "[::1]")
_PORT = re.compile(r":[0-9]*$")
_SAFE = ("GET", "HEAD", "OPTIONS")
_HOW = "Create a token (rowlock tokens create NAME --role ROLE) and send it: Authorization: Bearer rl_…"


class Guard:
    """Puts the caller into the request's visit, or refuses."""

    def __init__(self, app: ASGIApp, *, access: Access, public: Collection[str]) -> None:
        self._app = app
        self._access = access
        self._public = public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in self._public:
            scope["rowlock"].caller = await self._caller(scope)
        await self._app(scope, receive, send)

    async def _caller(self, scope: Scope) -> Caller:
        headers = Headers(scope=scope)
        if await self._access.is_open():
            _refuse_strangers(scope, headers)
            return ANYBODY
        given = headers.getlist("authorization")
        if not given:
            raise _unauthorized("This server wants a token. " + _HOW, 'Bearer realm="rowlock"')
        scheme, _, secret = given[0].partition(" ")
        if len(given) > 1 or scheme.lower() != "bearer" or not secret.strip():
            raise _unauthorized(
                "The Authorization header is not one bearer token. " + _HOW, _error("invalid_request")
            )
        caller = await self._access.find(secret.strip())
        if caller is None:
            raise _unauthorized("The token is unknown, revoked or expired. " + _HOW, _error("invalid_token"))
        return caller


def _refuse_strangers(scope: Scope, headers: Headers) -> None:
    if not (scope.get("client") and is_loopback(scope["client"][0])):
        raise _unauthorized(
            "The ledger has no tokens yet, so this server answers only its own machine. " + _HOW,
            'Bearer realm="rowlock"',
        )
    host = headers.get("host", "").lower()
    if _name(host) not in _OUR_NAMES:
        raise Refusal(
            421,
            f"Without tokens this server answers as {', '.join(_OUR_NAMES)} only, not as {host!r}. " + _HOW,
            kind="host-refused",
        )
    if scope["method"] not in _SAFE and not _same_origin(headers, host):
        raise Refusal(
            403,
            "Without tokens, no page of another origin may change anything here. " + _HOW,
            kind="cross-origin",
        )


def _same_origin(headers: Headers, host: str) -> bool:
    """What a browser says about where a request comes from; a program says nothing."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None and site not in ("same-origin", "none"):
        return False
    return origin is None or urlsplit(origin).netloc.lower() == host


def _name(host: str) -> str:
    """A Host header without its port; ::1 stands in brackets there."""
    return _PORT.sub("", host)


def is_loopback(address: str) -> bool:
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback


def _error(code: str) -> str:
    return f'Bearer realm="rowlock", error="{code}"'


def _unauthorized(detail: str, challenge: str) -> Refusal:
    return Refusal(401, detail, kind="unauthorized", headers={"WWW-Authenticate": challenge})
