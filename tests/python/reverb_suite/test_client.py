# SPDX-License-Identifier: Apache-2.0
"""Client: every method that is not a writer's."""

import pickle
import types

import numpy as np
import pytest

from reverb_suite.helpers import assert_same, insert, keys_by_value, sample, samples, size, values
from reverb_suite.implementation import Spec, dtype_of, reverb, shape_of, table

NOBODY = "localhost:1"  # no server is there


def test_a_new_client_does_not_connect():
    assert reverb.Client(NOBODY).server_address == NOBODY


def test_address_by_name():
    assert reverb.Client(server_address="localhost:7").server_address == "localhost:7"


def test_the_address_cannot_be_changed():
    with pytest.raises(AttributeError):
        reverb.Client(NOBODY).server_address = "elsewhere:1"


def test_repr_has_the_address():
    assert repr(reverb.Client("somewhere:1234")) == "Client, server_address=somewhere:1234"


def test_a_client_can_be_pickled(start):
    service = start(table())
    service.client.insert(1.0, {"t": 1.0})
    copy = pickle.loads(pickle.dumps(service.client))
    assert copy.server_address == service.client.server_address
    assert values(copy) == [1.0]


def test_insert_returns_after_the_item_is_inserted(serve):
    client = serve()
    for i in range(20):
        assert client.insert(i, {"t": 1.0}) is None
        assert size(client) == i + 1


@pytest.mark.parametrize("priorities", [{}, None])
def test_insert_without_priorities(serve, priorities):
    with pytest.raises(ValueError, match="priorities must contain at least one item"):
        serve().insert(1.0, priorities)


def test_insert_into_several_tables(serve):
    client = serve(table("a"), table("b"), table("c"))
    client.insert(3.0, {"a": 1.0, "b": 2.0})
    assert sample(client, "a").info.priority == 1.0
    assert sample(client, "b").info.priority == 2.0
    assert size(client, "c") == 0


def test_items_of_several_tables_have_keys_of_their_own(serve):
    client = serve(table("a"), table("b"))
    client.insert(3.0, {"a": 1.0, "b": 2.0})
    assert sample(client, "a").info.key != sample(client, "b").info.key


def test_insert_nan_priority(serve):
    with pytest.raises(ValueError, match="(?i)nan"):
        serve().insert(1.0, {"t": float("nan")})


@pytest.mark.parametrize("priority", [0.0, 1e-300, 1e300, 0.1, 12345.678])
def test_priorities_are_kept(serve, priority):
    client = serve()
    client.insert(1.0, {"t": priority})
    assert sample(client).info.priority == priority


def test_priority_may_be_a_numpy_number(serve):
    client = serve()
    client.insert(1.0, {"t": np.float32(0.5)})
    client.insert(1.0, {"t": 3})
    assert [s.info.priority for s in samples(client, count=1)] == [0.5]


def test_insert_flattens_by_sorted_key(serve):
    client = serve()
    client.insert({"b": 2.0, "a": 1.0, "c": {"z": 4.0, "y": 3.0}}, {"t": 1.0})
    assert [float(column[0]) for column in sample(client).data] == [1.0, 2.0, 3.0, 4.0]


def test_sample_is_a_generator(serve):
    client = serve()
    client.insert(1.0, {"t": 1.0})
    assert isinstance(client.sample("t"), types.GeneratorType)


def test_sample_gives_as_many_as_asked_for(serve):
    client = serve()
    client.insert(1.0, {"t": 1.0})
    for count in (1, 2, 17):
        assert len(list(client.sample("t", count))) == count
    assert len(list(client.sample("t"))) == 1
    assert len(list(client.sample(table="t", num_samples=3))) == 3


def test_timesteps(serve):
    client = serve()
    with client.writer(3) as writer:
        for i in range(3):
            writer.append({"a": np.float32(i), "b": np.arange(2) + i})
        writer.create_item("t", 3, 1.0)
    (steps,) = client.sample("t")
    assert isinstance(steps, list) and len(steps) == 3
    for i, step in enumerate(steps):
        assert isinstance(step, reverb.ReplaySample)
        assert_same(step.data[0], np.float32(i))
        assert_same(step.data[1], np.arange(2) + i)
        assert step.info == steps[0].info


