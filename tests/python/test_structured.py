# SPDX-License-Identifier: Apache-2.0
"""reprise.structured: patterns, and the writers that apply them."""

import collections
import copy
import os
import pickle
import signal
import sys
import threading

import numpy as np
import pytest

import reprise
from reprise import _core, errors, pattern_protos, structured
from reprise.cc import patterns_pb2

STEP = {"a": None, "b": {"c": None, "d": None}}
Pair = collections.namedtuple("Pair", "left right")


@pytest.fixture(params=["process", "tcp", "child"])
def client(request):
    tables = [
        reprise.Table(
            name,
            reprise.selectors.Fifo(),
            reprise.selectors.Fifo(),
            1000,
            reprise.rate_limiters.MinSize(1),
            max_times_sampled=1,
        )
        for name in ("t", "u")
    ] + [reprise.Table.queue("q", 1)]
    where = "child" if request.param == "child" else "process"
    with reprise.Server(tables, where=where) as server:
        yield server.localhost_client(transport="tcp" if request.param == "tcp" else None)


def config(transform, table="t", conditions=(), priority=None, step=STEP):
    pattern = structured.pattern_from_transform(step, transform)
    return structured.create_config(pattern, table, conditions, priority)


def size(client, name="t"):
    return client.server_info()[name].current_size


def drain(client, name="t"):
    """Returns all items, oldest first, as lists."""
    count = size(client, name)
    return [
        [column.tolist() for column in sample.data]
        for sample in (client.sample(name, count, emit_timesteps=False) if count else ())
    ]


def test_a_reference_step_makes_nodes():
    ref = structured.create_reference_step(STEP)
    node = ref["b"]["d"][-1]
    assert isinstance(node, patterns_pb2.PatternNode)
    assert node.flat_source_index == 2
    assert (node.HasField("start"), node.HasField("stop"), node.stop) == (False, True, -1)
    node = ref["b"]["c"][-5:-1:2]
    assert (node.flat_source_index, node.start, node.stop, node.step) == (1, -5, -1, 2)
    node = ref["a"][-3:]
    assert (node.start, node.HasField("stop"), node.HasField("step")) == (-3, False, False)


@pytest.mark.parametrize("key", [1.5, "x", None, (1, 2), np.int32(-1)])
def test_a_key_that_is_none(key):
    with pytest.raises(ValueError, match="Key must be int or slice"):
        structured.create_reference_step(STEP)["a"][key]


def test_reference_steps_of_any_nest():
    ref = structured.create_reference_step(Pair([None, (None,)], {"x": None}))
    assert type(ref) is Pair
    assert ref.right["x"][-1].flat_source_index == 2


def test_a_config_has_the_fields_of_reverbs():
    made = config(
        lambda s: {"x": s["a"][-2:], "y": s["b"]["d"][-1]},
        conditions=[structured.Condition.step_index() >= 1],
    )
    assert isinstance(made, structured.Config)
    assert made.flat[0].start == -2 and made.flat[0].flat_source_index == 0
    assert made.flat[1].stop == -1 and made.flat[1].flat_source_index == 2
    assert made.table == "t"
    assert made.priority.constant_fn.value == 1.0
    assert made.conditions[0].ge == 1
    # the bytes that dm-reverb 0.14 writes for the same config
    assert made.SerializeToString() == (
        b"\n\x0b\x10\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\n\r\x08\x02\x18\xff\xff\xff\xff"
        b"\xff\xff\xff\xff\xff\x01\x12\x15\xaa\x03\x12\n\x07\n\x01x\x12\x02\n\x00\n\x07\n\x01y"
        b'\x12\x02\n\x00\x1a\x01a"\x0b\n\t\t\x00\x00\x00\x00\x00\x00\xf0?*\x04\x08\x010\x01'
    ).replace(b"\x1a\x01a", b"\x1a\x01t")


def test_a_config_of_named_tuples_in_bytes():
    spec = {"a": None, "b": None}
    made = config(lambda r: Pair(r["a"][-3:], [r["b"][-1], (r["b"][-2],)]), step=spec)
    # the bytes that dm-reverb 0.14 writes, except for the names of the class, fields and table
    assert b"\x12\x10\x9a\x03\r\n\x02\n\x00\n\x07\xa2\x03\x04\n\x02\n\x00" in (
        made.SerializeToString()
    )
    unpacked = structured.unpack_pattern(made)
    assert type(unpacked).__name__ == "Pair" and unpacked._fields == Pair._fields
    assert unpacked.right[1][0].stop == -2


