# SPDX-License-Identifier: Apache-2.0
"""reprise.Client: the methods of Reverb's client, and the additional ones."""

import gc
import logging
import os
import signal
import socket
import threading
import time
import urllib.request

import numpy as np
import pytest
from events import expect_reason, stop

import reprise
from reprise import _core, errors
from reprise.client import Client

TRANSPORTS = ["process", "tcp", "child"]


def table(name, sampler=None, size=1000, **options):
    return reprise.Table(
        name,
        sampler or reprise.selectors.Uniform(),
        reprise.selectors.Fifo(),
        size,
        options.pop("rate_limiter", None) or reprise.rate_limiters.MinSize(1),
        **options,
    )


@pytest.fixture(params=TRANSPORTS)
def serve(request):
    """Starts servers with tables, and makes clients of them over each transport."""
    servers = []

    def serve(*tables, **options):
        where = "child" if request.param == "child" else "process"
        server = reprise.Server(list(tables) or [table("t")], where=where)
        servers.append(server)
        if request.param == "tcp":
            options["transport"] = "tcp"
        return server.localhost_client(**options)

    yield serve
    for server in servers:
        server.stop()


def keys_of(client, name, count):
    found = set()
    deadline = time.monotonic() + 20
    while len(found) < count and time.monotonic() < deadline:
        found.update(s.info.key for s in client.sample(name, 20, emit_timesteps=False))
    return sorted(found)


def test_making_a_client_does_no_io():
    client = Client("localhost:1")
    assert client.server_address == "localhost:1"
    assert repr(client) == "Client, server_address=localhost:1"


def test_transport_option_selects_the_transport():
    server = reprise.Server([table("t")])
    assert server.localhost_client()._client.is_local
    assert not server.localhost_client(transport="tcp")._client.is_local
    server.stop()
    child = reprise.Server([table("t")], where="child")
    assert child.localhost_client()._client.addresses[0].startswith("unix:")
    tcp = child.localhost_client(transport="tcp")._client.addresses
    assert tcp == [f"localhost:{child.port}"]
    child.stop()


def test_a_client_with_credentials_uses_the_network():
    server = reprise.Server([table("t")])
    client = server.localhost_client(token="secret")
    assert not client._client.is_local
    client.insert(1, {"t": 1.0})
    server.stop()


@pytest.mark.parametrize(
    "options, text",
    [
        ({"transport": "pigeon"}, "transport"),
        ({"spread": "thin"}, "spread"),
        ({"connect_timeout": -1.0}, "^connect_timeout must be"),
    ],
)
def test_wrong_options(options, text):
    with pytest.raises(ValueError, match=text):
        Client("localhost:1", **options)


def test_a_missing_ca_file_is_refused_at_construction():
    with pytest.raises((ValueError, errors.StatusError), match="nowhere.pem"):
        Client("localhost:1", ca_file="/nowhere.pem")


def test_a_wrong_address_is_named():
    with pytest.raises(ValueError, match="nonsense"):
        Client("nonsense").server_info(1)


def test_a_client_reconnects_to_a_new_server_on_the_port(serve):
    server = reprise.Server([table("one")])
    client = server.localhost_client()
    assert list(client.server_info()) == ["one"]
    server.stop()
    again = reprise.Server([table("two")], port=server.port)
    assert list(client.server_info(20)) == ["two"]
    again.stop()


def test_insert_and_sample(serve):
    client = serve()
    client.insert([np.arange(3, dtype=np.float32), 7], {"t": 2.0})

    (steps,) = list(client.sample("t"))
    (step,) = steps
    assert isinstance(step, reprise.ReplaySample)
    assert [type(x) for x in step.info] == [int, float, int, float, int]
    assert step.info[1:] == (1.0, 1, 2.0, 1)
    assert isinstance(step.data, list)
    np.testing.assert_array_equal(step.data[0], np.arange(3, dtype=np.float32))
    assert step.data[0].dtype == np.float32
    assert step.data[1].shape == () and step.data[1] == 7
    assert isinstance(step.data[1], np.ndarray)


def test_whole_columns(serve):
    client = serve()
    client.insert({"a": np.zeros(2), "b": 3}, {"t": 1.0})
    (sample,) = client.sample("t", emit_timesteps=False)
    assert isinstance(sample, reprise.ReplaySample)
    assert [column.shape for column in sample.data] == [(1, 2), (1,)]


@pytest.mark.parametrize("emit_timesteps", [True, False])
def test_data_in_the_structure_of_the_signature(serve, emit_timesteps):
    spec = {
        "x": (reprise.TensorSpec([2], np.float32), reprise.TensorSpec([], np.int64)),
        "y": [reprise.TensorSpec([], np.uint8)],
    }
    client = serve(table("t", signature=spec), table("bare"))
    data = {"x": (np.ones(2, np.float32), np.int64(4)), "y": [np.uint8(9)]}
    client.insert(data, {"t": 1.0, "bare": 1.0})

    def draw(name):
        (found,) = client.sample(
            name, emit_timesteps=emit_timesteps, unpack_as_table_signature=True
        )
        return found[0].data if emit_timesteps else found.data

    found = draw("t")
    assert reprise.tree.flatten_with_path(found).__len__() == 3
    reprise.tree.assert_same_structure(found, data)
    assert found["y"][0] == 9
    assert isinstance(draw("bare"), list)


