"""What the client needs, and what it does not."""

from __future__ import annotations

import subprocess
import sys

import rowlock.client

BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocked())
"""


def run(code, *blocked):
    return subprocess.run(
        [sys.executable, "-c", BLOCK.format(blocked=blocked) + code],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_client_needs_no_web_framework_and_no_exporters():
    code = "from rowlock.client import *; Client('http://localhost'); print(len(dir(AsyncClient)) > 0)"
    server = ("fastapi", "starlette", "uvicorn", "prometheus_client")
    done = run(code, *server, "obstore", "pyarrow", "asyncpg", "psycopg", "jsonschema_rs")
    assert done.stdout == "True\n", done.stderr


def test_without_its_package_it_says_what_to_install():
    code = """
try:
    import rowlock.client
except Exception as error:
    print(type(error).__name__, error)
"""
    said = run("import importlib.util as u; u.find_spec = lambda name: None\n" + code).stdout
    assert said == "ConfigurationError The client needs httpx2. Install it: pip install 'rowlock[client]'\n"


def test_public_names_are_sorted_and_there():
    assert rowlock.client.__all__ == sorted(rowlock.client.__all__)
    for name in rowlock.client.__all__:
        assert getattr(rowlock.client, name) is not None


def test_both_clients_have_the_same_methods_and_arguments():
    import inspect

    from rowlock.client import AsyncClient, Client

    def face(kind):
        public = {name: thing for name, thing in vars(kind).items() if not name.startswith("_")}
        return {name: list(inspect.signature(thing).parameters.values()) for name, thing in public.items()}

    assert face(Client) == face(AsyncClient)
