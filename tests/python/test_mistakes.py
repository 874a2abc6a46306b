# SPDX-License-Identifier: Apache-2.0
"""Mistakes of a first hour: each error says what to write instead."""

import socket

import numpy as np
import pytest

import reprise
from reprise import _check


def table(**options):
    return reprise.Table("t", reprise.selectors.Uniform(), reprise.selectors.Fifo(),
                         **{"max_size": 10, "rate_limiter": reprise.rate_limiters.MinSize(1),
                            **options})


def pattern(transform):
    made = reprise.structured.pattern_from_transform({"x": None}, transform)
    return reprise.structured.create_config(made, "t")


def selected(sampler=reprise.selectors.Uniform(), remover=reprise.selectors.Fifo()):
    return reprise.Table("t", sampler, remover, 10, reprise.rate_limiters.MinSize(1))


def unknown_table():
    made = reprise.structured.pattern_from_transform({"x": None}, lambda s: s["x"][-1])
    return reprise.structured.create_config(made, "nothing")


def test_a_directory_of_another_server(tmp_path):
    with reprise.Server([table()], storage=tmp_path):
        with pytest.raises(reprise.StatusError, match=f"the storage '{tmp_path}' is used by another"):
            reprise.Server([table()], storage=tmp_path)


@pytest.mark.parametrize("address, text", [
    ("http://localhost:8000", "without 'http://'"),
    ("grpc://localhost:8000", "without 'grpc://'"),
    ("localhost", "as in 'localhost:8000'"),
    ("", "the address is empty"),
    ("http://localhost:8000/", "without 'http://', as in 'localhost:8000'$"),
    ("localhost:8000/", "leave out the '/' at its end, as in 'localhost:8000'$"),
    ("[::1]:8000/v1", r"leave out the '/v1' at its end, as in '\[::1\]:8000'$"),
    ("localhost:abc", "the port must be a number from 1 to 65535"),
    ("localhost:99999", "the port must be a number from 1 to 65535"),
    ("localhost:8000,localhost", "a port is missing"),
    ("localhost:8000,localhost:8000", "address 'localhost:8000' is given twice"),
    ("dns:localhost", "a port is missing"),
    ("::1:8000", r"\[v6\]:port"),
])
def test_an_address_of_another_form(address, text):
    with pytest.raises(ValueError, match=text):
        reprise.Client(address)


def test_a_name_is_looked_up_by_the_first_call():
    reprise.Client("dns:name.invalid:8000,other.invalid:8000")


def test_a_server_instead_of_its_address():
    with reprise.Server([table()]) as server:
        with pytest.raises(TypeError, match=r"server\.localhost_client\(\)"):
            reprise.Client(server)


def test_a_table_instead_of_a_list():
    with pytest.raises(TypeError, match=r"Server\(\[table\]\)"):
        reprise.Server(table())
    with pytest.raises(TypeError, match="got 'replay' in it"):
        reprise.Server(["replay"])


def test_a_table_that_is_never_full_enough(caplog):
    table(rate_limiter=reprise.rate_limiters.MinSize(10))
    assert not caplog.records
    table(rate_limiter=reprise.rate_limiters.MinSize(11))
    assert "need 11 items" in caplog.text and "at most 10" in caplog.text


def test_a_table_that_is_altered_so_that_it_is_never_full_enough(caplog):
    """Also in a server that is asked over the network."""
    with reprise.Server([table()]) as server:
        for transport in (None, "tcp"):
            client = reprise.Client(f"localhost:{server.port}", transport=transport)
            for change in ({"rate_limiter": reprise.rate_limiters.MinSize(100)}, {"max_size": 9}):
                caplog.clear()
                client.alter_table("t", **change)
                assert "need 100 items (min_size_to_sample) and the table holds at most" in caplog.text
                assert "raise max_size or lower min_size_to_sample" in caplog.text
            caplog.clear()
            client.alter_table("t", max_size=100)
            client.alter_table("t", max_times_sampled=1)
            assert not caplog.records
            client.alter_table("t", max_size=10, rate_limiter=reprise.rate_limiters.MinSize(1))