def test_whole_trajectories(serve):
    client = serve()
    with client.writer(3) as writer:
        for i in range(3):
            writer.append({"a": np.float32(i), "b": np.arange(2) + i})
        writer.create_item("t", 3, 1.0)
    one = sample(client)
    assert isinstance(one, reverb.ReplaySample)
    assert_same(one.data[0], np.arange(3, dtype=np.float32))
    assert_same(one.data[1], np.stack([np.arange(2) + i for i in range(3)]))


def test_info_of_a_sample(serve):
    client = serve(table(sampler="uniform"))
    insert(client, range(4), priorities=[2.5] * 4)
    info = sample(client).info
    assert isinstance(info, reverb.SampleInfo)
    assert isinstance(info.key, int) and info.key > 0
    assert info.probability == 0.25 and isinstance(info.probability, float)
    assert info.table_size == 4 and isinstance(info.table_size, int)
    assert info.priority == 2.5 and isinstance(info.priority, float)
    assert info.times_sampled == 1 and isinstance(info.times_sampled, int)


def test_times_sampled_counts(serve):
    client = serve()
    client.insert(1.0, {"t": 1.0})
    assert [s.info.times_sampled for s in samples(client, count=5)] == [1, 2, 3, 4, 5]


def test_keys_are_unique(serve):
    client = serve(table(max_times_sampled=1))
    insert(client, range(50))
    assert len({s.info.key for s in samples(client, count=50)}) == 50


def test_max_times_sampled(serve):
    client = serve(table(max_times_sampled=2))
    insert(client, [1.0, 2.0])
    assert values(client, count=4) == [1.0, 1.0, 2.0, 2.0]
    assert size(client) == 0


def test_sampling_an_unknown_table(serve):
    with pytest.raises(RuntimeError, match="(?i)not found"):
        next(serve().sample("nowhere"))


def test_columns_of_different_length_cannot_be_split_into_timesteps(serve):
    client = serve()
    with client.trajectory_writer(3) as writer:
        for i in range(3):
            writer.append({"a": i, "b": i})
        writer.create_item("t", 1.0, {"a": writer.history["a"][-3:],
                                      "b": writer.history["b"][-2:]})
    with pytest.raises(ValueError, match="Can't split non timestep trajectory into timesteps"):
        next(client.sample("t"))
    one = sample(client)
    assert [len(column) for column in one.data] == [3, 2]


SIGNED = {"a": Spec([None, 2], "float32"), "b": {"c": Spec([None], "int64")}}


def test_unpack_as_table_signature(serve):
    client = serve(table(signature=SIGNED))
    with client.trajectory_writer(2) as writer:
        for i in range(2):
            writer.append({"a": np.full(2, i, np.float32), "b": {"c": np.int64(i)}})
        writer.create_item("t", 1.0, {"a": writer.history["a"][-2:],
                                      "b": {"c": writer.history["b"]["c"][-2:]}})
    one = sample(client, unpack_as_table_signature=True)
    assert_same(one.data["a"], np.array([[0, 0], [1, 1]], np.float32))
    assert_same(one.data["b"]["c"], np.array([0, 1]))
    (steps,) = client.sample("t", unpack_as_table_signature=True)
    assert_same(steps[1].data["b"]["c"], np.int64(1))


def test_unpack_without_a_signature(serve):
    client = serve()
    client.insert({"a": 1.0, "b": 2.0}, {"t": 1.0})
    one = sample(client, unpack_as_table_signature=True)
    assert [float(column[0]) for column in one.data] == [1.0, 2.0]


def test_unpack_of_an_unknown_table(serve):
    client = serve(table("a"), table("b"))
    with pytest.raises(ValueError, match='Could not find table "nowhere".*tables exists'):
        next(client.sample("nowhere", unpack_as_table_signature=True))


