# SPDX-License-Identifier: Apache-2.0
"""Selectors: names, texts, values, and conversion to and from messages."""

import copy
import pickle

import pytest

import reprise
from reprise import item_selectors, protos, pybind, reverb_types, selectors

ALL = {
    "fifo": selectors.Fifo,
    "lifo": selectors.Lifo,
    "uniform": selectors.Uniform,
    "prioritized": lambda: selectors.Prioritized(0.5),
    "min_heap": selectors.MinHeap,
    "max_heap": selectors.MaxHeap,
}


@pytest.fixture(params=sorted(ALL))
def name(request):
    return request.param


@pytest.mark.parametrize(
    "make, text",
    [
        (selectors.Fifo, "FifoSelector"),
        (selectors.Lifo, "LifoSelector"),
        (selectors.Uniform, "UniformSelector"),
        (lambda: selectors.Prioritized(0.5), "PrioritizedSelector(priority_exponent=0.5)"),
        (
            lambda: selectors.Prioritized(priority_exponent=-1),
            "PrioritizedSelector(priority_exponent=-1)",
        ),
        (selectors.MinHeap, "HeapSelector(sign=1)"),
        (selectors.MaxHeap, "HeapSelector(sign=-1)"),
    ],
)
def test_text_is_that_of_reverb(make, text):
    assert repr(make()) == text
    assert str(make()) == text


def test_modules_agree():
    assert reprise.selectors.Fifo is item_selectors.Fifo is pybind.FifoSelector
    assert reprise.selectors.Prioritized is reverb_types.Prioritized
    assert isinstance(selectors.MinHeap(), pybind.HeapSelector)
    assert isinstance(selectors.MaxHeap(), reverb_types.Heap)


def test_is_an_item_selector(name):
    assert isinstance(ALL[name](), pybind.ItemSelector)


def test_base_class_cannot_be_made():
    with pytest.raises(TypeError, match="reprise.selectors"):
        pybind.ItemSelector()


def test_equal_by_value(name):
    assert ALL[name]() == ALL[name]()
    assert hash(ALL[name]()) == hash(ALL[name]())
    for other in ALL:
        assert (ALL[name]() == ALL[other]()) == (name == other)


def test_exponents_differ():
    assert selectors.Prioritized(0.5) != selectors.Prioritized(0.6)


@pytest.mark.parametrize("value", ["a", b"1", None])
def test_exponent_must_be_a_number(value):
    with pytest.raises(TypeError):
        selectors.Prioritized(value)


def test_exponent_is_required():
    with pytest.raises(TypeError):
        selectors.Prioritized()


def test_pickles_and_copies(name):
    selector = ALL[name]()
    assert pickle.loads(pickle.dumps(selector)) == selector
    assert copy.deepcopy(selector) == selector


def test_options_name_the_distribution(name):
    expected = "heap" if name.endswith("heap") else name
    assert ALL[name]().options.WhichOneof("distribution") == expected


def test_round_trip_through_its_message(name):
    data = ALL[name]().options.SerializeToString()
    assert pybind.selector_from_proto(data) == ALL[name]()


@pytest.mark.parametrize(
    "name, deterministic",
    [
        ("fifo", True),
        ("lifo", True),
        ("uniform", False),
        ("prioritized", False),
        ("min_heap", True),
        ("max_heap", True),
    ],
)
def test_says_whether_it_is_deterministic(name, deterministic):
    assert ALL[name]().options.is_deterministic == deterministic


def test_message_without_distribution_is_refused():
    with pytest.raises(NotImplementedError):
        pybind.selector_from_options(protos.KeyDistributionOptions())


def test_message_with_a_false_boolean_is_refused():
    with pytest.raises(ValueError, match="fifo"):
        pybind.selector_from_options(protos.KeyDistributionOptions(fifo=False))


class TestChunkerOptions:
    def test_equal_by_value(self):
        assert pybind.ConstantChunkerOptions(1, 2) == pybind.ConstantChunkerOptions(1, 2)
        assert pybind.ConstantChunkerOptions(1, 2) != pybind.ConstantChunkerOptions(2, 2)
        assert pybind.AutoTunedChunkerOptions(3, 1.0) == pybind.AutoTunedChunkerOptions(3, 1.0)
        assert pybind.AutoTunedChunkerOptions(3, 1.0) != pybind.AutoTunedChunkerOptions(4, 1.0)

    def test_kinds_differ(self):
        assert pybind.ConstantChunkerOptions(1, 2) != pybind.AutoTunedChunkerOptions(2, 1.0)

    def test_takes_arguments_by_name(self):
        options = pybind.ConstantChunkerOptions(num_keep_alive_refs=4, max_chunk_length=2)
        assert (options.max_chunk_length, options.num_keep_alive_refs) == (2, 4)
        options = pybind.AutoTunedChunkerOptions(num_keep_alive_refs=4, throughput_weight=0.5)
        assert (options.num_keep_alive_refs, options.throughput_weight) == (4, 0.5)

    def test_are_chunker_options(self):
        assert isinstance(pybind.ConstantChunkerOptions(1, 1), pybind.ChunkerOptions)
        assert isinstance(pybind.AutoTunedChunkerOptions(1, 1.0), pybind.ChunkerOptions)

    def test_length_must_be_whole(self):
        with pytest.raises(TypeError):
            pybind.ConstantChunkerOptions(1.5, 2)


def test_unknown_name_in_pybind():
    with pytest.raises(AttributeError, match="Nonsense"):
        pybind.Nonsense
