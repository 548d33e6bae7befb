"""Files in a bucket, through obstore. S3 is tested against a real server; gs:// and az:// take the same way, untested."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from rowlock.errors import (
    ConfigurationError,
    NotFound,
    StorageError,
    StorageFull,
    StorageRefused,
    StorageUnavailable,
)
from rowlock.jobs.storage import ATTEMPTS, ArtifactStore, Meter, Staged, Stored

if TYPE_CHECKING:
    from collections.abc import Iterator

# A file up to this size is sent in one request; a larger one in parts of this size, at most four on their way.
PART_BYTES = 8 * 1024 * 1024
_PARTS_AT_ONCE = 4
# The largest object that S3 copies in one piece. A larger file stays at the place that its attempt has given it.
COPY_LIMIT = 5 * 1024**3
_CHUNK = 1024 * 1024
_RACERS = 8
CLAIMS = ".claims"
_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w+)</Code>(?:\s*<Message>([^<]*)</Message>)?")
_AGAIN_STATUS = {408, 409, 425, 429}
_AGAIN_CODES = {"RequestTimeout", "ExpiredToken", "RequestTimeTooSkewed", "SlowDown", "OperationAborted"}
_FULL_CODES = {"InsufficientStorage", "XMinioStorageFull", "QuotaExceeded", "EntityTooLarge"}


class ObjectStore(ArtifactStore):
    """A bucket, and a prefix in it."""

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url)
        try:
            import obstore  # noqa: PLC0415 - an extra: only whoever keeps files in a bucket needs it
            from obstore import exceptions  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise ConfigurationError(
                f"{url} needs obstore. Install it: pip install 'rowlock[jobs]'"
            ) from error
        self._obstore, self._errors = obstore, exceptions
        self._store: Any = self._connect(options)
        self.copy_limit = COPY_LIMIT

    def _connect(self, options: dict[str, Any]) -> Any:
        from obstore import store  # noqa: PLC0415

        config = {name: value for name, value in options.items() if name != "path_style"}
        if self.url.startswith("s3://"):
            config.setdefault("copy_if_not_exists", "multipart")
            config["virtual_hosted_style_request"] = not options.get("path_style", True)
        client: dict[str, Any] = {"connect_timeout": "5s", "timeout": "60s"}
        if str(options.get("endpoint", "")).startswith("http://"):
            client["allow_http"] = True
        retry = {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}
        try:
            return store.from_url(self.url, config=config, client_options=client, retry_config=retry)  # type: ignore[call-overload]
        except (self._errors.BaseError, ValueError, TypeError) as error:
            # Names only: an option's value may be a secret.
            raise ConfigurationError(
                f"{self.url} cannot be opened with the options {', '.join(sorted(options)) or '(none)'}: "
                f"{_first_line(error)}"
            ) from None

    # -- one attempt ------------------------------------------------------------------------------------------

    def _stage(self, key: str, chunks: Meter, content_type: str) -> Staged:
        stream = iter(chunks)
        head = bytearray()
        for chunk in stream:
            head += chunk
            if len(head) > PART_BYTES:
                break
        else:
            return Staged(key, chunks.size, chunks.sha256, content_type, data=bytes(head))
        first = bytes(head)
        head.clear()
        try:
            with self._explained(key):
                self._obstore.put(
                    self._store,
                    key,
                    chain([first], stream),
                    attributes={"Content-Type": content_type},
                    use_multipart=True,
                    chunk_size=PART_BYTES,
                    max_concurrency=_PARTS_AT_ONCE,
                )
        except BaseException:
            with suppress(StorageError):  # a reply may have been lost; the first error is the one to tell
                self.delete(key)
            raise
        return Staged(key, chunks.size, chunks.sha256, content_type)

    def discard(self, staged: Staged) -> None:
        if staged.data is None and staged.size <= self.copy_limit:
            self.delete(staged.key)

    def publish(self, staged: Staged, key: str, *, token: int) -> str:
        if staged.data is None and staged.size > self.copy_limit:
            return staged.key
        return super().publish(staged, key, token=token)

    def _create(self, staged: Staged, key: str, *, only_new: bool) -> bool:
        with self._explained(key):
            try:
                if staged.data is not None:
                    self._obstore.put(
                        self._store,
                        key,
                        staged.data,
                        attributes={"Content-Type": staged.content_type},
                        mode="create" if only_new else "overwrite",
                    )
                elif only_new and not self._claimed(key, staged):
                    return False
                else:
                    self._obstore.copy(self._store, staged.key, key, overwrite=not only_new)
            except self._errors.AlreadyExistsError:
                return False
        return True

    def _claimed(self, key: str, staged: Staged) -> bool:
        """Only one attempt ever copies to a path: whoever made its claim, a small file beside all others.

        A copy's own condition is not enough: some servers look first and write later, and two that race both win.
        """
        claim, owner = f"{CLAIMS}/{key}", staged.key.encode()
        try:
            self._obstore.put(self._store, claim, owner, mode="create")
        except self._errors.AlreadyExistsError:
            return (
                bytes(self._obstore.get(self._store, claim).bytes()) == owner
            )  # our own, if a reply was lost
        return True

    def _only_creates(self, staged: Staged) -> bool:
        puts, copies = self._conditions
        return puts and (staged.data is not None or copies)

    @cached_property
    def _conditions(self) -> tuple[bool, bool]:
        """Does this server refuse to put, and to copy, over a file that is there? Some answer 200 and overwrite it."""
        one, other = (f"{ATTEMPTS}/probe-{uuid4().hex}" for _ in range(2))
        try:
            with self._explained(ATTEMPTS), ThreadPoolExecutor(_RACERS) as pool:
                racers = [
                    pool.submit(
                        self._refuses, lambda: self._obstore.put(self._store, one, b"probe", mode="create")
                    )
                    for _ in range(_RACERS)
                ]
                puts = sum(not racer.result() for racer in racers) == 1
                self._obstore.put(self._store, other, b"probe")
                return puts, self._refuses(
                    lambda: self._obstore.copy(self._store, one, other, overwrite=False)
                )
        finally:
            with suppress(StorageError):
                self.delete(one)
                self.delete(other)

    def _refuses(self, request: Any) -> bool:
        try:
            request()
        except (self._errors.AlreadyExistsError, self._errors.PreconditionError):
            return True
        except self._errors.NotSupportedError:
            return False
        except self._errors.GenericError as error:
            if _status(error) in (400, 405, 501):  # it says that it does not know such a request
                return False
            raise
        return False

    def _staged_leftovers(self) -> Iterator[Stored]:
        # What is too large to copy stays where it was staged, and counts.
        yield from (one for one in self.list(ATTEMPTS) if one.size <= self.copy_limit)
        yield from self.list(CLAIMS)

    # -- files -------------------------------------------------------------------------------------------------

    def head(self, path: str) -> Stored:
        key = self.key_of(path)
        with self._explained(key):
            found = self._obstore.head(self._store, key)
        return Stored(key, found["size"], found["last_modified"])

    def read(self, path: str) -> Iterator[bytes]:
        key = self.key_of(path)
        with self._explained(key):
            for chunk in self._obstore.get(self._store, key).stream(min_chunk_size=_CHUNK):
                yield bytes(chunk)

    def put(self, key: str, data: bytes, *, content_type: str) -> str:
        with self._explained(key):
            self._obstore.put(self._store, self.key_of(key), data, attributes={"Content-Type": content_type})
        return self.url_of(key)

    def delete(self, path: str) -> None:
        key = self.key_of(path)
        with suppress(NotFound), self._explained(key):
            self._obstore.delete(self._store, key)

    def list(self, prefix: str = "") -> Iterator[Stored]:
        with self._explained(prefix):
            for page in self._obstore.list(self._store, prefix or None):
                for found in page:
                    yield Stored(found["path"], found["size"], found["last_modified"])

    def sign(self, path: str, seconds: float) -> str:
        key = self.key_of(path)
        with self._explained(key):
            return self._obstore.sign(self._store, "GET", key, timedelta(seconds=seconds))

    @contextmanager
    def _explained(self, key: str) -> Iterator[None]:
        """What obstore raises, by what can be done about it. What a producer raises passes through."""
        try:
            yield
        except FileNotFoundError as error:
            if "Object at location" not in str(error):  # a producer's own
                raise
            if "NoSuchBucket" in str(error) or " performing P" in str(
                error
            ):  # PUT and POST need no object, but a bucket
                raise StorageRefused(
                    f"{self._told(key, error)}. Make the bucket, or correct the URL."
                ) from error
            raise NotFound(f"{self.url}/{key} is not there.") from error
        except self._errors.BaseError as error:
            raise self._as_ours(key, error) from error

    def _as_ours(self, key: str, error: Exception) -> StorageError:
        told, status, code = self._told(key, error), _status(error), _code(error)
        if code in _FULL_CODES or status == 507:
            return StorageFull(f"{told}. Free space there; nothing was half-written.")
        if code in _AGAIN_CODES:
            return StorageUnavailable(told)
        if isinstance(error, self._errors.PermissionDeniedError | self._errors.UnauthenticatedError):
            return StorageRefused(f"{told}. Check the credentials, and what they allow.")
        if status is not None and 400 <= status < 500 and status not in _AGAIN_STATUS:
            return StorageRefused(told)
        return StorageUnavailable(told)

    def _told(self, key: str, error: Exception) -> str:
        found, status = _CODE.search(str(error)), _status(error)
        if found:
            return f"{self.url}/{key}: {status or ''} {found[1]}: {(found[2] or '').rstrip('.')}"
        return f"{self.url}/{key}: {status or _first_line(error)}"


def _status(error: Exception) -> int | None:
    found = _STATUS.search(str(error))
    return int(found[1]) if found else None


def _code(error: Exception) -> str:
    found = _CODE.search(str(error))
    return found[1] if found else ""


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:500]
