# SPDX-License-Identifier: Apache-2.0
"""SampleStream: counts, order, timeouts, ends, and the information on each sample."""

import time

import grpc
import numpy as np
import pytest

from messages import Stream, chunk, first_number, insertion, item, wish
from stubs import rpc

A_WHILE = 0.2
TIMEOUT_TEXT = "Rate Limiter: Timeout exceeded before the right to insert was acquired."
Code = grpc.StatusCode


def test_a_sample_has_its_info(reverb, fresh):
    table = fresh("uniform")
    keys = {reverb.insert(table, i, priority=2.0) for i in range(4)}
    [sample] = reverb.sample(table)
    assert sample.key in keys
    assert sample.info.item.table == table
    assert sample.info.item.priority == 2.0
    assert sample.info.item.times_sampled == 1
    assert sample.info.probability == 0.25
    assert sample.info.table_size == 4
    assert sample.info.rate_limited is False
    assert sample.entries == 1


@pytest.mark.parametrize("table, first, probability", [
    ("fifo", 1, 1.0), ("lifo", 3, 1.0), ("max-heap", 2, 1.0), ("min-heap", 1, 1.0)])
def test_deterministic_samplers(reverb, fresh, table, first, probability):
    fresh(table)
    for number, priority in ((1, 1.0), (2, 9.0), (3, 4.0)):
        reverb.insert(table, number, priority=priority)
    for sample in reverb.sample(table, 3):
        assert (first_number(sample), sample.info.probability) == (first, probability)


def test_prioritized_probabilities(reverb, fresh):
    table = fresh("prioritized")
    reverb.insert(table, 1, priority=1.0)
    reverb.insert(table, 3, priority=3.0)
    seen = {first_number(s): s.info.probability for s in reverb.sample(table, 100)}
    assert seen == {1: pytest.approx(0.25), 3: pytest.approx(0.75)}


def test_draws_are_counted(reverb, fresh):
    table = fresh("thrice")
    keys = [reverb.insert(table, i) for i in range(2)]
    drawn = [(s.key, s.info.item.times_sampled, s.info.table_size)
             for s in reverb.sample(table, 6)]
    assert drawn == [(keys[0], 1, 2), (keys[0], 2, 2), (keys[0], 3, 2),
                     (keys[1], 1, 1), (keys[1], 2, 1), (keys[1], 3, 1)]
    info = reverb.info(table)
    assert (info.current_size, info.num_unique_samples) == (0, 2)
    assert info.rate_limiter_info.sample_stats.completed == 6


@pytest.mark.parametrize("count", [1, 2, 64, 127, 128, 129, 1000, 10_000])
def test_a_request_gets_the_requested_number_of_samples(reverb, fresh, count):
    table = fresh("uniform")
    for i in range(3):
        reverb.insert(table, i)
    with reverb.samples() as stream:
        stream.send(wish(table, count)).half_close()
        assert len(stream.remaining(30)) == count
        assert stream.status() == (Code.OK, "")
    assert reverb.info(table).rate_limiter_info.sample_stats.completed == count


def test_requests_are_served_in_order_and_from_any_table(reverb, queue, fresh):
    fresh("fifo", "lifo")
    for i in range(3):
        for table in ("fifo", "lifo", queue):
            reverb.insert(table, i)
    with reverb.samples() as stream:
        stream.send(wish(queue, 2), wish("lifo", 1), wish("fifo", 2), wish(queue, 1))
        drawn = [(s.info.item.table, first_number(s)) for s in stream.samples(6)]
        assert drawn == [(queue, 0), (queue, 1), ("lifo", 2), ("fifo", 0), ("fifo", 0),
                         (queue, 2)]
        stream.send(wish("lifo"))
        assert first_number(stream.samples()[0]) == 2


@pytest.mark.parametrize("count", [0, -1, -2**63, 2**31, 2**32, 2**63 - 1])
def test_a_number_of_samples_out_of_range_is_refused(reverb, fresh, count):
    table = fresh("uniform")
    reverb.insert(table)
    with reverb.samples() as stream:
        assert stream.send(wish(table, count)).status()[0] == Code.INVALID_ARGUMENT
    assert len(reverb.sample(table)) == 1


def test_the_largest_number_of_samples_is_served_until_cancelled(reverb, fresh):
    table = fresh("uniform")
    reverb.insert(table)
    with reverb.samples() as stream:
        stream.send(wish(table, 2**31 - 1))
        stream.samples(1000)
        stream.cancel()
        assert stream.status()[0] == Code.CANCELLED
    assert len(reverb.sample(table)) == 1


