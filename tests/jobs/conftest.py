"""Stores for tests: a real folder, and a real S3 server."""

from __future__ import annotations

from uuid import uuid4

import pytest

from rowlock.jobs.storage import ArtifactStore


@pytest.fixture(params=["file", "s3"])
def address(request, tmp_path) -> tuple[str, dict]:
    """A store's URL and options; nothing is in it."""
    if request.param == "file":
        return (tmp_path / "files").as_uri(), {}
    server = request.getfixturevalue("s3")
    server.make_bucket("tests")
    return f"s3://tests/{uuid4().hex}", server.options


@pytest.fixture
def store(address) -> ArtifactStore:
    url, options = address
    return ArtifactStore.open(url, **options)
