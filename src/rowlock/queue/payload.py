"""Payloads, results and keys: checked before anything is written."""

from __future__ import annotations

import json
from typing import Any

from rowlock.errors import InvalidInput, InvalidKey, InvalidPayload, InvalidPriority

MAX_KEY_LENGTH = 255
MAX_PRIORITY = 100
MAX_FLOW_LENGTH = 100

# Compact, strict, made once: json.dumps with arguments builds an encoder each time.
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def encode(value: Any, limit: int, what: str) -> str:
    """The value as JSON text, at most `limit` bytes long."""
    if value is None:  # what most handlers return
        return "null"
    try:
        text = _encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidPayload(
            f"{what} cannot be written as JSON: {error}. Use dicts, lists, strings, numbers, booleans and None."
        ) from error
    if len(text) > limit:  # ASCII only: a character is a byte
        raise InvalidPayload(
            f"{what} is {len(text)} bytes of JSON, more than the limit of {limit}. Store it elsewhere and pass "
            "its address, or raise ROWLOCK_MAX_PAYLOAD_BYTES."
        )
    return text


def decode(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def check_key(key: Any, what: str) -> str:
    if isinstance(key, int) and not isinstance(key, bool):
        key = str(key)
    if not isinstance(key, str):
        raise InvalidKey(f"{what}: a key is a string or a whole number, not {type(key).__name__}.")
    if not 0 < len(key) <= MAX_KEY_LENGTH:
        raise InvalidKey(f"{what}: a key has 1 to {MAX_KEY_LENGTH} characters; this one has {len(key)}.")
    if not key.isprintable():
        raise InvalidKey(f"{what}: the key {key!r} has characters that cannot be printed.")
    return key


def check_priority(priority: Any) -> int:
    if not isinstance(priority, int) or isinstance(priority, bool) or not 0 <= priority <= MAX_PRIORITY:
        raise InvalidPriority(
            f"priority={priority!r}: it is a whole number from 0 (normal) to {MAX_PRIORITY} (first)."
        )
    return priority


def check_flow_name(name: Any) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= MAX_FLOW_LENGTH or not name.isprintable():
        raise InvalidInput(
            f"{name!r}: a flow's name is a printable string of 1 to {MAX_FLOW_LENGTH} characters."
        )
    return name


def clean_text(text: str, limit: int) -> str:
    """Text that every database takes: no NUL, no lone surrogate, not endless."""
    text = text.replace("\x00", "\\x00").encode("utf-8", "replace").decode()
    return (
        text
        if len(text) <= limit
        else f"{text[: limit // 2]}\n … {len(text) - limit} more …\n{text[-limit // 2 :]}"
    )