def test_a_table_unknown_to_unpack(serve):
    client = serve(table("t"), table("u"))
    with pytest.raises(ValueError, match='Could not find table "v".*exists: t, u'):
        next(client.sample("v", unpack_as_table_signature=True))


def test_sampling_an_unknown_table(serve):
    with pytest.raises(RuntimeError, match="v"):
        next(serve().sample("v"))


def test_wrong_numbers_of_samples(serve):
    client = serve()
    client.insert(1, {"t": 1.0})
    with pytest.raises(ValueError, match=r"num_samples must be >= 1, got 0"):
        next(client.sample("t", 0))
    with pytest.raises(ValueError, match="-2"):
        next(client.sample("t", -2))
    with pytest.raises(ValueError, match="num_samples must be >= 1, got -1"):
        next(client.sample("t", -1))


def test_sampling_waits_for_an_insert(serve):
    client = serve()
    generator = client.sample("t")
    timer = threading.Timer(0.1, lambda: client.insert(5, {"t": 1.0}))
    timer.start()
    assert next(generator)[0].data[0] == 5
    timer.join()


def test_a_sample_may_have_a_timeout(serve):
    client = serve()
    with pytest.raises(errors.DeadlineExceededError):
        next(client.sample("t", timeout=0.05))


def test_many_samples_of_a_queue_come_in_order(serve):
    client = serve(reprise.Table.queue("q", 500))
    for i in range(300):
        client.insert(i, {"q": 1.0})
    assert [int(s[0].data[0]) for s in client.sample("q", 300)] == list(range(300))
    assert client.server_info()["q"].current_size == 0


def test_a_generator_closed_early_draws_few_samples(serve):
    client = serve(reprise.Table.queue("q", 500))
    for i in range(100):
        client.insert(i, {"q": 1.0})

    generator = client.sample("q", 100)
    next(generator)
    generator.close()

    assert client.server_info()["q"].current_size >= 97


def test_sampling_more_than_there_is_waits_for_the_rest(serve):
    client = serve(reprise.Table.queue("q", 50))
    for i in range(3):
        client.insert(i, {"q": 1.0})
    got = []
    with pytest.raises(errors.DeadlineExceededError):
        for (step,) in client.sample("q", 10, timeout=0.2):
            got.append(int(step.data[0]))
    assert got == [0, 1, 2]


def test_a_trajectory_that_has_no_steps(serve):
    client = serve()
    with client.trajectory_writer(3) as writer:
        for i in range(3):
            writer.append({"a": i, "b": float(i)})
        writer.create_item(
            "t", 1.0, {"a": writer.history["a"][-2:], "b": writer.history["b"][-3:]}
        )
    text = "Can't split non timestep trajectory into timesteps."
    with pytest.raises(ValueError, match=text):
        next(client.sample("t"))
    (sample,) = client.sample("t", emit_timesteps=False)
    assert [column.shape for column in sample.data] == [(2,), (3,)]


def test_insert_into_several_tables(serve):
    client = serve(table("a"), table("b"), table("c"))
    client.insert(np.ones(3), {"a": 1.0, "c": 2.0})
    sizes = {name: info.current_size for name, info in client.server_info().items()}
    assert sizes == {"a": 1, "b": 0, "c": 1}
    assert next(client.sample("c"))[0].info.priority == 2.0


def test_insert_returns_after_the_item_is_inserted(serve):
    client = serve()
    for i in range(1, 50):
        client.insert(np.full(i % 5, i), {"t": 1.0})  # of many shapes
        assert client.server_info()["t"].current_size == i


@pytest.mark.parametrize("value", ["text", b"bytes", np.array(["a", "bc"]), ["x", "yz"]])
def test_strings(serve, value):
    client = serve()
    client.insert([value], {"t": 1.0})
    (step,) = next(client.sample("t"))
    found = step.data[0].tolist()
    want = np.asarray(value).tolist() if not isinstance(value, list) else value[0]
    encode = lambda x: x.encode() if isinstance(x, str) else x  # noqa: E731
    want = [encode(x) for x in want] if isinstance(want, list) else encode(want)
    assert found == want


