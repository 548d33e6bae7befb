"""The protocol, searched through completely: no order of events breaks the promises, and each mutation is caught."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

MODEL = Path(__file__).with_name("record.pml")
MUTATIONS = ("NO_TOKEN_CHECK", "NO_RISE", "TWO_COMMITS")

pytestmark = pytest.mark.skipif(
    not (shutil.which("spin") and shutil.which("gcc")), reason="needs the model checker spin, and gcc"
)


def search(folder, *definitions) -> str:
    """Every reachable state; what Spin says about them."""
    flags = [f"-D{name}" for name in definitions]
    for command in (
        ["spin", *flags, "-a", str(MODEL)],
        ["gcc", "-O2", "-w", "-DSAFETY", "-o", "pan", "pan.c"],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run(
        ["./pan", "-m200000", "-E", "-w22"], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout


def test_no_order_of_events_breaks_the_promises(tmp_path):
    said = search(tmp_path)
    assert "errors: 0" in said, said
    assert "max search depth too small" not in said
    assert "unreached in init" in said  # it did go through the model


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_each_mutation_is_caught(tmp_path, mutation):
    said = search(tmp_path, mutation)
    assert "assertion violated" in said, said


def test_the_mutations_are_those_of_the_model():
    text = MODEL.read_text(encoding="utf-8")
    assert all(f"def {name}" in text for name in MUTATIONS)
