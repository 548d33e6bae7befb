"""Formats: what is written can be read back, by the readers that everybody has."""

from __future__ import annotations

import csv
import gzip
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlock import Reject
from rowlock.jobs.exporter import Exporter
from rowlock.jobs.storage import ArtifactStore
from rowlock.jobs.writing import write_export

INPUT = {"indexKey": "ABC", "effectiveDate": 20240202, "asofindicator": "CLS"}
ROWS = [
    {"name": 'quo"te, comma', "level": Decimal("1.10"), "day": date(2024, 2, 2), "ok": True, "none": None},
    {"name": "line\nbreak ü", "level": Decimal("2.25"), "day": date(2024, 2, 3), "ok": False, "none": None},
]
TABLE = pa.table({"name": ["a", "b,c"], "level": [1.5, None]})


@pytest.fixture
def make(tmp_path):
    store = ArtifactStore.open(tmp_path.as_uri())

    def write(items, **given) -> tuple[bytes, int | None]:
        exporter = Exporter(name="x", produce=lambda fields: iter(items), **given)
        written = write_export(exporter, exporter.validate(INPUT), store, prefix=str(len(list(store.list()))))
        data = b"".join(store.read(written.path))
        assert len(data) == written.bytes
        return data, written.rows

    return write


def test_csv_is_quoted_as_everybody_reads_it(make):
    data, rows = make(ROWS)
    assert rows == 2
    assert data.decode().startswith('name,level,day,ok,none\n"quo""te, comma",1.10,2024-02-02,true,\n')
    read = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
    assert [row["name"] for row in read] == [row["name"] for row in ROWS]
    assert b"\r" not in data


def test_tuples_have_their_columns_from_the_exporter(make):
    assert make([(1, None), [2, "x"]], columns=("a", "b"))[0] == b"a,b\n1,\n2,x\n"
    assert make([], columns=("a", "b")) == (b"a,b\n", 0)
    assert make([]) == (b"", 0)


def test_arrow_batches_become_any_format(make):
    batches = TABLE.to_batches() * 2
    assert make(batches)[0].decode().splitlines() == [
        '"name","level"',
        '"a",1.5',
        '"b,c",',
        '"a",1.5',
        '"b,c",',
    ]
    lines = make(batches, format="jsonl")[0].splitlines()
    assert [json.loads(line) for line in lines] == TABLE.to_pylist() * 2
    data, rows = make([TABLE, TABLE], format="parquet")
    assert rows == 4
    assert pq.read_table(io.BytesIO(data)).equals(pa.concat_tables([TABLE, TABLE]))


def test_bytes_pass_as_they_are(make):
    assert make([b"any", bytearray(b"thing"), memoryview(b"!")]) == (b"anything!", None)


def test_json_lines(make):
    data, rows = make(
        [{"at": datetime(2024, 2, 2, tzinfo=UTC), "n": Decimal("1.10"), "t": "ü\n"}], format="jsonl"
    )
    assert rows == 1
    assert data.decode() == '{"at":"2024-02-02T00:00:00+00:00","n":"1.10","t":"ü\\n"}\n'


def test_parquet_keeps_types_and_goes_out_in_pieces(make):
    many = [{"n": number, "text": f"row {number}"} for number in range(120_000)]
    data, rows = make(many, format="parquet")
    file = pq.ParquetFile(io.BytesIO(data))
    assert rows == 120_000
    assert file.num_row_groups == 2
    assert file.read().slice(119_999).to_pylist() == [{"n": 119_999, "text": "row 119999"}]
    schema = pa.schema([("n", pa.int8())])
    read = pq.read_table(io.BytesIO(make([{"n": None}], format="parquet", schema=schema)[0]))
    assert read.schema.equals(schema)


@pytest.mark.parametrize("format_", ["csv", "jsonl"])
def test_compression_can_be_undone_and_is_the_same_each_time(make, format_):
    plain, _ = make(ROWS, format=format_)
    packed, rows = make(ROWS, format=format_, compression="gzip")
    assert gzip.decompress(packed) == plain
    assert rows == 2
    assert make(ROWS, format=format_, compression="gzip")[0] == packed
    packed, _ = make(ROWS, format=format_, compression="zstd")
    assert pa.CompressedInputStream(pa.BufferReader(packed), "zstd").read() == plain


def test_parquet_is_packed_inside(make):
    data, _ = make([TABLE], format="parquet", compression="gzip")
    assert pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0).compression == "GZIP"


@pytest.mark.parametrize(
    ("items", "given", "words"),
    [
        ([{"a": 1}, {"b": 2}], {}, "row 2 has the columns b"),
        ([{"a": 1}, {"a": 2, "b": 2}], {}, "row 2 has the columns a, b"),
        ([{"a": 1}, (2,)], {}, "tuple after dicts"),
        ([(1,)], {}, "needs columns"),
        ([(1, 2)], {"columns": ("a",)}, "row 1 has 2 values"),
        ([5], {}, "item 1 is int"),
        ([TABLE, TABLE.rename_columns(["x", "y"])], {}, "batch 2 has another schema"),
        ([{"a": float("nan")}], {"format": "jsonl"}, "no such number"),
        ([{"a": object()}], {"format": "jsonl"}, "object cannot be written"),
        ([{"a": 1}] * 5000 + [{"a": "x"}], {"format": "parquet"}, "column 'a', after row 5000"),
        ([], {"format": "parquet"}, "needs columns"),
    ],
)
def test_what_cannot_be_a_file_is_said(make, items, given, words):
    with pytest.raises(Reject, match=words):
        make(items, **given)