def test_insert_checks_every_table_before_the_first_has_the_item(serve):
    prioritized = reprise.selectors.Prioritized(1.0)
    last = reprise.Table("c", reprise.selectors.Fifo(), prioritized, 10, reprise.rate_limiters.MinSize(1))
    client = serve(table("a"), table("b", sampler=prioritized), last)
    again = lambda: [client.server_info()[name].current_size for name in "abc"]  # noqa: E731
    for priority in (-1.0, float("inf"), -np.inf):
        for name in "bc":
            with pytest.raises(ValueError, match=f"table '{name}': priority must be finite and >= 0"):
                client.insert([1.0], {"a": 1.0, name: priority})
    with pytest.raises(reprise.errors.NotFoundError, match="table z was not found; .* a, b, c"):
        client.insert([1.0], {"a": 1.0, "z": 1.0})
    assert again() == [0, 0, 0]
    client.insert([1.0], {"a": -1.0, "b": 1.0})  # which a uniform selector allows
    assert again() == [1, 1, 0]
    client.drop_table("b")
    client.create_table(table("b"))
    client.insert([1.0], {"a": 1.0, "b": -1.0})
    assert again() == [2, 1, 0]


def test_insert_refuses_invalid_arguments(serve):
    spec = {"x": reprise.TensorSpec([2], np.float32)}
    client = serve(table("t"), table("s", signature=spec))
    with pytest.raises(ValueError, match="priorities must contain at least one item"):
        client.insert(1, {})
    with pytest.raises(ValueError, match="`priority` must not be nan"):
        client.insert(1, {"t": float("nan")})
    with pytest.raises(TypeError):
        client.insert(None, {"t": 1.0})
    with pytest.raises(TypeError):
        client.insert(object(), {"t": 1.0})
    with pytest.raises(TypeError):
        client.insert(1, {"t": "high"})
    with pytest.raises(ValueError, match="inconsistent with the table sig.*float64.*float32"):
        client.insert({"x": np.zeros(2)}, {"s": 1.0})
    with pytest.raises(ValueError, match="inconsistent with the table signature.*3.*2"):
        client.insert({"x": np.zeros(3, np.float32)}, {"s": 1.0})
    with pytest.raises(ValueError, match="inconsistent with the table signature"):
        client.insert([np.zeros(2, np.float32)] * 2, {"s": 1.0})
    assert {info.current_size for info in client.server_info().values()} == {0}
    client.insert({"x": np.zeros(2, np.float32)}, {"s": 1.0})  # it still works


def test_an_insert_that_must_wait_may_have_a_timeout(serve):
    client = serve(reprise.Table.queue("q", 1))
    client.insert(0, {"q": 1.0})
    with pytest.raises(errors.DeadlineExceededError):
        client.insert(1, {"q": 1.0}, timeout=0.1)


def test_inserts_from_many_threads(serve):
    client = serve()

    def work(i):
        for k in range(25):
            client.insert([i, np.full(1 + i % 2, k)], {"t": 1.0})

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.server_info()["t"].current_size == 200


def priorities(client, name="t"):
    found = {}
    for sample in client.sample(name, 60, emit_timesteps=False):
        found[sample.info.key] = sample.info.priority
    return found


def test_mutate_priorities(serve):
    client = serve()
    for _ in range(3):
        client.insert(1, {"t": 1.0})
    a, b, c = keys_of(client, "t", 3)

    client.mutate_priorities("t", {a: 2.0, b: 3}, [c])

    assert priorities(client) == {a: 2.0, b: 3.0}
    client.mutate_priorities("t")
    client.mutate_priorities("t", updates={12345: 1.0}, deletes=[54321])
    client.mutate_priorities("t", updates=None, deletes=np.array([a], np.uint64))
    assert priorities(client) == {b: 3.0}


@pytest.mark.parametrize("key", [0, 1, 2**30 - 1, 2**30, 2**60 - 1, 2**60, 2**63, 2**64 - 1])
def test_keys_of_any_length(serve, key):
    client = serve(table("t", reprise.selectors.Prioritized(1.0)))
    with pytest.raises(ValueError, match=rf"\b{key}\b"):
        client.mutate_priorities("t", {key: -1.0})


@pytest.mark.parametrize("key", [-1, 2**64, 2**90, -2**63, True, 1.0, "1"])
def test_keys_out_of_range(serve, key):
    client = serve()
    with pytest.raises(TypeError, match="64 bits"):
        client.mutate_priorities("t", {key: 1.0})


def test_updates_come_before_deletes(serve):
    client = serve()
    client.insert(1, {"t": 1.0})
    (key,) = keys_of(client, "t", 1)
    client.mutate_priorities("t", {key: 5.0}, [key])
    assert client.server_info()["t"].current_size == 0


@pytest.mark.parametrize("kind", [dict, lambda items: type("M", (dict,), {})(items)])
def test_updates_of_any_mapping(serve, kind):
    client = serve()
    client.insert(1, {"t": 1.0})
    (key,) = keys_of(client, "t", 1)
    client.mutate_priorities("t", kind({np.uint64(key): np.float32(4.5)}))
    assert priorities(client) == {key: 4.5}


