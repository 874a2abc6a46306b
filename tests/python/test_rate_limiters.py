# SPDX-License-Identifier: Apache-2.0
"""Rate limiters: their four numbers, the checks of arguments and their order, and their effect."""

import gc
import logging
import pickle
import sys

import numpy as np
import pytest

import reprise
from reprise import pybind, rate_limiters

BIG = sys.float_info.max


def numbers(limiter):
    return limiter.internal_limiter._fields()


def table(limiter, **overrides):
    options = dict(
        name="t",
        sampler=reprise.selectors.Uniform(),
        remover=reprise.selectors.Fifo(),
        max_size=100,
        rate_limiter=limiter,
    )
    return reprise.Table(**{**options, **overrides})


@pytest.mark.parametrize(
    "limiter, expected",
    [
        (rate_limiters.RateLimiter(2.0, 3, -1.0, 9.0), (2.0, 3, -1.0, 9.0)),
        (rate_limiters.MinSize(7), (1.0, 7, -BIG, BIG)),
        (rate_limiters.SampleToInsertRatio(2.5, 3, 10.5), (2.5, 3, -3.0, 18.0)),
        (rate_limiters.SampleToInsertRatio(1.0, 10, (-5, 50)), (1.0, 10, -5.0, 50.0)),
        (rate_limiters.SampleToInsertRatio(1.0, 1, [0, 4]), (1.0, 1, 0.0, 4.0)),
        (rate_limiters.Queue(5), (1.0, 1, 0.0, 5.0)),
        (rate_limiters.Stack(5), (1.0, 1, 0.0, 5.0)),
    ],
)
def test_numbers(limiter, expected):
    assert numbers(limiter) == expected


@pytest.mark.parametrize(
    "limiter, text",
    [
        (
            rate_limiters.MinSize(3),
            "RateLimiter(samples_per_insert=1, min_diff_=-1.79769e+308, "
            "max_diff=1.79769e+308, min_size_to_sample=3)",
        ),
        (
            rate_limiters.SampleToInsertRatio(2.5, 3, 10.5),
            "RateLimiter(samples_per_insert=2.5, min_diff_=-3, max_diff=18, "
            "min_size_to_sample=3)",
        ),
    ],
)
def test_text_is_that_of_reverb(limiter, text):
    assert repr(limiter) == text
    assert repr(limiter.internal_limiter) == text


@pytest.mark.parametrize("size", [0, -1])
def test_min_size_must_be_positive(size):
    with pytest.raises(ValueError, match=rf"min_size_to_sample \({size}\) must be a positive"):
        rate_limiters.MinSize(size)


@pytest.mark.parametrize("size", ["a", None])
def test_min_size_must_be_a_number(size):
    with pytest.raises(TypeError):
        rate_limiters.MinSize(size)


@pytest.mark.parametrize(
    "arguments",
    [(1.0, 1.5, 0.0, 5.0), ("1", 1, 0.0, 5.0), (1.0, 1, "0", 5.0), (1.0, 1, 0.0, None)],
)
def test_numbers_must_be_numbers(arguments):
    with pytest.raises(TypeError):
        rate_limiters.RateLimiter(*arguments)


@pytest.mark.parametrize(
    "arguments, text",
    [
        ((1e30, 1, -1e30, 1e30), "samples_per_insert must be in 1e-12 .. 1e\\+09, got 1e\\+30"),
        ((float("inf"), 1, -1.0, 1.0), "got inf"),
        ((float("nan"), 1, -1.0, 1.0), "got nan"),
        ((5e-324, 1, -1.0, 1.0), "got 4.94066e-324"),
        ((1.0, 1, float("nan"), 1.0), "must be numbers"),
        ((1.0, 1, 1e300, 1e308), "samples would wait for ever"),
        ((1.0, 1, -1e308, -1e300), "inserts would wait for ever"),
    ],
)
def test_impossible_limiters_are_refused_at_once(arguments, text):
    """The first of these once made the check run for ever (issue 20)."""
    with pytest.raises(ValueError, match=text):
        reprise.Server([table(rate_limiters.RateLimiter(*arguments))])


def test_infinite_bounds_are_no_bounds():
    limiter = rate_limiters.RateLimiter(1.0, 1, float("-inf"), float("inf"))
    assert table(limiter).can_insert(10**9)


