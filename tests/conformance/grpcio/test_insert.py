# SPDX-License-Identifier: Apache-2.0
"""InsertStream: confirmations, refusals and their texts, chunks that are kept."""

import math
import time

import grpc
import numpy as np
import pytest

import harness
from messages import (chunk, first_number, insertion, item, new_key, numbers, stored, varint,
                      wish)
from stubs import rpc, schema

A_WHILE = 0.2
Code = grpc.StatusCode


def refusal(reverb, *requests):
    """Returns (code, text) with which a stream of these requests ends."""
    with reverb.inserts() as stream:
        return stream.send(*requests).status()


def test_an_item_is_confirmed_and_inserted(reverb, fresh):
    table = fresh("fifo")
    data = numbers()
    made = item(table, data, priority=2.5)
    with reverb.inserts() as stream:
        stream.send(insertion([data], [made]))
        assert stream.confirmed(1) == [made.key]
        assert reverb.size(table) == 1
    [sample] = reverb.sample(table)
    assert sample.chunks == [data]
    assert sample.info.item.flat_trajectory == made.flat_trajectory


def test_the_bytes_of_a_request_and_of_its_response(channel, reverb, fresh):
    """One chunk, one item and one key to keep, as protoc encodes them. Only the table's name is
    longer than in the specification of the protocol."""
    table = fresh("uniform")
    request = bytes.fromhex(
        "0a34080112040807180" "22a260a2408091204120208032" "21a185c"
        "000000000000000001000000000000000200000000000000" "30013818")
    body = b"\x08\x02\x12\x07uniform" + bytes.fromhex("29000000000000f03f42080a060a0408011803")
    request += b"\x12" + bytes([len(body)]) + body + bytes.fromhex("1a0101")
    parsed = rpc.InsertStreamRequest.FromString(request)
    assert parsed.items[0].table == table and parsed.keep_chunk_keys == [1]
    call = channel.stream_stream("/deepmind.reverb.ReverbService/InsertStream",
                                 lambda b: b, lambda b: b)
    assert list(call(iter([request]), timeout=120)) == [bytes.fromhex("0a0102")]
    [sample] = reverb.sample(table)
    assert sample.chunks == list(parsed.chunks)


def test_all_items_of_a_message_are_confirmed(reverb, fresh):
    fresh("fifo", "uniform")
    data = numbers(8)
    items = [item(("fifo", "uniform")[i % 2], [(data, i % 8, 1)]) for i in range(100)]
    with reverb.inserts() as stream:
        stream.send(insertion([data], items))
        assert stream.confirmed(100) == sorted(i.key for i in items)
    assert (reverb.size("fifo"), reverb.size("uniform")) == (50, 50)


def test_items_of_many_messages_are_confirmed(reverb, fresh):
    table = fresh("uniform")
    sent = []
    with reverb.inserts() as stream:
        for first in range(300):
            data = numbers(2, first)
            made = item(table, data)
            sent.append(made.key)
            stream.send(insertion([data], [made]))
        assert stream.confirmed(300) == sorted(sent)
    assert reverb.size(table) == 300


def test_chunks_may_come_before_their_items(reverb, fresh):
    table = fresh("fifo")
    one, two = numbers(2), numbers(2, 10)
    made = item(table, [(one, 1, 1), (two, 0, 2)])
    with reverb.inserts() as stream:
        stream.send(insertion([one]), insertion([two]), insertion(items=[made]))
        stream.confirmed(1)
    [sample] = reverb.sample(table)
    assert sample.chunks == [one, two]


def test_a_chunk_that_is_kept_serves_later_items(reverb, fresh):
    table = fresh("uniform")
    data = numbers(4)
    with reverb.inserts() as stream:
        for offset in range(4):
            chunks = [data] if offset == 0 else []
            stream.send(insertion(chunks, [item(table, [(data, offset, 1)])], keep=[data]))
        stream.confirmed(4)


def test_a_chunk_that_is_not_kept_is_dropped(reverb, fresh):
    table = fresh("uniform")
    data = numbers(4)
    code, text = refusal(reverb, insertion([data], [item(table, data)]),
                         insertion(items=[item(table, data)]))
    assert code == Code.INTERNAL
    assert text == f"Could not find sequence chunk {data.chunk_key}."
    assert reverb.size(table) == 1


def test_a_message_of_chunks_alone_drops_no_chunk(reverb, fresh):
    table = fresh("uniform")
    one, two = numbers(), numbers()
    with reverb.inserts() as stream:
        stream.send(insertion([one]), insertion([two], keep=[12345]),
                    insertion(items=[item(table, one, two)]))
        stream.confirmed(1)


