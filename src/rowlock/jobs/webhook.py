"""Webhooks: signed, sent only where the settings allow, tried again by the queue."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rowlock.errors import InvalidJob, Problem, Reject, RowlockError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowlock.settings import Settings

_SECONDS = 15.0
# What `*` and `?` stand for in ROWLOCK_WEBHOOK_HOSTS: never the end of a host's name.
_JOKERS = {"*": "[a-z0-9._-]*", "?": "[a-z0-9._-]"}
_PORT = ":(?:6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3})"


class WebhookFailed(RowlockError):
    """The receiver of a webhook did not take it; it is sent again later."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A receiver that is allowed must not pass us on to one that is not."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def check_webhook(url: str, settings: Settings) -> str:
    """Whoever may submit a job must not be able to make this server call whatever it can reach."""
    try:
        parts = urlsplit(url)
        hostname = parts.hostname
    except ValueError:  # brackets that hold no address
        hostname = None
    if not hostname or parts.scheme not in ("http", "https"):
        raise InvalidJob([Problem("/webhookUrl", "it is an http or https address")])
    lowered = url.replace(parts.netloc, parts.netloc.lower(), 1)
    if not re.fullmatch(webhook_pattern(settings.webhook_hosts), lowered):
        raise InvalidJob(
            [Problem("/webhookUrl", f"webhooks to {hostname} are not allowed; see ROWLOCK_WEBHOOK_HOSTS")]
        )
    return url


def webhook_pattern(hosts: Iterable[str]) -> str:
    """The addresses that webhooks may go to, as an expression that Python and JSON Schema read alike."""
    names = "|".join(_host_pattern(host.lower()) for host in hosts)
    return rf"^https?://(?:{names or '(?!)'})(?:{_PORT})?(?:[/?#][!-~]*)?$"


def _host_pattern(host: str) -> str:
    plain = "".join(
        _JOKERS.get(sign) or (sign if sign.isalnum() or sign in "-_:" else f"\\{sign}") for sign in host
    )
    return rf"\[{plain}\]" if ":" in host else plain


def sign(secret: str, moment: int, body: bytes) -> str:
    """`t=…,v1=…`: an HMAC-SHA256 over the time and the body, so that neither can be changed or sent again later."""
    digest = hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={moment},v1={digest}"


def send(url: str, content: dict[str, Any], secret: str, *, key: str) -> int:
    """Posts it once; the status that came back. A refusal for good is Reject, everything else is tried again."""
    body = json.dumps(content).encode()
    headers = {"Content-Type": "application/json", "Idempotency-Key": key, "User-Agent": "rowlock"}
    if secret:
        headers["X-Rowlock-Signature"] = sign(secret, int(time.time()), body)
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")  # noqa: S310 - checked when it was submitted
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=_SECONDS) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            if error.code in (400, 401, 403, 404, 405, 410, 422) or 300 <= error.code < 400:
                raise Reject(f"the webhook {url} answered {error.code}") from error
            raise WebhookFailed(f"the webhook {url} answered {error.code}") from error
    except OSError as error:
        raise WebhookFailed(f"the webhook {url} cannot be reached: {error}") from error
