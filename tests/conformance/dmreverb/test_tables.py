# SPDX-License-Identifier: Apache-2.0
"""The behaviour of tables, with dm-reverb's client: order, eviction, priorities, rate limiters."""

import threading
import time

import numpy as np
import pytest
import reverb

# A call that takes longer than this is considered to wait.
A_WHILE_MS = 200


def insert(client, table, *numbers, priority=1.0):
    for number in numbers:
        client.insert([np.int64(number)], {table: priority})


def draw(client, table, count=1):
    """Draws `count` samples. Returns their numbers."""
    return [int(steps[0].data[0]) for steps in client.sample(table, count)]


def infos(client, table, count=1):
    return [steps[0].info for steps in client.sample(table, count)]


def keys_by_number(client, table, count):
    """Returns the key of each item, from enough samples to see all of them."""
    found = {}
    for _ in range(50):
        for steps in client.sample(table, 20):
            found[int(steps[0].data[0])] = steps[0].info.key
        if len(found) == count:
            return found
    raise AssertionError(f"{len(found)} of {count} items were ever drawn")


def test_fifo_gives_the_oldest(client, fresh):
    table = fresh("fifo")
    insert(client, table, 1, 2, 3)
    assert draw(client, table, 3) == [1, 1, 1]


def test_lifo_gives_the_newest(client, fresh):
    table = fresh("lifo")
    insert(client, table, 1, 2, 3)
    assert draw(client, table, 2) == [3, 3]


@pytest.mark.parametrize("table, best", [("max-heap", 2), ("min-heap", 3)])
def test_heaps_give_the_extreme(client, fresh, table, best):
    fresh(table)
    for number, priority in ((1, 0.5), (2, 7.0), (3, -2.5)):
        insert(client, table, number, priority=priority)
    [info] = infos(client, table)
    assert draw(client, table) == [best]
    assert info.probability == 1.0 and info.table_size == 3


def test_uniform_gives_all_with_equal_probability(client, fresh):
    table = fresh("uniform")
    insert(client, table, 1, 2, 3, 4)
    drawn = infos(client, table, 200)
    assert {i.probability for i in drawn} == {0.25}
    assert len({i.key for i in drawn}) == 4


def test_prioritized_gives_by_weight(client, fresh):
    table = fresh("prioritized")
    insert(client, table, 1, priority=1.0)
    insert(client, table, 3, priority=3.0)
    seen = {int(s[0].data[0]): s[0].info.probability for s in client.sample(table, 100)}
    assert seen == {1: pytest.approx(0.25), 3: pytest.approx(0.75)}


def test_prioritized_takes_an_exponent(client, fresh):
    table = fresh("softened")
    insert(client, table, 1, priority=1.0)
    insert(client, table, 2, priority=9.0)
    [info] = infos(client, table)
    assert info.probability == pytest.approx(0.25 if info.priority == 1.0 else 0.75)


def test_priority_zero_is_never_drawn_beside_others(client, fresh):
    table = fresh("prioritized")
    insert(client, table, 1, priority=0.0)
    insert(client, table, 2, priority=0.001)
    assert set(draw(client, table, 100)) == {2}


def test_all_priorities_zero_is_uniform(client, fresh):
    table = fresh("prioritized")
    insert(client, table, 1, 2, priority=0.0)
    drawn = infos(client, table, 100)
    assert {i.probability for i in drawn} == {0.5}
    assert len({i.key for i in drawn}) == 2


@pytest.mark.parametrize("table, kept", [("small", {3, 4, 5}), ("small-lifo", {1, 2, 3}),
                                         ("keeps-high", {2, 3, 5})])
