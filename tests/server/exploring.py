"""schemathesis against a real server: every operation of its document, with data that fits and data that does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.waiting import LIMIT

ROOT = Path(__file__).parent.parent.parent
# Jobs and inputs that there are, most of the time; some other ones, now and then.
_CONFIG = """
hooks = "tests.server.exploring_hooks"

[dictionaries]
jobs = {{ values = {jobs} }}
finished = {{ values = {finished} }}
inputs = {{ values = {inputs} }}

[parameters]
"path.jobId" = {{ dictionary = "jobs", probability = 0.8 }}

[[operations]]
include-operation-id = "downloadInput"
parameters = {{ "path.jobId" = {{ dictionary = "finished", probability = 0.8 }}, "path.inputId" = {{ dictionary = "inputs", probability = 0.8 }} }}
"""


def explore(
    url: str, secret: str, folder: Path, known: dict[str, list], *, examples: int = 10, seed: int = 1
) -> str:
    """Runs every check there is; what it found, if that was anything, is in the AssertionError."""
    config = folder / "schemathesis.toml"
    config.write_text(_CONFIG.format(**{name: json.dumps(values) for name, values in known.items()}))
    command = [
        str(Path(sys.executable).parent / "schemathesis"), "--config-file", str(config),
        "run", f"{url}/openapi.json",
        "--header", f"Authorization: Bearer {secret}",
        "--checks", "all",
        "--max-examples", str(examples),
        "--seed", str(seed),
        "--generation-database", "none",
        "--continue-on-failure",
        "--no-color",
    ]  # fmt: skip
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=LIMIT * (5 + examples),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
