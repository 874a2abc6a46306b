# SPDX-License-Identifier: Apache-2.0
"""Rate limiters: invalid arguments, and which calls have to wait."""

import numpy as np
import pytest

from reverb_suite.helpers import insert, keys_by_value, samples, size, values
from reverb_suite.implementation import queue, reverb, stack, table

limiters = reverb.rate_limiters


@pytest.mark.parametrize("size", [0, -1])
def test_min_size_must_be_positive(size):
    with pytest.raises(ValueError, match=rf"min_size_to_sample \({size}\) must be a positive"):
        limiters.MinSize(size)


@pytest.mark.parametrize("ratio", [0.0, -1.0, -0.001])
def test_ratio_must_be_positive(ratio):
    with pytest.raises(ValueError, match=r"samples_per_insert \(.*\) must be > 0"):
        limiters.SampleToInsertRatio(ratio, 10, 100.0)


@pytest.mark.parametrize("size", [0, -2])
def test_ratio_wants_a_positive_min_size(size):
    with pytest.raises(ValueError, match=r"min_size_to_sample \(-?\d+\) must be a positive"):
        limiters.SampleToInsertRatio(1.0, size, (-10.0, 10.0))


@pytest.mark.parametrize("ratio, buffer", [
    (1.0, 0.5), (1.0, 0.999), (0.1, 0.9), (2.0, 1.9), (10.0, 9.99), (1.0, (10.0, 11.9)),
    (3.0, (10.0, 15.9)),
])
def test_error_buffer_must_not_be_too_small(ratio, buffer):
    with pytest.raises(ValueError, match="size of error_buffer must be >= max"):
        limiters.SampleToInsertRatio(ratio, 10, buffer)


@pytest.mark.parametrize("ratio, buffer", [
    (1.0, 1.0), (1.0, 1), (0.1, 1.0), (2.0, 2.0), (10.0, 10), (1.0, (9.0, 11.0)),
    (3.0, (27.0, 33.0)),
])
def test_smallest_error_buffers(ratio, buffer):
    limiters.SampleToInsertRatio(ratio, 10, buffer)


def test_error_buffer_above_the_possible_range_is_refused():
    with pytest.raises(ValueError, match="range covered by error_buffer is above"):
        limiters.SampleToInsertRatio(1.0, 10, (10.1, 20.0))


def test_error_buffer_below_the_possible_range_is_allowed():
    limiters.SampleToInsertRatio(1.0, 10, (0.0, 9.0))


@pytest.mark.parametrize("wrong", [(1.0,), (1.0, 2.0, 3.0)])
def test_error_buffer_is_a_number_or_a_pair(wrong):
    with pytest.raises((ValueError, TypeError)):
        limiters.SampleToInsertRatio(1.0, 10, wrong)


def test_the_kinds_are_rate_limiters():
    kinds = [limiters.MinSize(1), limiters.SampleToInsertRatio(1.0, 1, 1.0), limiters.Queue(1),
             limiters.Stack(1)]
    for kind in kinds:
        assert isinstance(kind, limiters.RateLimiter)


def test_arguments_by_name():
    limiters.RateLimiter(samples_per_insert=1.0, min_size_to_sample=2, min_diff=-1.0,
                         max_diff=1.0)
    limiters.MinSize(min_size_to_sample=2)
    limiters.SampleToInsertRatio(samples_per_insert=1.0, min_size_to_sample=2, error_buffer=3.0)
    limiters.Queue(size=3)
    limiters.Stack(size=3)


def test_repr_has_the_numbers():
    text = repr(limiters.SampleToInsertRatio(2.5, 77, 5.0))
    assert "2.5" in text and "77" in text


def test_min_size_holds_samples_back(serve, background):
    client = serve(table(limiter=("min_size", 3)))
    insert(client, [1.0, 2.0])
    call = background(values, client)
    assert call.waits()
    insert(client, [3.0])
    assert call.result() == [1.0]


def test_min_size_never_holds_inserts_back(serve):
    client = serve(table(limiter=("min_size", 1), max_size=10))
    insert(client, range(30))
    assert size(client) == 10


def test_min_size_holds_again_after_deletes(serve, background):
    client = serve(table(limiter=("min_size", 2)))
    insert(client, [1.0, 2.0])
    (key,) = keys_by_value(client).values()
    client.mutate_priorities("t", deletes=[key])
    call = background(values, client)
    assert call.waits()
    insert(client, [3.0])
    assert call.result() == [2.0]