class TestSampleToInsertRatio:
    @pytest.mark.parametrize("ratio", [0, -1, -0.5])
    def test_ratio_must_be_positive(self, ratio):
        with pytest.raises(ValueError, match="samples_per_insert .* must be > 0"):
            rate_limiters.SampleToInsertRatio(ratio, 1, 1)

    @pytest.mark.parametrize(
        "ratio, size, buffer",
        [(1.0, 1, 0.5), (4.0, 1, 3.9), (1.0, 1, (0.0, 1.9)), (0.1, 10, 0.9), (1.0, 1, -5)],
    )
    def test_range_must_be_wide_enough(self, ratio, size, buffer):
        with pytest.raises(ValueError, match="The size of error_buffer must be >= max"):
            rate_limiters.SampleToInsertRatio(ratio, size, buffer)

    @pytest.mark.parametrize("buffer", [(2, 10), (1.5, 100.0)])
    def test_range_must_not_be_too_high(self, buffer):
        with pytest.raises(ValueError, match="above samples_per_insert"):
            rate_limiters.SampleToInsertRatio(1.0, 1, buffer)

    def test_range_that_is_low_is_logged(self, caplog):
        with caplog.at_level(logging.WARNING, "reprise"):
            rate_limiters.SampleToInsertRatio(1.0, 10, (-5, 5))
        assert "error_buffer is below" in caplog.text

    def test_range_that_fits_is_not_logged(self, caplog):
        with caplog.at_level(logging.WARNING, "reprise"):
            rate_limiters.SampleToInsertRatio(1.0, 10, 5)
        assert caplog.text == ""

    @pytest.mark.parametrize("size", [0, -3])
    def test_size_must_be_positive(self, size):
        with pytest.raises(ValueError, match=rf"min_size_to_sample \({size}\)"):
            rate_limiters.SampleToInsertRatio(1.0, size, 5)

    def test_ratio_is_checked_before_the_range(self):
        with pytest.raises(ValueError, match="samples_per_insert .* must be > 0"):
            rate_limiters.SampleToInsertRatio(-1.0, 0, 0.0)

    def test_width_is_checked_before_height_and_size(self):
        with pytest.raises(ValueError, match="size of error_buffer"):
            rate_limiters.SampleToInsertRatio(1.0, 0, (9.0, 9.5))

    def test_height_is_checked_before_size(self):
        with pytest.raises(ValueError, match="above"):
            rate_limiters.SampleToInsertRatio(1.0, 0, (1.0, 9.0))

    def test_a_numpy_scalar_is_a_number(self):
        made = rate_limiters.SampleToInsertRatio(1.0, 1, np.float32(4))
        assert made.internal_limiter == rate_limiters.SampleToInsertRatio(1.0, 1, 4.0).internal_limiter


class TestInATable:
    @pytest.mark.parametrize(
        "numbers_", [(-1.0, 1, 0.0, 5.0), (0.0, 1, 0.0, 5.0), (1.0, 0, 0.0, 5.0)]
    )
    def test_numbers_out_of_range_are_refused(self, numbers_):
        with pytest.raises(ValueError, match="samples_per_insert|min_size"):
            table(rate_limiters.RateLimiter(*numbers_))

    def test_a_limiter_that_blocks_both_sides_is_refused(self):
        with pytest.raises(ValueError, match="for ever"):
            table(rate_limiters.RateLimiter(1.0, 1, 3.0, 3.5))

    @pytest.mark.parametrize("size", [1, 2, 10])
    def test_min_size_lets_all_inserts_pass(self, size):
        t = table(rate_limiters.MinSize(size))
        assert t.can_insert(1) and t.can_insert(10**9)
        assert not t.can_sample(1)

    @pytest.mark.parametrize("size", [1, 5])
    def test_queue_takes_max_size_items(self, size):
        t = reprise.Table.queue("q", size)
        assert t.can_insert(size)
        assert not t.can_insert(size + 1)

    def test_ratio_bounds_inserts(self):
        # The error may be at most 2 * 3 + 4 = 10, which allows five inserts.
        t = table(rate_limiters.SampleToInsertRatio(2.0, 3, 4.0))
        assert t.can_insert(5)
        assert not t.can_insert(6)

    def test_why_is_empty_without_waiting_calls(self):
        limiter = rate_limiters.MinSize(1)
        assert limiter.why() == []
        t = table(limiter)
        assert limiter.why() == [] == t.why()

    def test_does_not_keep_its_table(self):
        limiter = rate_limiters.MinSize(1)
        t = table(limiter)
        del t
        gc.collect()
        assert limiter._table() is None
        assert limiter.why() == []


def test_pickles():
    limiter = rate_limiters.SampleToInsertRatio(2.0, 3, 4.0)
    t = table(limiter)
    again = pickle.loads(pickle.dumps(limiter))
    assert type(again) is rate_limiters.SampleToInsertRatio
    assert numbers(again) == numbers(limiter)
    assert t.can_insert(1)


def test_internal_limiter_is_a_pybind_class():
    assert isinstance(rate_limiters.MinSize(1).internal_limiter, pybind.RateLimiter)
    assert pybind.RateLimiter(1, 1, 0, 2) == rate_limiters.Queue(2).internal_limiter