@pytest.mark.parametrize(
    "pattern",
    [
        lambda s: s["a"][-1],
        lambda s: {"x": s["a"][-3:], "y": [s["b"]["c"][-1], (s["b"]["d"][-2],)]},
        lambda s: (s["a"][-1], s["a"][-2]),
        lambda s: [s["a"][-1], {"z": s["a"][-2]}],
    ],
)
def test_configs_can_be_serialized_pickled_and_copied(pattern):
    made = config(pattern)
    want = structured.pattern_from_transform(STEP, pattern)
    for other in (
        made,
        structured.Config.FromString(made.SerializeToString()),
        pickle.loads(pickle.dumps(made)),
        copy.deepcopy(made),
    ):
        assert other == made
        assert structured.unpack_pattern(other) == want


def test_unpacking_without_a_structure():
    made = config(lambda s: {"x": s["a"][-1]})
    bare = structured.Config(flat=made.flat, table="t", priority=made.priority)
    assert structured.unpack_pattern(bare) == made.flat


def test_conditions():
    index = structured.Condition.step_index

    def fields(condition):
        return {name: value for name, value in condition.ListFields()}

    assert fields(index() == 2) == {"step_index": True, "eq": 2}
    assert fields(index() != 2) == {"step_index": True, "eq": 2, "inverse": True}
    assert fields(index() > 2) == {"step_index": True, "ge": 3}
    assert fields(index() >= 2) == {"step_index": True, "ge": 2}
    assert fields(index() < 2) == {"step_index": True, "ge": 2, "inverse": True}
    assert fields(index() <= 2) == {"step_index": True, "ge": 3, "inverse": True}
    mod = index() % 3 == 1
    assert (mod.mod_eq.mod, mod.mod_eq.eq, mod.inverse) == (3, 1, False)
    assert (index() % 3 != 1).inverse
    assert (structured.Condition.steps_since_applied() == 1).steps_since_applied
    assert fields(structured.Condition.is_end_episode()) == {"is_end_episode": True, "eq": 1}
    data = structured.Condition.data(STEP)
    assert fields(data["b"]["d"] == 1) == {"flat_source_index": 2, "eq": 1}


def test_a_condition_can_be_used_twice():
    index = structured.Condition.step_index()
    a, b, c = index == 1, index >= 5, index % 2 == 0
    assert (a.eq, b.ge, c.mod_eq.mod) == (1, 5, 2)
    assert isinstance(a, structured.ConditionProto)


def test_priorities():
    assert structured.constant_priority_fn(2.5).constant_fn.value == 2.5
    error = structured.td_error(0.9, STEP, lambda s: s["b"]["d"]).td_error
    assert (error.max_priority_weight, error.flat_source_index) == (0.9, 2)


SPEC = {"a": reprise.TensorSpec([3], np.float32), "b": reprise.TensorSpec([], np.int64)}


def spec_config(transform, table="t"):
    return config(transform, table, step=SPEC)


def test_infer_signature():
    made = spec_config(
        lambda r: {"x": r["a"][-3:], "y": (r["b"][-1], r["b"][-5::2]), "z": r["a"][-4:-2]}
    )
    assert reprise.specs.convert(structured.infer_signature([made], SPEC)) == {
        "x": reprise.TensorSpec([3, 3], np.float32, "x"),
        "y": (
            reprise.TensorSpec([], np.int64, "y/0"),
            reprise.TensorSpec([3], np.int64, "y/1"),
        ),
        "z": reprise.TensorSpec([2, 3], np.float32, "z"),
    }


def test_infer_signature_of_several():
    configs = [spec_config(lambda r, n=n: {"x": r["a"][-n:]}) for n in (3, 2)]
    signature = structured.infer_signature(configs, SPEC)
    assert reprise.specs.convert(signature) == {"x": reprise.TensorSpec([None, 3], np.float32, "x")}
    table = reprise.Table.queue("t", 10, signature=signature)
    assert table.info.signature == signature