def test_a_full_table_evicts(client, fresh, table, kept):
    """Removers may select the new item, too: a LIFO remover removes it at once."""
    fresh(table)
    for number, priority in ((1, 1.0), (2, 5.0), (3, 4.0), (4, 0.5), (5, 3.0)):
        insert(client, table, number, priority=priority)
    found = set()
    while client.server_info()[table].current_size:
        [[step]] = client.sample(table, 1)
        found.add(int(step.data[0]))
        client.mutate_priorities(table, deletes=[step.info.key])
    assert found == kept


def test_an_item_is_removed_after_max_times_sampled(client, fresh):
    table = fresh("thrice")
    insert(client, table, 1, 2)
    drawn = [(int(s[0].data[0]), s[0].info.times_sampled) for s in client.sample(table, 6)]
    assert drawn == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
    info = client.server_info()[table]
    assert info.current_size == 0 and info.num_unique_samples == 2


def test_a_queue_keeps_order_and_gives_each_once(client, fresh):
    table = fresh("queue")
    insert(client, table, 1, 2, 3, 4)
    assert draw(client, table, 2) == [1, 2]
    insert(client, table, 5, 6)
    assert draw(client, table, 4) == [3, 4, 5, 6]
    assert client.server_info()[table].current_size == 0


def test_a_stack_gives_the_newest_once(client, fresh):
    table = fresh("stack")
    insert(client, table, 1, 2, 3)
    assert draw(client, table, 1) == [3]
    insert(client, table, 4)
    assert draw(client, table, 3) == [4, 2, 1]


def test_a_full_queue_blocks_the_writer_until_a_sample(client, fresh):
    table = fresh("queue")
    writer = client.trajectory_writer(1)
    for number in range(5):
        writer.append([np.int64(number)])
        writer.create_item(table, 1.0, [writer.history[0][-1:]])
    with pytest.raises(reverb.DeadlineExceededError):
        writer.flush(timeout_ms=A_WHILE_MS)
    assert client.server_info()[table].current_size == 4
    assert draw(client, table) == [0]
    writer.flush(timeout_ms=10_000)
    assert draw(client, table, 4) == [1, 2, 3, 4]
    writer.close()


def test_a_flush_returns_when_few_enough_items_wait_for_a_full_queue(client, fresh):
    table = fresh("queue")
    writer = client.trajectory_writer(1)
    for number in range(6):
        writer.append([np.int64(number)])
        writer.create_item(table, 1.0, [writer.history[0][-1:]])
    writer.flush(block_until_num_items=2, timeout_ms=10_000)
    assert draw(client, table, 6) == [0, 1, 2, 3, 4, 5]
    writer.flush(timeout_ms=10_000)
    writer.close()


def test_a_blocked_writer_does_not_hold_up_others_on_the_same_client(client, fresh):
    fresh("queue", "uniform")
    writer = client.trajectory_writer(1)
    for number in range(50):
        writer.append([np.int64(number)])
        writer.create_item("queue", 1.0, [writer.history[0][-1:]])
    with pytest.raises(reverb.DeadlineExceededError):
        writer.flush(timeout_ms=A_WHILE_MS)
    insert(client, "uniform", 7)
    assert draw(client, "uniform") == [7]
    assert draw(client, "queue", 50) == list(range(50))
    writer.flush(timeout_ms=10_000)
    writer.close()


def test_samples_wait_for_the_smallest_size(client, fresh):
    table = fresh("min-size")
    insert(client, table, 1, 2)
    drawn = []
    reader = threading.Thread(target=lambda: drawn.extend(draw(client, table)), daemon=True)
    reader.start()
    time.sleep(A_WHILE_MS / 1000)
    assert drawn == []
    insert(client, table, 3)
    reader.join(120)
    assert drawn == [1]


