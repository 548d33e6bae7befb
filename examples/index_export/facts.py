"""What is really there at the end: every object in the bucket, read back and compared with what was ordered."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from rowlock import NotFound
from rowlock.client import Client, InputView
from rowlock.jobs.handling import folder_of
from rowlock.jobs.storage import ArtifactStore


class Facts:
    """Differences between what was ordered, what the API says, and what the bucket holds; none is what we want."""

    def __init__(self, client: Client, store: ArtifactStore) -> None:
        self._client = client
        self._store = store
        self._digests: dict[str, tuple[str, int]] = {}

    @property
    def files(self) -> int:
        return len(self._digests)

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self._digests.values())

    def manifests(self, key: str) -> int:
        return sum(name.endswith("/manifest.json") for name in self._objects(key))

    def differences(self, key: str, ordered: list[dict[str, Any]]) -> Iterator[str]:
        inputs = list(self._client.inputs(key))
        yield from self._of_inputs(inputs, ordered)
        made = {self._store.key_of(one.s3_path) for one in inputs if one.s3_path and not one.reused}
        manifest = f"{folder_of(key)}/manifest.json"
        for name, count in (Counter(self._objects(key)) - Counter({*made, manifest})).items():
            yield f"{name} is in the bucket {count} times more than it should be"
        for one in inputs:
            yield from self._of_file(one)
        told = json.loads(b"".join(self._store.read(manifest)))["files"]
        listed = {(one["path"], one["sha256"], one["reused"]) for one in told}
        if len(told) != len(inputs) or listed != {(one.s3_path, one.sha256, one.reused) for one in inputs}:
            yield f"{manifest} lists other files than the job has"

    def _of_inputs(self, inputs: list[InputView], ordered: list[dict[str, Any]]) -> Iterator[str]:
        if [one.fields for one in inputs] != ordered:
            yield "the job has other inputs than were ordered"
        for one in inputs:
            if one.status != "SUCCEEDED" or one.s3_path is None:
                yield f"input {one.input_id} is {one.status} and has {one.s3_path or 'no file'}"
        for path, count in Counter(one.s3_path for one in inputs).items():
            if count > 1:
                yield f"{path} is the file of {count} inputs"

    def _of_file(self, one: InputView) -> Iterator[str]:
        if one.s3_path is not None:
            if one.s3_path not in self._digests:
                try:
                    content = b"".join(self._store.read(one.s3_path))
                except NotFound:
                    yield f"{one.s3_path} is not there"
                    return
                self._digests[one.s3_path] = (hashlib.sha256(content).hexdigest(), len(content))
            if self._digests[one.s3_path] != (one.sha256, one.bytes):
                yield f"{one.s3_path} is not what the ledger says"

    def _objects(self, key: str) -> list[str]:
        return [stored.key for stored in self._store.list(folder_of(key))]
