"""Rowlock for pytest: a throw-away ledger, a clock that tests move, a run until idle, and kills at every commit.

Installed with Rowlock; nothing is imported before a test asks for one of the fixtures in `plugin`.
"""
