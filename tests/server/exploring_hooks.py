"""For schemathesis: the two rules for data that fits which no JSON Schema can say."""

from __future__ import annotations

from datetime import date

import schemathesis

_FIRST, _LAST = 1_01_01, 9999_12_31
_DAYS = date.max.toordinal()
_bodies = {}


def real(number):
    """Not every number is a date. One that fits the schema becomes one; all others stay what they are."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        return number
    if number != int(number) or not _FIRST <= number <= _LAST:
        return number
    number = int(number)
    try:
        date(number // 10_000, number // 100 % 100, number % 100)
    except ValueError:
        return int(date.fromordinal(number % _DAYS + 1).strftime("%Y%m%d"))
    return number


@schemathesis.hook.apply_to(method="POST", path="/jobs")
def map_body(_context, body):
    if isinstance(body, dict) and isinstance(body.get("inputs"), list):
        for one in body["inputs"]:
            if isinstance(one, dict) and "effectiveDate" in one:
                one["effectiveDate"] = real(one["effectiveDate"])
    return body


@schemathesis.hook.apply_to(method="POST", path="/jobs")
def before_call(_context, case, _kwargs):
    """An idempotency key belongs to its first body; with another one it is refused."""
    key = (case.headers or {}).get("idempotency-key")
    if key is None or case.meta.generation.mode.is_negative:
        return
    if _bodies.setdefault(key, case.body) != case.body:
        del case.headers["idempotency-key"]