@pytest.mark.parametrize(
    "configs, text",
    [
        (lambda: [], "At least one config must be provided."),
        (
            lambda: [
                spec_config(lambda r: {"x": r["a"][-3:]}),
                spec_config(lambda r: {"y": r["a"][-3:]}),
            ],
            "All configs must have exactly the same pattern_structure.",
        ),
        (
            lambda: [
                spec_config(lambda r: {"x": r["a"][-3:]}, "u"),
                spec_config(lambda r: {"x": r["a"][-3:]}, "t"),
            ],
            "All configs must target the same table but provided configs included t, u.",
        ),
        (
            lambda: [
                spec_config(lambda r: {"x": r["a"][-3:]}),
                spec_config(lambda r: {"x": r["b"][-3:]}),
            ],
            r"Configs produce trajectories with multiple dtypes at \('x',\)",
        ),
        (
            lambda: [
                spec_config(lambda r: {"x": r["a"][-3:]}),
                spec_config(lambda r: {"x": r["a"][-3]}),
            ],
            r"Configs produce trajectories with incompatible shapes at \('x',\)",
        ),
    ],
)
def test_infer_signature_refuses_conflicting_configs(configs, text):
    with pytest.raises(ValueError, match=text):
        structured.infer_signature(configs(), SPEC)


def test_items_fit_the_signature_that_was_inferred():
    made = spec_config(lambda r: {"x": r["a"][-5:-1:2], "y": r["b"][-1], "z": [r["b"][-2:]]})
    signature = structured.infer_signature([made], SPEC)
    with reprise.Server([reprise.Table.queue("t", 10, signature=signature)]) as server:
        client = server.localhost_client()
        with client.structured_writer([made]) as writer:
            for i in range(5):
                writer.append({"a": np.full(3, i, np.float32), "b": np.int64(i)})
        (sample,) = client.sample(
            "t", emit_timesteps=False, unpack_as_table_signature=True
        )
        np.testing.assert_array_equal(sample.data["x"][:, 0], [0, 2])
        assert sample.data["y"] == 4 and sample.data["z"][0].tolist() == [3, 4]


def step(i):
    return {"a": i, "b": {"c": float(i), "d": [i, i][0] * 10}}


@pytest.mark.parametrize(
    "transform, want",
    [
        (lambda s: s["a"][-1], [[i] for i in range(5)]),
        (lambda s: s["a"][-2], [[i] for i in range(4)]),
        (lambda s: s["a"][-3:], [[[i, i + 1, i + 2]] for i in range(3)]),
        (lambda s: s["a"][-3:-1], [[[i, i + 1]] for i in range(3)]),
        (lambda s: s["a"][-4::2], [[[0, 2]], [[1, 3]]]),
        (lambda s: s["a"][-4:-1:2], [[[0, 2]], [[1, 3]]]),
        (
            lambda s: [s["a"][-1], s["b"]["d"][-2:]],
            [[i, [10 * i - 10, 10 * i]] for i in range(1, 5)],
        ),
        (lambda s: [s["a"][-1], s["a"][-1]], [[i, i] for i in range(5)]),
    ],
)
def test_patterns(client, transform, want):
    writer = client.structured_writer([config(transform)])
    for i in range(5):
        writer.append(step(i))
    writer.flush()
    assert drain(client) == want


@pytest.mark.parametrize(
    "conditions, want",
    [
        ([structured.Condition.step_index() == 2], [2]),
        ([structured.Condition.step_index() != 2], [0, 1, 3, 4, 5]),
        ([structured.Condition.step_index() >= 4], [4, 5]),
        ([structured.Condition.step_index() > 4], [5]),
        ([structured.Condition.step_index() < 2], [0, 1]),
        ([structured.Condition.step_index() <= 2], [0, 1, 2]),
        ([structured.Condition.step_index() % 2 == 1], [1, 3, 5]),
        ([structured.Condition.step_index() % 2 != 1], [0, 2, 4]),
        ([structured.Condition.steps_since_applied() >= 3], [2, 5]),
        ([structured.Condition.steps_since_applied() % 2 == 0], [1, 3, 5]),
        ([structured.Condition.is_end_episode()], [5]),
        ([structured.Condition.data(STEP)["a"] == 3], [3]),
        ([structured.Condition.data(STEP)["a"] >= 3], [3, 4, 5]),
        ([structured.Condition.data(STEP)["b"]["c"] == 3], []),  # not an integer
        (
            [structured.Condition.step_index() >= 2, structured.Condition.step_index() < 4],
            [2, 3],
        ),
    ],
)
def test_conditions_decide(client, conditions, want):
    writer = client.structured_writer([config(lambda s: s["a"][-1], conditions=conditions)])
    for i in range(6):
        writer.append(step(i))
    writer.end_episode()
    assert [item[0] for item in drain(client)] == want