def test_a_chunk_may_be_sent_again(reverb, fresh):
    table = fresh("fifo")
    data = numbers(5)
    with reverb.inserts() as stream:
        stream.send(insertion([data, data], [item(table, data)], keep=[data]),
                    insertion([data], [item(table, data)], keep=[data]),
                    insertion([data], [item(table, data)]))
        stream.confirmed(3)
    assert reverb.sample(table)[0].chunks == [data]


def test_another_chunk_under_the_same_key_is_refused(reverb, fresh):
    table = fresh("uniform")
    one, two = numbers(2, 1, key=5), numbers(2, 2, key=5)
    code, _ = refusal(reverb, insertion([one]), insertion([two], [item(table, one)]))
    assert code == Code.INVALID_ARGUMENT
    assert reverb.size(table) == 0


def test_chunks_that_contradict_themselves_are_refused(reverb, fresh):
    """Otherwise a reader would get garbage, or a decompression bomb."""
    table = fresh("uniform")

    def spoiled(change):
        data = numbers(3)
        change(data, data.data.tensors[0])
        return data

    def longer(data, tensor):
        tensor.tensor_content = stored(bytes(32))

    def nothing(data, tensor):
        tensor.tensor_content = b""

    def noise(data, tensor):
        tensor.tensor_content = b"\xff" * 20

    def bomb(data, tensor):
        tensor.tensor_shape.dim[0].size = 2**20

    def negative(data, tensor):
        tensor.tensor_shape.dim[0].size = -1

    def typeless(data, tensor):
        tensor.dtype = 0

    def miscounted(data, tensor):
        data.data_tensors_len = 2

    for change in (longer, nothing, noise, bomb, negative, typeless, miscounted):
        data = spoiled(change)
        code, text = refusal(reverb, insertion([data], [item(table, data)]))
        assert code == Code.INVALID_ARGUMENT, f"{change.__name__}: {code}: {text}"
    assert reverb.size(table) == 0


def test_chunks_over_a_limit_are_refused(reverb):
    """Chunks that are too large for readers to decompress, or have more than eight dimensions."""
    huge, deep = numbers(3), numbers(3)
    huge.data.tensors[0].tensor_shape.dim[0].size = 2**40
    for _ in range(8):
        deep.data.tensors[0].tensor_shape.dim.add(size=1)
    for data in (huge, deep):
        assert refusal(reverb, insertion([data]))[0] == Code.RESOURCE_EXHAUSTED


def test_chunks_come_out_as_the_bytes_that_went_in(channel, reverb, fresh):
    """Also with unknown fields, an unusual order of fields, and delta encoding."""
    table = fresh("fifo")
    data = numbers(3)
    data.delta_encoded = True
    unknown = bytes.fromhex("a20603616263")
    data.chunk_key = 77
    whole = data.SerializeToString()
    assert whole[:2] == b"\x08\x4d"
    odd = whole[2:] + unknown + whole[:2]
    made = item(table, data).SerializeToString()
    request = b"\x0a" + varint(len(odd)) + odd + b"\x12" + varint(len(made)) + made
    call = channel.stream_stream("/deepmind.reverb.ReverbService/InsertStream",
                                 lambda b: b, lambda b: b)
    assert len(list(call(iter([request]), timeout=120))) == 1
    ask = channel.stream_stream("/deepmind.reverb.ReverbService/SampleStream",
                                lambda b: b, lambda b: b)
    [answer] = ask(iter([wish(table).SerializeToString()]), timeout=120)
    assert odd in answer


def test_the_same_chunk_key_on_two_streams_is_two_chunks(reverb, queue):
    one, two = numbers(1, 5, key=99), numbers(1, 6, key=99)
    for data in (one, two):
        with reverb.inserts() as stream:
            stream.send(insertion([data], [item(queue, data)]))
            stream.confirmed(1)
    assert [first_number(s) for s in reverb.sample(queue, 2)] == [5, 6]


@pytest.mark.parametrize("keep", ["unknown", "twice", "dropped"])
def test_a_keep_list_that_does_not_match_is_refused(reverb, fresh, keep):
    """The items of the message are inserted before the list is checked."""
    table = fresh("uniform")
    one, two = numbers(), numbers()
    requests = {
        "unknown": [insertion([one], [item(table, one)], keep=[one, 4711])],
        "twice": [insertion([one], [item(table, one)], keep=[one, one])],
        "dropped": [insertion([one, two], [item(table, one)], keep=[one]),
                    insertion(items=[item(table, one)], keep=[one, two])],
    }[keep]
    code, _ = refusal(reverb, *requests)
    assert code == Code.FAILED_PRECONDITION
    assert reverb.size(table) == len(requests)


