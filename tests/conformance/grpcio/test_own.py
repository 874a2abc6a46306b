# SPDX-License-Identifier: Apache-2.0
"""reprise.v1: tables that are created, altered and dropped, WhyBlocked, items by key, samples."""

import time

import grpc
import numpy as np
import pytest

from messages import chunk, decoded, insertion, item, new_key, numbers, wish
from stubs import own, own_service, schema, struct

Code = grpc.StatusCode
A_WHILE = 0.2


class Replay:
    """The stub, with a timeout for every call."""

    def __init__(self, channel):
        self._stub = own_service.ReplayStub(channel)

    def __getattr__(self, name):
        request = getattr(own, f"{name}Request")
        return lambda **fields: getattr(self._stub, name)(request(**fields), timeout=120)


@pytest.fixture
def replay(channel):
    return Replay(channel)


@pytest.fixture
def made(replay):
    """made(max_size=10, ...): creates a table, which is dropped after the test."""
    names = []

    def make(**options):
        names.append(f"made-{new_key():x}")
        replay.CreateTable(options=own.TableOptions(**{"name": names[-1], "max_size": 1000,
                                                       **options}))
        return names[-1]

    yield make
    for name in names:
        try:
            replay.DropTable(table=name)
        except grpc.RpcError as error:
            assert error.code() == Code.NOT_FOUND


def fifo():
    return schema.KeyDistributionOptions(fifo=True)


def test_a_table_with_defaults(reverb, made):
    table = made(max_size=10)
    info = reverb.info(table)
    assert info.sampler_options.uniform and info.remover_options.fifo
    assert (info.max_size, info.max_times_sampled, info.current_size) == (10, 0, 0)
    limiter = info.rate_limiter_info
    assert (limiter.samples_per_insert, limiter.min_size_to_sample) == (1.0, 1)
    reverb.insert(table, 4)
    assert len(reverb.sample(table, 3)) == 3


def test_a_table_with_everything(reverb, made):
    signature = struct.StructuredValue()
    spec = signature.list_value.values.add().tensor_spec_value
    spec.dtype = 9
    spec.shape.dim.add(size=-1)
    table = made(
        sampler=schema.KeyDistributionOptions(
            prioritized=schema.KeyDistributionOptions.Prioritized(priority_exponent=0.5)),
        remover=schema.KeyDistributionOptions(
            heap=schema.KeyDistributionOptions.Heap(min_heap=True)),
        max_size=7, max_times_sampled=2, signature=signature,
        limiter=own.LimiterOptions(samples_per_insert=4, min_size=2, min_diff=-8, max_diff=40))
    info = reverb.info(table)
    assert info.sampler_options.prioritized.priority_exponent == 0.5
    assert info.remover_options.heap.min_heap
    assert (info.max_size, info.max_times_sampled) == (7, 2)
    limiter = info.rate_limiter_info
    assert (limiter.samples_per_insert, limiter.min_size_to_sample, limiter.min_diff,
            limiter.max_diff) == (4, 2, -8, 40)
    assert info.signature.list_value.values[0].tensor_spec_value.dtype == 9


@pytest.mark.parametrize("options", [
    {"name": ""}, {"name": "x" * 1025}, {"max_size": 0}, {"max_size": -1},
    {"limiter": {"min_size": 0}}, {"limiter": {"samples_per_insert": 0}},
    {"limiter": {"samples_per_insert": -1}}, {"limiter": {"min_diff": 5, "max_diff": 1}},
    {"limiter": {"samples_per_insert": float("nan")}},
    {"sampler": {"prioritized": {"priority_exponent": float("nan")}}},
    {"max_times_sampled": -1}])
def test_an_invalid_table_is_refused(replay, refused, options):
    options = {"name": "impossible", "max_size": 10, **options}
    with refused(Code.INVALID_ARGUMENT):
        replay.CreateTable(options=options)


def test_a_name_that_is_taken_is_refused(replay, made, refused):
    table = made()
    with refused(Code.ALREADY_EXISTS):
        replay.CreateTable(options=own.TableOptions(name=table, max_size=5))


