# SPDX-License-Identifier: Apache-2.0
"""Patterns, configs, conditions and infer_signature, without a server."""

import pytest

from reverb_suite.implementation import Spec, dtype_of, reverb, shape_of, specs

structured = reverb.structured
Condition = structured.Condition
STEP = {"a": None, "b": {"c": None, "d": None}}
SPECS = {"a": Spec([], "int64"), "b": {"c": Spec([3], "float32"), "d": Spec([2, 2], "float32")}}


def config(transform, name="t", **more):
    return structured.create_config(structured.pattern_from_transform(STEP, transform), name,
                                    **more)


def outline(nest):
    if isinstance(nest, dict):
        return {key: outline(value) for key, value in nest.items()}
    if isinstance(nest, (list, tuple)):
        return type(nest)(outline(value) for value in nest)
    return shape_of(nest), dtype_of(nest)


def test_reference_steps_have_the_structure():
    ref = structured.create_reference_step(STEP)
    assert set(ref) == {"a", "b"} and set(ref["b"]) == {"c", "d"}


@pytest.mark.parametrize("path, index", [(("a",), 0), (("b", "c"), 1), (("b", "d"), 2)])
def test_leaves_are_numbered_in_order(path, index):
    node = structured.create_reference_step(STEP)
    for key in path:
        node = node[key]
    assert node[-1].flat_source_index == index


def test_an_index_is_a_stop_alone():
    node = structured.create_reference_step([None])[0][-3]
    assert node.stop == -3
    assert not node.HasField("start") and not node.HasField("step")


@pytest.mark.parametrize("cut, start, stop, step", [
    (slice(-3, None), -3, None, None), (slice(-3, -1), -3, -1, None),
    (slice(-6, None, 2), -6, None, 2), (slice(-6, -2, 3), -6, -2, 3),
])
def test_slices(cut, start, stop, step):
    node = structured.create_reference_step([None])[0][cut]
    for name, value in (("start", start), ("stop", stop), ("step", step)):
        assert node.HasField(name) == (value is not None)
        if value is not None:
            assert getattr(node, name) == value


@pytest.mark.parametrize("key", ["a", 1.5, None, (1, 2), [1]])
def test_keys_other_than_int_and_slice_are_refused(key):
    with pytest.raises(ValueError, match="Key must be int or slice"):
        structured.create_reference_step([None])[0][key]


def test_pattern_from_transform_calls_with_a_reference_step():
    pattern = structured.pattern_from_transform(STEP, lambda s: {"x": s["b"]["c"][-2:]})
    assert pattern["x"].flat_source_index == 1
    assert pattern["x"].start == -2


def test_config():
    made = config(lambda s: {"x": s["a"][-2:], "y": s["b"]["d"][-1]}, "table")
    assert made.table == "table"
    assert len(made.flat) == 2
    assert [node.flat_source_index for node in made.flat] == [0, 2]
    assert len(made.conditions) == 0
    assert made.priority.constant_fn.value == 1.0


def test_config_is_flattened_by_sorted_key():
    made = config(lambda s: {"z": s["a"][-1], "b": s["b"]["c"][-1]})
    assert [node.flat_source_index for node in made.flat] == [1, 0]


def test_config_with_conditions_and_priority():
    made = config(lambda s: [s["a"][-1]], conditions=[Condition.step_index() >= 2],
                  priority=structured.constant_priority_fn(7.0))
    assert len(made.conditions) == 1 and made.conditions[0].ge == 2
    assert made.priority.constant_fn.value == 7.0


@pytest.mark.parametrize("transform", [
    lambda s: {"x": s["a"][-1], "y": s["a"][-2:]}, lambda s: [s["a"][-1], s["a"][-2:]],
    lambda s: (s["a"][-1], s["a"][-2:]), lambda s: {"x": [s["a"][-1], {"y": s["a"][-2:]}]},
], ids=["dict", "list", "tuple", "mixed"])
def test_unpack_pattern(transform):
    pattern = structured.pattern_from_transform(STEP, transform)
    assert structured.unpack_pattern(structured.create_config(pattern, "t")) == pattern


def test_td_error_finds_its_field():
    made = structured.td_error(0.9, STEP, lambda s: s["b"]["d"])
    assert made.td_error.flat_source_index == 2
    assert made.td_error.max_priority_weight == pytest.approx(0.9)


@pytest.mark.parametrize("make, field", [
    (Condition.step_index, "step_index"), (Condition.steps_since_applied, "steps_since_applied"),
])
def test_conditions_set_the_field_of_their_left_operand(make, field):
    assert (make() >= 1).HasField(field)


def test_end_of_episode_is_a_whole_condition():
    made = Condition.is_end_episode()
    assert made.HasField("is_end_episode") and made.eq == 1


