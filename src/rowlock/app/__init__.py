"""The facade: one class, in parts by what a program does with it."""

from rowlock.app.app import Rowlock

__all__ = ["Rowlock"]