@pytest.mark.parametrize(
    "make",
    [
        lambda k: (np.array(k, np.uint64), np.arange(1.0, 4.0)),
        lambda k: (list(k), [1, 2, 3]),
        lambda k: (tuple(k), np.float32([1, 2, 3])),
        lambda k: (np.array(k, np.uint64)[::-1][::-1], np.int64([1, 2, 3])),
    ],
)
def test_update_priorities(serve, make):
    client = serve()
    for _ in range(3):
        client.insert(1, {"t": 9.0})
    keys = keys_of(client, "t", 3)
    client.update_priorities("t", *make(keys))
    assert priorities(client) == dict(zip(keys, (1.0, 2.0, 3.0)))
    client.update_priorities("t", keys, 7.0)
    assert set(priorities(client).values()) == {7.0}
    client.update_priorities("t", np.array([], np.uint64), [])


def test_update_priorities_of_many(serve):
    client = serve(table("t", size=5000))
    for _ in range(4):
        client.insert(1, {"t": 9.0})
    keys = keys_of(client, "t", 4)
    many = np.concatenate([np.arange(1, 3000, dtype=np.uint64), np.array(keys, np.uint64)])
    client.update_priorities("t", many, np.full(len(many), 2.5))
    assert set(priorities(client).values()) == {2.5}
    client.mutate_priorities("t", {int(k): 3.5 for k in many})
    assert set(priorities(client).values()) == {3.5}