def test_a_ratio_blocks_inserts_until_there_are_samples(client, fresh):
    """With two samples for each insert, a minimum size of two and an error buffer of two, the
    fourth insert has to wait for samples."""
    table = fresh("ratio")
    writer = client.trajectory_writer(1)
    for number in range(4):
        writer.append([np.int64(number)])
        writer.create_item(table, 1.0, [writer.history[0][-1:]])
    with pytest.raises(reverb.DeadlineExceededError):
        writer.flush(timeout_ms=A_WHILE_MS)
    assert client.server_info()[table].current_size == 3
    assert draw(client, table, 2) == [0, 0]
    writer.flush(timeout_ms=10_000)
    info = client.server_info()[table]
    assert info.current_size == 4
    assert info.rate_limiter_info.insert_stats.completed == 4
    assert info.rate_limiter_info.sample_stats.completed == 2
    writer.close()


def test_an_update_changes_the_priority_of_an_existing_key(client, fresh):
    table = fresh("prioritized")
    insert(client, table, 1, 2, priority=1.0)
    keys = keys_by_number(client, table, 2)
    client.mutate_priorities(table, updates={keys[1]: 3.0, 12345: 9.0})
    seen = {s[0].info.key: (s[0].info.priority, s[0].info.probability)
            for s in client.sample(table, 100)}
    assert seen == {keys[1]: (3.0, pytest.approx(0.75)), keys[2]: (1.0, pytest.approx(0.25))}


def test_deleted_items_are_gone(client, fresh):
    table = fresh("uniform")
    insert(client, table, 1, 2, 3)
    keys = keys_by_number(client, table, 3)
    client.mutate_priorities(table, deletes=[keys[2], 54321])
    assert client.server_info()[table].current_size == 2
    assert set(draw(client, table, 60)) == {1, 3}


def test_a_negative_priority_is_refused_by_a_prioritized_table(client, fresh):
    table = fresh("prioritized")
    insert(client, table, 1)
    [info] = infos(client, table)
    with pytest.raises(ValueError):
        client.mutate_priorities(table, updates={info.key: -1.0})
    assert draw(client, table) == [1]


def test_a_table_that_is_reset_is_empty_and_counts_from_zero(client, fresh):
    table = fresh("thrice")
    insert(client, table, 1, 2)
    draw(client, table, 2)
    client.reset(table)
    info = client.server_info()[table]
    assert info.current_size == 0
    assert info.num_episodes == info.num_deleted_episodes == info.num_unique_samples == 0
    assert info.rate_limiter_info.insert_stats.completed == 0
    assert info.rate_limiter_info.sample_stats.completed == 0
    insert(client, table, 9)
    assert draw(client, table) == [9]


@pytest.mark.parametrize("call", [
    lambda c: c.reset("nowhere"),
    lambda c: c.mutate_priorities("nowhere", updates={1: 1.0}),
    lambda c: c.mutate_priorities("nowhere", deletes=[1]),
    lambda c: next(c.sample("nowhere")),
    lambda c: c.insert([np.int64(1)], {"nowhere": 1.0}),
], ids=["reset", "update", "delete", "sample", "insert"])
def test_an_unknown_table_is_not_found(client, call):
    with pytest.raises((RuntimeError, ValueError), match="nowhere"):
        call(client)


def test_writers_and_readers_at_once(server, client, fresh):
    """Four writers and two readers, each with its own client: no item is lost, and no item is read
    that was not written."""
    table = fresh("uniform")
    wrong = []

    def write(base):
        own = reverb.Client(server.address)
        with own.trajectory_writer(2) as writer:
            for number in range(base, base + 100):
                writer.append([np.full((8,), number, np.int64)])
                writer.create_item(table, 1.0, [writer.history[0][-1:]])

    def read():
        own = reverb.Client(server.address)
        for sample in own.sample(table, 100, emit_timesteps=False):
            row = sample.data[0][0]
            if len(set(row.tolist())) != 1 or not 0 <= row[0] < 400:
                wrong.append(row)

    threads = [threading.Thread(target=write, args=(b,), daemon=True) for b in range(0, 400, 100)]
    threads += [threading.Thread(target=read, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(t.is_alive() for t in threads)
    assert wrong == []
    assert client.server_info()[table].current_size == 400