@pytest.mark.parametrize("call", [
    lambda r: r.DropTable(table="nope"), lambda r: r.AlterTable(table="nope", max_size=1),
    lambda r: r.PauseTable(table="nope"), lambda r: r.ResumeTable(table="nope"),
    lambda r: r.WhyBlocked(table="nope"), lambda r: r.Status(table="nope"),
    lambda r: r.Peek(table="nope", keys=[1]),
    lambda r: r.Update(table="nope"), lambda r: r.Delete(table="nope", keys=[1]),
    lambda r: r.Sample(table="nope", count=1)],
    ids=["drop", "alter", "pause", "resume", "why", "status", "peek", "update", "delete", "sample"])
def test_an_unknown_table_is_not_found(replay, refused, call):
    with refused(Code.NOT_FOUND, "nope"):
        call(replay)


def test_dropping_a_table_removes_it_and_cancels_waiting_calls(replay, reverb, made):
    table = made()
    with reverb.samples() as stream:
        stream.send(wish(table))
        assert stream.silent(A_WHILE)
        replay.DropTable(table=table)
        assert stream.status()[0] == Code.CANCELLED
    assert table not in [t.name for t in reverb.info().table_info]
    with reverb.samples() as stream:
        assert stream.send(wish(table)).status()[0] == Code.NOT_FOUND


def test_a_table_that_shrinks_evicts_at_once(replay, reverb, made):
    table = made(sampler=fifo())
    keys = [reverb.insert(table, i) for i in range(5)]
    replay.AlterTable(table=table, max_size=2)
    assert (reverb.size(table), reverb.info(table).max_size) == (2, 2)
    assert reverb.sample(table)[0].key == keys[3]


def test_altering_a_limiter_releases_waiting_samples(replay, reverb, made):
    table = made(limiter=own.LimiterOptions(min_size=3))
    reverb.insert(table, 1)
    with reverb.samples() as stream:
        stream.send(wish(table))
        assert stream.silent(A_WHILE)
        replay.AlterTable(table=table, limiter=own.LimiterOptions(min_size=1))
        assert len(stream.samples()) == 1


def test_an_invalid_alteration_changes_nothing(replay, reverb, made, refused):
    table = made(max_size=10)
    before = reverb.info(table)
    with refused(Code.INVALID_ARGUMENT):
        replay.AlterTable(table=table, max_size=5, limiter=own.LimiterOptions(min_size=-1))
    assert reverb.info(table) == before


@pytest.mark.parametrize("side, inserts, samples", [
    (own.SIDE_BOTH, False, False), (own.SIDE_INSERTS, False, True),
    (own.SIDE_SAMPLES, True, False)])
def test_a_paused_side_waits_until_it_is_resumed(replay, reverb, made, side, inserts, samples):
    table = made()
    reverb.insert(table, 1)
    replay.PauseTable(table=table, side=side)
    data = numbers()
    with reverb.inserts() as writer, reverb.samples() as reader:
        writer.send(insertion([data], [item(table, data)]))
        reader.send(wish(table))
        time.sleep(A_WHILE)
        assert (not writer.silent(0.01)) is inserts
        assert (not reader.silent(0.01)) is samples
        replay.ResumeTable(table=table, side=side)
        writer.confirmed(1)
        assert len(reader.samples()) == 1


def test_sides_are_paused_and_resumed_one_by_one(replay, reverb, made):
    table = made()
    reverb.insert(table, 1)
    replay.PauseTable(table=table, side=own.SIDE_INSERTS)
    replay.PauseTable(table=table, side=own.SIDE_SAMPLES)
    replay.ResumeTable(table=table, side=own.SIDE_INSERTS)
    reverb.insert(table, 2)
    with reverb.samples() as reader:
        reader.send(wish(table))
        assert reader.silent(A_WHILE)
        replay.ResumeTable(table=table)
        reader.samples()


def test_calls_that_wait_are_explained(replay, reverb, made):
    table = made(limiter=own.LimiterOptions(min_size=3))
    reverb.insert(table, 1)
    assert replay.WhyBlocked(table=table).total == 0
    with reverb.samples() as one, reverb.samples() as two:
        one.send(wish(table, 2))
        assert one.silent(A_WHILE)
        two.send(wish(table, 1, timeout_ms=60_000))
        assert two.silent(A_WHILE)
        answer = replay.WhyBlocked(table=table)
        assert answer.total == 2
        first, second = answer.calls
        assert (first.table, first.side, first.done) == (table, own.SIDE_SAMPLES, 0)
        assert first.wanted >= 1 and not first.HasField("deadline_ms")
        assert first.waiting_ms >= second.waiting_ms >= 100
        assert 0 < second.deadline_ms <= 60_000
        assert "3" in first.why
        assert len(replay.WhyBlocked(table=table, max_calls=1).calls) == 1
        assert replay.WhyBlocked(max_calls=1).total >= 2