def test_configs_are_tried_in_order(client):
    writer = client.structured_writer(
        [config(lambda s: [s["a"][-1]]), config(lambda s: [s["a"][-2:]], "u")]
    )
    for i in range(3):
        writer.append(step(i))
    writer.flush()
    assert drain(client) == [[0], [1], [2]]
    assert drain(client, "u") == [[[0, 1]], [[1, 2]]]


def test_episodes(client):
    writer = client.structured_writer([config(lambda s: s["a"][-2:])])
    for clear in (True, False, True):
        writer.append(step(1))
        writer.append(step(2))
        writer.end_episode(clear)
    assert drain(client) == [[[1, 2]], [[1, 2]], [[2, 1]], [[1, 2]]]


def test_partial_steps(client):
    writer = client.structured_writer(
        [
            config(lambda s: {"x": s["a"][-1]}),
            config(lambda s: [s["a"][-1], s["b"]["d"][-1]], "u"),
        ]
    )
    assert not writer.step_is_open
    writer.append({"a": 1, "b": {"c": None, "d": None}}, partial_step=True)
    assert writer.step_is_open
    writer.flush()
    assert (size(client), size(client, "u")) == (1, 0)
    writer.append({"a": None, "b": {"c": 2.0, "d": 3}})
    assert not writer.step_is_open
    writer.flush()
    assert drain(client) == [[1]]
    assert drain(client, "u") == [[1, 3]]


def test_a_value_twice_in_a_step(client):
    writer = client.structured_writer([config(lambda s: s["a"][-1])])
    writer.append({"a": 1, "b": {"c": None, "d": None}}, partial_step=True)
    with pytest.raises((ValueError, RuntimeError), match="column 0"):
        writer.append(step(2))


def test_missing_values_make_no_item(client):
    writer = client.structured_writer([config(lambda s: s["a"][-2:])])
    for i, value in enumerate([0, None, 2, 3, None]):
        writer.append({"a": value, "b": {"c": 0.0, "d": i}})
    writer.flush()
    assert drain(client) == [[[2, 3]]]


def test_td_error(client):
    made = config(
        lambda s: {"x": s["b"]["c"][-3:]},
        priority=structured.td_error(0.75, STEP, lambda s: s["b"]["c"]),
    )
    writer = client.structured_writer([made])
    for value in (1.0, -4.0, 2.5):
        writer.append({"a": 0, "b": {"c": value, "d": 0}})
    writer.flush()
    (sample,) = client.sample("t", emit_timesteps=False)
    assert sample.info.priority == pytest.approx(0.75 * 4 + 0.25 * 2.5)


def test_unused_columns_may_be_anything(client):
    writer = client.structured_writer([config(lambda s: s["a"][-1])])
    for odd in (1, 2.5, "x", np.zeros(3), object()):
        writer.append({"a": 1, "b": {"c": odd, "d": odd}})
    writer.flush()
    assert size(client) == 5


@pytest.mark.parametrize("short", [{"obs": 1}, {"action": 1}, {}, 5, {"action": 1, "obs": 2}])
def test_a_step_without_a_column_of_the_reference_step_is_refused(client, short):
    pattern = structured.pattern_from_transform(
        {"action": None, "obs": None, "reward": None}, lambda s: {"r": s["reward"][-1:]})
    made = structured.create_config(pattern, "t")
    text = "the patterns were made for steps with action, obs, reward: each step must have all of these"
    writer = client.structured_writer([made])
    for _ in range(2):
        with pytest.raises(ValueError, match=text):
            writer.append(short)
    rows = np.zeros(2) if short == 5 else {name: np.zeros(2) for name in short}
    with pytest.raises(ValueError, match=text):
        client.batch_writer(2, [made]).append_batch(rows)

    writer.append({"action": 1, "obs": None, "reward": None}, partial_step=True)
    writer.append({"action": None, "obs": None, "reward": 1.0})
    writer.append({"action": None, "obs": 2, "reward": None})  # has no value, and makes no item
    writer.flush()
    assert size(client) == 1
    with pytest.raises(ValueError, match="unexpected length, got 1 but wanted 3"):
        writer.append({"reward": 1.0})


