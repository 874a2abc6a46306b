# SPDX-License-Identifier: Apache-2.0
"""The unary calls of Reverb's service, and InitializeConnection."""

import math
import os

import grpc
import pytest

import conftest
from messages import Stream, insertion, item, numbers
from stubs import rpc, schema

Code = grpc.StatusCode


def test_server_info_lists_the_tables(reverb):
    names = [t.name for t in reverb.info().table_info]
    assert len(names) == len(set(names))
    assert {t["name"] for t in conftest.TABLES} <= set(names)


def test_the_state_of_the_tables_has_an_id_that_stays(reverb):
    one, two = reverb.info(), reverb.info()
    assert one.tables_state_id.high or one.tables_state_id.low
    assert one.tables_state_id == two.tables_state_id


def test_every_field_of_an_empty_table(reverb, fresh):
    info = reverb.info(fresh("ratio"))
    expected = schema.TableInfo(name="ratio", max_size=1000)
    expected.sampler_options.fifo = True
    expected.sampler_options.is_deterministic = True
    expected.remover_options.fifo = True
    expected.remover_options.is_deterministic = True
    limiter = expected.rate_limiter_info
    limiter.samples_per_insert, limiter.min_size_to_sample = 2.0, 2
    limiter.min_diff, limiter.max_diff = 2.0, 6.0
    limiter.insert_stats.SetInParent()
    limiter.sample_stats.SetInParent()
    info.ClearField("table_worker_time")  # the times of its threads
    assert info == expected


@pytest.mark.parametrize("table, field, deterministic", [
    ("uniform", "uniform", False), ("fifo", "fifo", True), ("lifo", "lifo", True),
    ("max-heap", "heap", True), ("min-heap", "heap", True),
    ("prioritized", "prioritized", False)])
def test_server_info_has_the_selectors(reverb, table, field, deterministic):
    options = reverb.info(table).sampler_options
    assert options.WhichOneof("distribution") == field
    assert options.is_deterministic is deterministic
    if field == "heap":
        assert options.heap.min_heap is (table == "min-heap")
    elif field == "prioritized":
        assert options.prioritized.priority_exponent == 1.0


def test_an_exponent_may_be_negative(reverb):
    options = reverb.info("prioritized-remover").remover_options
    assert options.prioritized.priority_exponent == -0.5


def test_a_limiter_without_bounds_has_the_largest_doubles(reverb):
    limiter = reverb.info("uniform").rate_limiter_info
    largest = 1.7976931348623157e308
    assert (limiter.min_diff, limiter.max_diff) == (-largest, largest)
    assert limiter.HasField("insert_stats") and limiter.HasField("sample_stats")


def test_server_info_has_the_signature(reverb):
    assert not reverb.info("uniform").HasField("signature")
    fields = reverb.info("signed").signature.dict_value.fields
    assert sorted(fields) == ["a", "b"]
    spec = fields["a"].tensor_spec_value
    assert [d.size for d in spec.shape.dim] == [-1, 2]
    assert spec.dtype == 1
    [inner] = fields["b"].tuple_value.values
    assert inner.tensor_spec_value.dtype == 9


def test_counters_of_a_table(reverb, fresh):
    table = fresh("thrice")
    for i in range(3):
        reverb.insert(table, i)
    reverb.sample(table, 4)
    info = reverb.info(table)
    assert info.current_size == 2
    assert info.num_unique_samples == 2
    assert info.rate_limiter_info.insert_stats.completed == 3
    assert info.rate_limiter_info.sample_stats.completed == 4


def test_priorities_are_set_and_items_deleted(reverb, fresh):
    table = fresh("max-heap")
    one, two, three = (reverb.insert(table, i, priority=float(i)) for i in (1, 2, 3))
    reverb.mutate(table, updates={one: 10.0}, deletes=[three])
    assert reverb.size(table) == 2
    [sample] = reverb.sample(table)
    assert (sample.key, sample.info.item.priority) == (one, 10.0)
    reverb.mutate(table, updates={one: 1.0})
    assert reverb.sample(table)[0].key == two


def test_unknown_keys_are_ignored(reverb, fresh):
    table = fresh("uniform")
    key = reverb.insert(table)
    reverb.mutate(table, updates={1: 1.0, key: 3.0}, deletes=[2])
    assert reverb.sample(table)[0].info.item.priority == 3.0


def test_deletes_come_first(reverb, fresh):
    table = fresh("uniform")
    key = reverb.insert(table)
    reverb.mutate(table, updates={key: 3.0}, deletes=[key])
    assert reverb.size(table) == 0


