"""Where files are kept. A file appears whole or not at all, and what has appeared never changes.

Every attempt streams to a place of its own and is then *published*: its path comes into being only if there is
nothing there yet. So a worker that was thought dead and wakes up late cannot touch the file that counted. See
docs/decisions/0020-artifact-paths.md.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import uuid4

from rowlock.errors import ConfigurationError, NotFound, StorageUnavailable

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator
    from datetime import datetime

    from rowlock.settings import Settings

ATTEMPTS = ".attempts"
OWNER = ".ledger"
_CLOUDS = {"s3", "gs", "az"}


@dataclass(frozen=True, slots=True)
class Stored:
    """What the storage says of a file."""

    key: str
    size: int
    modified_at: datetime


@dataclass(frozen=True, slots=True)
class Staged:
    """A file that is whole and that nobody sees yet: in a place of its own, or, if it is small, in memory."""

    key: str
    size: int
    sha256: str
    content_type: str
    data: bytes | None = None


class Meter:
    """Passes chunks on; counts and sums them up on the way."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self._digest = hashlib.sha256()
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self._digest.update(chunk)
            self.size += len(chunk)
            yield chunk

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


class ArtifactStore(ABC):
    """A bucket or a folder. Files are named by their key, or by the absolute URL that `url_of` gives."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"

    @staticmethod
    def open(url: str, **options: Any) -> ArtifactStore:
        """`s3://bucket/prefix`, `gs://…`, `az://…` or `file:///folder` (`file:folder` from the working folder).

        Options for s3: endpoint, region, path_style, access_key_id, secret_access_key, session_token. What is not
        given is read from the AWS_… variables. Options for gs and az are those of obstore.
        """
        scheme = urlsplit(url).scheme
        if scheme == "file":
            from rowlock.jobs.local_store import LocalStore  # noqa: PLC0415 - it imports this module

            if options:
                raise ConfigurationError(
                    f"{url}: a folder takes no options, and here are {', '.join(options)}."
                )
            return LocalStore(url)
        if scheme in _CLOUDS:
            from rowlock.jobs.object_store import ObjectStore  # noqa: PLC0415 - it imports this module

            return ObjectStore(url, **options)
        raise ConfigurationError(
            f"{scheme or url!r}: files are kept in s3://bucket/prefix, gs://bucket/prefix, az://container/prefix "
            "or file:///folder."
        )

    @classmethod
    def from_settings(cls, settings: Settings) -> ArtifactStore:
        """The store that the settings name."""
        if not settings.storage_url.startswith("s3:"):
            return cls.open(settings.storage_url)
        given = {
            "endpoint": settings.storage_endpoint,
            "region": settings.storage_region,
            "access_key_id": settings.storage_access_key_id,
            "secret_access_key": settings.storage_secret_access_key.get_secret_value(),
            "session_token": settings.storage_session_token.get_secret_value(),
        }
        options = {name: value for name, value in given.items() if value}
        return cls.open(settings.storage_url, path_style=settings.storage_path_style, **options)

    # -- names ---------------------------------------------------------------------------------------------

    def url_of(self, key: str) -> str:
        return f"{self.url}/{key}"

    def key_of(self, path: str) -> str:
        """The key of an absolute URL, or the key itself; NotFound if the URL is of another store."""
        if path.startswith(f"{self.url}/"):
            path = path[len(self.url) + 1 :]
        elif "://" in path:
            raise NotFound(f"{path} is not in {self.url}.")
        if path.startswith("/") or any(part in ("", ".", "..") for part in path.split("/")):
            raise NotFound(f"{path!r} cannot be the name of a file in {self.url}.")
        return path

    # -- one attempt ------------------------------------------------------------------------------------------

    def stage(self, name: str, chunks: Iterable[bytes], *, token: int, content_type: str) -> Staged:
        """Streams a file to a place that no other attempt has; nothing is left if the chunks end in an error."""
        key = f"{ATTEMPTS}/{token}-{uuid4().hex[:12]}/{name.rsplit('/', 1)[-1]}"
        return self._stage(key, Meter(chunks), content_type)

    def publish(self, staged: Staged, key: str, *, token: int) -> str:
        """Gives a staged file its path, and returns it: the key, or one beside it if other content is there already.

        The same content counts as published: an earlier attempt, or a request whose reply was lost, has done it.
        """
        beside = _beside(key, token, staged.sha256)
        if not self._only_creates(staged):
            # Nothing keeps two attempts from writing the same path but that each has a path of its own.
            key = key if token == 1 and not self.exists(key) else beside
            self._create(staged, key, only_new=False)
            return key
        for candidate in (key, beside):
            if self._create(staged, candidate, only_new=True) or self._holds(candidate, staged):
                return candidate
        raise StorageUnavailable(f"{self.url_of(beside)} is there with other content than its name says.")

    @abstractmethod
    def discard(self, staged: Staged) -> None:
        """Removes what an attempt has staged; its published file stays."""

    def _holds(self, key: str, staged: Staged) -> bool:
        """Is this very content at that path? Read, not believed."""
        try:
            if self.head(key).size != staged.size:
                return False
            there = Meter(self.read(key))
            for _ in there:
                pass
        except NotFound:
            return False
        return there.sha256 == staged.sha256

    @abstractmethod
    def _stage(self, key: str, chunks: Meter, content_type: str) -> Staged: ...

    @abstractmethod
    def _create(self, staged: Staged, key: str, *, only_new: bool) -> bool:
        """Makes the file from what was staged; False if `only_new` and there is one already."""

    @abstractmethod
    def _only_creates(self, staged: Staged) -> bool:
        """Can this storage make a file only if there is none? Found out by trying."""

    # -- files -------------------------------------------------------------------------------------------------

    def exists(self, path: str) -> bool:
        try:
            self.head(path)
        except NotFound:
            return False
        return True

    @abstractmethod
    def head(self, path: str) -> Stored:
        """NotFound if there is no such file."""

    @abstractmethod
    def read(self, path: str) -> Iterator[bytes]:
        """The file's bytes, in chunks."""

    @abstractmethod
    def put(self, key: str, data: bytes, *, content_type: str) -> str:
        """A small file, whole, in place of whatever was there; its URL. Not for artifacts: those never change."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """A file that is not there is deleted already."""

    @abstractmethod
    def list(self, prefix: str = "") -> Iterator[Stored]:
        """Every file in this folder and the folders below it."""

    @abstractmethod
    def sign(self, path: str, seconds: float) -> str:
        """A URL with which anybody can read this file for so long."""

    # -- leftovers ---------------------------------------------------------------------------------------------

    def belongs_to(self, ledger: str) -> bool:
        """Whether this ledger was the first to keep files here; if there was none, it is from now on.

        Two ledgers with one storage have jobs of the same names. Neither overwrites anything; but neither can know
        that a file is nobody's.
        """
        if not self.exists(OWNER):
            staged = self.stage(OWNER, [ledger.encode()], token=0, content_type="text/plain")
            try:
                self._create(staged, OWNER, only_new=self._only_creates(staged))
            finally:
                self.discard(staged)
        return b"".join(self.read(OWNER)) == ledger.encode()

    def sweep_attempts(self, older_than: datetime) -> int:
        """Deletes what attempts that died have staged, long ago; how many files."""
        old = [one for one in self._staged_leftovers() if one.modified_at < older_than]
        for stored in old:
            self.delete(stored.key)
        return len(old)

    def _staged_leftovers(self) -> Iterator[Stored]:
        """What nothing refers to, except an attempt that still runs."""
        return self.list(ATTEMPTS)

    def leftovers(self, folder: str, older_than: datetime, kept: Container[str]) -> tuple[Stored, ...]:
        """Files in this folder that are old and whose URLs are none of these: attempts published them, and lost."""
        return tuple(
            one
            for one in self.list(folder)
            if one.modified_at < older_than and self.url_of(one.key) not in kept
        )


def _beside(key: str, token: int, sha256: str) -> str:
    """`…/ABC.csv` → `…/ABC.7-1f0a9b3c5d7e.csv`: never the name of other content, whoever makes it."""
    folder, slash, name = key.rpartition("/")
    stem, dot, ending = name.partition(".")
    return f"{folder}{slash}{stem}.{token}-{sha256[:12]}{dot}{ending}"