def test_data_names_its_leaf():
    assert (Condition.data(STEP)["b"]["d"] == 1).flat_source_index == 2


@pytest.mark.parametrize("make, field, value, inverse", [
    (lambda c: c == 3, "eq", 3, False), (lambda c: c != 3, "eq", 3, True),
    (lambda c: c >= 3, "ge", 3, False), (lambda c: c > 3, "ge", 4, False),
    (lambda c: c < 3, "ge", 3, True), (lambda c: c <= 3, "ge", 4, True),
])
def test_comparisons(make, field, value, inverse):
    made = make(Condition.step_index())
    assert getattr(made, field) == value
    assert made.inverse == inverse


@pytest.mark.parametrize("inverse", [False, True])
def test_moduli(inverse):
    left = Condition.step_index() % 5
    made = left != 2 if inverse else left == 2
    assert (made.mod_eq.mod, made.mod_eq.eq, made.inverse) == (5, 2, inverse)


SIGNATURES = {
    "newest": (lambda s: {"x": s["b"]["c"][-1]}, {"x": ((3,), "float32")}),
    "rows": (lambda s: {"x": s["b"]["c"][-4:]}, {"x": ((4, 3), "float32")}),
    "rows before": (lambda s: {"x": s["b"]["d"][-4:-1]}, {"x": ((3, 2, 2), "float32")}),
    "stride": (lambda s: {"x": s["a"][-6::2]}, {"x": ((3,), "int64")}),
    "list": (lambda s: [s["a"][-1], s["a"][-2:]], [((), "int64"), ((2,), "int64")]),
    "nested": (lambda s: {"x": {"y": [s["a"][-1:]]}}, {"x": {"y": [((1,), "int64")]}}),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_infer_signature(name):
    transform, expected = SIGNATURES[name]
    assert outline(structured.infer_signature([config(transform)], specs(SPECS))) == expected


def test_inferred_specs_are_named_by_their_path():
    made = structured.infer_signature([config(lambda s: {"x": {"y": s["a"][-1]}})], specs(SPECS))
    assert made["x"]["y"].name == "x/y"


def test_lengths_that_differ_are_left_open():
    configs = [config(lambda s: {"x": s["b"]["c"][-2:]}), config(lambda s: {"x": s["b"]["c"][-3:]})]
    made = structured.infer_signature(configs, specs(SPECS))
    assert outline(made) == {"x": ((None, 3), "float32")}


def test_infer_from_two_equal_configs():
    configs = [config(lambda s: {"x": s["b"]["c"][-2:]})] * 2
    made = structured.infer_signature(configs, specs(SPECS))
    assert outline(made) == {"x": ((2, 3), "float32")}


def test_an_inferred_signature_fits_a_table():
    made = structured.infer_signature([config(lambda s: {"x": s["b"]["c"][-2:]})], specs(SPECS))
    info = reverb.Table("t", reverb.selectors.Fifo(), reverb.selectors.Fifo(), 10,
                        reverb.rate_limiters.MinSize(1), signature=made).info
    assert outline(info.signature) == {"x": ((2, 3), "float32")}


def test_infer_from_nothing():
    with pytest.raises(ValueError, match="At least one config must be provided"):
        structured.infer_signature([], specs(SPECS))


def test_infer_from_several_tables():
    configs = [config(lambda s: {"x": s["a"][-1]}, "a"), config(lambda s: {"x": s["a"][-1]}, "b")]
    with pytest.raises(ValueError, match="must target the same table.*included a, b"):
        structured.infer_signature(configs, specs(SPECS))


def test_infer_from_several_structures():
    configs = [config(lambda s: {"x": s["a"][-1]}), config(lambda s: {"y": s["a"][-1]})]
    with pytest.raises(ValueError, match="exactly the same pattern_structure"):
        structured.infer_signature(configs, specs(SPECS))


def test_infer_from_several_dtypes():
    configs = [config(lambda s: {"x": s["a"][-1]}), config(lambda s: {"x": s["b"]["c"][-1]})]
    with pytest.raises(ValueError, match="trajectories with multiple dtypes at .*x"):
        structured.infer_signature(configs, specs(SPECS))


def test_infer_from_several_shapes():
    configs = [config(lambda s: {"x": s["b"]["c"][-1:]}), config(lambda s: {"x": s["b"]["d"][-1:]})]
    with pytest.raises(ValueError, match="trajectories with incompatible shapes at .*x"):
        structured.infer_signature(configs, specs(SPECS))


@pytest.mark.parametrize("name", ["Pattern", "ReferenceStep", "PatternTransform", "Config",
                                  "ConditionProto", "StructuredWriter"])
def test_module_has_its_public_names(name):
    assert hasattr(structured, name)