@pytest.mark.parametrize("make, text", [
    (lambda: reprise.rate_limiters.SampleToInsertRatio(float("nan"), 1, 100), "samples_per_insert must be a number"),
    (lambda: reprise.rate_limiters.SampleToInsertRatio(1.0, 1, float("nan")), "error_buffer must be a number"),
    (lambda: reprise.rate_limiters.SampleToInsertRatio(1e10, 1, 1e11), "must be from 1e-12 to 1e9"),
    (lambda: reprise.Storage("x", durability="intervall"), "must be 'checkpoint', 'interval' or 'sync'"),
    (lambda: reprise.Storage("x", max_memory=-1), "max_memory must be >= 0, got -1"),
    (lambda: reprise.Storage("x", sync_every=0), "sync_every must be > 0 seconds, got 0"),
    (lambda: reprise.Storage(3), "str, bytes or os.PathLike"),
    (lambda: reprise.checkpointers.DefaultCheckpointer(3), "path must be a str or a path, got 3"),
])
def test_values_are_refused_where_they_are_given(make, text):
    with pytest.raises((TypeError, ValueError), match=text):
        make()


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "buffer.zip"
    buffer = reprise.ReplayBuffer(9, {"x": ((100,), np.float64)})
    for _ in range(9):
        buffer.add(x=np.random.default_rng(1).random(100))
    buffer.save(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes(data)
    with pytest.raises(ValueError, match="buffer.zip' is damaged"):
        reprise.ReplayBuffer.load(path)


def test_an_item_of_too_many_steps_has_the_numbers():
    with reprise.Server([table()]) as server:
        with server.localhost_client().writer(3) as writer:
            writer.append({"x": 1.0})
            with pytest.raises(ValueError, match=r"number of buffered timesteps\. It is 2 for table 't', and 1 "):
                writer.create_item("t", 2, 1.0)
            with pytest.raises(ValueError, match="it is 5 for table 't', .* max_sequence_length=3"):
                writer.create_item("t", 5, 1.0)


def test_a_history_that_is_too_short():
    with reprise.Server([table()]) as server:
        with server.localhost_client().trajectory_writer(num_keep_alive_refs=2) as writer:
            for i in range(4):
                writer.append({"x": np.float32(i)})
            with pytest.raises(ValueError, match="keeps the last 2 steps.*num_keep_alive_refs"):
                writer.create_item("t", 1.0, {"x": writer.history["x"][-3:]})


@pytest.mark.parametrize("item, text", [
    (lambda h: {"x": h["x"][-1:], "y": h["y"][-2:]}, r"column 'y' to be a float \[1\] tensor but got"),
    (lambda h: h, r"slices of the history, such as writer\.history\['obs'\]\[-2:\]"),
])
def test_items_name_their_columns(item, text):
    signature = {"x": reprise.TensorSpec((1,), np.float32), "y": reprise.TensorSpec((1,), np.float32)}
    with reprise.Server([table(signature=signature)]) as server:
        with server.localhost_client().trajectory_writer(num_keep_alive_refs=2) as writer:
            for i in range(2):
                writer.append({"x": np.float32(i), "y": np.float32(i)})
            with pytest.raises((ValueError, TypeError), match=text):
                writer.create_item("t", 1.0, item(writer.history))


@pytest.mark.parametrize("step, text", [
    ({"obs": np.zeros(4, np.float32), "reward": np.float32(0)}, r"'obs': got shape \[4\] but expected \[3\]"),
    ({"obs": np.zeros(3, np.float32)}, "has 1 column but the signature has 2: obs, reward"),
])
def test_an_insert_that_does_not_match_the_signature(step, text):
    signature = {"obs": reprise.TensorSpec((3,), np.float32), "reward": reprise.TensorSpec((), np.float32)}
    with reprise.Server([table(signature=signature)]) as server:
        with pytest.raises(ValueError, match=text):
            server.localhost_client().insert(step, {"t": 1.0})


@pytest.mark.parametrize("call, text", [
    (lambda c: c.insert([1.0], "t"), r"priorities must map each table to a priority, .* got 't'"),
    (lambda c: c.insert([1.0], {"t": "high"}), "a priority is a number, got 'high'"),
    (lambda c: c.sampler("t", 2, betta=0.4), "a sampler has no option 'betta': did you mean 'beta'"),
    (lambda c: c.sampler("t", 2, colour=4), "no option 'colour': there are structure, ragged,"),
    (lambda c: next(c.sample(3)), "the name of a table must be a str, got int"),
    (lambda c: c.reset(3), "the name of a table must be a str, got int"),
    (lambda c: c.sampler("t", "2"), "batch_size must be an integer, got '2'"),
    (lambda c: c.trajectory_writer("2"), "num_keep_alive_refs must be an integer, got '2'"),
    (lambda c: c.mutate_priorities("t", [1]), r"updates must map keys to priorities, got \[1\]"),
    (lambda c: c.create_table("t"), "table must be a reprise.Table, got 't'"),
    (lambda c: c.alter_table("t", rate_limiter=1), "must be one of reprise.rate_limiters"),
    (lambda c: reprise.Client(8000), "server_address must be 'host:port', or a list of these, got 8000"),
    (lambda c: reprise.Dataset(8000, "t", 2), "server_address must be 'host:port'"),
    (lambda c: c.server_info(timeout="3"), "timeout must be a number or None, got '3'"),
    (lambda c: c.structured_writer([{"table": "t"}]), r"what create_config\(\) returns, got {'table'"),
    (lambda c: c.structured_writer(pattern(lambda s: s["x"][-1])), r"write \[config\]"),
    (lambda c: pattern(lambda s: s["x"]), r"such as step\['obs'\]\[-2:\], got a leaf of the step"),
    (lambda c: reprise.Server([table()], checkpointer="/tmp"), r"such as DefaultCheckpointer\(path\)"),
    (lambda c: reprise.rate_limiters.MinSize(1.5), "min_size_to_sample must be an integer, got 1.5"),
    (lambda c: table(max_size=1e6), "max_size must be an integer, got 1000000.0"),
    (lambda c: table(rate_limiter=reprise.rate_limiters.MinSize), "must be one of reprise.rate_limiters"),
    (lambda c: table(signature={"x": np.float32}), r"Each leaf is a spec, such as reprise\.TensorSpec"),
    (lambda c: reprise.ReplayBuffer(9, {"x": np.float32}), r"write \(shape, dtype\), such as"),
    (lambda c: reprise.ReplayBuffer(9, {"x": (np.float32, (3,))}), "the shape comes before the dtype"),
    (lambda c: reprise.ReplayBuffer.from_spaces(9, (3,), 2), "observation_space must be a space"),
    (lambda c: reprise.Server([table()], storage=reprise.Storage("x", max_memory="1GiB")),
     r"max_memory must be a number of bytes, such as 2\*\*30, got '1GiB'"),
    (lambda c: reprise.Server([table()], storage=reprise.Storage("x", keep="3")), "keep must be an integer"),
    (lambda c: reprise.ReplayBuffer(9, {"x": (4,)}), r"column 'x': write .* such as \(\(4,\), np.float32\)"),
    (lambda c: reprise.ReplayBuffer(9, {"x": 1.0}).load_state_dict({}), r"state_dict\(\), but it has no 'format'"),
    (lambda c: table(signature={"a": ((3,), np.float32)}), r"3 of column 'a'\. .*TensorSpec\(\(3,\), np"),
    (lambda c: table(signature={"a": {"b": np.float32}}), "of column 'a/b'"),
    (lambda c: selected(remover=reprise.selectors.Fifo), r"got Fifo without parentheses: write Fifo\(\)"),
    (lambda c: selected(sampler=reprise.selectors.MaxHeap), r"write MaxHeap\(\)"),
    (lambda c: selected(sampler=reprise.selectors.Prioritized), r"write Prioritized\(0\.6\)"),
    (lambda c: table(rate_limiter=reprise.rate_limiters.MinSize), r"write MinSize\(\.\.\.\)"),
    (lambda c: table(extensions=reprise.extensions.Statistics()), r"write extensions=\[Statistics\("),
    (lambda c: table(min_size=3), r"write rate_limiter=reprise\.rate_limiters\.MinSize"),
    (lambda c: c.alter_table("t", min_size=3), r"write rate_limiter=reprise\.rate_limiters\.MinSize"),
    (lambda c: c.alter_table("t", max_sise=3), "did you mean 'max_size'"),
    (lambda c: c.trajectory_writer(2**40), r"\(1099511627776\) must be a positive integer, at most 2147483647"),
    (lambda c: c.writer(2**40), r"max_sequence_length \(1099511627776\) must be at most 2147483647"),
    (lambda c: reprise.Client("a:1;b:2"), "separate addresses by commas, as in 'a:1,b:2'"),
    (lambda c: reprise.Client("http://a:1"), "write host:port, without 'http://', as in 'a:1'"),
    (lambda c: reprise.Client([3]), r"or a list of these, got \[3\]"),
    (lambda c: reprise.Client("localhost", 8000), r"^Client\(\) takes .*such as 'localhost:8000'"),
    (lambda c: reprise.Client(), r"^Client\(\) missing .*such as 'localhost:8000'"),
    (lambda c: reprise.Client("a:1", token=3), "token must be a str or None, got int"),
    (lambda c: reprise.rate_limiters.SampleToInsertRatio(8, 100, 1), "It is 1 and must be at least 8"),
    (lambda c: reprise.rate_limiters.SampleToInsertRatio(8, 100, (800, 810)),
     "Its width is 10 and must be at least 16"),
    (lambda c: c.structured_writer([unknown_table()]).append({"x": 1.0}),
     "Priority table nothing was not found; the tables are: t"),
    (lambda c: c.batch_writer(2, [unknown_table()]).append_batch({"x": [1.0, 2.0]}),
     "Priority table nothing was not found; the tables are: t"),
    (lambda c: next(c.sample("t", 0)), "num_samples must be >= 1, got 0"),
    (lambda c: next(c.sample("t", num_samples=-1)), "num_samples must be >= 1, got -1"),
    (lambda c: c.structured_writer([pattern(lambda s: s["x"][0])]),
     r"Column 'x': steps are counted back from the latest: write step\['x'\]\[-1\]"),
    (lambda c: c.batch_writer(2, [pattern(lambda s: s["x"][0:2])]), r"step\['x'\]\[-1:\]"),
    (lambda c: reprise.structured.create_config([], "t", ["x"]), "a condition is a comparison, .* got 'x'"),
    (lambda c: c.mutate_priorities("t", {"x": 1.0}), "key.*'x'"),
    (lambda c: c.mutate_priorities("t", deletes=["x"]), "key.*'x'"),
    (lambda c: reprise.ReplayBuffer(9, {"x": ((4,), np.float32)}, frames=4), r"such as {'obs': 4}, got 4"),
    (lambda c: reprise.ReplayBuffer.load(__file__), r"is not a file of ReplayBuffer\.save"),
    (lambda c: reprise.log_scalars(c, "run", 0, {"loss": "x"}), "the scalar 'loss' must be a number, got 'x'"),
    (lambda c: reprise.Table("t", reprise.selectors.Uniform, reprise.selectors.Fifo(), 9,
                             reprise.rate_limiters.MinSize(1)), r"write Uniform\(\)"),
    (lambda c: reprise.rate_limiters.SampleToInsertRatio(4.0, 10, 1.0),
     r"It is 1 and must be at least 4"),
    (lambda c: reprise.rate_limiters.SampleToInsertRatio(4.0, 10, "9"), "a pair \\(lowest, highest\\), got '9'"),
    (lambda c: reprise.rate_limiters.SampleToInsertRatio(4.0, 10, (1, 2, 3)), r"pair .* got \(1, 2, 3\)"),
    (lambda c: reprise.rate_limiters.SampleToInsertRatio("4", 10, 9), "samples_per_insert must be a number, got '4'"),
    (lambda c: reprise.rate_limiters.SampleToInsertRatio(4.0, 10, None), "error_buffer must be a number, got None"),
    (lambda c: reprise.rate_limiters.Queue(0), "size must be >= 1, got 0"),
    (lambda c: reprise.rate_limiters.Stack(1.5), "size must be an integer, got 1.5"),
    (lambda c: reprise.Table.queue("q", 0), r"max_size \(0\) must be a positive integer"),
    (lambda c: table(max_times_sampled=2**31), "max_times_sampled must be <= 2147483647"),
    (lambda c: table(seed=2**64), "seed must be <= 18446744073709551615"),
    (lambda c: reprise.selectors.Prioritized(-200), "priority_exponent must be from -100 to 100, got -200"),
    (lambda c: reprise.selectors.Prioritized(float("nan")), "from -100 to 100, got nan"),
    (lambda c: reprise.selectors.Prioritized(None), "priority_exponent must be a number, got None"),
    (lambda c: reprise.TensorSpec(np.float32, (4,)), r"as in TensorSpec\(\(4,\), np.float32\), got .*float32.* as the shape"),
    (lambda c: reprise.TensorSpec("float32", [3]), r"as in TensorSpec\(\(3,\), np.float32\), got 'float32'"),
    (lambda c: reprise.TensorSpec((4.5,)), "a size must be an integer, .* got 4.5"),
    (lambda c: reprise.TensorSpec((4,), "flaot32"), "unknown dtype 'flaot32', did you mean 'float32'"),
    (lambda c: reprise.TensorSpec((4,), "xyz"), "unknown dtype 'xyz': there are bool, int8"),
    (lambda c: reprise.TensorSpec((4,), 4), "what numpy.dtype\\(\\) takes, .* got 4"),
    (lambda c: c.sampler("t", 2, beta="x"), "beta must be a number, got 'x'"),
    (lambda c: c.sampler("t", 2, prefetch="2"), "prefetch must be an integer, got '2'"),
    (lambda c: c.sampler("t", 2, streams=1.5), "streams must be an integer, got 1.5"),
    (lambda c: c.sampler("t", 2, timeout="3"), "timeout must be a number or None, got '3'"),
    (lambda c: c.update_priorities("t", None, [1.0]), "keys must be a list or an array of keys, .* got None"),
    (lambda c: c.mutate_priorities("t", deletes=3), "deletes must be a list or an array of keys, got 3"),
    (lambda c: c.insert([2**70], {"t": 1.0}), "leaf '0': an integer must fit into int64 or uint64, got 11805916"),
    (lambda c: c.insert({"a": [-2**63 - 1]}, {"t": 1.0}), "leaf 'a/0': an integer must fit .* got -92233720368547"),
    (lambda c: c.insert([10**100], {"t": 1.0}), "leaf '0': an integer must fit into int64 or uint64$"),
    (lambda c: reprise.Server([table()], storage=""), "the path of the storage is empty: give a directory"),
    (lambda c: reprise.Storage(""), "the path of the storage is empty: give a directory"),
    (lambda c: reprise.checkpointers.DefaultCheckpointer(""), "path is empty: give a directory"),
    (lambda c: reprise.Server([table()], address="localhost:22012"),
     "got 'localhost:22012': write address='localhost', port=22012"),
    (lambda c: reprise.Server([table()], address=["localhost", "[::1]:5"]), r"write address='\[::1\]', port=5"),
    (lambda c: table(max_size=2**70), "max_size must be at most 1073741824, got 11805916207"),
    (lambda c: reprise.Server([table()], limits={"message_bytes": "3MiB"}),
     "limit 'message_bytes' must be an integer, got '3MiB'"),
    (lambda c: reprise.Server([table()], storage=3), "storage must be a directory .*got 3"),
    (lambda c: reprise.Server([table()]).stop("x"), "grace must be a number, got 'x'"),
    (lambda c: reprise.Server([table()]).stop(-1), "grace must be a number of seconds >= 0, got -1"),
    (lambda c: reprise.Server([table()]).stop(float("inf")), "grace must be a number of seconds >= 0, got inf"),
    (lambda c: c.alter_table("t", max_size="3"), "max_size must be an integer, got '3'"),
    (lambda c: c.structured_writer([pattern(lambda s: s["x"][-1])]).flush("x"),
     "block_until_num_items must be an integer, got 'x'"),
    (lambda c: c.trajectory_writer(1).flush("x"), "block_until_num_items must be an integer, got 'x'"),
    (lambda c: c.batch_writer("8", []), "num_environments must be an integer, got '8'"),
    (lambda c: reprise.Client("a:1", connect_timeout="1"), "connect_timeout must be a number, got '1'"),
    (lambda c: reprise.Client("a:1", connect_timeout=-1), "connect_timeout must be >= 0 seconds, got -1"),
    (lambda c: c.rollouts("r").put("g", 0, {}, version=1.5), "version must be an integer, got 1.5"),
    (lambda c: c.rollouts("r").put("g", 0, {}, version="x"), "version must be an integer, got 'x'"),
    (lambda c: c.rollouts("r").advance("x"), "version must be an integer, got 'x'"),
    (lambda c: c.rollouts("r").advance(2.5), "version must be an integer, got 2.5"),
    (lambda c: reprise.ReplayBuffer("10", {"x": 1.0}), "capacity must be an integer, got '10'"),
    (lambda c: reprise.ReplayBuffer(1e5, {"x": 1.0}), "capacity must be an integer, got 100000.0"),
    (lambda c: c.sampler("t", 2).part(3, 2), "index must be from 0 to 1, since there are 2 processes, got 3"),
    (lambda c: c.sampler("t", 2**40), "batch_size must be <= 2147483647, got 1099511627776"),
    (lambda c: c.insert([1.0], {"t": float("nan")}), "must not be nan. It is for table 't'"),
    (lambda c: c.mutate_priorities("t", {7: float("nan")}), "table 't': the priority of item 7 is not a number"),
])
def test_arguments_of_another_kind(call, text):
    with reprise.Server([table()]) as server:
        with pytest.raises((TypeError, ValueError), match=text):
            call(server.localhost_client())


@pytest.mark.parametrize("call, text", [
    (lambda c: table(max_times_sampld=1), r"Table\(\) has no option 'max_times_sampld': did you mean 'max_times_sampled'"),
    (lambda c: reprise.Table.queue("q", maxsize=1), r"Table\.queue\(\) .*did you mean 'max_size'"),
    (lambda c: table().replace(maxsize=1), r"Table\.replace\(\) .*did you mean 'max_size'"),
    (lambda c: reprise.rate_limiters.MinSize(min_sise=1), "there are min_size_to_sample"),
    (lambda c: reprise.selectors.Prioritized(exponent=1), "did you mean 'priority_exponent'"),
    (lambda c: reprise.selectors.MinHeap(minheap=True), r"HeapSelector\(\) .*did you mean 'min_heap'"),
    (lambda c: reprise.Server([table()], prot=1), r"Server\(\) .*did you mean 'port'"),
    (lambda c: reprise.Client("localhost:1", tokn="x"), r"Client\(\) .*did you mean 'token'"),
    (lambda c: reprise.Dataset(c, "t", 2, timout=4), r"Dataset\(\) .*did you mean 'timeout'"),
    (lambda c: reprise.ReplayBuffer(9, {"x": ((), float)}, epsilom=1), r"ReplayBuffer\(\) .*did you mean 'epsilon'"),
    (lambda c: c.trajectory_writer(num_keep_alive=1), "did you mean 'num_keep_alive_refs'"),
    (lambda c: c.writer(max_sequence=3), "did you mean 'max_sequence_length'"),
    (lambda c: c.sample("t", num_sample=3), "did you mean 'num_samples'"),
    (lambda c: reprise.TensorSpec(shap=1), "did you mean 'shape'"),
    (lambda c: c.insert([1.0], {"t": 1.0}, timeout_ms=3), r"Client\.insert\(\) .*did you mean 'timeout'"),
    (lambda c: c.mutate_priorities("t", update={}), "did you mean 'updates'"),
    (lambda c: c.update_priorities("t", keys=[], priority=1), "did you mean 'priorities'"),
    (lambda c: reprise.ReplayBuffer(9, {"obs": ((), float)}).add(obz=1), "no column: did you mean 'obs'"),
    (lambda c: reprise.ReplayBuffer(9, {"obs": ((), float)}).sample(1, betta=1), "it takes n, beta and out"),
    (lambda c: c.insert(None, {"t": 1.0}), "data must be a nest of arrays"),
])
def test_options_of_another_name(call, text):
    with reprise.Server([table()]) as server:
        with pytest.raises(TypeError, match=text):
            call(server.localhost_client())


def test_errors_of_another_kind_are_not_about_names():
    with pytest.raises(TypeError, match="missing 4 required positional arguments"):
        reprise.Table("t")
    with pytest.raises(TypeError, match="multiple values for argument 'name'"):
        table(name="t")


@pytest.mark.parametrize("open_writer, text", [
    (lambda c: c.writer(1), r"Append after Close has been called: .* client\.writer\(\)"),
    (lambda c: c.trajectory_writer(1), r"make a new one with client\.trajectory_writer\(\)"),
    (lambda c: c.structured_writer([pattern(lambda s: s["x"][-1:])]),
     r"make a new one with client\.structured_writer\(\)"),
])
def test_an_append_after_close(open_writer, text):
    with reprise.Server([table()]) as server:
        writer = open_writer(server.localhost_client())
        writer.append({"x": np.float32(0)})
        writer.close()
        with pytest.raises(reprise.StatusError, match=text):
            writer.append({"x": np.float32(1)})


def test_columns_of_another_name():
    signature = {"obs": reprise.TensorSpec((3,), np.float32), "reward": reprise.TensorSpec((), np.float32)}
    with reprise.Server([table(signature=signature)]) as server:
        client = server.localhost_client()
        client.insert({"obs": np.zeros(3, np.float32), "reward": np.float32(0)}, {"t": 1.0})
        batch = next(iter(client.sampler("t", 1)))
    with pytest.raises(KeyError) as raised:
        batch["rewards"]
    assert isinstance(raised.value, reprise.errors.UnknownColumnError)
    step = reprise.structured.create_reference_step({"o": {"p": 1}})
    with pytest.raises(reprise.errors.UnknownColumnError, match="the step has no column 'q': there are p"):
        step["o"]["q"]
    assert str(raised.value) == ("the batch has no column 'rewards': did you mean 'reward'? "
                                 "There are obs, reward.")
    with pytest.raises(KeyError, match="the step has no column 'y': there are x"):
        pattern(lambda step: step["y"][-1])
    with pytest.raises(KeyError, match="^'x'$"):  # not of the step
        pattern(lambda step: {}["x"])


@pytest.mark.parametrize("package", ["torch", "jax"])
def test_a_library_that_is_not_installed(package):
    try:
        __import__(package)
    except ImportError:
        with reprise.Server([table()]) as server:
            with pytest.raises(ImportError, match=f"needs {package}, which is not installed: pip install {package}"):
                getattr(server.localhost_client().sampler("t", 2), package)()


def test_an_error_names_its_table_and_its_column_once():
    signature = {"obs": reprise.TensorSpec((3,), np.float32)}
    with reprise.Server([table(signature=signature)]) as server:
        client = server.localhost_client()
        with pytest.raises(ValueError) as raised:
            client.insert({"obs": np.zeros(4, np.float32)}, {"t": 1.0})
        assert str(raised.value).count("table 't'") == str(raised.value).count("'obs'") == 1
    named = _check.name_columns(ValueError("item 1, column 0 'obs': shape, column 1: shape"),
                                {0: "obs", 1: "reward"})
    assert str(named) == "item 1, column 0 'obs': shape, column 1 ('reward'): shape"


def test_a_batch_without_names():
    with reprise.Server([table()]) as server:
        client = server.localhost_client()
        for rows in (1, 2):
            client.insert({"x": np.zeros(rows)}, {"t": 1.0})
        batch = next(iter(client.sampler("t", 1)))
        with pytest.raises(TypeError, match="no names, since the table has no signature.*structure={'x'"):
            batch["x"]
        with pytest.raises(ValueError, match=r"column 0 \('x'\): shape"):
            for _ in range(100):
                next(iter(client.sampler("t", 8, structure={"x": None})))


def test_the_module_lists_public_names_only():
    assert {"Client", "rl", "selectors", "NotFoundError"} <= set(dir(reprise))
    assert not {"importlib", "TYPE_CHECKING", "install_finder", "client", "connection"} & set(dir(reprise))
    for name in dir(reprise):
        if name != "ray":  # which needs Ray
            assert getattr(reprise, name) is not None


def test_a_checkpoint_without_storage():
    with reprise.Server([table()]) as server:
        for how in (None, "tcp"):
            text = r"server: make it with reprise.Server\(tables, storage=DIR\), or .* --data DIR$"
            with pytest.raises(ValueError, match=text):
                reprise.Client(f"localhost:{server.port}", transport=how).checkpoint()


@pytest.mark.parametrize("call", [
    lambda c, timeout: c.insert([1.0], {"t": 1.0}, timeout=timeout),
    lambda c, timeout: c.server_info(timeout=timeout),
    lambda c, timeout: c.mutate_priorities("t", {1: 1.0}, timeout=timeout),
], ids=["insert", "server_info", "mutate_priorities"])
def test_a_server_that_accepts_and_does_not_respond_issue_26(call):
    with socket.create_server(("localhost", 0)) as silent:
        address = f"localhost:{silent.getsockname()[1]}"
        for timeout in (0.3, 3, 9):  # a busy machine may not have tried to connect so soon
            with pytest.raises(reprise.DeadlineExceededError) as raised:
                call(reprise.Client(address, transport="tcp"), timeout)
            if address in str(raised.value):
                break
    assert f"{address} accepts connections and does not respond" in str(raised.value)
    assert "stopped or overloaded" in str(raised.value)


def test_changed_selectors_of_saved_data_issue_26(tmp_path):
    reprise.Server([table()], storage=str(tmp_path)).stop()
    changed = reprise.Table("t", reprise.selectors.Prioritized(1.0), reprise.selectors.Fifo(), 10,
                            reprise.rate_limiters.MinSize(1))
    with pytest.raises(reprise.StatusError, match=r"saved with sampler uniform.*accept_changes=True"):
        reprise.Server([changed], storage=str(tmp_path))


def test_items_of_other_shapes_name_their_table_and_what_to_do():
    """Only the trajectory writer compares whole shapes: an item of `Writer` has its steps as rows."""
    signature = {"obs": reprise.TensorSpec((4,), np.float32)}
    with reprise.Server([table(signature=signature)]) as server:
        client = server.localhost_client()
        with client.trajectory_writer(2) as writer:
            for _ in range(2):
                writer.append({"obs": np.zeros(4, np.float32)})
            with pytest.raises(ValueError, match="expects column .obs. to be"):
                writer.create_item("t", 1.0, {"obs": writer.history["obs"][-2:]})
            writer.create_item("t", 1.0, {"obs": writer.history["obs"][-1]})
        config = reprise.structured.create_config(reprise.structured.pattern_from_transform(
            {"obs": None}, lambda ref: {"obs": ref["obs"][-2:]}), "t")
        with client.structured_writer([config]) as writer:
            for _ in range(2):
                writer.append({"obs": np.zeros(4, np.float32)})
        with pytest.raises(ValueError, match=r"table 't': item \d+, column 0 \('obs'\): shape .* only the "
                           "number of rows may vary, with `ragged`; reset the table if"):
            next(iter(client.sampler("t", 64)))


def writers(client):
    """Yields each kind of writer, with a function that makes an item in it."""
    config = pattern(lambda ref: {"x": ref["x"][-1]})
    writer = client.trajectory_writer(1)

    def make(writer=writer):
        writer.append({"x": 1.0})
        writer.create_item("t", 1.0, {"x": writer.history["x"][-1]})

    yield writer, make
    structured = client.structured_writer([config])
    yield structured, lambda: structured.append({"x": 1.0})
    batch = client.batch_writer(1, [config])
    yield batch, lambda: batch.append_batch({"x": np.ones(1)})


def test_close_logs_how_many_items_it_drops(caplog):
    """As in Reverb, close() does not flush."""
    full = reprise.Table.queue("t", 1)
    with reprise.Server([full]) as server:
        for writer, make in writers(server.localhost_client()):
            for _ in range(3):  # the table takes one of them
                make()
            caplog.clear()
            writer.close()
            writer.close()
            (record,) = caplog.records
            assert f"{type(writer).__name__}: closed without flush(): " in record.message
            assert "not confirmed and dropped" in record.message


def test_a_writer_may_be_closed_in_its_block(caplog):
    with reprise.Server([table()]) as server:
        client = server.localhost_client()
        for writer, make in writers(client):
            with writer:
                make()
                writer.flush()
                writer.close()
        with client.writer(1) as writer:
            writer.append({"x": 1.0})
            writer.close()
    assert not caplog.records


def test_a_misspelt_name_of_another_package_is_understood():
    pytest.importorskip("gymnasium")
    with pytest.raises(TypeError, match="no setting 'learnin_rate'; did you mean 'rate'"):
        reprise.rl.DQN("CartPole-v1", learnin_rate=1)