def test_priorities_that_are_refused(serve):
    client = serve(table("t"), table("p", reprise.selectors.Prioritized(0.8)))
    client.insert(1, {"p": 1.0})
    (key,) = keys_of(client, "p", 1)
    with pytest.raises(ValueError):
        client.mutate_priorities("p", {key: -1.0})
    with pytest.raises(ValueError):
        client.mutate_priorities("p", {key: float("nan")})
    with pytest.raises(RuntimeError, match="Priority table zz was not found"):
        client.mutate_priorities("zz", {key: 1.0})
    for wrong in ("a", -1, 1.5, 2**64):
        with pytest.raises(TypeError):
            client.mutate_priorities("p", {wrong: 1.0})
        with pytest.raises(TypeError):
            client.mutate_priorities("p", deletes=[wrong])
    with pytest.raises(TypeError):
        client.mutate_priorities("p", {key: "high"})
    with pytest.raises(ValueError, match="2 keys but 3 priorities"):
        client.update_priorities("p", [1, 2], [1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="integers"):
        client.update_priorities("p", np.array([1.5]), [1.0])
    with pytest.raises(TypeError, match="numbers"):
        client.update_priorities("p", [1], np.array(["x"]))
    assert priorities(client, "p") == {key: 1.0}


def test_server_info(serve):
    spec = {"x": reprise.TensorSpec([None, 2], np.float32, "x")}
    client = serve(
        table(
            "t",
            reprise.selectors.Prioritized(0.5),
            77,
            max_times_sampled=3,
            signature=spec,
            rate_limiter=reprise.rate_limiters.SampleToInsertRatio(2.0, 10, 40.0),
        ),
        reprise.Table.queue("q", 5),
    )
    infos = client.server_info()
    assert list(infos) == ["t", "q"]
    info = infos["t"]
    assert isinstance(info, reprise.TableInfo)
    assert (info.name, info.max_size, info.max_times_sampled) == ("t", 77, 3)
    assert info.sampler_options.prioritized.priority_exponent == 0.5
    assert info.remover_options.fifo
    assert info.rate_limiter_info.samples_per_insert == 2.0
    assert info.rate_limiter_info.min_size_to_sample == 10
    assert info.rate_limiter_info.insert_stats.completed == 0
    assert reprise.specs.convert(info.signature) == spec
    assert (info.current_size, info.num_episodes, info.num_unique_samples) == (0, 0, 0)
    assert infos["q"].signature is None
    assert client.server_info(timeout=5).keys() == infos.keys()
    assert client.server_info(timeout=0).keys() == infos.keys()


def test_server_info_gives_up_on_a_server_that_is_away():
    text = "ServerInfo call did not complete within provided timeout of 1s"
    with pytest.raises(errors.DeadlineExceededError, match=text):
        Client("localhost:1").server_info(1)


def test_every_call_may_have_a_timeout():
    client = Client("localhost:1")
    for call in (
        lambda: client.mutate_priorities("t", {1: 1.0}, timeout=0.05),
        lambda: client.update_priorities("t", [1], [1.0], timeout=0.05),
        lambda: client.reset("t", timeout=0.3),
        lambda: client.checkpoint(timeout=0.3),
        lambda: client.why(timeout=0.05),
        lambda: client.insert(1, {"t": 1.0}, timeout=0.3),
        lambda: next(client.sample("t", timeout=0.3)),
    ):
        with pytest.raises(errors.DeadlineExceededError):
            call()


def test_a_server_that_comes_later_is_waited_for():
    port = reprise.Server([table("x")]).port  # free again once the server is garbage-collected
    gc.collect()
    client = Client(f"localhost:{port}", transport="tcp")
    made = []
    timer = threading.Timer(0.4, lambda: made.append(reprise.Server([table("t")], port=port)))
    timer.start()
    assert list(client.server_info(60)) == ["t"]
    timer.join()
    made[0].stop()


def test_reset(serve):
    client = serve()
    client.insert(1, {"t": 1.0})
    client.reset("t")
    info = client.server_info()["t"]
    assert info.current_size == 0
    assert info.rate_limiter_info.insert_stats.completed == 0
    with pytest.raises(RuntimeError, match="Priority table zz was not found"):
        client.reset("zz")


def test_why_lists_waiting_calls(serve):
    client = serve(reprise.Table.queue("q", 1))
    client.insert(0, {"q": 1.0})
    done = threading.Event()

    def insert():
        client.insert(1, {"q": 1.0})
        done.set()

    thread = threading.Thread(target=insert)
    thread.start()
    deadline = time.monotonic() + 20
    calls = []
    while not calls and time.monotonic() < deadline:
        calls = client.why("q")
    (call,) = calls
    assert (call.table, call.side) == ("q", "insert")
    assert call.why
    assert [c.table for c in client.why()] == ["q"]
    assert not done.is_set()
    assert [int(s[0].data[0]) for s in client.sample("q", 2)] == [0, 1]
    thread.join(120)
    assert done.is_set()


def test_tables_are_made_changed_and_dropped(serve):
    client = serve(table("t"))
    spec = {"x": reprise.TensorSpec([], np.int32)}
    client.create_table(table("new", reprise.selectors.Prioritized(0.7), 9, signature=spec))
    info = client.server_info()["new"]
    assert (info.max_size, info.signature) == (9, spec)
    assert info.sampler_options.prioritized.priority_exponent == 0.7
    client.insert({"x": np.int32(3)}, {"new": 1.0})
    with pytest.raises(errors.StatusError, match="new"):
        client.create_table(table("new"))

    limiter = reprise.rate_limiters.SampleToInsertRatio(3.0, 4, 12.0)
    client.alter_table("new", max_size=5, max_times_sampled=2, rate_limiter=limiter)
    info = client.server_info()["new"]
    assert (info.max_size, info.max_times_sampled) == (5, 2)
    assert info.rate_limiter_info.samples_per_insert == 3.0
    client.alter_table("new", max_bytes=1 << 20)
    assert client.details()["new"]["max_bytes"] == 1 << 20
    with pytest.raises(ValueError, match="max_size"):
        client.alter_table("new", max_size=0)

    client.drop_table("new")
    assert list(client.server_info()) == ["t"]
    with pytest.raises(RuntimeError):
        client.drop_table("new")


def test_a_paused_table(serve):
    client = serve()
    client.insert(1, {"t": 1.0})
    client.pause_table("t", "samples")
    with pytest.raises(errors.DeadlineExceededError):
        next(client.sample("t", timeout=0.05))
    client.insert(2, {"t": 1.0}, timeout=120)
    client.resume_table("t", "samples")
    next(client.sample("t", timeout=120))
    client.pause_table("t")
    with pytest.raises(errors.DeadlineExceededError):
        client.insert(2, {"t": 1.0}, timeout=0.1)
    client.resume_table("t")
    with pytest.raises(ValueError, match="sides"):
        client.pause_table("t", "left")


def test_batches(serve):
    client = serve()
    for i in range(10):
        client.insert({"x": np.full(2, i, np.float32)}, {"t": 1.0})
    batch = next(iter(client.sampler("t", 8, structure={"x": None})))
    assert batch["x"].shape == (8, 1, 2)
    client.update_priorities("t", batch.info.keys, np.full(8, 3.0))
    assert 3.0 in priorities(client).values()


@pytest.mark.parametrize("spread", ["turns", "keys"])
@pytest.mark.parametrize("as_list", [True, False])
def test_shards(spread, as_list):
    servers = [reprise.Server([table("t")]) for _ in range(2)]
    addresses = [f"localhost:{server.port}" for server in servers]
    client = Client(addresses if as_list else ",".join(addresses), spread=spread, seed=3)
    assert client.server_address == ",".join(addresses)
    for i in range(40):
        client.insert(i, {"t": 1.0})

    sizes = [s.localhost_client().server_info()["t"].current_size for s in servers]
    assert sum(sizes) == 40 and min(sizes) >= 5
    info = client.server_info()["t"]
    assert (info.current_size, info.max_size) == (40, 2000)
    seen = {int(s[0].data[0]) for s in client.sample("t", 600)}
    assert len(seen) == 40
    sample = next(client.sample("t"))[0]
    assert sample.info.table_size == 40
    keys = [s.info.key for s in client.sample("t", 200, emit_timesteps=False)]
    client.update_priorities("t", keys, np.full(len(keys), 5.0))
    client.reset("t")
    assert client.server_info()["t"].current_size == 0
    for server in servers:
        server.stop()


def test_waits_over_shards_name_the_server():
    limiter = reprise.rate_limiters.MinSize
    servers = [reprise.Server([table("t", rate_limiter=limiter(3))]) for _ in range(2)]
    addresses = [f"localhost:{server.port}" for server in servers]
    client = Client(addresses, transport="tcp")
    for _ in range(4):
        client.insert([1.0], {"t": 1.0})
    iterator = iter(client.sampler("t", 1, prefetch=0, timeout=0.5))
    said = ""
    while not any(f"{address}: " in said for address in addresses):
        with pytest.raises(errors.DeadlineExceededError, match="'t'") as raised:
            next(iterator)
        said = str(raised.value)
    asked = threading.Thread(target=lambda: list(client.sample("t", 2)))
    asked.start()
    while {call.shard for call in client.why()} != set(addresses):
        time.sleep(0.01)
    assert all(f"sample at 't' of {call.shard} for" in str(call) for call in client.why())
    iterator.close()
    for _ in range(4):
        client.insert([1.0], {"t": 1.0})
    asked.join()
    for server in servers:
        server.stop()


def test_a_dead_shard_gets_no_item():
    """It would keep its half of the items for 30 s."""
    server = reprise.Server([table("t")])
    with socket.socket() as bound:
        bound.bind(("localhost", 0))
        dead = f"localhost:{bound.getsockname()[1]}"  # it does not listen
        client = Client([dead, f"localhost:{server.port}"])
        with client.trajectory_writer(1) as writer:
            for i in range(100):
                writer.append({"x": i})
                writer.create_item("t", 1.0, {"x": writer.history["x"][-1:]})
            writer.flush(timeout_ms=15000)
        assert server.localhost_client().server_info()["t"].current_size == 100
    server.stop()


def test_the_items_of_a_missing_server_are_not_called_sent():
    with socket.socket() as bound:
        bound.bind(("localhost", 0))
        writer = Client(f"localhost:{bound.getsockname()[1]}").trajectory_writer(
            1, validate_items=False)
        writer.append({"x": 0})
        writer.create_item("t", 1.0, {"x": writer.history["x"][-1:]})
        with pytest.raises(errors.DeadlineExceededError, match="1 item is unconfirmed: localhost"):
            writer.flush(timeout_ms=300)


def test_samples_may_outlive_everything():
    server = reprise.Server([table("t")])
    client = server.localhost_client()
    client.insert(np.arange(1000.0), {"t": 1.0})
    (step,) = next(client.sample("t"))
    server.stop()
    del server, client
    gc.collect()
    np.testing.assert_array_equal(step.data[0], np.arange(1000.0))


def test_a_server_that_stops_ends_calls():
    server = reprise.Server([table("t")])
    client = server.localhost_client()
    ended = []

    def wait():
        try:
            next(client.sample("t"))
        except errors.StatusError as e:
            ended.append(e)

    thread = threading.Thread(target=wait)
    thread.start()
    while not client.why("t"):
        pass
    server.stop()
    thread.join(120)
    assert len(ended) == 1


def test_the_core_client_refuses_invalid_arguments():
    store = _core.Store()
    client = _core.Client.local(store)
    assert (client.is_local, client.addresses) == (True, ["local"])
    for call in (
        lambda: _core.Client.local(3),
        lambda: _core.Client.local(),
        lambda: client.mutate("t"),
        lambda: client.mutate(3, None, None),
        lambda: client.tables(timeout="soon"),
        lambda: _core.Client(3),
        lambda: _core.Client.replay_samples([], tuple, tuple, None),
        lambda: _core.Client.replay_samples([()], tuple, tuple, None, True),
        lambda: _core.Client.replay_samples([(1, 2, 3, 4, 5, [3])], tuple, tuple, None, True),
    ):
        with pytest.raises(TypeError):
            call()


def test_the_module_warns_with_its_own_logger(caplog):
    server = reprise.Server([table("t")])
    writer = server.localhost_client().writer(1)
    with caplog.at_level(logging.WARNING, logger="reprise"):
        del writer
        gc.collect()
    assert "Writer-object deleted without calling .close explicitly." in caplog.text
    server.stop()


@pytest.mark.parametrize("transport", [None, "tcp"])
def test_a_table_that_does_not_exist_has_one_error(transport):
    with reprise.Server([table("t"), table("a")]) as server:
        client = Client(f"localhost:{server.port}", transport=transport)
        writer, trajectories = client.writer(1), client.trajectory_writer(1)
        writer.append(1)
        trajectories.append([1])
        pattern = reprise.structured.pattern_from_transform([None], lambda s: [s[0][-1:]])
        config = reprise.structured.create_config(pattern, "zz", [])
        for call in (
            lambda: client.insert(1, {"zz": 1.0}),
            lambda: client.structured_writer([config]).append([1], timeout=20),
            lambda: writer.create_item("zz", 1, 1.0),
            lambda: trajectories.create_item("zz", 1.0, [trajectories.history[0][-1:]]),
            lambda: next(client.sample("zz")),
            lambda: next(iter(client.sampler("zz", 2))),
            lambda: next(iter(client.sampler("zz", 2, structure=False))),
            lambda: client.update_priorities("zz", [1], [1.0]),
            lambda: client.mutate_priorities("zz", deletes=[1]),
            lambda: client.reset("zz"),
            lambda: client.why("zz"),
            lambda: client.alter_table("zz", max_size=1),
            lambda: client.pause_table("zz"),
            lambda: client.resume_table("zz"),
            lambda: client.drop_table("zz"),
        ):
            with pytest.raises(reprise.NotFoundError) as caught:
                call()
            assert str(caught.value) == "Priority table zz was not found; the tables are: t, a"
            assert caught.value.code == "NOT_FOUND"
            assert isinstance(caught.value, ValueError) and isinstance(caught.value, RuntimeError)
        with pytest.raises(reprise.NotFoundError, match='Could not find table "zz".*: t, a'):
            next(client.sample("zz", unpack_as_table_signature=True))  # Reverb's text
        writer.close()


def test_many_tables_are_counted():
    names = [f"a_table_with_a_long_name_{i}" for i in range(20)]
    with reprise.Server([table(name) for name in names]) as server:
        with pytest.raises(reprise.NotFoundError, match=f"are: {names[0]}, .* and [0-9]+ more$"):
            server.localhost_client().reset("zz")


@pytest.mark.parametrize("wrong", [float("nan"), np.float32("nan"), "high", None])
def test_an_insert_with_a_wrong_priority_reaches_no_table(wrong):
    with reprise.Server([table("a"), table("b")]) as server:
        client = server.localhost_client()
        with pytest.raises((ValueError, TypeError)):
            client.insert([1.0], {"a": 1.0, "b": wrong})
        client.insert([1.0], {"b": 1.0})
        sizes = {name: info.current_size for name, info in client.server_info().items()}
    assert sizes == {"a": 0, "b": 1}


def test_a_shard_that_was_left_out_is_logged(caplog):
    server = reprise.Server([table("t")])
    with socket.socket() as bound:
        bound.bind(("localhost", 0))
        dead = f"localhost:{bound.getsockname()[1]}"  # it does not listen
        client = Client([dead, f"localhost:{server.port}"], transport="tcp")
        for call in (client.reset, client.pause_table, client.resume_table, client.reset):
            call("t")
        client.update_priorities("t", [1], [1.0])
        client.alter_table("t", max_size=9)
    said = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    calls = ["reset('t')", "pause_table('t')", "resume_table('t')", "reset('t')",
             "3 calls, the last of them alter_table('t'),"]  # it also reads the table
    assert len(said) == len(calls), said
    assert all(line.startswith(f"{call} left out a shard: {dead}: ") for line, call in zip(said, calls)), said
    server.stop()


@pytest.mark.parametrize("call", ["server_info", "create_item"])
def test_a_shard_that_never_answered_is_logged(caplog, call):
    """By the first call, also if the items go to the other shard without a failure."""
    server = reprise.Server([table("t")])
    with socket.socket() as bound:
        bound.bind(("localhost", 0))
        dead = f"localhost:{bound.getsockname()[1]}"  # it does not listen
        client = Client([dead, f"localhost:{server.port}"], transport="tcp")
        for _ in range(3):
            client.server_info() if call == "server_info" else client.insert(np.zeros(1), {"t": 1.0})
    said = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    arguments = "" if call == "server_info" else "'t'"
    assert len(said) == 1 and f"{call}({arguments})" in said[0] and f"left out a shard: {dead}: " in said[0], said
    server.stop()


def test_a_call_after_the_end_of_a_server_of_this_process_says_so():
    server = reprise.Server([table("t")])
    client = server.localhost_client()
    server.stop()
    expect_reason(reprise.DeadlineExceededError, "refused; this process has stopped the server: make a new",
                  lambda timeout: client.insert(np.zeros(1), {"t": 1.0}, timeout=timeout))
    again = reprise.Server([table("t")], port=server.port)
    client.insert(np.zeros(1), {"t": 1.0}, timeout=60)
    again.stop()


def test_an_alteration_that_evicts_or_blocks_is_logged(serve, caplog):
    client = serve()
    client.create_table(reprise.Table("small", reprise.selectors.Fifo(), reprise.selectors.Fifo(), 10,
                                      reprise.rate_limiters.MinSize(1)))
    for _ in range(3):
        client.insert(np.zeros(100), {"small": 1.0})

    client.alter_table("small", max_size=2)
    client.alter_table("small", max_bytes=100)
    client.alter_table("small", rate_limiter=reprise.rate_limiters.MinSize(5000))

    said = [record.getMessage() for record in caplog.records]
    assert said[0] == "table 'small': 1 item was evicted, as alter_table() has made it smaller", said
    assert said[1] == "table 'small': 2 items were evicted, as alter_table() has made it smaller", said
    assert "max_bytes 100 is less than an item takes, " in said[2] and "samples wait for ever" in said[3], said
    assert len(said) == 4, said


def test_evictions_by_inserts_are_not_those_of_an_alteration(serve, caplog):
    client = serve()
    (before,) = client._tables_named("t", None)
    before["evictions"] -= 5  # as if inserts had evicted items meanwhile
    client._warn_of_alteration("t", [before], None)
    assert not caplog.records


def test_an_alteration_does_not_wait_for_a_frozen_shard():
    servers = [reprise.Server([table("t")], where="child") for _ in range(2)]
    client = Client([f"localhost:{server.port}" for server in servers])
    client.server_info()
    stop(servers[1].pid)
    try:
        with pytest.raises(errors.ReverbError):
            client.alter_table("t", max_size=7, timeout=4)
    finally:
        os.kill(servers[1].pid, signal.SIGCONT)
    assert [server.localhost_client().server_info()["t"].max_size for server in servers][0] == 7
    for server in servers:
        server.stop()


def test_an_insert_that_does_not_wait_names_the_table(serve):
    client = serve()
    client.alter_table("t", max_size=100)
    client._client.pause("t", 1, None)  # no item is confirmed
    with pytest.raises(errors.DeadlineExceededError, match="unconfirmed: .*may still be inserted into 't'"):
        client.insert(np.zeros(1), {"t": 1.0}, timeout=0)
    client._client.resume("t", 1, None)


def test_a_call_without_time_does_not_deny_its_connection():
    with reprise.Server([table("t")]) as server:
        client = Client(f"localhost:{server.port}", transport="tcp")
        client.server_info()
        with pytest.raises(errors.DeadlineExceededError, match="no response in time: the deadline had passed"):
            client.reset("t", timeout=0)


def test_a_shard_without_the_table_is_named_with_its_tables():
    servers = [reprise.Server([reprise.Table.queue(name, 5) for name in names], where="child")
               for names in (["both"], ["both", "only_b"])]
    client = reprise.Client(",".join(server.address for server in servers))
    first, second = (server.address for server in servers)
    with pytest.raises(reprise.NotFoundError,
                       match=f"{first}: Priority table only_b was not found; the tables are: both; {second} has it"):
        for _ in range(2):  # each shard in turn
            client.insert([1.0], {"only_b": 1.0}, timeout=120)
    for server in servers:
        server.stop()


def test_alter_table_needs_a_change(serve):
    with pytest.raises(ValueError, match="nothing is to be altered: give max_size, max_bytes"):
        serve().alter_table("t")


def _calls(server, method):
    with urllib.request.urlopen(f"http://localhost:{server.port}/metrics", timeout=60) as response:
        lines = response.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines
               if line.startswith("reprise_calls_total{") and f'"{method}"' in line)


