"""The document is honest: schemathesis finds no answer that it does not foresee, and no 5xx."""

from __future__ import annotations

import os
import re

import pytest

from rowlock.server.api import create_api
from rowlock.server.tokens import Tokens
from tests.server.explored import declare, fill
from tests.server.exploring import explore

# To look further by hand: ROWLOCK_EXPLORE_EXAMPLES=100 ROWLOCK_EXPLORE_SEED=7
EXAMPLES = int(os.environ.get("ROWLOCK_EXPLORE_EXAMPLES", "10"))
SEED = int(os.environ.get("ROWLOCK_EXPLORE_SEED", "1"))
# Exploring is worth little if every answer is a refusal.
REACHED = {
    "GET /records/…/why 200", "POST /jobs 200", "POST /jobs 202", "GET /jobs 200", "GET /jobs/… 200",
    "GET /jobs/…/inputs 200", "GET /jobs/…/inputs/…/download 200", "GET /jobs/…/events 200", "POST /jobs/…:cancel 200",
    "POST /jobs/…:redrive 200", "POST /jobs/…:redrive 409", "POST /jobs/…:cancel 409",
}  # fmt: skip


@pytest.mark.timeout(600)
def test_every_operation_answers_as_its_document_says(make_app, start_server, tmp_path):
    app = declare(
        make_app(
            storage_url=f"file://{tmp_path}/files",
            finalizer_seconds=0.05,
            max_job_inputs=5,
            webhook_hosts=["hooks.example.com"],
        )
    )
    secret = Tokens(app.ledger).create("explorer", "admin").secret
    server = start_server(app.settings, "tests.server.program:app")
    with app.worker():
        said = explore(server.url, secret, tmp_path, fill(app), examples=EXAMPLES, seed=SEED)
    operations = sum(len(item) for item in create_api(app).openapi()["paths"].values())
    assert f"Tested: {operations}\n" in said, said
    assert not re.findall(r"rowlock\.access: \S+ \S+ 5\d\d .*", server.said)
    assert answers(server.said) >= REACHED
    assert secret not in server.said


def answers(log):
    """`GET /jobs/…/inputs 200`, for all that was answered."""
    found = re.findall(r"rowlock\.access: (\S+ \S+ \d+) ", log)
    return {re.sub(r"/(J\d{8}_\d+|\d+)", "/…", one) for one in found}