def test_a_step_with_fewer_leaves_than_a_config_without_names_is_refused(client):
    node = pattern_protos.PatternNode(flat_source_index=2, stop=-1)
    made = structured.Config(flat=[node], table="t", priority=structured.constant_priority_fn(1.0))
    with pytest.raises(ValueError, match="the step has 2 leaves; the patterns .* with at least 3"):
        client.structured_writer([made]).append([1, 2])


def test_errors_of_append(client):
    writer = client.structured_writer([config(lambda s: [s["a"][-1], s["b"]["d"][-1]])])
    writer.append({"a": 1, "b": {"c": 1, "d": np.zeros(2)}})
    text = r"Tensor of wrong dtype provided for column 0 \(path=\('a',\)\). Got double but exp"
    with pytest.raises(ValueError, match=text + "ected int64."):
        writer.append({"a": 1.5, "b": {"c": 1, "d": np.zeros(2)}})
    text = (
        r"Tensor of incompatible shape provided for column 2 \(path=\('b', 'd'\)\). "
        r"Got \[3\] which is incompatible with \[2\]."
    )
    with pytest.raises(ValueError, match=text):
        writer.append({"a": 1, "b": {"c": 1, "d": np.zeros(3)}})
    text = "Flattened data has an unexpected length, got 1 but wanted 3."
    with pytest.raises(ValueError, match=text):
        writer.append({"a": 1})
    with pytest.raises(TypeError, match="leaf 'b/d'"):
        writer.append({"a": 1, "b": {"c": 1, "d": object()}})
    with pytest.raises(ValueError, match="the step was a dict in an earlier step but is a list now"):
        writer.append([1, 1, np.ones(2)])
    with pytest.raises(ValueError, match=r"Field \('b',\) was a dict in an earlier step"):
        writer.append({"a": 1, "b": [1, np.ones(2)]})
    writer.append({"a": 1, "b": collections.OrderedDict(d=np.ones(2), c=1)})
    writer.flush()
    assert size(client) == 2


@pytest.mark.parametrize(
    "change, text",
    [
        (lambda c: c.flat.clear(), "`flat` must not be empty."),
        (lambda c: setattr(c, "table", ""), "`table` must not be empty."),
        (
            lambda c: c.conditions.append(structured.ConditionProto()),
            "Conditions must specify a value for `left`.",
        ),
        (
            lambda c: c.conditions.append(structured.ConditionProto(step_index=True)),
            "Conditions must specify a value for `cmp`.",
        ),
        (
            lambda c: c.conditions.append(structured.ConditionProto(is_end_episode=True, eq=2)),
            "Condition must use `eq=1` when using `is_end_episode`.",
        ),
        (
            lambda c: c.conditions.append(
                structured.ConditionProto(
                    step_index=True, mod_eq=structured.ConditionProto.ModuloEq(mod=-1, eq=0)
                )
            ),
            "`mod_eq.mod` must be > 0 but got -1.",
        ),
        (
            lambda c: setattr(c.flat[0], "flat_source_index", -1),
            "`flat_source_index` must be >= 0 but got -1.",
        ),
        (
            lambda c: c.flat.append(pattern_protos.PatternNode()),
            "At least one of `start` and `stop` must be specified.",
        ),
        (lambda c: setattr(c.flat[0], "start", 0), "`start` must be < 0 but got 0."),
        (lambda c: setattr(c.flat[0], "stop", 1), "`stop` must be <= 0 but got 1."),
        (
            lambda c: c.flat.append(pattern_protos.PatternNode(start=-2, stop=-3)),
            r"`stop` \(-3\) must be > `start` \(-2\) when both are specified.",
        ),
        (
            lambda c: setattr(c.flat[0], "step", 2),
            "`step` must only be set when `start` is set.",
        ),
    ],
)
@pytest.mark.parametrize("position", [0, 1])
def test_configs_that_are_refused(change, text, position):
    client = _core.Client.local(_core.Store())
    configs = [config(lambda s: s["a"][-1]), config(lambda s: s["a"][-1])]
    change(configs[position])
    where = f"Invalid configuration at position {position}: "
    with pytest.raises(ValueError, match=where + text):
        structured.StructuredWriter(client, configs)
    with pytest.raises(ValueError, match=text):
        structured.BatchWriter(client, 2, configs)