def test_ratio_holds_samples_back(serve, background):
    client = serve(table(limiter=("ratio", 1.0, 2, 1.0)))
    insert(client, [1.0, 2.0])
    assert len(samples(client, count=1)) == 1
    call = background(values, client)
    assert call.waits()
    insert(client, [3.0])
    call.result()


def test_ratio_holds_inserts_back(serve, background):
    client = serve(table(limiter=("ratio", 1.0, 2, 1.0)))
    insert(client, [1.0, 2.0, 3.0])
    call = background(insert, client, [4.0])
    assert call.waits()
    samples(client, count=1)
    call.result()
    assert size(client) == 4


def test_ratio_lets_inserts_pass_until_min_size(serve):
    client = serve(table(limiter=("ratio", 10.0, 5, (-100.0, 0.0))))
    insert(client, range(5))
    assert size(client) == 5


def test_several_samples_an_insert(serve, background):
    client = serve(table(limiter=("ratio", 4.0, 1, 4.0)))
    insert(client, [1.0])
    assert len(samples(client, count=4)) == 4
    call = background(samples, client, count=1)
    assert call.waits()
    insert(client, [2.0])
    assert len(call.result()) == 1


def test_several_inserts_a_sample(serve, background):
    client = serve(table(limiter=("ratio", 0.25, 4, 1.0)))
    insert(client, range(8))
    call = background(insert, client, [8.0])
    assert call.waits()
    samples(client, count=1)
    call.result()


def test_queue_gives_in_order_and_once(serve):
    client = serve(queue("t", 5))
    insert(client, [1.0, 2.0, 3.0])
    assert values(client, count=3) == [1.0, 2.0, 3.0]
    assert size(client) == 0


def test_queue_holds_samples_back_when_empty(serve, background):
    client = serve(queue("t", 5))
    call = background(values, client, count=2)
    insert(client, [1.0])
    assert call.waits()
    insert(client, [2.0])
    assert call.result() == [1.0, 2.0]


def test_queue_holds_inserts_back_when_full(serve, background):
    client = serve(queue("t", 2))
    insert(client, [1.0, 2.0])
    call = background(insert, client, [3.0])
    assert call.waits()
    assert values(client) == [1.0]
    call.result()
    assert values(client, count=2) == [2.0, 3.0]


def test_queue_never_drops(serve, background):
    client = serve(queue("t", 3))
    call = background(insert, client, [float(i) for i in range(20)])
    got = values(client, count=20)
    call.result()
    assert got == [float(i) for i in range(20)]


def test_stack_gives_the_newest_first_and_once(serve):
    client = serve(stack("t", 5))
    insert(client, [1.0, 2.0, 3.0])
    assert values(client, count=3) == [3.0, 2.0, 1.0]
    assert size(client) == 0


def test_stack_holds_inserts_back_when_full(serve, background):
    client = serve(stack("t", 2))
    insert(client, [1.0, 2.0])
    call = background(insert, client, [3.0])
    assert call.waits()
    assert values(client) == [2.0]
    call.result()
    assert values(client) == [3.0]


def test_reset_forgets_the_counts(serve):
    client = serve(table(limiter=("ratio", 1.0, 1, 1.0)))
    insert(client, [1.0, 2.0])
    samples(client, count=1)
    client.reset("t")
    info = client.server_info()["t"].rate_limiter_info
    assert (info.insert_stats.completed, info.sample_stats.completed) == (0, 0)
    insert(client, [3.0, 4.0])  # these would have to wait if the first two still counted
    assert client.server_info()["t"].rate_limiter_info.insert_stats.completed == 2


def test_a_delete_through_max_times_sampled_counts(serve, background):
    client = serve(table(limiter=("min_size", 2), max_times_sampled=1))
    insert(client, [1.0, 2.0])
    assert values(client) == [1.0]
    call = background(values, client)
    assert call.waits()
    insert(client, [3.0])
    assert call.result() == [2.0]


def test_counts_of_completed_calls(serve):
    client = serve(table(limiter=("min_size", 1)))
    insert(client, range(5))
    samples(client, count=3)
    info = client.server_info()["t"].rate_limiter_info
    assert info.insert_stats.completed == 5
    assert info.sample_stats.completed == 3


def test_a_priority_update_does_not_count_as_an_insert(serve):
    client = serve(table(limiter=("ratio", 1.0, 1, 1.0)))
    insert(client, [1.0, 2.0])
    (key,) = keys_by_value(client).values()
    for priority in np.arange(1.0, 10.0):
        client.mutate_priorities("t", updates={key: priority})
    assert client.server_info()["t"].rate_limiter_info.insert_stats.completed == 2