def test_sample_options_go_by_name_only(serve):
    with pytest.raises(TypeError):
        next(serve().sample("t", 1, False))


def test_samples_may_be_changed(serve):
    client = serve()
    client.insert(np.arange(3.0), {"t": 1.0})
    sample(client).data[0][:] = 7.0
    assert_same(sample(client).data[0][0], np.arange(3.0))


def test_a_generator_that_is_left_draws_no_more(serve):
    client = serve(table(max_times_sampled=1))
    insert(client, range(10))
    generator = client.sample("t", 10)
    next(generator)
    generator.close()
    assert size(client) >= 7


def test_updates(serve):
    client = serve(table(sampler="max_heap"))
    insert(client, range(3))
    keys = {v: k for v, k in keys_by_value(client).items()}
    client.mutate_priorities("t", updates={keys[0]: 5.0})
    one = sample(client)
    assert (one.data[0][0], one.info.priority) == (0, 5.0)


def test_deletes(serve):
    client = serve()
    insert(client, range(3))
    client.mutate_priorities("t", deletes=[keys_by_value(client)[0]])
    assert size(client) == 2
    assert values(client) == [1]


def test_updates_and_deletes_at_once(serve):
    client = serve(table(sampler="max_heap", max_times_sampled=0))
    insert(client, range(3), priorities=[3.0, 2.0, 1.0])
    first = keys_by_value(client)[0]
    client.mutate_priorities("t", deletes=[first])
    second = keys_by_value(client)[1]
    client.mutate_priorities("t", updates={second: 0.5}, deletes=[first])
    assert values(client) == [2]
    assert size(client) == 2


def test_unknown_keys_are_ignored(serve):
    client = serve()
    insert(client, range(2))
    key = keys_by_value(client)[0]
    client.mutate_priorities("t", updates={12345: 1.0, key: 9.0}, deletes=[54321])
    assert size(client) == 2
    assert sample(client).info.priority == 9.0


def test_nothing_to_mutate(serve):
    client = serve()
    client.insert(1.0, {"t": 1.0})
    client.mutate_priorities("t")
    client.mutate_priorities("t", {}, [])
    assert size(client) == 1


def test_mutating_an_unknown_table(serve):
    with pytest.raises(RuntimeError, match="(?i)not found"):
        serve().mutate_priorities("nowhere", updates={1: 1.0})


def test_many_updates(serve):
    client = serve(table(sampler="uniform", max_size=300, max_times_sampled=0))
    with client.trajectory_writer(1) as writer:
        for i in range(300):
            writer.append([i])
            writer.create_item("t", 1.0, [writer.history[0][-1:]])
    keys = {s.info.key for s in samples(client, count=300)}
    client.mutate_priorities("t", updates={key: 2.0 for key in keys})
    for one in samples(client, count=100):
        assert one.info.priority == (2.0 if one.info.key in keys else 1.0)


def test_mutate_keeps_times_sampled(serve):
    client = serve()
    client.insert(1.0, {"t": 1.0})
    key = sample(client).info.key
    client.mutate_priorities("t", updates={key: 4.0})
    assert sample(client).info.times_sampled == 2


def test_keys_and_priorities_may_be_numpy(serve):
    client = serve()
    client.insert(1.0, {"t": 1.0})
    key = np.uint64(sample(client).info.key)
    client.mutate_priorities("t", updates={key: np.float32(0.5)})
    assert sample(client).info.priority == 0.5
    client.mutate_priorities("t", deletes=[key])
    assert size(client) == 0


@pytest.mark.parametrize("priority", [-1.0, float("nan")])
def test_a_weighted_table_refuses_bad_priorities(serve, priority):
    client = serve(table(sampler="prioritized"))
    client.insert(1.0, {"t": 1.0})
    key = sample(client).info.key
    with pytest.raises((ValueError, RuntimeError)):
        client.mutate_priorities("t", updates={key: priority})


