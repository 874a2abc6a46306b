# SPDX-License-Identifier: Apache-2.0
"""Table: the arguments of its constructors, and its information."""

import collections

import numpy as np
import pytest

from reverb_suite.implementation import (SELECTORS, Spec, build, dtype_of, limiter, reverb,
                                         selector, shape_of, specs, submodule, table)

Pair = collections.namedtuple("Pair", ["left", "right"])


def make(**changes):
    arguments = dict(name="t", sampler=selector("uniform"), remover=selector("fifo"), max_size=10,
                     rate_limiter=limiter(("min_size", 1)))
    return reverb.Table(**{**arguments, **changes})


def test_name_must_not_be_empty():
    with pytest.raises(ValueError, match="name must be nonempty"):
        make(name="")


@pytest.mark.parametrize("size", [0, -1, -1000])
def test_max_size_must_be_positive(size):
    with pytest.raises(ValueError, match=rf"max_size \({size}\) must be a positive integer"):
        make(max_size=size)


@pytest.mark.parametrize("size", [0, -3])
@pytest.mark.parametrize("kind", ["queue", "stack"])
def test_max_size_of_queue_and_stack_must_be_positive(kind, size):
    with pytest.raises(ValueError, match=r"max_size \(-?\d+\) must be a positive integer"):
        getattr(reverb.Table, kind)("t", size)


@pytest.mark.parametrize("missing", ["name", "sampler", "remover", "max_size", "rate_limiter"])
def test_arguments_that_have_no_default(missing):
    arguments = dict(name="t", sampler=selector("uniform"), remover=selector("fifo"), max_size=10,
                     rate_limiter=limiter(("min_size", 1)))
    del arguments[missing]
    with pytest.raises(TypeError):
        reverb.Table(**arguments)


def test_unknown_argument():
    with pytest.raises(TypeError):
        make(colour="red")


@pytest.mark.parametrize("leaf", ["float32", 1.5, object()])
def test_signature_of_something_else(leaf):
    with pytest.raises(ValueError, match="Unsupported signature spec"):
        make(signature={"a": leaf})


def test_signature_with_one_wrong_leaf():
    with pytest.raises(ValueError, match="Unsupported signature spec"):
        make(signature={"a": specs(Spec([], "float32")), "b": "float32"})


@pytest.mark.parametrize("which", ["sampler", "remover"])
def test_selector_of_a_wrong_type(which):
    with pytest.raises(TypeError):
        make(**{which: "uniform"})


def test_rate_limiter_of_a_wrong_type():
    with pytest.raises((TypeError, AttributeError)):
        make(rate_limiter=1)


def test_name():
    assert make(name="replay").name == "replay"


def test_positional_arguments():
    info = reverb.Table("t", selector("fifo"), selector("lifo"), 7, limiter(("min_size", 3)),
                        5).info
    assert (info.name, info.max_size, info.max_times_sampled) == ("t", 7, 5)
    assert info.rate_limiter_info.min_size_to_sample == 3


def test_info_of_an_empty_table():
    info = make().info
    assert info.current_size == 0
    assert info.num_episodes == 0
    assert info.num_deleted_episodes == 0
    assert info.num_unique_samples == 0
    assert info.signature is None
    assert info.max_size == 10
    assert info.max_times_sampled == 0


def test_info_is_a_table_info():
    assert isinstance(make().info, submodule("reverb_types").TableInfo)


def test_repr_has_the_name():
    assert "replay" in repr(make(name="replay"))


@pytest.mark.parametrize("times", [1, 2, 1000])
def test_info_has_max_times_sampled(times):
    assert make(max_times_sampled=times).info.max_times_sampled == times


@pytest.mark.parametrize("which", ["sampler", "remover"])
@pytest.mark.parametrize("kind", SELECTORS)
def test_info_has_the_selectors(which, kind):
    info = make(**{which: selector(kind)}).info
    options = getattr(info, f"{which}_options")
    field = "heap" if kind.endswith("heap") else kind
    assert options.HasField(field)
    for other in {"fifo", "lifo", "uniform", "heap", "prioritized"} - {field}:
        assert not options.HasField(other)
    if field == "heap":
        assert options.heap.min_heap == (kind == "min_heap")
    assert options.is_deterministic == (kind not in ("uniform", "prioritized"))


@pytest.mark.parametrize("exponent", [0.0, 0.5, 0.6, 1.0, 2.0])
def test_info_has_the_exponent(exponent):
    info = make(sampler=reverb.selectors.Prioritized(exponent)).info
    assert info.sampler_options.prioritized.priority_exponent == exponent


