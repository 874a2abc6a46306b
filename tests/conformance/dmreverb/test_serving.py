# SPDX-License-Identifier: Apache-2.0
"""The information of a server, and clients of a server that is stopped and started again."""

import threading

import numpy as np
import pytest
import reverb
import tree
from reverb.cc import schema_pb2

import conftest
import harness
import specs

RESTART_TABLES = [harness.table("fifo", sampler="fifo")]


def options_of(selector):
    """Returns the KeyDistributionOptions of a selector, as both servers send them."""
    proto = schema_pb2.KeyDistributionOptions()
    if isinstance(selector, tuple):
        proto.prioritized.priority_exponent = selector[1]
    elif selector.endswith("heap"):
        proto.heap.min_heap = selector == "min_heap"
        proto.is_deterministic = True
    else:
        setattr(proto, selector, True)
        proto.is_deterministic = selector != "uniform"
    return proto


def limiter_of(description):
    """Returns (samples per insert, min size, min diff, max diff) as dm-reverb computes them."""
    kind, *numbers = description
    huge = np.finfo(np.float64).max
    if kind == "min_size":
        return 1.0, numbers[0], -huge, huge
    if kind == "ratio":
        ratio, size, buffer = numbers
        return ratio, size, size * ratio - buffer, size * ratio + buffer
    return 1.0, 1, 0.0, float(numbers[0])


@pytest.mark.parametrize("description", conftest.TABLES, ids=lambda d: d["name"])
def test_server_info_has_the_options_of_a_table(client, fresh, description):
    table = fresh(description["name"])
    info = client.server_info()[table]
    assert info.sampler_options == options_of(description["sampler"])
    assert info.remover_options == options_of(description["remover"])
    assert info.max_size == description["max_size"]
    assert info.max_times_sampled == description["max_times_sampled"]
    limits = info.rate_limiter_info
    assert (limits.samples_per_insert, limits.min_size_to_sample, limits.min_diff,
            limits.max_diff) == limiter_of(description["limiter"])
    if description["signature"] is None:
        assert info.signature is None
    else:
        expected = specs.tensor_specs(description["signature"])
        tree.assert_same_structure(info.signature, expected)
        assert [(s.shape.as_list(), s.dtype) for s in tree.flatten(info.signature)] == [
            (s.shape.as_list(), s.dtype) for s in tree.flatten(expected)]
    assert info.current_size == info.num_episodes == 0


def test_server_info_lists_every_table(client):
    assert set(client.server_info(timeout=120)) == {d["name"] for d in conftest.TABLES}


def test_server_info_counts(client, fresh):
    table = fresh("thrice")
    for number in range(3):
        client.insert([np.int64(number)], {table: 1.0})
    list(client.sample(table, 4))
    info = client.server_info()[table]
    assert info.current_size == 2
    assert (info.num_episodes, info.num_deleted_episodes) == (2, 1)
    assert info.num_unique_samples == 2
    assert info.rate_limiter_info.insert_stats.completed == 3
    assert info.rate_limiter_info.sample_stats.completed == 4


def test_an_absent_server_is_deadline_exceeded(tmp_path):
    with pytest.raises(reverb.DeadlineExceededError):
        reverb.Client(f"localhost:{harness.free_port()}").server_info(timeout=1)


def test_checkpoint_returns_a_path_or_is_refused(client):
    """A server without a checkpointer returns INVALID_ARGUMENT, which is ValueError in Python."""
    try:
        path = client.checkpoint()
    except ValueError as error:
        assert "heckpoint" in str(error)
    else:
        assert path


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost"])
def test_both_families_of_loopback_are_served(server, host):
    info = reverb.Client(f"{host}:{server.port}").server_info(timeout=120)
    assert "uniform" in info


@pytest.fixture(params=conftest.KINDS)
def mortal(request, servers, tmp_path):
    """A new server for a test that restarts it."""
    if request.param not in servers:
        pytest.skip("only dm-reverb's server was asked for")
    with conftest.make(request.param, tmp_path, RESTART_TABLES) as server:
        yield server.start()


def test_writers_and_samplers_survive_a_restart(mortal):
    """A writer and a sampler that existed before the restart reconnect by themselves."""
    client = reverb.Client(mortal.address)
    writer = client.trajectory_writer(1, validate_items=False)
    writer.append([np.int64(1)])
    writer.create_item("fifo", 1.0, [writer.history[0][-1:]])
    writer.flush(timeout_ms=10_000)
    samples = client.sample("fifo", 1_000_000)
    assert int(next(samples)[0].data[0]) == 1

    mortal.restart()
    writer.append([np.int64(2)])
    writer.create_item("fifo", 1.0, [writer.history[0][-1:]])
    writer.flush(timeout_ms=30_000)
    assert client.server_info(timeout=120)["fifo"].current_size == 1
    # One sample from before the restart may be in the sampler's buffer.
    assert 2 in [int(next(samples)[0].data[0]) for _ in range(3)]


def test_a_sampler_that_waits_while_the_server_restarts(mortal):
    client = reverb.Client(mortal.address)
    drawn = []
    reader = threading.Thread(
        target=lambda: drawn.append(int(next(client.sample("fifo"))[0].data[0])), daemon=True)
    reader.start()
    reader.join(0.2)
    mortal.restart()
    reverb.Client(mortal.address).insert([np.int64(3)], {"fifo": 1.0})
    reader.join(120)
    assert drawn == [3]