def test_reset(serve):
    client = serve(table("a"), table("b"))
    for name in "ab":
        insert(client, range(3), name)
    client.reset("a")
    assert (size(client, "a"), size(client, "b")) == (0, 3)
    insert(client, [9], "a")
    assert values(client, "a") == [9]


def test_resetting_an_unknown_table(serve):
    with pytest.raises(RuntimeError, match="(?i)not found"):
        serve().reset("nowhere")


def test_server_info(serve):
    client = serve(table("a", sampler=("prioritized", 0.7), remover="lifo", max_size=12,
                         limiter=("ratio", 2.0, 3, 4.0), max_times_sampled=5, signature=SIGNED),
                   table("b"))
    infos = client.server_info()
    assert set(infos) == {"a", "b"}
    info = infos["a"]
    assert (info.name, info.max_size, info.max_times_sampled) == ("a", 12, 5)
    assert info.sampler_options.prioritized.priority_exponent == 0.7
    assert info.remover_options.HasField("lifo")
    assert info.rate_limiter_info.min_size_to_sample == 3
    assert dtype_of(info.signature["a"]) == "float32"
    assert shape_of(info.signature["b"]["c"]) == (None,)
    assert infos["b"].signature is None


def test_server_info_counts(serve):
    client = serve(table(max_size=3))
    insert(client, range(5))
    samples(client, count=4)
    info = client.server_info()["t"]
    assert info.current_size == 3
    assert info.num_episodes == 3
    assert info.num_deleted_episodes == 2
    assert info.num_unique_samples == 1
    assert info.rate_limiter_info.insert_stats.completed == 5
    assert info.rate_limiter_info.sample_stats.completed == 4


@pytest.mark.parametrize("timeout", [None, 1, 10])
def test_server_info_with_a_timeout(serve, timeout):
    assert set(serve().server_info(timeout)) == {"t"}
    assert set(serve().server_info(timeout=timeout)) == {"t"}


def test_server_info_of_an_absent_server_times_out():
    with pytest.raises(reverb.DeadlineExceededError, match="did not complete within.*1s"):
        reverb.Client(NOBODY).server_info(timeout=1)


def test_table_info_is_a_dataclass(serve):
    import dataclasses

    info = serve().server_info()["t"]
    names = [field.name for field in dataclasses.fields(info)]
    assert names == ["name", "sampler_options", "remover_options", "max_size",
                     "max_times_sampled", "rate_limiter_info", "signature", "current_size",
                     "num_episodes", "num_deleted_episodes", "num_unique_samples",
                     "table_worker_time"]


@pytest.mark.parametrize("length", [0, -1])
def test_writer_wants_a_length(serve, length):
    with pytest.raises(ValueError, match=rf"max_sequence_length \({length}\) must be a positive"):
        serve().writer(length)


@pytest.mark.parametrize("chunk", [0, -1, 6])
def test_writer_wants_a_chunk_length_that_fits(serve, chunk):
    with pytest.raises(ValueError, match=rf"chunk_length \({chunk}\) must be a positive"):
        serve().writer(5, chunk_length=chunk)


@pytest.mark.parametrize("items", [0, -1])
def test_writer_wants_items_in_flight(serve, items):
    with pytest.raises(ValueError, match=rf"max_in_flight_items \({items}\) must be a positive"):
        serve().writer(5, max_in_flight_items=items)


@pytest.mark.parametrize("refs", [0, -1])
def test_trajectory_writer_wants_a_history(serve, refs):
    with pytest.raises(ValueError, match=rf"num_keep_alive_refs \({refs}\) must be a positive"):
        serve().trajectory_writer(refs)


@pytest.mark.parametrize("configs", [[], ()])
def test_structured_writer_wants_configs(serve, configs):
    with pytest.raises(ValueError, match="At least one config must be provided"):
        serve().structured_writer(configs)


def test_types_of_writers(serve):
    client = serve()
    assert isinstance(client.writer(1), reverb.Writer)
    assert isinstance(client.trajectory_writer(1), reverb.TrajectoryWriter)
