"""Backoff: exponential, capped, with full jitter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowlock import Backoff, ConfigurationError


@given(attempt=st.integers(1, 10_000))
def test_a_delay_is_between_zero_and_the_ceiling(attempt):
    backoff = Backoff(base=1, cap=300)
    assert 0 <= backoff.delay(attempt) <= backoff.ceiling(attempt) <= 300


def test_the_ceiling_doubles_up_to_the_cap():
    backoff = Backoff(base=1, cap=10)
    assert [backoff.ceiling(attempt) for attempt in range(1, 7)] == [1, 2, 4, 8, 10, 10]


def test_the_jitter_is_full():
    backoff = Backoff(base=100, cap=100)
    delays = [backoff.delay(1) for _ in range(200)]
    assert min(delays) < 30
    assert max(delays) > 70


def test_nonsense_is_refused():
    with pytest.raises(ConfigurationError, match="0 <= base <= cap"):
        Backoff(base=10, cap=1)