def test_selectors_have_the_older_spelling_too():
    for name in ("Fifo", "Lifo", "Uniform", "Prioritized", "MinHeap", "MaxHeap"):
        assert hasattr(reverb.selectors, name)
        assert hasattr(submodule("item_selectors"), name)


@pytest.mark.parametrize("description, expected", [
    (("min_size", 3), (1.0, 3, -np.finfo(float).max, np.finfo(float).max)),
    (("ratio", 2.0, 5, 4.0), (2.0, 5, 6.0, 14.0)),
    (("ratio", 2.0, 5, (1.0, 15.0)), (2.0, 5, 1.0, 15.0)),
    (("ratio", 0.5, 10, 2), (0.5, 10, 3.0, 7.0)),
    (("queue", 8), (1.0, 1, 0.0, 8.0)),
    (("stack", 9), (1.0, 1, 0.0, 9.0)),
    (("plain", 1.5, 2, -3.0, 6.0), (1.5, 2, -3.0, 6.0)),
])
def test_info_has_the_rate_limiter(description, expected):
    info = make(rate_limiter=limiter(description)).info.rate_limiter_info
    assert (info.samples_per_insert, info.min_size_to_sample, info.min_diff,
            info.max_diff) == expected
    assert info.insert_stats.completed == 0
    assert info.sample_stats.completed == 0


@pytest.mark.parametrize("kind, field", [("queue", "fifo"), ("stack", "lifo")])
def test_queue_and_stack(kind, field):
    info = getattr(reverb.Table, kind)("t", 6).info
    assert info.name == "t"
    assert info.max_size == 6
    assert info.max_times_sampled == 1
    assert info.sampler_options.HasField(field)
    assert info.remover_options.HasField(field)
    limits = info.rate_limiter_info
    assert (limits.samples_per_insert, limits.min_size_to_sample) == (1.0, 1)
    assert (limits.min_diff, limits.max_diff) == (0.0, 6.0)


@pytest.mark.parametrize("kind", ["queue", "stack"])
def test_queue_and_stack_take_a_signature(kind):
    made = getattr(reverb.Table, kind)(name="t", max_size=6,
                                       signature=specs({"a": Spec([3], "float32")}))
    assert shape_of(made.info.signature["a"]) == (3,)


@pytest.mark.parametrize("empty", [None, {}, [], ()])
def test_an_empty_signature_is_none(empty):
    assert make(signature=empty).info.signature is None


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int16", "int32",
                                   "int64", "uint8", "uint16", "uint32", "uint64", "bool",
                                   "complex64", "complex128", "string"])
def test_signature_keeps_dtypes(dtype):
    signature = make(signature=specs(Spec([2, 3], dtype))).info.signature
    assert dtype_of(signature) == dtype
    assert shape_of(signature) == (2, 3)


@pytest.mark.parametrize("shape", [[], [1], [None], [None, 84, 84], [0], [2, None, 3]])
def test_signature_keeps_shapes(shape):
    signature = make(signature=specs([Spec(shape, "float32")])).info.signature
    assert shape_of(signature[0]) == tuple(shape)


@pytest.mark.parametrize("nest", [
    {"b": Spec([], "float32"), "a": Spec([1], "int32")},
    [Spec([], "float32"), Spec([1], "int32")],
    (Spec([], "float32"), Spec([1], "int32")),
    {"a": {"b": {"c": Spec([], "float32")}}},
    {"a": [Spec([], "float32"), (Spec([1], "int32"), {"d": Spec([2], "bool")})]},
], ids=["dict", "list", "tuple", "deep", "mixed"])
def test_signature_keeps_structure(nest):
    def outline(node, leaf):
        if isinstance(node, dict):
            return {key: outline(value, leaf) for key, value in node.items()}
        if isinstance(node, (list, tuple)):
            return type(node)(outline(value, leaf) for value in node)
        return leaf(node)

    signature = make(signature=specs(nest)).info.signature
    assert outline(signature, lambda s: (shape_of(s), dtype_of(s))) == outline(
        nest, lambda s: (tuple(s.shape), s.dtype))


def test_signature_of_a_named_tuple():
    signature = make(signature=specs(Pair(Spec([], "float32"), Spec([1], "int32")))).info.signature
    assert signature._fields == ("left", "right")
    assert shape_of(signature.right) == (1,)


def test_signature_keeps_names_of_specs():
    signature = make(signature=specs([Spec([], "float32", "reward")])).info.signature
    assert signature[0].name == "reward"


