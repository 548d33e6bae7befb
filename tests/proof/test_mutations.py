"""The mutation gate: whoever takes away a line that keeps a promise turns something red.

Most mutations are held by a named test, which is quick and always the same; two are held by a real run, to show that it
sees with its own eyes.
"""

from __future__ import annotations

import json
import re

import pytest

from tests.proof.mutations import MUTATIONS, run

BY_NAME = {mutation.name: mutation for mutation in MUTATIONS}


@pytest.mark.parametrize("name", BY_NAME)
def test_a_mutation_turns_its_named_tests_red(name, tmp_path):
    mutation = BY_NAME[name]
    copy = mutation.apply(tmp_path)
    done = run(copy, "pytest", "-q", "-n", "0", "--no-header", "--tb", "line", *mutation.tests)
    last = done.stdout.strip().splitlines()[-1]
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.match(r"\d+ failed in", last), done.stdout  # not one of them passed, and none was in error


def test_the_copy_is_what_is_run(tmp_path):
    copy = MUTATIONS[0].apply(tmp_path)
    where = run(copy, "inspect", "rowlock.ledger.ledger", "--details")
    assert str(tmp_path) in where.stdout, where.stdout + where.stderr


@pytest.mark.parametrize(
    ("name", "violation"),
    [
        ("effect and completion are two transactions", "duplicated"),
        ("record.transaction() does not ask for the token", "stale_settled"),
    ],
)
def test_a_mutation_is_seen_by_a_short_proof(name, violation, tmp_path):
    copy = BY_NAME[name].apply(tmp_path)
    command = [
        "rowlock.cli", "prove", "--postgres", "--json", "--records", "2500", "--kills", "30", "--faults", "stop",
        "--lease", "1", "--workers", "5", "--seed", "3",
    ]  # fmt: skip
    done = run(copy, *command)
    assert done.returncode == 1, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["violations"][violation] > 0, told
    assert not told["good"]
    assert "--seed 3" in done.stdout  # the command that repeats it
