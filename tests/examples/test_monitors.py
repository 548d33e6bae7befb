"""The example of a backend with monitors: three instances, two of them killed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "monitors"


def test_whoever_is_killed_nothing_is_alerted_or_reported_twice(tmp_path):
    for source in EXAMPLE.glob("*.py"):
        shutil.copy(source, tmp_path)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ROWLOCK_")}
    done = subprocess.run(
        [sys.executable, "show.py"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=150, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr + (tmp_path / "instances.log").read_text()
    assert done.stdout.count("SIGKILL") == 2
    assert "twice: 0, lost: 0" in done.stdout
