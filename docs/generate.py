"""Writes docs/reference from the code, so that it cannot say anything else. `--check` only compares.

Run it with `make docs`, or `python docs/generate.py`. The same code gives the same bytes.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.main import get_command

import rowlock
import rowlock.client
from rowlock import errors
from rowlock.cli.main import PANELS
from rowlock.cli.main import app as command_line
from rowlock.ledger.statements import load_migrations, load_statements
from rowlock.proof import model
from rowlock.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

REFERENCE = Path(__file__).parent / "reference"
MACHINES = Path(__file__).parent / "explanation" / "state-machines.md"
_NOTE = "<!-- Written by docs/generate.py; change the code, then run: make docs -->"
# Names that Python or pydantic asks for.
_NOT_OURS = ("_", "settings_customise")
_SETTINGS_BEFORE = (
    "Rowlock reads its settings once, when a program builds `Rowlock()` or a command starts. Environment variables "
    "win over `rowlock.toml`, and that wins over the defaults. `rowlock.toml` is looked for in the working folder; "
    "the variable `ROWLOCK_CONFIG` names another file. Unknown names in the file are an error. `rowlock init` "
    "writes a file with every setting in it."
)
_SETTINGS_AFTER = (
    "The heartbeat is not a setting: it is sent every third of the lease. `--ledger URL` on a command wins over "
    "`ROWLOCK_LEDGER_URL`."
)


def page(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", _NOTE, *(part.strip() for part in parts if part.strip())]) + "\n"


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


# -- the command line ------------------------------------------------------------------------------------


def cli_page() -> str:
    root: Any = get_command(command_line)
    parts = [
        root.help,
        (
            "Every command takes `--help`. Exit codes: 0 for success, 1 for an error (a sentence on stderr), 2 for a "
            "command line that cannot be understood."
        ),
        "\n".join(f"- **{panel}**: {_links(panel, root)}" for panel in PANELS),
    ]
    for command in root.commands.values():
        parts += _command(command, f"rowlock {command.name}")
    return page("Command line", *parts)


def _links(panel: str, root: Any) -> str:
    names = [name for name, command in root.commands.items() if command.rich_help_panel == panel]
    return ", ".join(f"[`{name}`](#rowlock-{name})" for name in names)


def _command(command: Any, name: str, level: int = 2) -> Iterator[str]:
    yield f"{'#' * level} rowlock {name.removeprefix('rowlock ')}"
    yield _examples_as_code(command.help or "")
    if hasattr(command, "commands"):
        for sub in command.commands.values():
            yield from _command(sub, f"{name} {sub.name}", level + 1)
        return
    arguments = [p for p in command.params if not p.opts[0].startswith("-")]
    options = [p for p in command.params if p.opts[0].startswith("-") and not p.hidden]
    usage = [name, *(_argument(p) for p in arguments), *(["[OPTIONS]"] if options else [])]
    yield f"```text\n{' '.join(usage)}\n```"
    rows = [[f"`{_argument(p)}`", p.help or "", ""] for p in arguments]
    rows += [[f"`{_option(p)}`", p.help or "", _default(p)] for p in options]
    if rows:
        yield table(["", "meaning", "default"], rows)


def _examples_as_code(text: str) -> str:
    return re.sub(r"^Example: (.+)$", r"Example: `\1`", text, flags=re.MULTILINE)


def _argument(parameter: Any) -> str:
    text = (parameter.metavar or parameter.name.upper()) + ("..." if parameter.nargs == -1 else "")
    return text if parameter.required else f"[{text}]"


def _option(parameter: Any) -> str:
    text = ", ".join(parameter.opts)
    return text if parameter.is_flag else f"{text} {parameter.metavar or parameter.name.upper()}"


def _default(parameter: Any) -> str:
    if isinstance(parameter.show_default, str):
        return parameter.show_default
    if parameter.is_flag or parameter.default is None:
        return ""
    return f"`{parameter.default}`"


# -- settings ----------------------------------------------------------------------------------------------


def settings_page() -> str:
    rows = [
        [
            f"`{name}`",
            f"`ROWLOCK_{name.upper()}`",
            f"`{json.dumps(field.default, default=str)}`",
            _limits(field),
            field.description or "",
        ]
        for name, field in Settings.model_fields.items()
    ]
    columns = ["in rowlock.toml", "environment", "default", "limits", "meaning"]
    return page("Settings", _SETTINGS_BEFORE, table(columns, rows), _SETTINGS_AFTER)


def _limits(field: Any) -> str:
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    return ", ".join(
        f"{sign} {getattr(limit, name):,}"
        for limit in field.metadata
        for name, sign in signs.items()
        if getattr(limit, name, None) is not None
    )


# -- the public names ----------------------------------------------------------------------------------------


def api_page() -> str:
    parts = [
        (
            "These are the public names: `from rowlock import …`. Whatever is not here may change without notice. "
            "The errors are drawn as a tree in [errors](errors.md); every setting is in [settings](settings.md)."
        )
    ]
    for name in sorted(rowlock.__all__):
        parts += _public(name, rowlock)
    return page("Python API", *parts)


def client_page() -> str:
    parts = [
        (
            "These are the public names of the client: `from rowlock.client import …`. How it is used is in "
            "[how-to](../how-to/client.md); its errors are in the tree of [errors](errors.md)."
        )
    ]
    for name in rowlock.client.__all__:
        parts += _public(name, rowlock.client)
    return page("Python client", *parts)


def _public(name: str, home: ModuleType) -> Iterator[str]:
    thing = getattr(home, name)
    if inspect.isfunction(thing):
        yield from _function(name, thing)
        return
    node = _class_node(thing)
    bases = [base for base in (ast.unparse(base) for base in node.bases) if base != "object"]
    yield f"## {name}"
    yield f"```python\n{_head(name, node, bases)}\n```"
    yield _doc(node)
    fields = [] if thing is Settings else [one for one in node.body if isinstance(one, ast.AnnAssign)]
    if fields:
        yield "\n".join(f"- `{_field(one)}`" for one in fields)
    for member in _members(thing, home.__all__):
        yield from _member(name, member)


def _field(node: ast.AnnAssign) -> str:
    """Without what only pydantic reads."""
    text = ast.unparse(node)
    return text if " = Field(" not in text else f"{text.partition(' = Field(')[0]}"


def _members(thing: Any, public: list[str]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Its own methods, and those of bases that have no page of their own."""
    seen: set[str] = set()
    hidden = [
        base
        for base in thing.__mro__[1:]
        if base.__module__.startswith("rowlock.") and base.__name__ not in public
    ]
    for owner in (thing, *hidden):
        for member in _class_node(owner).body:
            if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) and not member.name.startswith(
                _NOT_OURS
            ):
                if member.name not in seen:
                    yield member
                seen.add(member.name)