def test_status_has_fields_that_server_info_lacks(replay, reverb, made):
    table = made(sampler={"prioritized": {"priority_exponent": 1.0}}, max_bytes=1 << 20,
                 soft_limit=True)
    reverb.insert(table, 1, priority=2.0)
    key = reverb.insert(table, 2, priority=0.5)
    replay.Update(table=table, updates=[{"key": key, "priority": 1.5}])
    replay.PauseTable(table=table, side=own.SIDE_INSERTS)
    status, = replay.Status(table=table).tables
    assert (status.name, status.total_weight, status.size) == (table, 3.5, 2)
    assert (status.max_bytes, status.soft_limit, status.closed) == (1 << 20, True, False)
    assert (status.inserts_paused, status.samples_paused) == (True, False)
    assert (status.updates, status.deletes, status.max_priority) == (1, 0, 2.0)
    assert status.bytes > 0 and status.waiting_inserts == status.waiting_samples == 0
    assert table in [s.name for s in replay.Status().tables]


def test_peek_by_key(replay, reverb, made):
    table = made()
    keys = [reverb.insert(table, i, priority=float(i)) for i in range(3)]
    answer = replay.Peek(table=table, keys=[keys[2], 99, keys[0]])
    assert [e.info.item.key for e in answer.entries] == [keys[2], keys[0]]
    assert [e.info.item.priority for e in answer.entries] == [2.0, 0.0]
    assert not answer.chunks
    assert all(e.info.probability == e.weight == 0 for e in answer.entries)
    assert all(e.info.item.times_sampled == 0 for e in answer.entries)
    assert reverb.info(table).rate_limiter_info.sample_stats.completed == 0


def test_peek_with_data(replay, reverb, made):
    table = made()
    data = numbers(5)
    items = [item(table, [(data, i, 2)]) for i in range(3)]
    with reverb.inserts() as stream:
        stream.send(insertion([data], items))
        stream.confirmed(3)
    answer = replay.Peek(table=table, keys=[i.key for i in items], with_data=True)
    assert list(answer.chunks) == [data]
    assert [e.info.item.flat_trajectory for e in answer.entries] == [
        i.flat_trajectory for i in items]


def test_priorities_by_key(replay, reverb, made, refused):
    table = made()
    key = reverb.insert(table)
    answer = replay.Update(table=table, updates=[{"key": key, "priority": 4.0},
                                                 {"key": 5, "priority": 1.0}])
    assert answer.found == 1
    assert reverb.sample(table)[0].info.item.priority == 4.0
    with refused(Code.INVALID_ARGUMENT):
        replay.Update(table=table, updates=[{"key": key, "priority": 8.0},
                                            {"key": key, "priority": float("nan")}])
    assert reverb.sample(table)[0].info.item.priority == 4.0


def test_deletes_by_key(replay, reverb, made):
    table = made()
    keys = [reverb.insert(table, i) for i in range(3)]
    assert replay.Delete(table=table, keys=[keys[0], 4, keys[2]]).found == 2
    assert reverb.size(table) == 1
    assert replay.Delete(table=table, keys=[keys[0]]).found == 0


def rows_of(answer, entry):
    """Returns the int64 rows of the first column of an entry."""
    chunks = {c.chunk_key: c for c in answer.chunks}
    [column] = entry.info.item.flat_trajectory.columns
    rows = []
    for cut in column.chunk_slices:
        values = np.frombuffer(decoded(chunks[cut.chunk_key].data.tensors[cut.index]), np.int64)
        part = values[cut.offset:cut.offset + cut.length]
        assert len(part) == cut.length
        rows += part.tolist()
    return rows


