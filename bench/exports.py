r"""Exports against their floors: a large one against `psql \copy`, small ones to S3 against bare puts.

Run it from the repository's root: python -m bench.exports [--quick] [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

import obstore
import psycopg
from obstore.store import S3Store
from rich.console import Console
from rich.table import Table

from bench.export_side import INPUT
from bench.server import ROOT, Server, run_side, say
from bench.table import Target, verdict
from rowlock.jobs.exporter import Exporter
from rowlock.jobs.local_s3 import LocalS3
from rowlock.jobs.storage import ArtifactStore
from rowlock.jobs.writing import write_export

RESULTS = ROOT / "bench" / "results" / "exports.json"
TARGETS = (
    Target("csv_vs_psql", "CSV to a folder, speed ÷ psql \\copy", "≥", 0.8),
    Target("csv_rss_mb", "its memory, MiB", "≤", 150),
    Target("csv_s3_vs_psql", "CSV to S3, speed ÷ psql \\copy to a folder", "", None),
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


def main() -> None:
    options = _options()
    rows, small = (100_000, 100) if options.quick else (2_000_000, 1000)
    rounds: list[dict[str, Any]] = []
    with Server() as server, LocalS3() as s3, tempfile.TemporaryDirectory() as folder:
        s3.make_bucket("bench")
        with server.database("exports") as url:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(_TABLE.format(rows=rows))
                connection.execute("VACUUM ANALYZE levels")
            for number in range(options.rounds):
                rounds.append(_round(url, s3, Path(folder), small))
                say(f"round {number + 1} of {options.rounds}: {json.dumps(rounds[-1])}")
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(f"DELETE FROM levels WHERE id > {rows // 10}")
            tenth = _side("csv", url, Path(folder).as_uri())
    results = _ratios(rounds, tenth) | {
        "raw": {"rows": rows, "small": small, "cores": os.cpu_count(), "rounds": rounds}
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    _show(results)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: a smoke test")
    parser.add_argument("--rounds", type=int, help="how often each is measured (3; quick: 1)")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


def _round(url: str, s3: LocalS3, folder: Path, small: int) -> dict[str, Any]:
    """Every contestant once, one after the other."""
    return {
        "psql": _psql(url, folder),
        "csv": _side("csv", url, folder.as_uri()),
        "csv_s3": _side("csv", url, "s3://bench/files", json.dumps(s3.options)),
        "parquet": _side("parquet", url, folder.as_uri()),
        "small": _small(s3, small),
    }


def _side(*arguments: str) -> dict[str, Any]:
    return run_side(sys.executable, "bench.export_side", *arguments)


def _psql(url: str, folder: Path) -> dict[str, Any] | None:
    program = shutil.which("psql")
    if program is None:
        return None
    file = folder / "psql.csv"
    began = time.perf_counter()
    subprocess.run([program, "-q", url, "-c", _PSQL.format(file=file)], check=True)
    # What is flushed to the disk in one is flushed in the other.
    with file.open("rb+") as written:
        os.fsync(written)
    seconds = time.perf_counter() - began
    file.unlink()
    return {"seconds": seconds}


def _small(s3: LocalS3, count: int) -> dict[str, float]:
    """The two take turns, in blocks, so that both see the same server."""
    text = b"a,b\n" + b"1,2\n" * 2000
    bare = S3Store("bench", **s3.options, client_options={"allow_http": True})
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


def _ratios(rounds: list[dict[str, Any]], tenth: dict[str, Any]) -> dict[str, Any]:
    def against_psql(side: str) -> float | None:
        found = [one["psql"]["seconds"] / one[side]["seconds"] for one in rounds if one["psql"]]
        return median(found) if found else None

    memory = {
        f"{side}_rss_mb": max(one[side]["rss_mb"] for one in rounds) for side in ("csv", "csv_s3", "parquet")
    }
    return {
        **{f"{side}_vs_psql": against_psql(side) for side in ("csv", "csv_s3", "parquet")},
        **memory,
        "rss_growth": memory["csv_rss_mb"] / tenth["rss_mb"],
        "small_vs_puts": median(one["small"]["exports"] / one["small"]["puts"] for one in rounds),
    }


def _show(results: dict[str, Any]) -> None:
    table = Table(title=f"Exports of {results['raw']['rows']:,} rows, {results['raw']['cores']} cores")
    for name, justify in (("", "left"), ("measured", "right"), ("target", "right"), ("", "left")):
        table.add_column(name, justify=justify)
    for target in TARGETS:
        value = results[target.key]
        bound = "" if target.bound is None else f"{target.sign} {target.bound:g}"
        table.add_row(target.what, "-" if value is None else f"{value:.2f}", bound, verdict(target, value))
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
