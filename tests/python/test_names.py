# SPDX-License-Identifier: Apache-2.0
"""Names of columns that differ from those of the table's signature are refused (issue 26)."""

import collections

import numpy as np
import pytest

import reprise

NAMES = ("has rew, terminal: column 0 is 'rew', the signature has 'done' there; the order is: "
         "done, reward")
STEP = {"rew": np.float32(1), "terminal": np.float32(0)}


def spec():
    return reprise.TensorSpec((None,), np.float32)


def table(signature, name="t"):
    return reprise.Table(name, reprise.selectors.Uniform(), reprise.selectors.Fifo(), 10,
                         reprise.rate_limiters.MinSize(1), signature=signature)


@pytest.fixture(params=["tcp", "local"])
def start(request):
    servers = []

    def go(*tables):
        servers.append(reprise.Server(list(tables)))
        if request.param == "local":
            return servers[-1].localhost_client()
        return reprise.Client(f"localhost:{servers[-1].port}")

    yield go
    for server in servers:
        server.stop()


def config(step, transform, name="t"):
    made = reprise.structured.pattern_from_transform(step, transform)
    return reprise.structured.create_config(made, name)


def test_a_trajectory_with_other_names_is_refused_issue_26(start):
    client = start(table({"done": spec(), "reward": spec()}))
    with client.trajectory_writer(1) as writer:
        writer.append(STEP)
        h = writer.history
        for _ in range(2):
            with pytest.raises(ValueError, match=f"table 't' .* the item {NAMES}"):
                writer.create_item("t", 1.0, {"rew": h["rew"][-1:], "terminal": h["terminal"][-1:]})
        writer.create_item("t", 1.0, {"reward": h["rew"][-1:], "done": h["terminal"][-1:]})
        writer.create_item("t", 1.0, [h["terminal"][-1:], h["rew"][-1:]])  # it has no names
    assert client.server_info()["t"].current_size == 2
    with client.trajectory_writer(1, validate_items=False) as writer:
        writer.append(STEP)
        writer.create_item("t", 1.0, {"a": writer.history["rew"][-1:], "b": writer.history["terminal"][-1:]})
    assert client.server_info()["t"].current_size == 3


def test_nested_names_and_the_order_of_fields(start):
    pair = collections.namedtuple("pair", "reward done")
    client = start(table({"info": [{"x": spec()}], "obs": spec()}), table(pair(spec(), spec()), "pairs"))
    with client.trajectory_writer(1) as writer:
        writer.append(STEP)
        rew, terminal = writer.history["rew"][-1:], writer.history["terminal"][-1:]
        with pytest.raises(ValueError, match="has info/0/y, obs: column 0 is 'info/0/y', .* is: info/0/x, obs"):
            writer.create_item("t", 1.0, {"info": [{"y": rew}], "obs": rew})
        writer.create_item("t", 1.0, {"info": ({"x": rew},), "obs": rew})
        writer.create_item("t", 1.0, {"info": rew, "obs": rew})
        # A dict is flattened by sorted key, a named tuple in the order of its fields.
        with pytest.raises(ValueError, match="has done, reward: .* is: reward, done"):
            writer.create_item("pairs", 1.0, {"reward": rew, "done": terminal})
        writer.create_item("pairs", 1.0, pair(rew, terminal))


def test_each_table_and_structure_is_compared_once(start, monkeypatch):
    from reprise import _check

    calls = []
    compare = _check.differing_names
    monkeypatch.setattr(_check, "differing_names", lambda *a: calls.append(a) or compare(*a))
    signature = {"done": spec(), "reward": spec()}
    client = start(table(signature, "a"), table(signature, "b"))
    with client.trajectory_writer(1) as writer:
        for _ in range(5):
            writer.append(STEP)
            reward, done = writer.history["rew"][-1:], writer.history["terminal"][-1:]
            for item in ({"reward": reward, "done": done}, [done, reward]):
                for name in ("a", "b"):
                    writer.create_item("".join(name), 1.0, item)
    assert len(calls) == 4
    calls.clear()
    for _ in range(3):
        client.insert({"done": np.ones(1, np.float32), "reward": np.ones(1, np.float32)}, {"a": 1, "b": 1})
    assert len(calls) == 0 or len(calls) == 2


def test_a_table_that_was_made_anew_with_other_names(start):
    client = start(table({"done": spec()}))
    with client.trajectory_writer(1) as writer:
        writer.append(STEP)
        writer.create_item("t", 1.0, {"done": writer.history["rew"][-1:]})
        writer.flush()
        client.drop_table("t")
        client.create_table(table({"rew": spec()}))
        writer.create_item("t", 1.0, {"rew": writer.history["rew"][-1:]})
    assert client.server_info()["t"].current_size == 1


def test_steps_with_other_names_are_refused_issue_26(start):
    scalars = {"done": reprise.TensorSpec((), np.float32), "reward": reprise.TensorSpec((), np.float32)}
    client = start(table(scalars))
    with pytest.raises(ValueError, match=f"table 't' .* the item {NAMES}"):
        client.insert(STEP, {"t": 1.0})
    client.insert({"reward": np.float32(1), "done": np.float32(0)}, {"t": 1.0})
    client.insert([np.float32(1), np.float32(0)], {"t": 1.0})
    with client.writer(1) as writer:
        writer.append(STEP)
        with pytest.raises(ValueError, match=NAMES):
            writer.create_item("t", 1, 1.0)
    assert client.server_info()["t"].current_size == 2


@pytest.mark.parametrize("environments", [None, 2])
def test_patterns_with_other_names_are_refused_issue_26(start, environments):
    client = start(table({"done": spec(), "reward": spec()}))
    bad = config(STEP, lambda s: {"rew": s["rew"][-1:], "terminal": s["terminal"][-1:]})
    good = config(STEP, lambda s: {"reward": s["rew"][-1:], "done": s["terminal"][-1:]})

    def append(configs, step):
        if environments is None:
            with client.structured_writer(configs) as writer:
                writer.append(step)
        else:
            with client.batch_writer(environments, configs) as writer:
                writer.append_batch({k: np.stack([v] * environments) for k, v in step.items()})

    with pytest.raises(ValueError, match=f"table 't' .*the pattern {NAMES}"):
        append([good, bad], STEP)
    append([good], STEP)
    assert client.server_info()["t"].current_size == (environments or 1)


def test_a_structured_step_with_other_names_is_refused_issue_26(start):
    client = start(table(None))
    with client.structured_writer([config({"a": None}, lambda s: s["a"][-1:])]) as writer:
        writer.append({"a": 1.0})
        with pytest.raises(ValueError, match="the step has x; .* with a|the step has x; earlier steps have a"):
            writer.append({"x": 1.0})
        with pytest.raises(ValueError, match="was a dict in .* but is a list now"):
            writer.append([2.0])
    with client.structured_writer([config({"a": None}, lambda s: s["a"][-1:])]) as writer:
        with pytest.raises(ValueError, match="the step has x; .* with a|the step has x; earlier steps have a"):
            writer.append({"x": 1.0})
