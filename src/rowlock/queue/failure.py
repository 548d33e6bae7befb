"""How an exception becomes something a person can read, and group."""

from __future__ import annotations

import hashlib
import re
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowlock.queue.payload import clean_text

if TYPE_CHECKING:
    from types import TracebackType

_MESSAGE_LIMIT = 2_000
_TRACEBACK_LIMIT = 20_000
_OURS = __file__.rsplit("/", 2)[0]
# What differs between two cases of the same fault: quoted values, addresses, ids, numbers.
_VARIABLE = re.compile(r"'[^']*'|\"[^\"]*\"|0x[0-9a-fA-F]+|\b[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}\b|\d+")


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """An attempt's error: type, message, traceback, and a fingerprint that is the same for the same fault."""

    type: str
    message: str
    traceback: str | None
    fingerprint: str

    @classmethod
    def of(cls, error: BaseException) -> ErrorReport:
        name = type(error).__qualname__
        message = clean_text(str(error), _MESSAGE_LIMIT)
        frames = clean_text("".join(traceback.format_exception(error)), _TRACEBACK_LIMIT)
        return cls(name, message, frames, fingerprint(name, message, _last_frame(error.__traceback__)))

    @classmethod
    def plain(cls, name: str, message: str) -> ErrorReport:
        return cls(name, clean_text(message, _MESSAGE_LIMIT), None, fingerprint(name, message, ""))

    @property
    def summary(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


def fingerprint(name: str, message: str, place: str) -> str:
    """`ValueError-1a2b3c4d`: the type to recognise it by, a hash of what makes it the same fault."""
    shape = _VARIABLE.sub("#", message.split("\n", 1)[0])
    digest = hashlib.sha256(f"{name}|{shape}|{place}".encode()).hexdigest()[:8]
    return f"{name}-{digest}"


def _last_frame(trace: TracebackType | None) -> str:
    """Where in the user's code it was raised; line numbers move with every edit, names do not."""
    place = ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith(_OURS):
            place = f"{code.co_filename.rsplit('/', 1)[-1]}:{code.co_qualname}"
        trace = trace.tb_next
    return place
