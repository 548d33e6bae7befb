# Two commands on a fresh machine with Python 3.11 or newer: `make demo` and `make test`.
# Everything is installed into .venv here; nothing outside this folder changes.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	command -v $$p >/dev/null && $$p -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
UV := UV_PYTHON_DOWNLOADS=never $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python
WORKERS ?= 2
BENCH ?= queue
RECORDS ?= 1000000
KILLS ?= 1050

.PHONY: demo demo-jobs test lint bench prove search docs pins clean

demo: .venv/.runtime
	$(BIN)/rowlock demo

# Export jobs: an S3 server, the API, three workers, 500 files, a kill, a re-drive and reuse, in under a minute.
demo-jobs: .venv/.dev
	$(BIN)/python examples/index_export/demo.py

test: .venv/.dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

lint: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/.dev
	$(BIN)/python -m bench.$(BENCH)

# A million records on PostgreSQL, a thousand kills that hit, and every other fault that this machine can do.
prove: .venv/.dev
	$(BIN)/rowlock prove --postgres --records $(RECORDS) --kills $(KILLS) --workers 5 \
		--html docs/proof/report.html --figures docs/proof/report.json

# The protocol's state machine, over many more orders of events than the tests try.
search: .venv/.dev
	ROWLOCK_PROTOCOL_EXAMPLES=2000 $(BIN)/python -m pytest tests/ledger/test_protocol.py tests/ledger/test_lock_protocol.py --timeout 1800 -n 2

# The reference is made from the code, and the picture in the README from the demo.
docs: .venv/.dev
	$(BIN)/python docs/generate.py
	$(BIN)/rowlock demo --picture docs/demo.svg

pins: .venv/.dev
	$(BIN)/uv pip compile -q --universal --no-header --no-annotate pyproject.toml --extra all -o requirements/runtime.txt
	$(BIN)/uv pip compile -q --universal --no-header --no-annotate pyproject.toml --extra all --group test --group lint -o requirements/dev.txt

clean:
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist

.venv/bin/uv:
	@test -n "$(PYTHON)" || { echo "Rowlock needs Python 3.11 or newer with venv; none was found. Name one: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

.venv/.runtime: pyproject.toml requirements/runtime.txt | .venv/bin/uv
	$(UV) -r requirements/runtime.txt -e .
	@touch $@

.venv/.dev: pyproject.toml requirements/dev.txt | .venv/bin/uv
	$(UV) -r requirements/dev.txt -e .
	@touch $@ .venv/.runtime
