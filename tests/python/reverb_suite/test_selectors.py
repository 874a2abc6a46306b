# SPDX-License-Identifier: Apache-2.0
"""Selectors: which item is sampled, which is removed, and with what probability."""

import collections

import pytest

from reverb_suite.helpers import insert, keys_by_value, samples, size, values
from reverb_suite.implementation import SELECTORS, reverb, table

PRIORITIES = [3.0, 1.0, 4.0, 1.0, 5.0]


def survivors(remover, capacity):
    """Returns the items of 0 .. 4, with PRIORITIES, that are left; None if that is random. The new
    item itself may be removed."""
    kept = []
    for item in range(len(PRIORITIES)):
        kept.append(item)
        if len(kept) > capacity:
            if remover in ("uniform", "prioritized"):
                return None
            kept.remove(pick(remover, kept))
    return kept


def pick(sampler, kept):
    """Returns the item that a sampler selects of them; None if that is random."""
    return {"fifo": kept[0], "lifo": kept[-1],
            "min_heap": min(kept, key=lambda i: PRIORITIES[i]),
            "max_heap": max(kept, key=lambda i: PRIORITIES[i])}.get(sampler)


@pytest.mark.parametrize("remover", SELECTORS)
@pytest.mark.parametrize("sampler", SELECTORS)
def test_sampler_and_remover(serve, sampler, remover):
    client = serve(table(sampler=sampler, remover=remover, max_size=3))
    insert(client, range(5), priorities=PRIORITIES)
    assert size(client) == 3
    kept = survivors(remover, 3)
    # The least likely item has a tenth of the total priority: 400 draws miss it once in 10^18 runs.
    got = set(values(client, count=400 if sampler in ("uniform", "prioritized") else 3))
    if kept is None:
        assert got <= set(range(5)) and len(got) <= 3
    elif pick(sampler, kept) is None:
        assert got == set(kept)
    else:
        assert got == {pick(sampler, kept)}


@pytest.mark.parametrize("remover, kept", [("fifo", 3), ("lifo", 0), ("min_heap", 2),
                                           ("max_heap", 1)])
def test_a_new_item_may_be_evicted_at_once(serve, remover, kept):
    client = serve(table(sampler="uniform", remover=remover, max_size=1))
    insert(client, range(4), priorities=[2.0, 1.0, 4.0, 3.0])
    assert values(client) == [kept]


@pytest.mark.parametrize("sampler", SELECTORS)
def test_sampling_does_not_remove(serve, sampler):
    client = serve(table(sampler=sampler))
    insert(client, range(4))
    samples(client, count=10)
    assert size(client) == 4


@pytest.mark.parametrize("sampler, expected", [
    ("fifo", {0: 1.0}), ("lifo", {3: 1.0}), ("min_heap", {0: 1.0}), ("max_heap", {3: 1.0}),
    ("uniform", {i: 0.25 for i in range(4)}),
    (("prioritized", 1.0), {0: 0.1, 1: 0.2, 2: 0.3, 3: 0.4}),
    (("prioritized", 0.0), {i: 0.25 for i in range(4)}),
    (("prioritized", 2.0), {0: 1 / 30, 1: 4 / 30, 2: 9 / 30, 3: 16 / 30}),
])
def test_probabilities(serve, sampler, expected):
    client = serve(table(sampler=sampler))
    insert(client, range(4), priorities=[1.0, 2.0, 3.0, 4.0])
    for one in samples(client, count=40):
        assert one.info.probability == pytest.approx(expected[one.data[0][0]])


def test_prioritized_draws_by_weight(serve):
    client = serve(table(sampler="prioritized"))
    insert(client, range(2), priorities=[1.0, 9.0])
    counts = collections.Counter(values(client, count=400))
    assert 320 < counts[1] < 396


def test_uniform_does_not_look_at_priorities(serve):
    client = serve(table(sampler="uniform"))
    insert(client, range(2), priorities=[1.0, 1000.0])
    counts = collections.Counter(values(client, count=400))
    assert 130 < counts[0] < 270


def test_priority_zero_is_never_drawn(serve):
    client = serve(table(sampler="prioritized"))
    insert(client, range(3), priorities=[0.0, 1.0, 0.0])
    assert set(values(client, count=100)) == {1}


