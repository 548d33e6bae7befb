"""The public surface: flat, sorted, and exactly what the package says it is."""

from __future__ import annotations

import subprocess
import sys

import rowlock


def test_public_names_are_sorted_and_there():
    assert rowlock.__all__ == sorted(rowlock.__all__)
    for name in rowlock.__all__:
        assert getattr(rowlock, name) is not None


def test_each_public_name_has_one_home():
    assert set(rowlock._HOMES) == set(rowlock.__all__)


def test_every_error_is_public_and_explained():
    from rowlock import errors

    ours = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, Exception) and value.__module__ == "rowlock.errors"
    }
    assert ours <= set(rowlock.__all__)
    for name in ours:
        assert getattr(errors, name).__doc__
        assert name in errors.__doc__


def test_import_is_light():
    """A program that only enqueues, or only asks for help, must not wait for a web of imports."""
    code = "import sys, rowlock; print('sqlalchemy' in sys.modules, 'typer' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