def test_no_configs(client):
    for call in (lambda: client.structured_writer([]), lambda: client.batch_writer(2, [])):
        with pytest.raises(ValueError, match="At least one config must be provided."):
            call()


def test_a_config_without_a_priority(client):
    made = config(lambda s: s["a"][-1])
    bare = structured.Config(flat=made.flat, table="t")
    writer = client.structured_writer([bare])
    writer.append(step(1))
    writer.flush()
    assert next(client.sample("t", emit_timesteps=False)).info.priority == 1.0


def test_an_unknown_table_fails_the_append(client):
    writer = client.structured_writer([config(lambda s: s["a"][-1], "zz")])
    with pytest.raises(errors.NotFoundError, match="zz was not found; the tables are: .*q"):
        writer.append(step(1), timeout=20)


def test_timeouts(client):
    writer = client.structured_writer([config(lambda s: s["a"][-1], "q")])
    writer.flush(0, timeout_ms=0)
    for i in range(3):
        writer.append(step(i))
    text = "Flush call did not complete within provided timeout of 0:00:00.100000"
    with pytest.raises(errors.DeadlineExceededError, match=text):
        writer.flush(timeout_ms=100)
    text = "End episode call did not complete within provided timeout of 0:00:00.100000"
    with pytest.raises(errors.DeadlineExceededError, match=text):
        writer.end_episode(timeout_ms=100)
    with pytest.raises(ValueError, match="block_until_num_items must be >= 0, got -1"):
        writer.flush(-1)
    writer.flush(2, timeout_ms=20000)
    assert [int(s.data[0]) for s in client.sample("q", 3, emit_timesteps=False)] == [0, 1, 2]
    writer.flush(timeout_ms=20000)


def test_leaving_the_context_flushes(client):
    with client.structured_writer([config(lambda s: s["a"][-1])]) as writer:
        writer.append(step(1))
    assert size(client) == 1
    with pytest.raises(RuntimeError, match="closed"):
        writer.append(step(2))


def structured_writer(client):
    return client.structured_writer([config(lambda s: [s["a"][-1]], "q")])


def batch_writer(client):
    return client.batch_writer(1, [config(lambda s: [s["a"][-1]], "q")])


def append_three(writer):
    """Appends steps for three items, two more than their table takes."""
    for i in range(3):
        if isinstance(writer, structured.BatchWriter):
            writer.append_batch({"a": np.full(1, i)})
        else:
            writer.append({"a": i})


@pytest.mark.parametrize("make", [structured_writer, batch_writer])
@pytest.mark.parametrize("error", [KeyError, errors.DeadlineExceededError, KeyboardInterrupt])
def test_an_exception_ends_the_context_without_waiting(client, make, error, caplog):
    with pytest.raises(error), make(client) as writer:
        append_three(writer)
        raise error("any")
    assert f"{type(writer).__name__}: an exception ended its `with`: " in caplog.text
    assert "not confirmed and dropped" in caplog.text
    with pytest.raises(RuntimeError, match="closed"):
        writer.flush()


@pytest.mark.parametrize("make", [structured_writer, batch_writer])
def test_ctrl_c_ends_the_flush_of_the_context(client, make, caplog):
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt), make(client) as writer:
        append_three(writer)
        timer.start()
    timer.join()
    assert "2 items were not confirmed and dropped" in caplog.text
    with pytest.raises(RuntimeError, match="closed"):
        writer.flush()


