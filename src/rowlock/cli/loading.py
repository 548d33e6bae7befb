"""Finds the user's program: MODULE:APP."""

import importlib
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rowlock.cli.ledgers import connect, require_file
from rowlock.errors import ConfigurationError

if TYPE_CHECKING:
    from rowlock.app import Rowlock


def app_or_plain(target: str | None, ledger: str | None) -> "Rowlock":
    """The user's program, or, if none is named, one that has nothing but what the settings say."""
    from rowlock.app import Rowlock
    from rowlock.settings import load_settings

    if target is not None:
        return load_app_on(ledger, target)
    with connect(ledger) as opened:
        require_file(opened)
    return Rowlock(settings=load_settings(ledger_url=ledger))


def load_app_on(ledger: str | None, target: str) -> "Rowlock":
    """The same, on the ledger that was named on the command line."""
    if ledger is not None:
        # For a program that builds a plain Rowlock(), and for the processes that it starts.
        os.environ["ROWLOCK_LEDGER_URL"] = ledger
    app = load_app(target)
    if ledger is not None and app.settings.ledger_url != ledger:
        app.close()
        app.settings = app.settings.model_copy(update={"ledger_url": ledger})
    return app


def load_app(target: str) -> "Rowlock":
    """The Rowlock that `MODULE:APP` (or `MODULE`, for its `app`) names; every way to fail says what to do."""
    from rowlock.app import Rowlock

    name, _, attribute = target.partition(":")
    attribute = attribute or "app"
    if name.endswith(".py") or "/" in name:
        module = name.removesuffix(".py").removeprefix("./").replace("/", ".")
        raise ConfigurationError(
            f"{name} is a file, and a module is wanted: rowlock worker {module}:{attribute}"
        )
    module = _import(name)
    if not hasattr(module, attribute):
        found = [key for key, value in vars(module).items() if isinstance(value, Rowlock)]
        others = f"It has {name}:{found[0]}" if found else f"Build one there: {attribute} = Rowlock()"
        raise ConfigurationError(f"The module {name} ({module.__file__}) has no {attribute!r}. {others}")
    app = getattr(module, attribute)
    if not isinstance(app, Rowlock):
        raise ConfigurationError(
            f"{name}:{attribute} is a {type(app).__name__}, not a Rowlock. Name the one that the flows are registered "
            "on, as in: app = Rowlock()"
        )
    return app


def _import(name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(f"{missing}."):
            raise ConfigurationError(
                f"There is no module {missing!r} in {here} or among the installed ones. Start rowlock in the folder that "
                "holds it, or install it."
            ) from error
        raise ConfigurationError(
            f"The module {name} imports {missing!r}, which is not installed here ({_place(error)}). Install it in "
            f"this environment: {sys.prefix}"
        ) from error
    except (Exception, SystemExit) as error:
        raise ConfigurationError(
            f"The module {name} raised {type(error).__name__} while it was imported ({_place(error)}): {error}. "
            f"It must import cleanly; try: python -c 'import {name}'"
        ) from error


def _place(error: BaseException) -> str:
    """Where the user's code was when it failed."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen") and "/importlib/" not in frame.filename and frame.filename != __file__
    ]  # fmt: skip
    return f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else "nowhere in particular"