def test_an_empty_request_is_refused(reverb):
    assert refusal(reverb, insertion())[0] == Code.INVALID_ARGUMENT


def test_keys_to_keep_alone_are_an_empty_request(reverb):
    assert refusal(reverb, insertion(keep=[1]))[0] == Code.INVALID_ARGUMENT


def test_an_unknown_chunk_is_named(reverb, fresh):
    table = fresh("uniform")
    data = numbers()
    code, text = refusal(reverb, insertion(items=[item(table, data)]))
    assert (code, text) == (Code.INTERNAL, f"Could not find sequence chunk {data.chunk_key}.")


def test_an_unknown_table_is_named(reverb):
    data = numbers()
    answer = refusal(reverb, insertion([data], [item("nope", data)]))
    assert answer == (Code.NOT_FOUND, "Priority table nope was not found")


def test_a_trajectory_without_rows_is_refused(reverb, fresh):
    table = fresh("uniform")
    data = numbers()
    for empty in (item(table), item(table, []), item(table, [(data, 0, 0)])):
        code, _ = refusal(reverb, insertion([data], [empty]))
        assert code == Code.INVALID_ARGUMENT
    assert reverb.size(table) == 0


@pytest.mark.parametrize("offset, length, index", [
    (0, 4, 0), (3, 1, 0), (-1, 1, 0), (0, -1, 0), (2**31 - 1, 1, 0), (1, 2**31 - 1, 0),
    (0, 1, 1), (0, 1, -1)])
def test_rows_that_a_chunk_does_not_have_are_refused(reverb, fresh, offset, length, index):
    table = fresh("uniform")
    data = numbers(3)
    code, _ = refusal(reverb, insertion([data], [item(table, [(data, offset, length, index)])]))
    assert code == Code.INVALID_ARGUMENT
    assert reverb.size(table) == 0


def test_items_before_a_bad_one_are_inserted(reverb, fresh):
    table = fresh("uniform")
    data = numbers()
    good, bad, late = item(table, data), item("nope", data), item(table, data)
    code, _ = refusal(reverb, insertion([data], [good, bad, late]))
    assert code == Code.NOT_FOUND
    assert reverb.size(table) == 1
    assert reverb.sample(table)[0].key == good.key


def test_a_bad_priority_refuses_the_adjacent_items_of_its_table(reverb, fresh):
    """Consecutive items for the same table are checked together."""
    table = fresh("prioritized")
    data = numbers()
    items = [item(table, data), item(table, data, priority=-1.0)]
    assert refusal(reverb, insertion([data], items))[0] == Code.INVALID_ARGUMENT
    assert reverb.size(table) == 0


@pytest.mark.parametrize("table, priority, fine", [
    ("uniform", math.nan, False), ("max-heap", math.nan, False),
    ("prioritized", math.nan, False), ("prioritized", -1.0, False),
    ("prioritized", math.inf, False), ("prioritized-remover", -0.5, False),
    ("prioritized", 0.0, True), ("max-heap", -1.0, True), ("uniform", -3.0, True),
    ("min-heap", -math.inf, True)])
def test_priorities_that_a_table_cannot_have_are_refused(reverb, fresh, table, priority, fine):
    fresh(table)
    data = numbers()
    with reverb.inserts() as stream:
        stream.send(insertion([data], [item(table, data, priority=priority)]))
        if fine:
            stream.confirmed(1)
        else:
            assert stream.status()[0] == Code.INVALID_ARGUMENT
    assert reverb.size(table) == int(fine)
    reverb.insert(table)  # the table still works
    reverb.sample(table)


def test_an_item_against_the_signature_is_refused(reverb, fresh):
    table = fresh("signed")
    data = chunk(np.zeros((3, 2), np.float32), np.arange(3, dtype=np.int64))
    wrong = chunk(np.zeros((3, 2), np.float64), np.arange(3, dtype=np.int64))
    for bad in (item(table, [(data, 0, 3, 0)]), item(table, [(data, 0, 3, 1)], [(data, 0, 3, 0)]),
                item(table, [(wrong, 0, 3, 0)], [(wrong, 0, 3, 1)])):
        code, _ = refusal(reverb, insertion([data, wrong], [bad]))
        assert code == Code.INVALID_ARGUMENT
    with reverb.inserts() as stream:
        stream.send(insertion([data], [item(table, [(data, 0, 3, 0)], [(data, 1, 2, 1)])]))
        stream.confirmed(1)


