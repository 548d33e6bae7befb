r"""Exports against their floors: a large one against `psql \copy`, to S3 against bare puts of the same bytes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from statistics import median
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import obstore
import psycopg
from obstore.store import S3Store

from bench.export_side import INPUT
from bench.server import run_side
from bench.table import Target
from rowlock.jobs.exporter import Exporter
from rowlock.jobs.storage import ArtifactStore
from rowlock.jobs.writing import write_export

if TYPE_CHECKING:
    from pathlib import Path

    from rowlock.jobs.local_s3 import LocalS3

TARGETS = (
    Target("csv_vs_psql", "CSV to a folder, speed ÷ psql \\copy", "≥", 0.8),
    Target("csv_rss_mb", "its memory, MiB", "≤", 150),
    # No target: a large object is written twice, staged and copied by the server (decision 20).
    Target("csv_s3_vs_put", "CSV to S3, speed ÷ bare put of that file", "", None),
    Target("csv_s3_rss_mb", "its memory, MiB", "≤", 150),
    Target("parquet_vs_psql", "Parquet to a folder, speed ÷ psql \\copy of CSV", "", None),
    Target("parquet_rss_mb", "its memory, MiB", "", None),
    Target("rss_growth", "CSV: memory with all rows ÷ with a tenth of them", "≤", 1.3),
    Target("small_vs_puts", "small exports to S3, files a second ÷ bare puts", "≥", 0.5),
)
_TABLE = """
CREATE TABLE levels AS
SELECT n AS id, 'INDEX' || n % 5000 AS index_key, 20200101 + n % 28 AS effective_date, 'CLS' AS asof,
       (random() * 10000)::numeric(18, 6) AS level, random() AS change, now() AS at, n % 2 = 0 AS final,
       md5(n::text) AS checksum, 'EUR' AS currency
FROM generate_series(1, {rows}) n
"""
_PSQL = "\\copy (SELECT * FROM levels WHERE asof = 'CLS') TO '{file}' CSV HEADER"


class Exports:
    """A table to export, a folder and a bucket; every contestant takes its turn in each round."""

    def __init__(self, url: str, s3: LocalS3, folder: Path, *, rows: int, small: int) -> None:
        self._url, self._s3, self._folder, self._rows, self._small = url, s3, folder, rows, small
        s3.make_bucket("bench")
        self._execute(_TABLE.format(rows=rows))
        self._execute("VACUUM ANALYZE levels")

    def round(self) -> dict[str, Any]:
        """Every contestant once, one after the other."""
        folder = self._folder.as_uri()
        return {
            **_floors(self._url, self._folder, self._s3),
            "csv": _side("csv", self._url, folder),
            "csv_s3": _side("csv", self._url, "s3://bench/files", json.dumps(self._s3.options)),
            "parquet": _side("parquet", self._url, folder),
            "small": _small_files(self._s3, self._small),
        }

    def tenth(self) -> dict[str, Any]:
        """CSV, when nine of ten rows are gone: does its memory hang on their number?"""
        self._execute(f"DELETE FROM levels WHERE id > {self._rows // 10}")
        return _side("csv", self._url, self._folder.as_uri())

    def _execute(self, sql: str) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(sql)


def _side(*arguments: str) -> dict[str, Any]:
    return run_side(sys.executable, "bench.export_side", *arguments)


def _floors(url: str, folder: Path, s3: LocalS3) -> dict[str, Any]:
    """What psql makes of the table, and how long that file takes to S3."""
    program = shutil.which("psql")
    if program is None:
        return {"psql": None, "put": None}
    file = folder / "psql.csv"
    began = time.perf_counter()
    subprocess.run([program, "-q", url, "-c", _PSQL.format(file=file)], check=True)
    # What is flushed to the disk in one is flushed in the other.
    with file.open("rb+") as written:
        os.fsync(written)
    copied = time.perf_counter()
    obstore.put(_bare(s3), "bare.csv", file, use_multipart=True)
    put = time.perf_counter() - copied
    file.unlink()
    return {"psql": {"seconds": copied - began}, "put": {"seconds": put}}


def _bare(s3: LocalS3) -> S3Store:
    return S3Store("bench", **s3.options, client_options={"allow_http": True})


def _small_files(s3: LocalS3, count: int) -> dict[str, float]:
    """The two take turns, in blocks, so that both see the same server."""
    text = b"a,b\n" + b"1,2\n" * 2000
    bare = _bare(s3)
    store = ArtifactStore.open("s3://bench/small", **s3.options)
    exporter = Exporter(name="small", produce=lambda _fields: [text])
    seconds = {"puts": 0.0, "exports": 0.0}
    run = uuid4().hex
    write_export(exporter, exporter.validate(INPUT), store, prefix=f"{run}/first")
    for number in range(count):
        began = time.perf_counter()
        obstore.put(bare, f"bare/{run}/{number}.csv", text)
        seconds["puts"] += time.perf_counter() - began
        began = time.perf_counter()
        write_export(exporter, exporter.validate(INPUT), store, prefix=f"{run}/{number}")
        seconds["exports"] += time.perf_counter() - began
    return {name: count / took for name, took in seconds.items()}


def ratios(rounds: list[dict[str, Any]], tenth: dict[str, Any]) -> dict[str, Any]:
    def against(floor: str, side: str) -> float | None:
        found = [one[floor]["seconds"] / one[side]["seconds"] for one in rounds if one[floor]]
        return median(found) if found else None

    memory = {
        f"{side}_rss_mb": max(one[side]["rss_mb"] for one in rounds) for side in ("csv", "csv_s3", "parquet")
    }
    return {
        **{f"{side}_vs_psql": against("psql", side) for side in ("csv", "parquet")},
        "csv_s3_vs_put": against("put", "csv_s3"),
        **memory,
        "rss_growth": memory["csv_rss_mb"] / tenth["rss_mb"],
        "small_vs_puts": median(one["small"]["exports"] / one["small"]["puts"] for one in rounds),
    }
