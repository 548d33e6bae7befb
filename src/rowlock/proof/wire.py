"""The part of PostgreSQL's wire protocol that says when a commit has happened."""

from __future__ import annotations

import struct
from typing import NamedTuple

_HEADER = struct.Struct("!cI")
_COMPLETE, _READY = b"C", b"Z"


class CommitReply(NamedTuple):
    """Where in a piece of the server's stream a commit's reply begins, and whether it answers a COMMIT."""

    offset: int
    explicit: bool


class ServerStream:
    """Follows what a server sends, message by message, whatever pieces it arrives in.

    A reply to a commit is `CommandComplete COMMIT`; or, outside of a transaction, any CommandComplete after which
    the session is idle again: such a statement has committed by itself.
    """

    def __init__(self) -> None:
        self._head = b""  # of a message whose header has not arrived in full
        self._kind = b""  # of the message whose body arrives now
        self._left = 0  # bytes of it that are still to come
        self._body = b""
        self._idle = False
        self._failed = False
        self._complete_at: int | None = None

    def feed(self, data: bytes) -> CommitReply | None:
        """The first commit whose reply ends in this piece."""
        found: CommitReply | None = None
        if self._complete_at is not None:
            self._complete_at = 0  # it began in an earlier piece, which has been sent on
        at = 0
        while at < len(data):
            if not self._left:
                need = _HEADER.size - len(self._head)
                self._head += data[at : at + need]
                at += need
                if len(self._head) < _HEADER.size:
                    break
                self._kind, length = _HEADER.unpack(self._head)
                self._head, self._body, self._left = b"", b"", length - 4
                if self._kind == _COMPLETE:
                    self._complete_at = max(0, at - _HEADER.size)
            step = min(self._left, len(data) - at)
            if self._kind in (_COMPLETE, _READY):
                self._body += data[at : at + step]
            at += step
            self._left -= step
            if not self._left:
                found = found or self._ended()
        return found

    def _ended(self) -> CommitReply | None:
        """A message has arrived in full."""
        match self._kind:
            case b"C":
                return (
                    CommitReply(self._complete_at or 0, explicit=True) if self._body == b"COMMIT\0" else None
                )
            case b"E":
                self._failed = True
            case b"Z":
                was_idle, self._idle = self._idle, self._body == b"I"
                failed, self._failed = self._failed, False
                at, self._complete_at = self._complete_at, None
                if was_idle and self._idle and not failed and at is not None:
                    return CommitReply(at, explicit=False)
        return None
