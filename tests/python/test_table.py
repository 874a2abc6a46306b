# SPDX-License-Identifier: Apache-2.0
"""Tables without a server: arguments, information, and copies with changes."""

import collections
import sys

import numpy as np
import pytest

import reprise
from reprise import pybind, rate_limiters, selectors, specs

SELECTORS = {
    "fifo": selectors.Fifo,
    "lifo": selectors.Lifo,
    "uniform": selectors.Uniform,
    "prioritized": lambda: selectors.Prioritized(0.7),
    "min_heap": selectors.MinHeap,
    "max_heap": selectors.MaxHeap,
}
LIMITERS = {
    "min_size": lambda: rate_limiters.MinSize(3),
    "ratio": lambda: rate_limiters.SampleToInsertRatio(2.0, 5, 20.0),
    "queue": lambda: rate_limiters.Queue(9),
    "stack": lambda: rate_limiters.Stack(9),
}


def table(**overrides):
    options = dict(
        name="replay",
        sampler=selectors.Prioritized(1.0),
        remover=selectors.Fifo(),
        max_size=10,
        rate_limiter=rate_limiters.MinSize(1),
    )
    return reprise.Table(**{**options, **overrides})


class TestArguments:
    def test_can_be_positional(self):
        t = reprise.Table(
            "t", selectors.Fifo(), selectors.Lifo(), 5, rate_limiters.MinSize(2), 3, (), None
        )
        assert (t.name, t.info.max_size, t.info.max_times_sampled) == ("t", 5, 3)

    @pytest.mark.parametrize("name", ["", None])
    def test_name_must_not_be_empty(self, name):
        with pytest.raises(ValueError, match="name must be nonempty"):
            table(name=name)

    def test_name_must_be_text(self):
        with pytest.raises(TypeError, match="name"):
            table(name=3)

    @pytest.mark.parametrize("size", [0, -5])
    def test_max_size_must_be_positive(self, size):
        with pytest.raises(
            ValueError, match=rf"max_size \({size}\) must be a positive integer"
        ):
            table(max_size=size)

    @pytest.mark.parametrize("size", [1.5, "3", None])
    def test_max_size_must_be_whole(self, size):
        with pytest.raises(TypeError):
            table(max_size=size)

    def test_max_size_may_be_of_numpy(self):
        assert table(max_size=np.int32(7)).info.max_size == 7

    @pytest.mark.parametrize("size, taken", [(2**30, 2**30), (2**31 - 1, 2**30)])
    def test_max_size_may_be_as_large_as_in_reverb(self, size, taken):
        assert table(max_size=size).info.max_size == taken

    def test_max_size_has_an_upper_bound(self):
        with pytest.raises(ValueError, match="max_size"):
            table(max_size=2**31)

    @pytest.mark.parametrize("role", ["sampler", "remover"])
    @pytest.mark.parametrize("value", [3, None, "fifo", selectors.Fifo])
    def test_selectors_must_be_selectors(self, role, value):
        with pytest.raises(TypeError, match=role):
            table(**{role: value})

    def test_limiter_must_be_a_rate_limiter(self):
        with pytest.raises(TypeError, match="must be one of reprise.rate_limiters"):
            table(rate_limiter=3)

    @pytest.mark.parametrize("times", [0, -1])
    def test_max_times_sampled_below_one_is_no_limit(self, times):
        assert table(max_times_sampled=times).info.max_times_sampled == 0

    def test_other_negative_max_times_sampled_are_refused(self):
        with pytest.raises(ValueError, match="where 0 means no limit, got -2"):
            table(max_times_sampled=-2)

    def test_name_is_checked_first(self):
        with pytest.raises(ValueError, match="name"):
            table(name="", max_size=0, sampler=3)

    @pytest.mark.parametrize("value, error", [(-1, ValueError), (1.5, TypeError)])
    @pytest.mark.parametrize("name", ["max_bytes", "seed"])
    def test_bytes_and_seed(self, name, value, error):
        with pytest.raises(error, match=name):
            table(**{name: value})

    def test_extensions_that_make_nothing(self):
        class Nothing(reprise.server.TableExtensionBase):
            def build_internal_extensions(self, table_name):
                assert table_name == "replay"
                return []

        assert table(extensions=[Nothing()]).info.current_size == 0

    def test_extension_base_is_abstract(self):
        with pytest.raises(TypeError):
            reprise.server.TableExtensionBase()


