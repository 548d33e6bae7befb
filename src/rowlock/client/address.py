"""Where a server is, and what it is asked with."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from rowlock.client.steps import Request
from rowlock.errors import ConfigurationError, InvalidInput


@dataclass(frozen=True, slots=True)
class Address:
    """Makes requests for one server; only they carry the token."""

    url: str
    token: str | None = field(repr=False)
    timeout: float

    @classmethod
    def of(cls, url: str, token: str | None, timeout: float) -> Address:
        token = os.environ.get("ROWLOCK_TOKEN") if token is None else token
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(f"A server's address is like https://host:port, not {url!r}.")
        if "@" in parts.netloc or parts.query or parts.fragment:
            # Not shown: it may hold a secret.
            raise ConfigurationError(
                "A server's address has no user, password or query in it; a token goes into token=."
            )
        if token is not None and not (token.isascii() and token.isprintable() and token.strip() == token):
            raise ConfigurationError(
                "The token has spaces or characters that no token has; it is not shown here."
            )
        if not timeout > 0:
            raise ConfigurationError(f"timeout={timeout!r}: it is the longest silence, in seconds.")
        return cls(url.rstrip("/"), token or None, timeout)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, Any] | None = None,
        body: Any = None,
        headers: dict[str, str] | None = None,
        repeatable: bool = True,
        timeout: float | None = None,
    ) -> Request:
        """A request to a path of this server; what is None in the query is left out."""
        wanted = {name: value for name, value in (query or {}).items() if value is not None}
        sent = {"Accept": "application/json, application/problem+json", **(headers or {})}
        if body is not None:
            sent["Content-Type"] = "application/json"
        if self.token is not None:
            sent["Authorization"] = f"Bearer {self.token}"
        return Request(
            method,
            f"{self.url}{path}{'?' if wanted else ''}{urlencode(wanted)}",
            sent,
            None if body is None else _encode(body),
            repeatable,
            timeout or self.timeout,
        )


def _encode(body: Any) -> bytes:
    try:
        return json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"This cannot be sent as JSON: {error}. Use dicts, lists, strings, numbers, booleans and None; nothing was sent."
        ) from error