def test_servers_without_the_table_are_asked_for_theirs_once():
    """Not once for each of them: each request could wait after the deadline of the call."""
    servers = [reprise.Server([reprise.Table.queue(name, 5)], where="child") for name in ("a", "b", "c")]
    client = reprise.Client(",".join(server.address for server in servers))
    client.server_info(timeout=120)
    before = [_calls(server, "ServerInfo") for server in servers]

    with pytest.raises(errors.StatusError, match="done on .* but not on .* the tables are: b.* the tables are: c"):
        client.reset("a", timeout=120)

    assert [_calls(server, "ServerInfo") for server in servers] == [count + 1 for count in before]
    for server in servers:
        server.stop()


def test_a_table_that_was_created_anew_is_asked_for_its_signature_again(serve):
    def named(*names, dtype=np.float32):
        return table("t", signature={name: reprise.TensorSpec((), dtype) for name in names})

    def insert(writer, step):
        writer.append(step)
        writer.create_item("t", 1.0, {name: writer.history[name][-1] for name in step})
        writer.flush(timeout_ms=30000)

    def drawn():
        sample = next(client.sample("t", emit_timesteps=False, unpack_as_table_signature=True))
        return {name: value.item() for name, value in sample.data.items()}

    address = serve(named("a", "b")).server_address
    client, other = (reprise.Client(address, transport="tcp") for _ in range(2))
    dataset = client.sampler("t", 1, checked=True, timeout=30)
    writer = client.trajectory_writer(1)
    insert(writer, {"a": np.float32(1), "b": np.float32(2)})
    assert drawn() == next(iter(dataset)).data == {"a": 1, "b": 2}

    other.drop_table("t")
    other.create_table(named("c", "d"))
    insert(writer, {"c": np.float32(1), "d": np.float32(2)})
    assert drawn() == next(iter(dataset)).data == {"c": 1, "d": 2}
    assert next(iter(client.sampler("t", 1, checked=True, timeout=30))).data == {"c": 1, "d": 2}

    other.drop_table("t")
    other.create_table(named("e", "f", dtype=np.float64))
    insert(writer, {"e": 3.0, "f": 4.0})
    assert drawn() == {"e": 3, "f": 4}
