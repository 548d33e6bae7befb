"""schemathesis against a real server: every operation of its document, with data that fits and data that does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.waiting import LIMIT


def explore(url: str, secret: str, folder: Path, *, examples: int = 10, seed: int = 1) -> str:
    """Runs every check there is; what it found, if that was anything, is in the AssertionError."""
    command = [
        str(Path(sys.executable).parent / "schemathesis"), "run", f"{url}/openapi.json",
        "--header", f"Authorization: Bearer {secret}",
        "--checks", "all",
        "--max-examples", str(examples),
        "--seed", str(seed),
        "--generation-database", "none",
        "--continue-on-failure",
        "--no-color",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT * 5, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