def test_an_existing_key_has_its_priority_changed_and_nothing_else(reverb, fresh):
    table = fresh("fifo")
    old, new = numbers(1, 1), numbers(1, 2)
    made = item(table, old, priority=1.0)
    again = item(table, new, key=made.key, priority=5.0)
    with reverb.inserts() as stream:
        stream.send(insertion([old], [made]), insertion([new], [again]))
        assert stream.confirmed(2) == [made.key, made.key]
    info = reverb.info(table)
    assert info.current_size == 1
    assert info.rate_limiter_info.insert_stats.completed == 1
    [sample] = reverb.sample(table)
    assert sample.chunks == [old]
    assert sample.info.item.priority == 5.0


def test_the_server_sets_the_insertion_time(reverb, fresh):
    table = fresh("fifo")
    data = numbers()
    made = item(table, data)
    made.inserted_at.seconds = 12345
    with reverb.inserts() as stream:
        stream.send(insertion([data], [made]))
        stream.confirmed(1)
    at = reverb.sample(table)[0].info.item.inserted_at
    assert at.seconds > 1_600_000_000 and 0 <= at.nanos < 1_000_000_000


def test_times_sampled_of_an_inserted_item_is_kept(reverb, fresh):
    table = fresh("fifo")
    data = numbers()
    made = item(table, data)
    made.times_sampled = 5
    with reverb.inserts() as stream:
        stream.send(insertion([data], [made]))
        stream.confirmed(1)
    assert reverb.sample(table)[0].info.item.times_sampled == 6


def test_fields_that_are_not_known_are_skipped(channel, reverb, fresh):
    table = fresh("fifo")
    data = numbers()
    request = insertion([data], [item(table, data, key=17)]).SerializeToString()
    unknown = bytes.fromhex("a206" "03" "616263" "a80601" "b5060000803f" "b906000000000000f03f")
    call = channel.stream_stream("/deepmind.reverb.ReverbService/InsertStream",
                                 lambda b: b, lambda b: b)
    assert list(call(iter([unknown + request + unknown]), timeout=120)) == [b"\x0a\x01\x11"]


@pytest.mark.parametrize("junk", ["0a05", "ff", "0a", "0b", "1a80", "08ffffffffffffffffffff01"])
def test_bytes_that_are_no_message_are_refused(channel, junk):
    call = channel.stream_stream("/deepmind.reverb.ReverbService/InsertStream",
                                 lambda b: b, lambda b: b)
    with pytest.raises(grpc.RpcError) as failure:
        list(call(iter([bytes.fromhex(junk)]), timeout=120))
    assert failure.value.code() == Code.INVALID_ARGUMENT


def test_half_close_without_a_message_is_fine(reverb):
    with reverb.inserts() as stream:
        assert stream.half_close().status() == (Code.OK, "")


def test_half_close_ends_after_the_last_confirmation(reverb, fresh):
    table = fresh("uniform")
    keys = []
    with reverb.inserts() as stream:
        for first in range(50):
            data = numbers(1, first)
            made = item(table, data)
            keys.append(made.key)
            stream.send(insertion([data], [made]))
        stream.half_close()
        confirmed = [key for message in stream.rest() for key in message.keys]
        assert sorted(confirmed) == sorted(keys)
        assert stream.status()[0] == Code.OK


def test_a_full_queue_delays_confirmations(reverb, queue):
    with reverb.inserts() as stream:
        for first in range(5):
            data = numbers(1, first)
            stream.send(insertion([data], [item(queue, data)]))
        stream.confirmed(4)
        assert stream.silent(A_WHILE)
        assert reverb.size(queue) == 4
        assert first_number(reverb.sample(queue)[0]) == 0
        stream.confirmed(1)


def test_items_of_one_message_are_confirmed_as_they_go_in(reverb, queue):
    chunks = [numbers(1, first) for first in range(7)]
    with reverb.inserts() as stream:
        stream.send(insertion(chunks, [item(queue, data) for data in chunks]))
        stream.confirmed(4)
        for _ in range(2):
            assert stream.silent(A_WHILE)
            reverb.sample(queue)
            stream.confirmed(1)
        assert [first_number(s) for s in reverb.sample(queue, 5)] == [2, 3, 4, 5, 6]
        stream.confirmed(1)


def test_half_close_waits_for_waiting_inserts(reverb, queue):
    with reverb.inserts() as stream:
        for first in range(6):
            data = numbers(1, first)
            stream.send(insertion([data], [item(queue, data)]))
        stream.half_close()
        stream.confirmed(4)
        assert stream.silent(A_WHILE)
        reverb.sample(queue, 2)
        stream.confirmed(2)
        assert stream.status()[0] == Code.OK


