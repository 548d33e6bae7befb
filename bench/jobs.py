"""Jobs against their floors: submitting, answering, exporting; interleaved, in one run.

A ratio is the median of the rounds' own ratios.

Run it from the repository's root: python -m bench.jobs [--quick] [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench import exports, submits
from bench.server import ROOT, Server, say
from bench.table import Target, show_ratios
from rowlock.jobs.local_s3 import LocalS3

RESULTS = ROOT / "bench" / "results" / "jobs.json"
TARGETS = (
    Target("submit_vs_copy", "submitting inputs in a program, speed ÷ COPY of the same rows", "≥", 0.4),
    Target("http_vs_copy", "submitting them over HTTP, speed ÷ the same", "", None),
    Target("look_waiting", "GET /jobs/{id} that waits: the largest job ÷ the smallest, time", "≤", 1.3),
    Target("look_running", "the same, when half of each is settled and 20 inputs run", "≤", 1.3),
    Target("look_running_dead_rows", "the same, before the rows of the settled ones are vacuumed", "", None),
    Target("look_retrying", "the same, vacuumed, when all others have failed once and wait", "≤", 1.3),
    *exports.TARGETS,
)


class Size(NamedTuple):
    inputs: int
    jobs: tuple[int, ...]
    looks: int
    rows: int
    small: int


FULL = Size(10_000, (100, 1000, 10_000, 100_000), 200, 2_000_000, 1000)
QUICK = Size(1000, (10, 1000), 20, 100_000, 100)


def main() -> None:
    options = _options()
    size = QUICK if options.quick else FULL
    rounds: list[dict[str, Any]] = []
    with Server() as server, LocalS3() as s3, tempfile.TemporaryDirectory() as folder:
        raw = {"cores": os.cpu_count(), "postgresql": server.version(), "size": size._asdict()}
        with server.database("exports") as url:
            large = exports.Exports(url, s3, Path(folder), rows=size.rows, small=size.small)
            for number in range(options.rounds):
                taken = {"load": os.getloadavg()[0], "submit": submits.submitting(server, size.inputs)}
                rounds.append(taken | large.round())
                say(f"round {number + 1} of {options.rounds}: {json.dumps(rounds[-1])}")
            tenth = large.tenth()
        looks = submits.looking(server, size.jobs, size.looks)
        say(f"GET /jobs/{{id}}, milliseconds: {json.dumps(looks)}")
    results = {**_ratios(rounds, looks), **exports.ratios(rounds, tenth)}
    results["raw"] = {**raw, "rounds": rounds, "looks": looks}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    show_ratios("Rowlock's jobs", TARGETS, results)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: a smoke test")
    parser.add_argument("--rounds", type=int, help="how often each is measured (3; quick: 1)")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


def _ratios(rounds: list[dict[str, Any]], looks: dict[str, dict[str, float]]) -> dict[str, float]:
    def against_copy(side: str) -> float:
        return median(one["submit"]["copy"] / one["submit"][side] for one in rounds)

    def growth(state: str) -> float:
        times = list(looks[state].values())
        return times[-1] / times[0]

    return {
        "submit_vs_copy": against_copy("submit"),
        "http_vs_copy": against_copy("http"),
        **{f"look_{state}": growth(state) for state in looks},
    }


if __name__ == "__main__":
    main()