class TestSignature:
    @pytest.mark.parametrize("signature", [None, {}, [], ()])
    def test_none(self, signature):
        assert table(signature=signature).info.signature is None

    @pytest.mark.parametrize(
        "leaf", [3, 1.5, "float32", None, object(), True], ids=lambda leaf: type(leaf).__name__
    )
    def test_leaves_must_be_specs(self, leaf):
        with pytest.raises(ValueError, match="Unsupported signature spec"):
            table(signature={"a": leaf})

    def test_text_names_the_leaf(self):
        with pytest.raises(ValueError, match="Unsupported signature spec: 3"):
            table(signature={"a": {"b": 3}})

    @pytest.mark.parametrize(
        "signature",
        [
            specs.TensorSpec((), "float32"),
            {"a": specs.TensorSpec((2, None), "int64", "x")},
            [specs.TensorSpec((1,), "uint8")],
            (specs.TensorSpec(None, "bool"), {"b": [specs.TensorSpec((3,), str)]}),
        ],
        ids=["leaf", "dict", "list", "nested"],
    )
    def test_round_trip(self, signature):
        assert table(signature=signature).info.signature == signature

    def test_named_tuples_keep_their_names(self):
        Step = collections.namedtuple("Step", "reward action")
        spec = Step(specs.TensorSpec((), "float32"), specs.TensorSpec((2,), "int8"))
        found = table(signature=spec).info.signature
        assert type(found).__name__ == "Step"
        assert found._fields == ("reward", "action")
        assert tuple(found) == tuple(spec)

    def test_arrays_stand_for_themselves(self):
        found = table(signature={"a": np.zeros((2, 3), np.int16)}).info.signature
        assert found["a"] == specs.TensorSpec((2, 3), np.int16)

    def test_bounds_are_taken(self):
        spec = specs.BoundedTensorSpec((2,), np.float32, -1.0, 1.0, "b")
        found = table(signature=[spec]).info.signature
        assert (found[0].shape, found[0].dtype) == ((2,), np.float32)


class TestInfo:
    def test_of_a_new_table(self):
        info = table().info
        assert info.name == "replay"
        assert info.max_size == 10
        assert info.current_size == 0
        assert info.num_episodes == info.num_deleted_episodes == info.num_unique_samples == 0
        assert info.rate_limiter_info.insert_stats.completed == 0
        assert info.rate_limiter_info.sample_stats.completed == 0
        assert info.rate_limiter_info.HasField("insert_stats")
        assert info.table_worker_time.running_ms == 0
        assert info.signature is None

    @pytest.mark.parametrize("name", sorted(SELECTORS))
    @pytest.mark.parametrize("role", ["sampler", "remover"])
    def test_names_selectors(self, role, name):
        info = table(**{role: SELECTORS[name]()}).info
        assert getattr(info, role + "_options") == SELECTORS[name]().options

    def test_has_the_exponent(self):
        options = table(sampler=selectors.Prioritized(0.25)).info.sampler_options
        assert options.prioritized.priority_exponent == 0.25

    @pytest.mark.parametrize("name", sorted(LIMITERS))
    def test_has_the_limiter(self, name):
        limiter = LIMITERS[name]()
        info = table(rate_limiter=limiter).info.rate_limiter_info
        found = (
            info.samples_per_insert,
            info.min_size_to_sample,
            info.min_diff,
            info.max_diff,
        )
        assert found == limiter.internal_limiter._fields()

    def test_compares(self):
        assert table().info == table().info
        assert table().info != table(max_size=11).info

    def test_details_have_more(self):
        details = table(max_bytes=1000).details
        assert details["max_bytes"] == 1000
        assert details["bytes"] == details["evictions"] == details["waiting_samples"] == 0


class TestLimiter:
    def test_can_insert_and_sample(self):
        t = table(rate_limiter=rate_limiters.MinSize(2))
        assert t.can_insert(1) is True
        assert t.can_sample(1) is False

    @pytest.mark.parametrize("call", ["can_sample", "can_insert"])
    @pytest.mark.parametrize("count", [0, -1])
    def test_count_must_be_positive(self, call, count):
        with pytest.raises(ValueError, match=">= 1"):
            getattr(table(), call)(count)

    @pytest.mark.parametrize("call", ["can_sample", "can_insert"])
    def test_count_must_be_whole(self, call):
        with pytest.raises(TypeError):
            getattr(table(), call)(1.5)

    def test_why_is_empty_without_waiting_calls(self):
        assert table().why() == []