def test_an_unknown_table_is_named(reverb):
    with reverb.samples() as stream:
        answer = stream.send(wish("nope")).status()
    assert answer == (Code.NOT_FOUND, "Priority table nope was not found")


def test_a_request_that_is_bad_after_good_ones(reverb, fresh):
    table = fresh("uniform")
    reverb.insert(table)
    with reverb.samples() as stream:
        stream.send(wish(table))
        stream.samples(1)
        assert stream.send(wish("nope")).status()[0] == Code.NOT_FOUND


def test_a_timeout_has_the_message_that_clients_look_for(reverb, fresh):
    table = fresh("fifo")
    start = time.monotonic()
    with reverb.samples() as stream:
        code, text = stream.send(wish(table, timeout_ms=150)).status()
    assert code == Code.DEADLINE_EXCEEDED
    assert TIMEOUT_TEXT in text
    assert 0.14 < time.monotonic() - start < 2.0


def test_a_timeout_of_zero_does_not_wait(reverb, fresh):
    table = fresh("fifo")
    start = time.monotonic()
    with reverb.samples() as stream:
        code, text = stream.send(wish(table, timeout_ms=0)).status()
    assert code == Code.DEADLINE_EXCEEDED and TIMEOUT_TEXT in text
    assert time.monotonic() - start < 1.0
    reverb.insert(table, 5)
    assert first_number(reverb.sample(table, timeout_ms=0)[0]) == 5


@pytest.mark.parametrize("timeout_ms", [None, -1, -5])
def test_without_a_timeout_a_sample_waits(reverb, fresh, timeout_ms):
    table = fresh("fifo")
    with reverb.samples() as stream:
        stream.send(wish(table, timeout_ms=timeout_ms))
        assert stream.silent(A_WHILE)
        reverb.insert(table, 8)
        [sample] = stream.samples()
        assert first_number(sample) == 8
        assert sample.info.rate_limited is True


def test_existing_samples_are_sent_before_the_timeout(reverb, queue):
    for i in range(3):
        reverb.insert(queue, i)
    with reverb.samples() as stream:
        stream.send(wish(queue, 10, timeout_ms=300))
        assert [first_number(s) for s in stream.samples(3)] == [0, 1, 2]
        code, text = stream.status()
    assert code == Code.DEADLINE_EXCEEDED and TIMEOUT_TEXT in text


def test_the_timeout_begins_anew_with_each_batch(reverb, queue):
    with reverb.samples() as stream:
        stream.send(wish(queue, 3, timeout_ms=1000))
        for i in range(3):
            time.sleep(0.5)
            reverb.insert(queue, i)
            assert first_number(stream.samples()[0]) == i


def test_the_deadline_of_a_call_ends_a_wait(reverb, fresh):
    table = fresh("fifo")
    with reverb.samples(timeout=0.3) as stream:
        start = time.monotonic()
        assert stream.send(wish(table)).status()[0] == Code.DEADLINE_EXCEEDED
        assert time.monotonic() - start < 3.0


def test_half_close_without_a_request_is_fine(reverb):
    with reverb.samples() as stream:
        assert stream.half_close().status() == (Code.OK, "")


def test_half_close_while_a_request_waits(reverb, queue):
    with reverb.samples() as stream:
        stream.send(wish(queue, 2)).half_close()
        assert stream.silent(A_WHILE)
        reverb.insert(queue, 1)
        reverb.insert(queue, 2)
        assert [first_number(s) for s in stream.remaining()] == [1, 2]
        assert stream.status() == (Code.OK, "")


def test_a_sampler_that_disconnects_takes_nothing(reverb, queue):
    for _ in range(3):
        with reverb.samples() as stream:
            stream.send(wish(queue))
            assert stream.silent(0.05)
    time.sleep(A_WHILE)
    reverb.insert(queue, 4)
    assert first_number(reverb.sample(queue, timeout_ms=5000)[0]) == 4


def test_a_stream_may_be_cancelled_before_its_first_request(reverb):
    with reverb.samples() as stream:
        stream.cancel()
        assert stream.status()[0] == Code.CANCELLED