def _function(name: str, thing: Any) -> Iterator[str]:
    tree = ast.parse(inspect.getsource(thing))
    [node] = [one for one in tree.body if isinstance(one, ast.FunctionDef)]
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    yield f"## {name}"
    yield f"```python\n{name}{_arguments(node)}{returns}\n```"
    yield _doc(node)


def _class_node(thing: Any) -> ast.ClassDef:
    tree = ast.parse(inspect.getsource(importlib.import_module(thing.__module__)))
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == thing.__name__)


def _head(name: str, node: ast.ClassDef, bases: list[str]) -> str:
    if any("dataclass" in ast.unparse(one) for one in node.decorator_list):
        fields = (ast.unparse(one) for one in node.body if isinstance(one, ast.AnnAssign))
        return f"{name}({', '.join(fields)})"
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and member.name == "__init__":
            return f"{name}{_arguments(member)}"
    return f"class {name}({', '.join(bases)})"


def _member(owner: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    decorators = {ast.unparse(one) for one in node.decorator_list}
    yield f"### {owner}.{node.name}"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    if decorators & {"property", "cached_property"}:
        yield f"```python\n{node.name}: {ast.unparse(node.returns) if node.returns else 'Any'}\n```"
    else:
        word = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
        static = "@classmethod\n" if "classmethod" in decorators else ""
        yield f"```python\n{static}{word}{node.name}{_arguments(node)}{returns}\n```"
    yield _doc(node)


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    arguments = node.args
    arguments.args = [one for one in arguments.args if one.arg not in ("self", "cls")]
    return f"({ast.unparse(arguments)})"


def _doc(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The docstring; its `Args:` become a list."""
    text = ast.get_docstring(node) or ""
    before, found, after = text.partition("\nArgs:\n")
    if not found:
        return text
    items = [
        " ".join(item.split()) for item in re.split(r"\n    (?=\w)", "\n" + after.rstrip()) if item.strip()
    ]
    return before.rstrip() + "\n\n" + "\n".join(re.sub(r"^(\w+): ", r"- `\1`: ", item) for item in items)


# -- errors --------------------------------------------------------------------------------------------------


def errors_page() -> str:
    first, tree, last = (errors.__doc__ or "").strip().split("\n\n")
    found = {
        name: thing
        for name, thing in vars(errors).items()
        if inspect.isclass(thing) and thing.__module__ == errors.__name__
    }
    rows = [[f"`{name}`", inspect.getdoc(thing) or ""] for name, thing in found.items()]
    return page(
        "Errors", first, f"```text\n{tree}\n```", " ".join(last.split()), table(["error", "it says"], rows)
    )


# -- the ledger ------------------------------------------------------------------------------------------------


def ledger_page() -> str:
    parts = [
        (
            "The ledger's tables as the PostgreSQL migrations make them. The schema is `rowlock` unless "
            "`ROWLOCK_LEDGER_SCHEMA` says otherwise. SQLite has the same tables and columns without a schema; there, "
            "times are seconds since 1970 and JSON is text. `rowlock migrate --sql` prints the script. The tables are not "
            "an interface: read them if you must, and never write to them."
        )
    ]
    for number, (name, sql) in load_migrations("postgresql", "rowlock").items():
        parts.append(f"## Tables of migration {number:04d}_{name}")
        parts += _tables(sql)
    parts.append("## Statements")
    parts.append(
        "One statement a file, in `src/rowlock/ledger/sql/<dialect>/`. These are the PostgreSQL ones."
    )
    statements = load_statements("postgresql", "rowlock")
    parts.append(
        table(
            ["statement", "why"], [[f"`{name}`", _comment(statements[name])] for name in sorted(statements)]
        )
    )
    return page("The ledger's tables", *parts)


def _tables(sql: str) -> Iterator[str]:
    for comment, body in re.findall(r"((?:^--.*\n)*)^(CREATE [^;]+;)", sql, re.MULTILINE):
        why = " ".join(line.removeprefix("--").strip() for line in comment.splitlines())
        kind, name = re.findall(r"CREATE (?:UNIQUE )?(\w+) (?:rowlock\.)?(\w+)", body)[0]
        if kind == "TABLE":
            yield f"### {name}"
            yield why
            yield table(["column", "definition"], list(_columns(body)))
            options = re.search(r"\) WITH \((.+)\);$", body, re.DOTALL)
            if options:
                yield f"Storage: `{' '.join(options[1].split())}`."
        else:
            yield f"**{kind.lower()} `{name}`**: {why}" if why else f"**{kind.lower()} `{name}`**"
            yield f"```sql\n{body}\n```"


def _columns(body: str) -> Iterator[list[str]]:
    for line in body.splitlines()[1:]:
        if line.startswith(")"):
            return
        name, definition = line.strip().rstrip(",").split(None, 1)
        if name.isupper():  # PRIMARY KEY (…)
            name, definition = "", f"{name} {definition}"
        yield [f"`{name}`" if name else "", f"`{' '.join(definition.split())}`"]


def _comment(sql: str) -> str:
    lines = []
    for line in sql.splitlines():
        if not line.startswith("--"):
            break
        lines.append(line.removeprefix("--").strip())
    return " ".join(lines)


# -- write, or compare ----------------------------------------------------------------------------------------

# -- the state machines -----------------------------------------------------------------------------------------


def machines_page() -> str:
    """The page as it is, with its tables as the model has them."""
    header = ["action", "from", "to", "who", "token", "statement", "steps on SQLite"]

    def fill(found: re.Match[str]) -> str:
        made = table(header, model.rows(getattr(model, found[1])))
        return f"<!-- model: {found[1]} -->\n{made}\n<!-- end -->"

    text = MACHINES.read_text(encoding="utf-8")
    return re.sub(r"<!-- model: (\w+) -->\n.*?<!-- end -->", fill, text, flags=re.DOTALL)


PAGES: dict[str, Callable[[], str]] = {
    "api.md": api_page,
    "cli.md": cli_page,
    "client.md": client_page,
    "errors.md": errors_page,
    "ledger.md": ledger_page,
    "settings.md": settings_page,
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes docs/reference from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a page is old")
    check = parser.parse_args().check
    old = []
    pages = [*((REFERENCE / name, make) for name, make in PAGES.items()), (MACHINES, machines_page)]
    for target, make in pages:
        name, text = target.name, make()
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            old.append(name)
            if not check:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
    if old:
        print(f"{'old' if check else 'written'}: {', '.join(old)}" + (". Run: make docs" if check else ""))
    return 1 if check and old else 0


if __name__ == "__main__":
    sys.exit(main())
