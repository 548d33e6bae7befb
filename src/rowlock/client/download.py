"""A file of a job, on this machine: whole and checked, or not at all."""

from __future__ import annotations

import hashlib
import os
from functools import partial
from typing import TYPE_CHECKING, BinaryIO
from uuid import uuid4

from rowlock.client.calls import job_path
from rowlock.client.steps import Answer, Call, Do, Lost, Pause, Read, Request, Send
from rowlock.errors import StorageError, StorageRefused

if TYPE_CHECKING:
    from pathlib import Path

    from rowlock.client.calls import Calls
    from rowlock.server.job_views import InputView

_SEE_OTHER = 307


def download(calls: Calls, key: str, input_id: int, to: Path) -> Call[Path]:
    one = yield from calls.input(key, input_id)
    name = (one.s3_path or "").rpartition("/")[2]
    target = to / name if to.is_dir() else to
    # The raw bytes are what the checksum is of.
    request = calls.address.request(
        "GET", f"{job_path(key)}/inputs/{input_id}/download", headers={"Accept": "*/*", **_AS_IT_IS}
    )
    attempt = 0
    while True:
        attempt += 1
        try:
            answer = yield from calls.retries.ask(request, stream=True, also=(_SEE_OTHER,))
            if answer.status == _SEE_OTHER:
                yield from _open(answer.headers.get("location", ""), name, calls.address.timeout)
            yield from _save(one, target)
        except Lost as lost:
            pause = calls.retries.after(attempt, lost, request)
        else:
            return target
        yield Pause(pause)


_AS_IT_IS = {"Accept-Encoding": "identity"}


def _open(address: str, name: str, timeout: float) -> Call[None]:
    """Opens a signed address. The signature is all that this host is shown: it is not ours, and gets no token."""
    if not address.startswith(("http://", "https://")):
        raise StorageError(f"{name}: the server names no address that it could be had from.")
    answer: Answer = yield Send(Request("GET", address, _AS_IT_IS, timeout=timeout), stream=True)
    if answer.status in (429, 500, 502, 503, 504):
        raise Lost(f"the place where {name} is kept answers with {answer.status}", sent=True)
    if answer.status in (401, 403):
        raise StorageRefused(
            f"{name}: the place where it is kept refuses the signed address ({answer.status})."
        )
    if answer.status != 200:
        raise StorageError(f"{name}: the place where it is kept answers with {answer.status}.")


def _save(one: InputView, target: Path) -> Call[None]:
    temporary = target.with_name(f".{target.name}.{uuid4().hex}.part")
    file: BinaryIO = yield Do(lambda: temporary.open("xb"))
    written = _Written(file)
    try:
        while data := (yield Read()):
            yield Do(partial(written.add, data))
        yield Do(partial(written.finish, one))
        yield Do(partial(os.replace, temporary, target))
    finally:
        file.close()
        temporary.unlink(missing_ok=True)


class _Written:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._size = 0

    def add(self, data: bytes) -> None:
        self._digest.update(data)
        self._size += len(data)
        self._file.write(data)

    def finish(self, one: InputView) -> None:
        """On the disk, and what the ledger says it is."""
        self._file.flush()
        os.fsync(self._file.fileno())
        found = {"bytes": self._size, "sha256": self._digest.hexdigest()}
        for name, has in found.items():
            wanted = getattr(one, name)
            if wanted is not None and wanted != has:
                raise StorageError(
                    f"Input {one.input_id}: what came from {one.s3_path} has {name} {has}, and the ledger says {wanted}. "
                    "Nothing was kept."
                )
