"""The document is honest: schemathesis finds no answer that it does not foresee, and no 5xx."""

from __future__ import annotations

import re

import pytest

from rowlock.server.api import create_api
from rowlock.server.tokens import Tokens
from tests.server.exploring import explore


@pytest.mark.timeout(300)
def test_every_operation_answers_as_its_document_says(app, start_server, tmp_path):
    app.flow("score")(lambda record: None)
    app.enqueue("score", [1, 2, 3])
    secret = Tokens(app.ledger).create("explorer", "admin").secret
    server = start_server(app.settings)
    said = explore(server.url, secret, tmp_path)
    operations = sum(len(item) for item in create_api(app).openapi()["paths"].values())
    assert f"Tested: {operations}\n" in said, said
    assert not re.findall(r"rowlock\.access: \S+ \S+ 5\d\d .*", server.said)
    assert "GET /records/1/why 200" in server.said
    assert secret not in server.said
