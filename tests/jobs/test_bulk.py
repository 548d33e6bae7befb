"""Many inputs at once are read as each of them would be by itself."""

from __future__ import annotations

from datetime import date  # noqa: TC003 - pydantic reads it

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from rowlock.errors import InvalidInput
from rowlock.jobs.exporter import Exporter

LIMIT = 200


class Prices(BaseModel):
    market: str
    day: date
    level: float = 0.0
    note: str | None = ""


class Ours(Prices):
    """Fields with the names of what a path has anyway."""

    key: str = "k"
    ext: str = "e"


def exporter(**given):
    return Exporter(name="levels", produce=lambda _fields: [], **given)


EXPORTERS = [
    exporter(),
    exporter(format="jsonl", path="{asofindicator}/{indexKey}-{indexKey}_{effectiveDate}.{ext}"),
    exporter(model=Prices, key_fields=("market", "day"), path="{market}/{day}.{ext}"),
    exporter(model=Prices),
    exporter(model=Prices, key_fields=("market",), path="{market}-{note}.{ext}"),
    exporter(model=Ours),
    exporter(model=Ours, path="{key}.{ext}-{market}.{ext}"),
]
TEXT = st.sampled_from(
    ["A", "B.C", "..", "a/b", "a\nb", "", "x" * 101, "y" * 99, "ä", "\ud800", "null", "\0", "7"]
)
DATES = st.sampled_from([20240202, 20240203, 20240202.0, 20240230, "20240202", True])
INDEX = st.fixed_dictionaries(
    {"indexKey": TEXT | st.text(max_size=5), "effectiveDate": DATES, "asofindicator": TEXT},
    optional={"more": st.just(1)},
)
PRICES = st.fixed_dictionaries(
    {"market": TEXT, "day": st.sampled_from(["2026-01-10", "2026-01-11", "no"])},
    optional={
        "level": st.floats() | st.integers(),
        "note": TEXT | st.none() | st.text(max_size=LIMIT),
    },
)


def one_by_one(chosen, inputs):
    """Key → payload; None if any is wrong or two make the same file."""
    try:
        entries = [chosen.read(raw, LIMIT) for raw in inputs]
    except InvalidInput:
        return None
    files = {entry.file for entry in entries}
    found = {entry.key: entry.payload for entry in entries}
    return found if len(found) == len(files) == len(inputs) else None


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_whatever_is_read_at_once_is_what_each_is(data):
    chosen = data.draw(st.sampled_from(EXPORTERS))
    good = {"indexKey": "A", "effectiveDate": 20240202, "asofindicator": "CLS"}
    kind = INDEX if "indexKey" in chosen.model.model_fields else PRICES
    inputs = data.draw(st.lists(kind | st.just(good), min_size=1, max_size=4))
    at_once = chosen.read_all(inputs, LIMIT)
    assert at_once is None or at_once == one_by_one(chosen, inputs)


@pytest.mark.parametrize("chosen", EXPORTERS)
def test_what_is_plain_is_read_at_once_in_its_order(chosen):
    if "indexKey" in chosen.model.model_fields:
        inputs = [
            {"indexKey": f"I{n}", "effectiveDate": 20240202, "asofindicator": "CLS"} for n in range(2500)
        ]
    else:
        inputs = [{"market": f"M{n}", "day": "2026-01-10", "note": "x"} for n in range(2500)]
    at_once = chosen.read_all(inputs, LIMIT)
    assert list(at_once.items()) == list(one_by_one(chosen, inputs).items())


def test_twins_in_different_pieces_are_found():
    inputs = [{"indexKey": f"I{n}", "effectiveDate": 20240202, "asofindicator": "CLS"} for n in range(1001)]
    assert EXPORTERS[0].read_all([*inputs, inputs[0]], LIMIT) is None


def test_a_json_schema_looks_at_each_input_by_itself():
    regions = exporter(model={"properties": {"region": {"enum": ["EU"]}}})
    assert regions.read_all([{"region": "XX"}], LIMIT) is None
    assert regions.read_all([{"region": "EU"}], LIMIT) is None