def test_a_call_that_changes_nothing_is_fine(reverb, fresh):
    reverb.mutate(fresh("uniform"))


@pytest.mark.parametrize("priority", [-1.0, math.nan, math.inf])
def test_an_invalid_priority_refuses_the_whole_request(reverb, fresh, refused, priority):
    table = fresh("prioritized")
    one, two = reverb.insert(table, 1, priority=1.0), reverb.insert(table, 2, priority=1.0)
    with refused(Code.INVALID_ARGUMENT):
        reverb.mutate(table, updates={one: 5.0, two: priority})
    seen = {s.key: s.info.item.priority for s in reverb.sample(table, 50)}
    assert seen == {one: 1.0, two: 1.0}


def test_heaps_take_negative_priorities(reverb, fresh):
    table = fresh("min-heap")
    one, _ = reverb.insert(table, 1), reverb.insert(table, 2)
    reverb.mutate(table, updates={one: -7.5})
    assert reverb.sample(table)[0].info.item.priority == -7.5


def test_ten_thousand_updates_in_one_call(reverb, fresh):
    table = fresh("uniform")
    keys = [reverb.insert(table, i) for i in range(10)]
    reverb.mutate(table, updates={k: 2.0 for k in [*keys, *range(10_000)]},
                  deletes=list(range(20_000, 30_000)))
    assert all(s.info.item.priority == 2.0 for s in reverb.sample(table, 20))


def test_a_delete_unblocks_a_waiting_insert(reverb, queue):
    with reverb.inserts() as stream:
        items = []
        for first in range(5):
            data = numbers(1, first)
            items.append(item(queue, data))
            stream.send(insertion([data], [items[-1]]))
        stream.confirmed(4)
        assert stream.silent(0.1)
        # A queue counts samples, not items: only a reset or a sample admits the fifth item.
        reverb.reset(queue)
        stream.confirmed(1)
    assert reverb.sample(queue)[0].key == items[4].key


def test_reset_empties_a_table_and_its_counters(reverb, fresh):
    table = fresh("thrice")
    for i in range(3):
        reverb.insert(table, i)
    reverb.sample(table, 4)
    reverb.reset(table)
    info = reverb.info(table)
    assert info.current_size == info.num_episodes == info.num_deleted_episodes == 0
    assert info.num_unique_samples == 0
    assert info.rate_limiter_info.insert_stats.completed == 0
    assert info.rate_limiter_info.sample_stats.completed == 0


def test_a_checkpoint_without_a_checkpointer_is_refused(reverb, refused):
    with refused(Code.INVALID_ARGUMENT, "heckpoint"):
        reverb.stub.Checkpoint(rpc.CheckpointRequest(), timeout=120)


@pytest.mark.parametrize("call", [
    lambda stub: stub.Reset(rpc.ResetRequest(table="nope"), timeout=120),
    lambda stub: stub.MutatePriorities(rpc.MutatePrioritiesRequest(table="nope"), timeout=120),
    lambda stub: stub.MutatePriorities(
        rpc.MutatePrioritiesRequest(table="nope", delete_keys=[1]), timeout=120),
], ids=["reset", "mutate", "delete"])
def test_an_unknown_table_is_named(reverb, refused, call):
    with refused(Code.NOT_FOUND, "Priority table nope was not found"):
        call(reverb.stub)


@pytest.mark.parametrize("table", ["uniform", "nope"])
@pytest.mark.parametrize("ours", [False, True])
def test_initialize_connection_is_always_declined(server, reverb, table, ours):
    """Also for a client that sends the process id of the server."""
    pid = server.process.pid if ours else os.getpid()
    with Stream(reverb.stub.InitializeConnection, timeout=120) as stream:
        stream.send(rpc.InitializeConnectionRequest(pid=pid, table_name=table))
        assert stream.receive().address == 0
        assert stream.status() == (Code.OK, "")


def test_initialize_connection_declines_a_second_message_too(reverb):
    with Stream(reverb.stub.InitializeConnection, timeout=120) as stream:
        stream.send(rpc.InitializeConnectionRequest(pid=1, table_name="uniform"),
                    rpc.InitializeConnectionRequest(ownership_transferred=True))
        assert all(answer.address == 0 for answer in stream.rest())
        assert stream.status()[0] == Code.OK


def test_initialize_connection_may_be_closed_without_a_message(reverb):
    with Stream(reverb.stub.InitializeConnection, timeout=120) as stream:
        assert stream.half_close().status()[0] == Code.OK
