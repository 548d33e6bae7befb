"""The peers: each in a venv of its own, at pinned versions, run by its own interpreter."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.server import run_side, say

if TYPE_CHECKING:
    from bench.server import Server

_HERE = Path(__file__).parent


def interpreter(name: str, *, install: bool) -> Path | None:
    """The peer's python, its venv made or brought up to date; None (and said so) if that cannot be done."""
    home = _HERE / ".venvs" / name
    wanted = _HERE / f"requirements-{name}.txt"
    installed = home / "installed.txt"
    python = home / "bin" / "python"
    if python.exists() and installed.exists() and installed.read_text() == wanted.read_text():
        return python
    if not install:
        say(f"{name}: not installed, and not asked to be; its ratios stay empty")
        return None
    say(f"{name}: installing {wanted.name}")
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    make, fill = (
        (
            [uv, "venv", "-q", "--clear", "-p", sys.executable, home],
            [uv, "pip", "install", "-q", "-p", python],
        )
        if uv
        else ([sys.executable, "-m", "venv", "--clear", home], [python, "-m", "pip", "install", "-q"])
    )
    for command in (make, [*fill, "-r", wanted]):
        done = subprocess.run([str(word) for word in command], check=False, capture_output=True, text=True)
        if done.returncode:
            say(f"{name}: cannot be installed, its ratios stay empty: {done.stderr.strip()[-500:]}")
            return None
    installed.write_text(wanted.read_text())
    return python


def pgqueuer(server: Server, python: Path, count: int) -> dict[str, Any]:
    with server.database("pgqueuer_bench") as url:
        return run_side(python, "bench.pgqueuer_side", url, str(count))


def procrastinate(server: Server, python: Path, count: int, seconds: float) -> dict[str, Any]:
    with server.database("procrastinate_bench") as url:
        return run_side(python, "bench.procrastinate_side", url, str(count), str(seconds))