def test_a_batch(replay, reverb, made):
    table = made()
    keys = {reverb.insert(table, i) for i in range(4)}
    answer = replay.Sample(table=table, count=50)
    assert len(answer.entries) == 50
    assert {e.info.item.key for e in answer.entries} == keys
    assert len(answer.chunks) == 4
    assert {e.info.probability for e in answer.entries} == {0.25}
    assert {e.weight for e in answer.entries} == {1.0}


def test_each_chunk_is_sent_once_in_a_response(replay, reverb, made):
    table = made()
    data = numbers(10)
    with reverb.inserts() as stream:
        stream.send(insertion([data], [item(table, [(data, i, 3)]) for i in range(8)]))
        stream.confirmed(8)
    answer = replay.Sample(table=table, count=100)
    assert list(answer.chunks) == [data]
    assert {tuple(rows_of(answer, e)) for e in answer.entries} == {
        (i, i + 1, i + 2) for i in range(8)}


def test_distinct_items(replay, reverb, made):
    table = made()
    keys = {reverb.insert(table, i) for i in range(10)}
    answer = replay.Sample(table=table, count=10, distinct=True)
    assert {e.info.item.key for e in answer.entries} == keys
    few = replay.Sample(table=table, count=40, distinct=True)
    assert len(few.entries) == 10


def test_importance_weights(replay, reverb, made):
    table = made(sampler=schema.KeyDistributionOptions(
        prioritized=schema.KeyDistributionOptions.Prioritized(priority_exponent=1)))
    for i, priority in enumerate((1.0, 3.0)):
        reverb.insert(table, i, priority=priority)
    answer = replay.Sample(table=table, count=100, beta=1.0)
    weights = {e.info.item.priority: e.weight for e in answer.entries}
    assert weights == {1.0: 1.0, 3.0: pytest.approx(1 / 3)}


def test_only_used_rows_are_sent(replay, reverb, made):
    table = made(sampler=fifo())
    data = chunk(np.arange(1000, dtype=np.int64))
    with reverb.inserts() as stream:
        stream.send(insertion([data], [item(table, [(data, 400, 3)])]))
        stream.confirmed(1)
    whole = replay.Sample(table=table, count=2)
    cut = replay.Sample(table=table, count=2, cut_rows=True)
    assert [rows_of(a, e) for a in (whole, cut) for e in a.entries] == [[400, 401, 402]] * 4
    [sent] = cut.chunks
    assert sent.chunk_key == data.chunk_key
    assert sent.ByteSize() < 200 < whole.chunks[0].ByteSize()


def test_rows_of_several_items_are_cut_together(replay, reverb, made):
    table = made()
    data = numbers(50)
    items = [item(table, [(data, 10, 2)]), item(table, [(data, 14, 3)])]
    with reverb.inserts() as stream:
        stream.send(insertion([data], items))
        stream.confirmed(2)
    answer = replay.Sample(table=table, count=2, distinct=True, cut_rows=True)
    assert sorted(rows_of(answer, e) for e in answer.entries) == [[10, 11], [14, 15, 16]]
    assert len(answer.chunks) == 1


def test_a_sample_that_does_not_wait(replay, made, refused):
    start = time.monotonic()
    with refused(Code.DEADLINE_EXCEEDED):
        replay.Sample(table=made(), count=1, timeout_ms=0)
    assert time.monotonic() - start < 2


def test_a_sample_that_waits_a_while(replay, made, refused):
    start = time.monotonic()
    with refused(Code.DEADLINE_EXCEEDED):
        replay.Sample(table=made(), count=1, timeout_ms=150)
    assert 0.14 < time.monotonic() - start < 3


def test_a_sample_of_at_least_returns_the_existing_items(replay, reverb, made):
    table = made(sampler=fifo(), max_times_sampled=1)
    for i in range(3):
        reverb.insert(table, i)
    answer = replay.Sample(table=table, count=10, at_least=2, timeout_ms=5000)
    assert [rows_of(answer, e) for e in answer.entries] == [[0], [1], [2]]


@pytest.mark.parametrize("count", [0, -1, 2**62])
def test_a_count_out_of_range_is_refused(replay, made, count):
    with pytest.raises(grpc.RpcError) as failure:
        replay.Sample(table=made(), count=count, timeout_ms=0)
    assert failure.value.code() in (Code.INVALID_ARGUMENT, Code.RESOURCE_EXHAUSTED)
