"""Errors as people read them: the same fault has the same fingerprint."""

from __future__ import annotations

from rowlock.queue.failure import ErrorReport
from rowlock.queue.payload import clean_text


def caught(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:  # noqa: BLE001
        return ErrorReport.of(error)
    raise AssertionError("nothing was raised")


def missing(survey):
    raise LookupError(f"survey {survey} not found in 'hub-{survey}' at 0x{survey:x}")


def other(survey):
    raise LookupError(f"survey {survey} not found in 'hub-{survey}' at 0x{survey:x}")


def test_values_do_not_change_the_fingerprint():
    assert caught(missing, 1).fingerprint == caught(missing, 20_000).fingerprint


def test_the_place_does():
    assert caught(missing, 1).fingerprint != caught(other, 1).fingerprint


def test_the_type_is_readable_in_it():
    assert caught(missing, 1).fingerprint.startswith("LookupError-")


def test_the_summary_is_type_and_message():
    assert caught(missing, 7).summary.startswith("LookupError: survey 7")
    assert caught(int, "x").summary == "ValueError: invalid literal for int() with base 10: 'x'"


def test_endless_text_is_cut_in_the_middle():
    text = clean_text("a" * 50_000 + "the end", 1000)
    assert len(text) < 1100
    assert text.endswith("the end")
    assert "more" in text