@pytest.mark.parametrize("description, samples, inserts", [
    (("min_size", 1), {1: False}, {1: True, 1000: True}),
    (("queue", 3), {1: False}, {1: True, 3: True, 4: False}),
    (("ratio", 1.0, 2, 4.0), {1: False}, {1: True, 2: True, 6: True, 7: False}),
])
def test_can_sample_and_can_insert_when_empty(description, samples, inserts):
    made = make(rate_limiter=limiter(description))
    assert {n: made.can_sample(n) for n in samples} == samples
    assert {n: made.can_insert(n) for n in inserts} == inserts


@pytest.mark.parametrize("inserted, samples, inserts", [
    (1, {1: False}, {5: True, 6: False}),
    (2, {1: True, 4: True, 5: False}, {4: True, 5: False}),
    (6, {8: True, 9: False}, {1: False}),
])
def test_can_sample_and_can_insert_after_inserts(inserted, samples, inserts):
    made = build(table(limiter=("ratio", 1.0, 2, 4.0)))
    server = reverb.Server([made])
    with server.localhost_client().trajectory_writer(1) as writer:
        for i in range(inserted):
            writer.append([i])
            writer.create_item("t", 1.0, [writer.history[0][-1:]])
    assert {n: made.can_sample(n) for n in samples} == samples
    assert {n: made.can_insert(n) for n in inserts} == inserts
    server.stop()


def test_info_follows_the_server():
    made = make(sampler=selector("fifo"))
    server = reverb.Server([made])
    client = server.localhost_client()
    client.insert(1.0, {"t": 1.0})
    client.insert(2.0, {"t": 1.0})
    next(client.sample("t"))
    info = made.info
    assert info.current_size == 2
    assert info.rate_limiter_info.insert_stats.completed == 2
    assert info.rate_limiter_info.sample_stats.completed == 1
    assert info.num_unique_samples == 1
    server.stop()


def original():
    return reverb.Table("t", selector("max_heap"), selector(("prioritized", 0.5)), 10,
                        limiter(("ratio", 2.0, 5, 4.0)), 3,
                        signature=specs({"a": Spec([2], "float32")}))


def test_replace_nothing():
    before, after = original().info, original().replace().info
    assert after.name == before.name
    assert after.max_size == before.max_size
    assert after.max_times_sampled == before.max_times_sampled
    assert after.sampler_options.HasField("heap") and not after.sampler_options.heap.min_heap
    assert after.remover_options.prioritized.priority_exponent == 0.5
    limits = after.rate_limiter_info
    assert (limits.samples_per_insert, limits.min_size_to_sample, limits.min_diff,
            limits.max_diff) == (2.0, 5, 6.0, 14.0)
    assert shape_of(after.signature["a"]) == (2,)


@pytest.mark.parametrize("change, expected", [
    (dict(name="other"), lambda i: i.name == "other"),
    (dict(max_size=99), lambda i: i.max_size == 99),
    (dict(max_times_sampled=7), lambda i: i.max_times_sampled == 7),
    (dict(max_times_sampled=0), lambda i: i.max_times_sampled == 0),
], ids=["name", "max_size", "max_times_sampled", "no limit"])
def test_replace_one_thing(change, expected):
    info = original().replace(**change).info
    assert expected(info)
    assert info.rate_limiter_info.samples_per_insert == 2.0


@pytest.mark.parametrize("which", ["sampler", "remover"])
def test_replace_a_selector(which):
    info = original().replace(**{which: selector("lifo")}).info
    assert getattr(info, f"{which}_options").HasField("lifo")
    other = "remover" if which == "sampler" else "sampler"
    assert not getattr(info, f"{other}_options").HasField("lifo")


def test_replace_the_rate_limiter():
    info = original().replace(rate_limiter=limiter(("min_size", 8))).info
    assert info.rate_limiter_info.min_size_to_sample == 8
    assert info.rate_limiter_info.samples_per_insert == 1.0


def test_replace_the_signature():
    info = original().replace(signature=specs({"b": Spec([7], "int8")})).info
    assert list(info.signature) == ["b"]


def test_replace_checks_what_it_is_given():
    with pytest.raises(ValueError, match="max_size"):
        original().replace(max_size=-1)


def test_replace_gives_an_empty_table():
    made = make()
    server = reverb.Server([made])
    server.localhost_client().insert(1.0, {"t": 1.0})
    assert made.info.current_size == 1
    assert made.replace().info.current_size == 0
    server.stop()