def test_all_priorities_zero_is_uniform(serve):
    client = serve(table(sampler="prioritized"))
    insert(client, range(2), priorities=[0.0, 0.0])
    got = samples(client, count=100)
    assert {one.data[0][0] for one in got} == {0, 1}
    assert {one.info.probability for one in got} == {0.5}


def test_exponent_zero_leaves_out_priority_zero(serve):
    client = serve(table(sampler=("prioritized", 0.0)))
    insert(client, range(3), priorities=[0.0, 1.0, 100.0])
    counts = collections.Counter(values(client, count=300))
    assert set(counts) == {1, 2}
    assert 90 < counts[1] < 210


def test_new_priorities_move_a_max_heap(serve):
    client = serve(table(sampler="max_heap"))
    insert(client, range(3), priorities=[1.0, 2.0, 3.0])
    assert values(client) == [2]
    keys = keys_by_value(client)
    client.mutate_priorities("t", updates={keys[2]: 0.5})
    assert values(client) == [1]


def test_new_priorities_move_a_min_heap(serve):
    client = serve(table(sampler="min_heap"))
    insert(client, range(3), priorities=[1.0, 2.0, 3.0])
    client.mutate_priorities("t", updates={keys_by_value(client)[0]: 5.0})
    assert values(client) == [1]


@pytest.mark.parametrize("sampler, first", [("fifo", 0), ("lifo", 2)])
def test_new_priorities_do_not_move_fifo_and_lifo(serve, sampler, first):
    client = serve(table(sampler=sampler))
    insert(client, range(3))
    client.mutate_priorities("t", updates={keys_by_value(client)[first]: 100.0})
    assert values(client) == [first]


@pytest.mark.parametrize("sampler", ["min_heap", "max_heap"])
def test_ties_of_heaps_go_to_the_oldest(serve, sampler):
    client = serve(table(sampler=sampler))
    insert(client, range(4), priorities=[7.0] * 4)
    assert values(client) == [0]


@pytest.mark.parametrize("sampler", ["min_heap", "max_heap"])
def test_an_update_renews_an_item_among_ties(serve, sampler):
    client = serve(table(sampler=sampler))
    insert(client, range(3), priorities=[7.0] * 3)
    client.mutate_priorities("t", updates={keys_by_value(client)[0]: 7.0})
    assert values(client) == [1]


def test_heaps_take_negative_priorities(serve):
    client = serve(table("low", sampler="min_heap"), table("high", sampler="max_heap"))
    for i, priority in enumerate([-1.0, -5.0, 2.0]):
        client.insert(i, {"low": priority, "high": priority})
    assert values(client, "low") == [1]
    assert values(client, "high") == [2]


@pytest.mark.parametrize("remover, deleted, kept", [
    ("fifo", 1, {2, 3, 4}), ("lifo", 2, {0, 1, 3}), ("min_heap", 1, {0, 2, 4}),
    ("max_heap", 0, {1, 2, 3}),
])
def test_removers_forget_deleted_items(serve, remover, deleted, kept):
    client = serve(table(sampler="uniform", remover=remover, max_size=3))
    insert(client, [0, 1, 2], priorities=[5.0, 1.0, 3.0])
    client.mutate_priorities("t", deletes=[keys_by_value(client, count=60)[deleted]])
    insert(client, [3], priorities=[2.0])
    assert set(values(client, count=60)) == {0, 1, 2, 3} - {deleted}
    insert(client, [4], priorities=[4.0])
    assert set(values(client, count=60)) == kept


def test_reset_empties_selectors(serve):
    client = serve(*[table(kind, sampler=kind) for kind in SELECTORS])
    for kind in SELECTORS:
        client.insert(1, {kind: 1.0})
        client.reset(kind)
        client.insert(2, {kind: 1.0})
        assert values(client, kind, count=5) == [2] * 5


def test_heaps_are_made_without_arguments():
    assert reverb.selectors.MinHeap() is not None
    assert reverb.selectors.MaxHeap() is not None


def test_prioritized_wants_an_exponent():
    with pytest.raises(TypeError):
        reverb.selectors.Prioritized()


def test_prioritized_by_name():
    reverb.selectors.Prioritized(priority_exponent=0.7)
