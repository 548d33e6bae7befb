"""Exporters: inputs are checked with a pointer to the bad part; paths have nothing in them but safe parts."""

from __future__ import annotations

import json
from datetime import date  # noqa: TC003 - pydantic reads it

import pytest
from pydantic import BaseModel, ConfigDict

from rowlock import Backoff, ConfigurationError, InvalidInput, InvalidPayload, Rowlock, Settings
from rowlock.jobs.exporter import Exporter
from rowlock.jobs.exporters import Exporters
from rowlock.jobs.path import PathTemplate
from rowlock.jobs.query import SqlQuery
from rowlock.jobs.storage import _beside

GOOD = {"indexKey": "ABC", "effectiveDate": 20240202, "asofindicator": "CLS"}


def produce(fields):
    yield {"x": 1}


def exporter(**given) -> Exporter:
    return Exporter(**{"name": "levels", "produce": produce, **given})


def test_the_built_in_input_makes_the_contracts_path():
    fields = exporter().validate(GOOD)
    assert exporter().file(fields) == "ABC_20240202_CLS.csv"
    assert exporter().key(fields) == "ABC/20240202/CLS"
    assert exporter(compression="gzip").file(fields) == "ABC_20240202_CLS.csv.gz"
    assert exporter(format="parquet", compression="zstd").file(fields) == "ABC_20240202_CLS.parquet"
    assert exporter().flow_name == "export.levels"


@pytest.mark.parametrize(
    "bad",
    [
        "../x",
        "a/b",
        "..",
        ".hidden",
        "a\x00b",
        "a\nb",
        "",
        "a" * 101,
        "a b",
        "ü",
        "a\\b",
        "~",
        "a..b",
        "%2e",
        "a:b",
    ],
)
@pytest.mark.parametrize("field", ["indexKey", "asofindicator"])
def test_an_unsafe_field_is_refused_with_its_pointer(field, bad):
    with pytest.raises(InvalidInput) as caught:
        exporter().validate({**GOOD, field: bad})
    assert caught.value.pointer == f"/{field}"


@pytest.mark.parametrize(
    "bad", [20240230, 20241301, 0, -20240101, 99999999999, "20240202", 2024.5, True, None]
)
def test_a_date_that_is_no_date_is_refused_with_its_pointer(bad):
    with pytest.raises(InvalidInput) as caught:
        exporter().validate({**GOOD, "effectiveDate": bad})
    assert caught.value.pointer == "/effectiveDate"


@pytest.mark.parametrize(
    ("raw", "pointer"),
    [({"indexKey": "A"}, "/effectiveDate"), ({**GOOD, "a/b": 1}, "/a~1b"), ([], ""), (None, ""), ("x", "")],
)
def test_what_is_missing_or_too_much_is_pointed_at(raw, pointer):
    with pytest.raises(InvalidInput) as caught:
        exporter().validate(raw)
    assert caught.value.pointer == pointer


def test_a_whole_number_is_one_however_json_writes_it():
    fields = exporter().validate({**GOOD, "effectiveDate": 20240202.0})
    assert fields.model_dump() == {**GOOD, "effectiveDate": 20240202}


def test_the_longest_input_that_its_schema_takes_has_a_file_name_that_disks_take():
    longest = {**GOOD, "indexKey": "I" * 100, "asofindicator": "A" * 100}
    packed = exporter(format="jsonl", compression="zstd")
    name = packed.file(packed.validate(longest))
    assert len(_beside(name, 2**63 - 1, "0" * 64)) <= 255


class Prices(BaseModel):
    market: str
    day: date
    note: str | None = None
    level: float | None = None


def test_a_model_of_ones_own():
    prices = exporter(model=Prices, key_fields=("market", "day"), path="{market}/{day}.{ext}", format="jsonl")
    fields = prices.validate({"market": "XETR", "day": "2026-01-10", "note": "../x"})
    assert (prices.file(fields), prices.key(fields)) == ("XETR/2026-01-10.jsonl", "XETR/2026-01-10")
    with pytest.raises(InvalidInput) as caught:
        prices.validate({"market": "../../etc", "day": "2026-01-10"})
    assert caught.value.pointer == "/market"


def test_fields_that_are_not_in_the_path_still_tell_inputs_apart():
    prices = exporter(model=Prices, path="{market}-{key}.{ext}")
    one, other = (
        prices.validate({"market": "X", "day": "2026-01-10", "note": note}) for note in ("one/..", "two")
    )
    assert prices.key(one) != prices.key(other)
    assert prices.file(one) != prices.file(other)
    assert prices.key(one) == prices.key(prices.validate(one.model_dump()))


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow")
    part: int | str
    day: date | None = None


def test_a_number_is_not_its_text_and_what_a_model_does_not_name_counts():
    loose = exporter(model=Loose, path="{key}.{ext}")
    given = [{"part": 1}, {"part": "1"}, {"part": "true"}, {"part": 1, "more": "x"}, {"part": 1, "less": "x"}]
    assert len({loose.key(loose.validate(raw)) for raw in given}) == len(given)
    assert len({loose.file(loose.validate(raw)) for raw in given}) == len(given)
    assert loose.bulk is None
    assert loose.key(loose.validate({"part": "A", "day": "2026-01-10"})) == "A/2026-01-10"
    chosen = exporter(model=Loose, path="{part}.{ext}", key_fields=("part",))
    assert len({chosen.key(chosen.validate({"part": "A", "more": more})) for more in "xy"}) == 1
    schema = exporter(model={"type": "object", "properties": {"part": {}}, "required": ["part"]})
    assert len({schema.key(schema.validate(raw)) for raw in given}) == len(given)


SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"enum": ["EU", "US"]},
        "filters": {"type": "array", "items": {"type": "object", "required": ["name"]}},
    },
    "required": ["region"],
    "additionalProperties": False,
}


def test_a_json_schema():
    regions = exporter(model=SCHEMA)
    fields = regions.validate({"region": "EU", "filters": [{"name": "x"}]})
    assert regions.file(fields).endswith(".csv")
    assert regions.key(fields) != regions.key(regions.validate({"region": "EU"}))
    for raw, pointer in (
        ({"region": "XX"}, "/region"),
        ({"region": "EU", "filters": [{"name": 1}, {}]}, "/filters/1"),
        ({"region": "EU", "more": 1}, ""),
        ({}, ""),
    ):
        with pytest.raises(InvalidInput) as caught:
            regions.validate(raw)
        assert caught.value.pointer == pointer


def test_half_a_character_is_refused_before_anybody_has_to_write_it():
    with pytest.raises(InvalidInput, match="cannot be written as JSON") as caught:
        exporter(model=SCHEMA).read({"region": "EU", "filters": [{"name": "\ud800"}]}, 1000)
    assert caught.value.pointer == ""


def test_an_input_that_is_too_long_or_no_json_is_refused():
    long = exporter(model=Prices)
    for more, limit in (({"note": "ä" * 100}, 200), ({"level": float("nan")}, 1000)):
        with pytest.raises(InvalidPayload):
            long.read({"market": "X", "day": "2026-01-10", **more}, limit)


def test_what_was_left_out_of_an_input_is_not_null_in_its_record():
    regions = exporter(model=SCHEMA)
    record = json.loads(regions.read({"region": "EU"}, 1000).payload)
    assert record == {"region": "EU"}
    assert regions.validate(record).filters is None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense", "properties": {"x": {}}},
        {"properties": {"x": {"$ref": "http://127.0.0.1:9/schema.json"}}},
        {"type": "object"},
        {"properties": {"_x": {}}},
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_when_it_is_declared(schema):
    with pytest.raises(ConfigurationError):
        exporter(model=schema, path="{key}.{ext}")


@pytest.mark.parametrize(
    "path",
    [
        "{nothing}.{ext}", "{indexKey.__class__}.{ext}", "{indexKey!r}", "{indexKey:>10}", "{0}", "../{indexKey}",
        "/{indexKey}", "a//{indexKey}", ".attempts/{indexKey}", "{indexKey", "a b {indexKey}", "..{indexKey}",
        "{indexKey}.{ext}",  # two dates, one path
    ],
)  # fmt: skip
def test_a_path_is_checked_when_it_is_declared(path):
    with pytest.raises(ConfigurationError):
        exporter(path=path)


def test_an_empty_path_has_no_name():
    with pytest.raises(ConfigurationError):
        PathTemplate("")


async def asynchronous(fields):
    return []


@pytest.mark.parametrize(
    "given",
    [
        {"name": "a/b"}, {"name": ""}, {"format": "xls"}, {"compression": "rar"}, {"produce": asynchronous},
        {"produce": 5}, {"key_fields": ("nothing",)}, {"produce": SqlQuery("db", "SELECT :nothing")},
    ],
)  # fmt: skip
def test_an_exporter_is_checked_when_it_is_declared(given):
    with pytest.raises(ConfigurationError):
        exporter(**given)


def test_exporters_of_the_file_and_of_the_program(tmp_path):
    settings = Settings(
        ledger_url=f"sqlite:///{tmp_path}/l.db",
        exporters={
            "levels": {
                "database": "hub",
                "query": "SELECT * FROM levels WHERE index_key = :indexKey",
                "retry_seconds": 5,
            },
            "regions": {"database": "hub", "query": "SELECT :region", "input": SCHEMA, "format": "jsonl"},
        },
    )
    app = Rowlock(settings=settings)

    @app.exporter("by_hand", format="parquet", timeout=60)
    def by_hand(fields):
        yield {}

    assert list(app.exporters) == ["levels", "regions", "by_hand"]
    assert app.exporters["levels"].produce.names == ("indexKey",)
    assert app.flows["export.levels"].backoff == Backoff(5, 300)
    assert by_hand is app.exporters["by_hand"].produce
    with pytest.raises(ConfigurationError, match="there already"):
        app.exporter("levels")(produce)
    with pytest.raises(ConfigurationError, match="there are: levels, regions, by_hand"):
        app.exporters["nothing"]


def test_a_declared_exporter_with_a_typing_error_is_refused():
    settings = Settings(exporters={"x": {"database": "hub", "query": "SELECT :indexkey"}})
    with pytest.raises(ConfigurationError, match=r"exporter 'x'.*:indexkey"):
        Exporters(settings)
