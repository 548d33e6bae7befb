"""Compression on the way. The same bytes in, the same bytes out: no time or name is written into the file."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from rowlock.errors import ConfigurationError
from rowlock.jobs.formats.parquet import Outlet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_GZIP_FORMAT = 31  # zlib's word for "with gzip's header"
_LEVEL = 6


def compressed(chunks: Iterable[bytes], compression: str | None) -> Iterable[bytes]:
    match compression:
        case "gzip":
            return _gzip(chunks)
        case "zstd":
            return _zstd(chunks)
    return chunks


def _gzip(chunks: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_FORMAT)
    for chunk in chunks:
        if packed := packer.compress(chunk):
            yield packed
    yield packer.flush()


def _zstd(chunks: Iterable[bytes]) -> Iterator[bytes]:
    try:
        import pyarrow as pa  # noqa: PLC0415 - heavy: only whoever compresses with it needs it
    except ModuleNotFoundError as error:
        raise ConfigurationError("zstd needs pyarrow. Install it: pip install 'rowlock[jobs]'") from error
    outlet = Outlet()
    with pa.CompressedOutputStream(pa.PythonFile(outlet, mode="w"), "zstd") as packer:
        for chunk in chunks:
            packer.write(chunk)
            if packed := outlet.taken():
                yield packed
    if packed := outlet.taken():
        yield packed