def test_waiting_samplers_are_served_in_order_of_arrival(reverb, queue):
    with reverb.samples() as one, reverb.samples() as two:
        one.send(wish(queue))
        assert one.silent(A_WHILE)
        two.send(wish(queue))
        assert two.silent(A_WHILE)
        reverb.insert(queue, 1)
        assert first_number(one.samples()[0]) == 1
        reverb.insert(queue, 2)
        assert first_number(two.samples()[0]) == 2


def test_a_minimum_size_holds_samples(reverb, fresh):
    table = fresh("min-size")
    reverb.insert(table, 1)
    reverb.insert(table, 2)
    with reverb.samples() as stream:
        stream.send(wish(table))
        assert stream.silent(A_WHILE)
        reverb.insert(table, 3)
        assert first_number(stream.samples()[0]) == 1


def test_a_large_sample_comes_in_pieces(reverb, fresh):
    """Five chunks of a mebibyte: a response has two of them, and no chunk is split."""
    table = fresh("fifo")
    noise = np.random.default_rng(3)
    chunks = [chunk(noise.integers(0, 256, (1, 2**20), np.uint8), start=i) for i in range(5)]
    made = item(table, [(c, 0, 1) for c in chunks])
    with reverb.inserts() as stream:
        stream.send(insertion(chunks, [made]))
        stream.confirmed(1)
    with reverb.samples() as stream:
        stream.send(wish(table, 2)).half_close()
        samples = stream.remaining()
    assert len(samples) == 2
    for sample in samples:
        assert sample.chunks == chunks
        assert sample.entries > 1


def test_small_samples_share_responses(reverb, fresh):
    table = fresh("uniform")
    reverb.insert(table)
    stream = Stream(reverb.stub.SampleStream, timeout=120)
    with stream:
        stream.send(wish(table, 1000)).half_close()
        answers = stream.rest()
    entries = [entry for answer in answers for entry in answer.entries]
    assert len(entries) == 1000
    assert len(answers) < 500
    assert all(entry.end_of_sequence and entry.HasField("info") for entry in entries)


def test_the_first_of_many_samples_do_not_wait_for_the_rest(reverb, fresh):
    """A request for more than 128 samples gets the first ones in a small message; then the sizes
    double."""
    table = fresh("uniform")
    data = chunk(np.zeros((1, 100), np.float32))
    with reverb.inserts() as stream:
        stream.send(insertion([data], [item(table, data)]))
        stream.confirmed(1)
    sizes = {}
    for count in (128, 1000):
        with Stream(reverb.stub.SampleStream, timeout=120) as stream:
            stream.send(wish(table, count)).half_close()
            sizes[count] = [answer.ByteSize() for answer in stream.rest()]
    assert sizes[1000][0] <= 4096 < sizes[128][0]
    assert max(sizes[1000]) > 8 * sizes[1000][0]


def test_the_bytes_of_a_request(channel, reverb, fresh):
    """With a timeout of -1, and with an explicit timeout of 0."""
    table = fresh("uniform")
    call = channel.stream_stream("/deepmind.reverb.ReverbService/SampleStream",
                                 lambda b: b, rpc.SampleStreamResponse.FromString)
    name = b"\x0a\x07uniform"
    with pytest.raises(grpc.RpcError) as failure:
        list(call(iter([name + bytes.fromhex("10011a00")]), timeout=120))
    assert TIMEOUT_TEXT in failure.value.details()
    key = reverb.insert(table)
    [answer] = call(iter([name + bytes.fromhex("10011a0b08ffffffffffffffffff01")]), timeout=120)
    assert answer.entries[0].info.item.key == key


def test_a_slow_reader_gets_everything(reverb, fresh):
    """More samples than fit in windows and queues, read after a pause."""
    table = fresh("uniform")
    data = chunk(np.random.default_rng(4).integers(0, 256, (1, 100_000), np.uint8))
    with reverb.inserts() as stream:
        stream.send(insertion([data], [item(table, data)]))
        stream.confirmed(1)
    call = reverb.stub.SampleStream(iter([wish(table, 400)]), timeout=120)
    time.sleep(0.5)
    entries = [entry for answer in call for entry in answer.entries]
    assert len(entries) == 400
    assert all(entry.data[0] == data for entry in entries)


def test_many_streams_at_once(reverb, fresh):
    table = fresh("uniform")
    for i in range(10):
        reverb.insert(table, i)
    streams = [reverb.samples() for _ in range(100)]
    for stream in streams:
        stream.send(wish(table, 20)).half_close()
    for stream in streams:
        assert len(stream.remaining(30)) == 20
        assert stream.status()[0] == Code.OK
