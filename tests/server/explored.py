"""The program that is explored: two kinds of exporters, and jobs in every state.

`rowlock serve tests.server.program:app` serves it, with the settings of the test.
"""

from __future__ import annotations

from rowlock import Reject, RetryLater, Rowlock
from tests.support.waiting import eventually

# What a region's report is asked for: text of any kind, numbers, things in things. Two are the same if they are equal.
REGION = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 30},
        "year": {"type": "integer", "minimum": 1900, "maximum": 2100},
        "share": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "within": {"type": "object", "properties": {"code": {"type": "integer"}}, "required": ["code"]},
    },
    "required": ["name", "year"],
    "additionalProperties": False,
    "examples": [{"name": "Süd/West", "year": 2024}],
}


def declare(app: Rowlock) -> Rowlock:
    @app.exporter("index_levels", max_attempts=2)
    def index_levels(fields):
        if fields.indexKey == "BAD":
            raise Reject("no levels for BAD")
        if fields.indexKey == "LATER":
            raise RetryLater(3600, "the levels are not in yet")
        yield {"index": fields.indexKey, "level": 100}

    @app.exporter("regions", input=REGION, format="jsonl")
    def regions(fields):
        yield {"name": fields.name, "share": fields.share}

    return app


def fill(app: Rowlock) -> dict[str, list]:
    """Jobs in every state; the keys of all, and the key and the inputs of one that has files. A worker is running."""

    def submit(*names, **options):
        inputs = [{"indexKey": name, "effectiveDate": 20240202, "asofindicator": "CLS"} for name in names]
        return app.jobs.submit(inputs, exporter="index_levels", **options)[0].key

    completed, failed = submit("A", "B"), submit("A", "BAD", "C", policy="continue")
    running, cancelled = submit("LATER"), submit("LATER", "A")
    other = app.jobs.submit([{"name": "Süd", "year": 2024}], exporter="regions")[0].key
    eventually(lambda: app.jobs.get(running).retry_wait == 1, "the input that waits")
    for key in (completed, failed, other):
        eventually(lambda key=key: not app.jobs.get(key).open, "the end of a job")
    app.jobs.cancel(cancelled)
    found = [app.jobs.get(key).status for key in (completed, failed, running, cancelled, other)]
    assert found == ["COMPLETED", "FAILED", "RUNNING", "CANCELLED", "COMPLETED"], found
    return {
        "jobs": [completed, failed, running, cancelled, other],
        "finished": [completed],
        "inputs": [one.id for one in app.jobs.inputs(completed)],
    }