def test_no_references_are_left(client):
    array, other = np.zeros(3), object()
    writer = client.structured_writer([config(lambda s: [s["a"][-1], s["b"]["c"][-2:]])])
    writer.append({"a": 1, "b": {"c": array, "d": other}})
    before = sys.getrefcount(array), sys.getrefcount(other)
    for _ in range(300):
        writer.append({"a": 1, "b": {"c": array, "d": other}})
        with pytest.raises(TypeError):
            writer.append({"a": other, "b": {"c": array, "d": None}})
        with pytest.raises(ValueError):
            writer.append({"a": 1.5, "b": {"c": array, "d": None}})
    writer.flush()
    assert (sys.getrefcount(array), sys.getrefcount(other)) == before


def test_a_batch_is_one_step_of_each(client):
    writer = client.batch_writer(3, [config(lambda s: [s["a"][-2:], s["b"]["d"][-1]])])
    assert writer.num_environments == 3
    for i in range(3):
        writer.append_batch(
            {"a": np.arange(3) + 10 * i, "b": {"c": np.zeros(3), "d": np.full((3, 2), i)}}
        )
    writer.flush()
    found = sorted(drain(client))
    want = sorted(
        [[e + 10 * (i - 1), e + 10 * i], [i, i]] for i in (1, 2) for e in range(3)
    )
    assert found == want


def test_ends_of_episodes(client):
    conditions = [structured.Condition.is_end_episode()]
    writer = client.batch_writer(
        2,
        [
            config(lambda s: [s["a"][-2:]]),
            config(lambda s: [s["a"][-1]], "u", conditions),
        ],
    )

    def data(i):
        return {"a": np.array([i, 100 + i]), "b": {"c": np.zeros(2), "d": np.zeros(2)}}

    writer.append_batch(data(0))
    writer.append_batch(data(1), [True, False])
    writer.append_batch(data(2), np.array([0, 1]))
    writer.append_batch(data(3), None)
    writer.flush(timeout_ms=20000)
    assert sorted(drain(client)) == sorted(
        [[[0, 1]], [[100, 101]], [[101, 102]], [[2, 3]]]
    )
    assert sorted(drain(client, "u")) == [[1], [102]]


def test_errors_of_append_batch(client):
    writer = client.batch_writer(2, [config(lambda s: [s["a"][-1]])])

    def data(rows, dtype=np.int64):
        return {"a": np.zeros(rows, dtype), "b": {"c": np.zeros(2), "d": np.zeros(2)}}

    with pytest.raises(ValueError):
        writer.append_batch(data(3))
    with pytest.raises(ValueError):
        writer.append_batch({"a": 1, "b": {"c": 1, "d": 1}})
    writer.append_batch(data(2))
    with pytest.raises(ValueError, match="dtype"):
        writer.append_batch(data(2, np.float32))
    with pytest.raises(ValueError, match="ends must have one value for each of 2"):
        writer.append_batch(data(2), [True])
    with pytest.raises(ValueError, match="unexpected length"):
        writer.append_batch({"a": np.zeros(2)})
    with pytest.raises(ValueError, match="environments must be >= 1, got 0"):
        client.batch_writer(0, [config(lambda s: s["a"][-1])])
    writer.flush()
    assert size(client) == 2
    writer.close()
    with pytest.raises(RuntimeError, match="closed"):
        writer.append_batch(data(2))


def test_a_batch_writer_as_a_context(client):
    with client.batch_writer(4, [config(lambda s: [s["a"][-1]])]) as writer:
        writer.append_batch({"a": np.arange(4), "b": {"c": np.zeros(4), "d": np.zeros(4)}})
    assert size(client) == 4


def test_a_full_table_and_a_timeout(client):
    writer = client.batch_writer(2, [config(lambda s: [s["a"][-1]], "q")])
    writer.append_batch({"a": np.arange(2), "b": {"c": np.zeros(2), "d": np.zeros(2)}})
    text = "Flush call did not complete within provided timeout of 0:00:00.050000"
    with pytest.raises(errors.DeadlineExceededError, match=text):
        writer.flush(timeout_ms=50)
    list(client.sample("q", 2, emit_timesteps=False))
    writer.flush(timeout_ms=20000)


def test_a_writer_and_two_threads(client):
    writer = client.structured_writer([config(lambda s: s["a"][-1])])
    writer.append(step(0))

    def work():
        for i in range(100):
            writer.append(step(i))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.flush()
    assert size(client) == 401