def test_a_fast_writer_is_paused_and_loses_no_items(reverb, queue):
    """A thousand items for a queue of four: the others wait in the client, and are inserted in
    order.
    """
    keys = []
    with reverb.inserts() as stream, reverb.samples() as drain:
        for first in range(1000):
            data = numbers(7, first)
            made = item(queue, [(data, 0, 1)])
            keys.append(made.key)
            stream.send(insertion([data], [made]))
        stream.confirmed(4)
        assert stream.silent(A_WHILE)
        drain.send(wish(queue, 1000))
        assert [s.key for s in drain.samples(1000, 30)] == keys
        stream.confirmed(996)


def test_a_blocked_insert_does_not_hold_up_the_connection(reverb, queue, fresh):
    fresh("uniform")
    with reverb.inserts() as blocked:
        for first in range(200):
            data = chunk(np.full((1, 100_000), first, np.uint8))
            blocked.send(insertion([data], [item(queue, data)]))
        blocked.confirmed(4)
        reverb.insert("uniform", 3)
        assert first_number(reverb.sample("uniform")[0]) == 3


def test_items_of_a_cancelled_stream_stay(reverb, fresh):
    table = fresh("uniform")
    data = numbers()
    with reverb.inserts() as stream:
        stream.send(insertion([data], [item(table, data)]))
        stream.confirmed(1)
        stream.cancel()
        assert stream.status()[0] == Code.CANCELLED
    assert reverb.size(table) == 1


def test_a_stream_may_be_cancelled_while_it_waits(reverb, queue):
    """Inserts that were not confirmed are withdrawn."""
    with reverb.inserts() as stream:
        for first in range(8):
            data = numbers(1, first)
            stream.send(insertion([data], [item(queue, data)]))
        stream.confirmed(4)
        assert stream.silent(A_WHILE)
        stream.cancel()
        assert stream.status()[0] == Code.CANCELLED
    time.sleep(A_WHILE)
    assert [first_number(s) for s in reverb.sample(queue, 4)] == [0, 1, 2, 3]
    assert reverb.size(queue) == 0


def test_an_insert_that_waits_past_its_deadline(reverb, queue):
    with reverb.inserts(timeout=0.5) as stream:
        for first in range(5):
            data = numbers(1, first)
            stream.send(insertion([data], [item(queue, data)]))
        stream.confirmed(4)
        assert stream.status()[0] == Code.DEADLINE_EXCEEDED
    assert [first_number(s) for s in reverb.sample(queue, 4)] == [0, 1, 2, 3]


def test_several_columns_of_several_chunks(reverb, fresh):
    """Chunks are sent in the order in which the columns first refer to them."""
    table = fresh("fifo")
    one = chunk(np.arange(6, dtype=np.float32).reshape(3, 2), np.arange(3, dtype=np.int64))
    two = chunk(np.ones((2, 2), np.float32), np.zeros(2, np.int64), start=3)
    made = item(table, [(two, 1, 1, 1), (one, 0, 1, 1)], [(one, 0, 3, 0), (two, 0, 2, 0)])
    with reverb.inserts() as stream:
        stream.send(insertion([one, two], [made]))
        stream.confirmed(1)
    [sample] = reverb.sample(table)
    assert [c.chunk_key for c in sample.chunks] == [two.chunk_key, one.chunk_key]
    assert sample.info.item.flat_trajectory == made.flat_trajectory


def test_keys_at_the_ends_of_their_range(reverb, fresh):
    table = fresh("uniform")
    data = [numbers(1, key=k) for k in (0, 2**64 - 1)]
    made = [item(table, d, key=d.chunk_key) for d in data]
    with reverb.inserts() as stream:
        stream.send(insertion(data, made))
        assert stream.confirmed(2) == [0, 2**64 - 1]


def test_the_episodes_of_a_table_are_counted(reverb, fresh):
    table = fresh("small")
    with reverb.inserts() as stream:
        for episode in (1, 1, 2, 3, 3):
            data = numbers(1, episode=episode)
            stream.send(insertion([data], [item(table, data)]))
        stream.confirmed(5)
    info = reverb.info(table)
    assert (info.current_size, info.num_episodes, info.num_deleted_episodes) == (3, 2, 1)
    assert isinstance(info, schema.TableInfo)


def test_many_streams_one_after_the_other(reverb, fresh):
    table, count = fresh("uniform"), 250 if harness.IS_SHORT else 1000
    for first in range(count):
        data = numbers(1, first)
        key = new_key()
        answers = list(reverb.stub.InsertStream(
            iter([insertion([data], [item(table, data, key=key)])]), timeout=120))
        assert [list(a.keys) for a in answers] == [[key]]
    assert reverb.size(table) == count
