"""Files in a folder: staged, flushed to the disk, and linked to their path, which never replaces anything."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from rowlock.errors import (
    ConfigurationError,
    NotFound,
    Refused,
    StorageFull,
    StorageRefused,
    StorageUnavailable,
)
from rowlock.jobs.storage import ATTEMPTS, ArtifactStore, Meter, Staged, Stored

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK = 1024 * 1024
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REFUSED = {
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.ELOOP,
}
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}


class LocalStore(ArtifactStore):
    """`file:///folder`. A hard link is the one thing every file system makes only if the name is free."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.netloc not in ("", "localhost") or not parts.path or parts.query or parts.fragment:
            raise ConfigurationError(
                f"{url}: a folder is written file:///folder, or file:folder from the working one."
            )
        self.root = Path(unquote(parts.path)).resolve()
        super().__init__(self.root.as_uri())

    def url_of(self, key: str) -> str:
        return self._path(key).as_uri()

    def key_of(self, path: str) -> str:
        if path.startswith(f"{self.url}/"):
            path = f"{self.url}/{unquote(path[len(self.url) + 1 :])}"
        return super().key_of(path)

    def _path(self, path: str) -> Path:
        return self.root / self.key_of(path)

    # -- one attempt -----------------------------------------------------------------------------------------

    def _stage(self, key: str, chunks: Meter, content_type: str) -> Staged:
        target = self._path(key)
        try:
            with self._explained(key):
                target.parent.mkdir(parents=True)
                file = target.open("xb", buffering=0)
            with file:
                for chunk in (
                    chunks
                ):  # what a producer raises is its own, even if it is an OSError: not explained here
                    with self._explained(key):
                        _write(file.fileno(), chunk)
                with self._explained(key):
                    # Before its path appears: a power cut must not leave an empty file under a good name.
                    os.fsync(file)
        except BaseException:
            self._remove(target)
            raise
        return Staged(key, chunks.size, chunks.sha256, content_type)

    def discard(self, staged: Staged) -> None:
        self._remove(self._path(staged.key))

    def _remove(self, target: Path) -> None:
        with suppress(OSError):
            target.unlink()
        with suppress(OSError):
            target.parent.rmdir()

    def _create(self, staged: Staged, key: str, *, only_new: bool) -> bool:
        target = self._path(key)
        with self._explained(key):
            _make_folder(target.parent)
            if only_new:
                try:
                    os.link(self._path(staged.key), target)
                except FileExistsError:
                    return False
            else:
                self._path(staged.key).replace(target)
            _sync_folder(target.parent)
        return True

    def _only_creates(self, staged: Staged) -> bool:  # noqa: ARG002 - the same for every file
        return self._links

    @cached_property
    def _links(self) -> bool:
        """Some network file systems know no hard links."""
        probe = self.root / ATTEMPTS / f"probe-{uuid4().hex}"
        with self._explained(ATTEMPTS):
            probe.parent.mkdir(parents=True, exist_ok=True)
            probe.touch()
            try:
                os.link(probe, f"{probe}-link")
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                return False
            else:
                Path(f"{probe}-link").unlink()
                return True
            finally:
                probe.unlink()

    # -- files ------------------------------------------------------------------------------------------------

    def head(self, path: str) -> Stored:
        target = self._path(path)
        with self._explained(path):
            found = target.stat()
        if not target.is_file():
            raise NotFound(f"{self.url_of(path)} is a folder.")
        return Stored(self.key_of(path), found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))

    def read(self, path: str) -> Iterator[bytes]:
        with self._explained(path), self._path(path).open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk

    def put(self, key: str, data: bytes, *, content_type: str) -> str:
        staged = self.stage(key, [data], token=0, content_type=content_type)
        try:
            self._create(staged, key, only_new=False)
        finally:
            self.discard(staged)
        return self.url_of(key)

    def delete(self, path: str) -> None:
        target = self._path(path)
        with self._explained(path):
            target.unlink(missing_ok=True)
        if target.is_relative_to(self.root / ATTEMPTS):
            with suppress(OSError):
                target.parent.rmdir()

    def list(self, prefix: str = "") -> Iterator[Stored]:
        top = self._path(prefix.rstrip("/")) if prefix else self.root
        for folder, _, names in os.walk(top):
            for name in names:
                with suppress(NotFound):  # it may have gone by now
                    yield self.head(str((Path(folder) / name).relative_to(self.root)))

    def sign(self, path: str, seconds: float) -> str:  # noqa: ARG002
        raise Refused(f"{path}: a folder has no signed addresses. Read the file where it is, or use s3://.")

    @contextmanager
    def _explained(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise NotFound(f"{self.url}/{path} is not there.") from error
        except OSError as error:
            text = f"{self.url}/{path}: {error.strerror or error}"
            if error.errno in _FULL:
                raise StorageFull(f"{text}. Free space there; nothing was half-written.") from error
            if error.errno in _REFUSED:
                raise StorageRefused(f"{text}. Give this account the right to write there.") from error
            raise StorageUnavailable(text) from error


def _write(file: int, chunk: bytes) -> None:
    view = memoryview(chunk)
    while view:
        view = view[os.write(file, view) :]


def _make_folder(folder: Path) -> None:
    """With the entries in the folders above it on the disk: a file is not there if the way to it is not."""
    missing = [above for above in (folder, *folder.parents) if not above.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in missing:
        _sync_folder(made.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