class TestQueueAndStack:
    @pytest.mark.parametrize(
        "make, kind, limiter",
        [
            (reprise.Table.queue, "fifo", rate_limiters.Queue),
            (reprise.Table.stack, "lifo", rate_limiters.Stack),
        ],
    )
    def test_are_fifo_and_lifo_tables_with_a_queue_limiter(self, make, kind, limiter):
        info = make("q", 5).info
        assert info.name == "q"
        assert info.max_size == 5
        assert info.max_times_sampled == 1
        assert info.sampler_options.WhichOneof("distribution") == kind
        assert info.remover_options.WhichOneof("distribution") == kind
        assert info.rate_limiter_info.max_diff == 5.0
        assert info.rate_limiter_info.min_diff == 0.0
        assert info.rate_limiter_info.min_size_to_sample == 1

    @pytest.mark.parametrize("make", [reprise.Table.queue, reprise.Table.stack])
    def test_take_a_signature(self, make):
        spec = {"a": specs.TensorSpec((), "int32")}
        assert make("q", 5, signature=spec).info.signature == spec

    @pytest.mark.parametrize("make", [reprise.Table.queue, reprise.Table.stack])
    def test_check_their_size(self, make):
        with pytest.raises(ValueError):
            make("q", 0)

    def test_are_of_the_subclass_called(self):
        class Mine(reprise.Table):
            pass

        assert type(Mine.queue("q", 1)) is Mine


class TestReplace:
    @pytest.mark.parametrize("sampler", sorted(SELECTORS))
    @pytest.mark.parametrize("remover", sorted(SELECTORS))
    @pytest.mark.parametrize("limiter", sorted(LIMITERS))
    def test_without_arguments_is_a_copy(self, sampler, remover, limiter):
        t = table(
            sampler=SELECTORS[sampler](),
            remover=SELECTORS[remover](),
            rate_limiter=LIMITERS[limiter](),
            max_times_sampled=4,
        )
        copy = t.replace()
        assert copy is not t
        assert copy.info == t.info
        assert repr(copy) == repr(t)

    @pytest.mark.parametrize(
        "change, field, value",
        [
            ({"name": "other"}, "name", "other"),
            ({"max_size": 3}, "max_size", 3),
            ({"max_times_sampled": 9}, "max_times_sampled", 9),
            ({"max_times_sampled": 0}, "max_times_sampled", 0),
            ({"sampler": selectors.Lifo()}, "sampler_options", selectors.Lifo().options),
            ({"remover": selectors.MinHeap()}, "remover_options", selectors.MinHeap().options),
        ],
    )
    def test_changes_one_option(self, change, field, value):
        t = table(max_times_sampled=2)
        info = t.replace(**change).info
        assert getattr(info, field) == value
        setattr(info, field, getattr(t.info, field))
        assert info == t.info

    def test_changes_the_limiter(self):
        t = table().replace(rate_limiter=rate_limiters.MinSize(6))
        assert t.info.rate_limiter_info.min_size_to_sample == 6

    def test_changes_the_signature(self):
        spec = {"a": specs.TensorSpec((), "int32")}
        t = table(signature=spec)
        assert t.replace().info.signature == spec
        other = [specs.TensorSpec((), "int8")]
        assert t.replace(signature=other).info.signature == other

    def test_keeps_options_that_reverb_lacks(self):
        assert table(max_bytes=77).replace().details["max_bytes"] == 77


def test_text_is_that_of_reverb():
    assert repr(table()) == (
        "Table(sampler=PrioritizedSelector(priority_exponent=1), remover=FifoSelector, "
        "max_size=10, max_times_sampled=0, name=replay, "
        "rate_limiter=RateLimiter(samples_per_insert=1, min_diff_=-1.79769e+308, "
        "max_diff=1.79769e+308, min_size_to_sample=1), signature=nullptr)"
    )


def test_text_has_the_signature():
    t = table(signature={"a": specs.TensorSpec((2,), "int32")})
    assert repr(t).endswith("signature={'a': TensorSpec((2,), int32)})")


def test_limiter_knows_its_table():
    limiter = rate_limiters.MinSize(1)
    t = table(rate_limiter=limiter)
    assert limiter._table() is t
    assert isinstance(limiter.internal_limiter, pybind.RateLimiter)
    assert limiter.internal_limiter.max_diff == sys.float_info.max
