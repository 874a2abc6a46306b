# SPDX-License-Identifier: Apache-2.0
"""The trajectory writer: steps, items, timeouts, episodes, close."""

import gc
import logging
import sys
import threading

import numpy as np
import pytest

from events import assert_interrupted, wait_until
from trajectory_place import blocked, fill, local, place, waits, WAIT_MS, writer  # noqa: F401: fixtures

from reprise import _core, errors
from reprise.trajectory_writer import TrajectoryColumn, TrajectoryWriter


def test_a_writer_that_was_not_initialised():
    writer = TrajectoryWriter.__new__(TrajectoryWriter)
    for call in (lambda: writer._add_column(("a",)), lambda: writer.append({"a": 1}),
                 lambda: writer.create_item("t", 1.0, []), writer.flush,
                 lambda: writer.history):
        with pytest.raises(RuntimeError):
            call()
    assert writer.episode_steps == 0 and writer.pending == 0


def test_a_writer_may_be_initialised_after_a_failure(local, tmp_path):
    nobody = _core.Client(f"unix:{tmp_path}/nobody")
    writer = TrajectoryWriter.__new__(TrajectoryWriter)
    before = sys.getrefcount(nobody)
    for _ in range(5):
        with pytest.raises(errors.DeadlineExceededError):
            writer.__init__(nobody, 1, timeout=0.01)
    assert sys.getrefcount(nobody) == before
    writer.__init__(local.client, 1)
    with pytest.raises(RuntimeError, match="initialised once"):
        writer.__init__(local.client, 1)
    writer.append({"a": 1})


def test_an_unused_column_does_not_shift_the_others(writer):
    writer._add_column(("stray",))
    writer.append({"a": 1.0, "b": 2})
    assert writer.history["a"][-1].numpy() == 1.0 and writer.history["b"][-1].numpy() == 2


def test_the_options_of_a_column_outlive_a_failure(writer, monkeypatch):
    writer.configure(("a",), num_keep_alive_refs=2, max_chunk_length=1)
    with monkeypatch.context() as patched:
        patched.setattr(TrajectoryWriter, "_add_column", lambda *args: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            writer.append({"a": 1.0})
    for i in range(3):
        writer.append({"a": float(i)})
    with pytest.raises(RuntimeError, match="expired"):
        writer.history["a"][:].numpy()


@pytest.mark.parametrize("table", ["t\0", b"t\0x", "\0"])
def test_a_table_name_with_a_null_character(writer, table):
    writer.append({"a": 1.0})
    with pytest.raises(ValueError, match="null character"):
        writer.create_item(table, 1.0, writer.history["a"][:])


def test_episode_steps_waits_for_an_append_in_another_thread(writer):
    big, stop, seen = np.zeros(1 << 20, np.uint8), threading.Event(), []

    def ask():
        while not stop.is_set():
            seen.append(writer.episode_steps)

    thread = threading.Thread(target=ask)
    thread.start()
    for _ in range(20):
        writer.append({"a": big})
    stop.set()
    thread.join(120)
    assert seen == sorted(seen) and writer.episode_steps == 20


def test_partial_steps(writer):
    writer.append({"a": 1}, partial_step=True)
    assert writer.episode_steps == 0 and len(writer.history["a"]) == 1
    writer.append({"b": 10}, partial_step=True)
    assert writer.history["b"][-1].numpy() == 10
    writer.append({"a": None, "c": 100})

    assert writer.episode_steps == 1
    writer.append({"a": 2, "b": 20, "c": 200})
    for name, values in (("a", [1, 2]), ("b", [10, 20]), ("c", [100, 200])):
        assert writer.history[name][:].numpy().tolist() == values


def test_a_field_is_given_once_in_a_step(writer):
    writer.append({"a": 1, "b": 1})
    writer.append({"a": 2}, partial_step=True)

    text = (r"Field \('a',\) has already been set in the active step by previous \(partial\) "
            r"append call and thus must be omitted or set to None but got: 7")
    for partial in (True, False):
        with pytest.raises(ValueError, match=text):
            writer.append({"a": 7}, partial_step=partial)
    writer.append({"b": 2})
    writer.append({"a": 3, "b": 3})

    assert writer.history["a"][:].numpy().tolist() == [1, 2, 3]
    assert writer.history["b"][:].numpy().tolist() == [1, 2, 3]


def test_items_of_an_open_step(place):
    writer = place.writer()
    writer.append({"a": 1}, partial_step=True)
    writer.create_item("t", 1.0, [writer.history["a"][:]])
    writer.flush()
    writer.append({"b": 5})

    assert place.read()[0][0].tolist() == [1] and writer.episode_steps == 1


def test_an_episode_may_end_in_an_open_step(writer):
    writer.append({"a": 1}, partial_step=True)
    writer.end_episode()
    writer.append({"a": 5})

    assert writer.episode_steps == 1 and writer.history["a"][:].numpy().tolist() == [5]


def test_a_step_may_be_opened_without_a_value(writer):
    writer.append({}, partial_step=True)
    writer.append({"a": 1, "b": None}, partial_step=True)
    writer.append({"b": 10})
    writer.append({"a": 2, "b": 20})

    assert writer.episode_steps == 2
    assert writer.history["a"][:].numpy().tolist() == [1, 2]
    assert writer.history["b"][:].numpy().tolist() == [10, 20]


def test_partial_step_is_a_keyword(writer):
    with pytest.raises(TypeError, match="positional"):
        writer.append({"a": 1}, True)
    with pytest.raises(TypeError):
        writer.append()
    with pytest.raises(TypeError):
        writer.append({"a": 1}, other=True)
    writer.append(data={"a": 1}, partial_step=False)
    assert writer.episode_steps == 1


BAD_VALUES = [
    ({"a": 1.0}, r"Tensor of wrong dtype provided for column \('a',\). Got double but expected "
                 r"float."),
    ({"a": 1}, r"Got int64 but expected float."),
    ({"a": "x"}, r"Got string but expected float."),
    ({"a": np.zeros(1, np.float32)}, r"Tensor of incompatible shape provided for column "
                                     r"\('a',\). Got \[1\] which is incompatible with \[\]."),
    ({"b": np.zeros((2, 4), np.uint8)}, r"column \('b',\). Got \[2,4\] which is incompatible "
                                        r"with \[2,3\]."),
    ({"b": np.zeros(2, np.uint8)}, r"Got \[2\] which is incompatible with \[2,3\]."),
    ({"b": np.zeros((2, 3), np.int8)}, r"Got int8 but expected uint8."),
    ({"c": [1, np.int32(1)]}, r"column \('c', 1\). Got int32 but expected double."),
    ({"new": np.zeros((1,) * 9)}, "dimensions"),
]


@pytest.mark.parametrize("step,text", BAD_VALUES, ids=[t for _, t in BAD_VALUES])
def test_values_that_do_not_fit_their_column(writer, step, text):
    writer.append({"a": np.float32(1), "b": np.zeros((2, 3), np.uint8), "c": [1, 2.5]})
    before = len(writer.history["a"])

    with pytest.raises(ValueError, match=text):
        writer.append(step)

    assert writer.episode_steps == 1 and len(writer.history["a"]) == before
    writer.append({"a": np.float32(2), "b": np.ones((2, 3), np.uint8), "c": [2, 3.5]})
    assert writer.history["a"][:].numpy().tolist() == [1, 2]
    assert writer.history["c"][1][:].numpy().tolist() == [2.5, 3.5]


@pytest.mark.parametrize("value", [object(), {1, 2}, 2 ** 70, np.datetime64("2020-01-01"),
                                   np.array([object()])], ids=repr)
def test_values_without_a_dtype(writer, value):
    with pytest.raises((TypeError, ValueError)):
        writer.append({"e": value})
    writer.append({"e": 1})
    assert writer.history["e"][-1].numpy() == 1


def test_a_refused_step_changes_nothing(place):
    writer = place.writer()
    writer.append({"a": 1, "b": 1})
    with pytest.raises(ValueError):
        writer.append({"a": 2, "b": 2.0})
    writer.append({"a": 3, "b": 3})

    writer.create_item("t", 1.0, {k: writer.history[k][:] for k in "ab"})
    writer.flush()

    assert [column.tolist() for column in place.read()[0]] == [[1, 3], [1, 3]]


def test_leaves_other_than_columns_are_refused(writer):
    fill(writer, 1)
    for bad in ({"a": 1}, {"a": None, "b": writer.history["b"][:]}, {"a": writer.history["a"]},
                [writer.history["a"][:], np.zeros(3)], 5):
        with pytest.raises(TypeError, match="All leaves of `trajectory` must be "
                                            "`TrajectoryColumn` but got"):
            writer.create_item("t", 1.0, bad)


@pytest.mark.parametrize("empty", [{}, [], (), {"a": {}}], ids=repr)
def test_an_empty_trajectory(writer, empty):
    fill(writer, 1)
    with pytest.raises(ValueError, match="trajectory must not be empty."):
        writer.create_item("t", 1.0, empty)


def test_priorities(place):
    writer = place.writer()
    fill(writer, 1)
    column = writer.history["a"][:]

    with pytest.raises(ValueError, match="`priority` must not be nan."):
        writer.create_item("t", float("nan"), [column])
    for bad in ("x", None, [1.0], 1j):
        with pytest.raises(TypeError):
            writer.create_item("t", bad, [column])
    for good in (1, 0, 2.5, np.float32(1.5), np.int64(3), True):
        writer.create_item("t", good, [column])
    writer.flush()
    assert place.size() == 6


def test_an_unknown_table(place):
    writer = place.writer()
    fill(writer, 1)

    for _ in range(2):
        with pytest.raises(errors.NotFoundError, match="Priority table nope was not found"):
            writer.create_item("nope", 1.0, [writer.history["a"][:]])
    writer.create_item("t", 1.0, [writer.history["a"][:]])
    writer.flush()
    assert place.size() == 1


def test_tables_are_named_by_text(place):
    writer = place.writer()
    fill(writer, 1)
    column = writer.history["a"][:]

    for bad in (5, None, ["t"]):
        with pytest.raises(TypeError):
            writer.create_item(bad, 1.0, [column])
    writer.create_item(b"t", 1.0, [column])
    writer.create_item(table="t", priority=1.0, trajectory=[column])
    writer.create_item("t", trajectory=[column], priority=1.0)
    writer.flush()
    assert place.size() == 3
    for args, kwargs in ((("t",), {}), (("t", 1.0, [column], 4), {}),
                         (("t", 1.0, [column]), {"table": "t"}), ((), {"other": 1})):
        with pytest.raises(TypeError):
            writer.create_item(*args, **kwargs)


def test_rows_of_other_dtypes_and_shapes(writer):
    writer.append({"f": np.float32(1), "i": 1, "v": np.zeros(2, np.float32)})
    h = writer.history

    def column(*names):
        return TrajectoryColumn([cell for name in names for cell in h[name][:]])

    with pytest.raises(ValueError, match=r"Error in column 0: Column references tensors with "
                                         r"different dtypes: float \(index 0\) != int64 "
                                         r"\(index 1\)."):
        writer.create_item("t", 1.0, [column("f", "i")])
    with pytest.raises(ValueError, match=r"Error in column 1: Column references tensors with "
                                         r"incompatible shapes: \[\] \(index 0\) not "
                                         r"compatible with \[2\] \(index 1\)."):
        writer.create_item("t", 1.0, [h["i"][:], column("f", "v")])
    with pytest.raises(ValueError):
        column("f", "v").numpy()


def test_signatures(place):
    writer = place.writer()
    for i in range(2):
        writer.append({"a": np.float32(i), "b": i, "c": float(i)})
    h = writer.history

    for bad in ({"a": h["a"][-2:]}, {"a": h["a"][-1:], "b": h["b"][-1]},
                {"a": h["c"][-2:], "b": h["b"][-1]}, {"a": h["a"][-2:], "b": h["b"][-1:]},
                {"a": h["a"][-2:], "b": h["a"][-1]},
                [h["a"][-2:], h["b"][-1], h["c"][-1]]):
        with pytest.raises(ValueError, match="Unable to create item in table 'signed' since "
                                             "the provided trajectory is inconsistent with the "
                                             "table signature"):
            writer.create_item("signed", 1.0, bad)
    writer.create_item("signed", 1.0, {"a": h["a"][-2:], "b": h["b"][-1]})
    writer.flush()
    assert place.size("signed") == 1


def test_signature_mismatches_are_named(place):
    writer = place.writer()
    for i in range(2):
        writer.append({"a": np.float32(i), "b": i})
    h = writer.history

    with pytest.raises(ValueError, match="The trajectory has 1 columns but the table signature "
                                         "has 2 columns."):
        writer.create_item("signed", 1.0, [h["a"][:]])
    with pytest.raises(ValueError) as caught:
        writer.create_item("signed", 1.0, {"a": h["a"][-1:], "b": h["b"][-1]})
    text = str(caught.value)
    assert "The table expects column 'a' to be a float [2] tensor but got a float [1] tensor." in text
    assert ("The table signature is:\n\t0: Tensor<name: 'a', dtype: float, shape: [2]>, "
            "1: Tensor<name: 'b', dtype: int64, shape: []>") in text
    assert ("The provided trajectory signature is:\n\t0: Tensor<name: 'a', dtype: float, "
            "shape: [1]>, 1: Tensor<name: 'b', dtype: int64, shape: []>") in text


def test_without_validation_the_server_refuses(place):
    writer = place.writer(validate=False)
    fill(writer, 1)
    writer.create_item("signed", 1.0, [writer.history["a"][:]])

    with pytest.raises((ValueError, errors.StatusError)):
        writer.flush()
    assert writer.pending == 0 and place.size("signed") == 0


def test_columns_of_another_writer(local):
    one, two = local.writer(), local.writer()
    fill(one, 1)
    fill(two, 1)

    with pytest.raises(ValueError, match="of the writer that creates the item"):
        one.create_item("t", 1.0, [two.history["a"][:]])


def test_flush_waits_for_the_server(place):
    writer = place.writer(refs=4)
    writer.configure(("a",), num_keep_alive_refs=4, max_chunk_length=4)
    writer.append({"a": 1})
    writer.create_item("t", 1.0, [writer.history["a"][:]])
    assert writer.pending == 1 and place.size() == 0

    writer.flush(block_until_num_items=1)
    assert writer.pending == 1
    writer.flush()

    assert writer.pending == 0 and place.size() == 1
    assert "no item" in writer.why()


def test_flush_has_a_timeout(place):
    with blocked(place) as writer:
        with pytest.raises(errors.DeadlineExceededError,
                           match="Flush call did not complete within provided timeout of "
                                 "0:00:00.100000"):
            writer.flush(timeout_ms=100)
        for seconds, text in ((0.1, "0:00:00.100000"), (0, "0:00:00: ")):
            with pytest.raises(errors.DeadlineExceededError, match=f"timeout of {text}"):
                writer.flush(timeout=seconds)
        writer.flush(block_until_num_items=2, timeout_ms=0)
        assert 0 < writer.pending <= 2 and "unconfirmed" in writer.why()

        place.read(2, "small")
        writer.flush(timeout_ms=WAIT_MS)
        assert writer.pending == 0


def test_end_episode_has_a_timeout_and_then_changes_nothing(place):
    with blocked(place) as writer:
        for timeout in (50, 0, -1):
            with pytest.raises(errors.DeadlineExceededError,
                               match="End episode call did not complete within provided "):
                writer.end_episode(timeout_ms=timeout)
            assert writer.episode_steps == 4 and len(writer.history["a"]) == 4
        with pytest.raises(errors.DeadlineExceededError, match="timeout of 0:00:00.050000"):
            writer.end_episode(timeout=0.05)
        assert writer.episode_steps == 4

        place.read(2, "small")
        writer.end_episode(timeout_ms=WAIT_MS)
        assert writer.episode_steps == 0 and len(writer.history["a"]) == 0


@pytest.mark.parametrize("call", ["flush", "end_episode"])
def test_arguments_of_waits(writer, call):
    method = getattr(writer, call)
    with pytest.raises(TypeError):
        method(0, "x")
    with pytest.raises(TypeError):
        method(other=1)
    if call == "flush":
        with pytest.raises(ValueError, match="block_until_num_items must be >= 0, got -1"):
            method(-1)
        for bad in ("x", 0.5):
            with pytest.raises(TypeError):
                method(bad)
    with pytest.raises(TypeError, match="give timeout, in seconds, or timeout_ms, not both"):
        method(timeout_ms=1, timeout=1)
    with pytest.raises(ValueError, match="timeout must be None or >= 0 seconds, got -1"):
        method(timeout=-1)
    method(timeout_ms=None)
    method(timeout=None)


def test_episodes(place):
    writer = place.writer()
    fill(writer, 3)
    writer.create_item("t", 1.0, [writer.history["a"][:]])
    writer.end_episode()

    assert writer.episode_steps == 0 and place.size() == 1 and len(writer.history["a"]) == 0
    with pytest.raises(IndexError):
        writer.history["a"][0]
    with pytest.raises(ValueError):
        writer.history["a"][-1]
    fill(writer, 2, start=10)
    assert writer.episode_steps == 2 and writer.history["a"][:].numpy().tolist() == [10, 11]


def test_an_episode_may_keep_its_history(place):
    writer = place.writer()
    fill(writer, 2)
    writer.end_episode(clear_buffers=False)
    assert writer.episode_steps == 0 and len(writer.history["a"]) == 2
    fill(writer, 2, start=10)

    assert writer.episode_steps == 2 and writer.history["a"][0].numpy() == 0
    writer.create_item("t", 1.0, [writer.history["a"][:]])
    writer.flush()
    assert place.read()[0][0].tolist() == [0, 1, 10, 11]


def test_configure_checks_its_arguments(writer):
    for refs, length, text in (
            (0, 1, r"num_keep_alive_refs \(0\) must be a positive integer"),
            (1, 2, r"max_chunk_length \(2\) must be None or a positive integer <= "
                   r"num_keep_alive_refs \(1\)"),
            (1, 0, r"max_chunk_length \(0\) must be")):
        with pytest.raises(ValueError, match=text):
            writer.configure(("a",), num_keep_alive_refs=refs, max_chunk_length=length)
    with pytest.raises(ValueError, match="codec"):
        writer.configure(("a",), num_keep_alive_refs=1, max_chunk_length=1, codec="gzip")
    with pytest.raises(TypeError):
        writer.configure(("a",), num_keep_alive_refs=1)
    with pytest.raises(TypeError):
        writer.configure(("a",), 3, 4)


def test_configure_a_column_that_exists(writer):
    writer.configure(("a",), num_keep_alive_refs=1, max_chunk_length=None)
    fill(writer, 3)
    with pytest.raises(errors.StatusError, match="rows already") as caught:
        writer.configure(("a",), num_keep_alive_refs=4, max_chunk_length=2)
    assert isinstance(caught.value, RuntimeError)
    with pytest.raises(RuntimeError, match="expired"):
        writer.history["a"][-2:].numpy()

    writer.end_episode()
    writer.configure(("a",), num_keep_alive_refs=40, max_chunk_length=2)
    fill(writer, 50)
    assert writer.history["a"][-40:].numpy().tolist() == list(range(10, 50))


def test_a_chunk_length_is_kept(place):
    writer = place.writer(refs=6)
    writer.configure(("a",), num_keep_alive_refs=6, max_chunk_length=3)
    sizes = []
    for i in range(6):
        writer.append({"a": i})
        writer.create_item("t", 1.0, [writer.history["a"][-1:]])
        wait_until(lambda: writer.pending <= (i + 1) % 3, "the chunk")
        sizes.append(writer.pending)
    assert sizes == [1, 2, 0, 1, 2, 0]


def test_close_ends_a_writer(place):
    writer = place.writer()
    fill(writer, 3)
    writer.close()
    writer.close()

    assert writer.episode_steps == 3 and writer.pending == 0
    for call in (lambda: writer.append({"a": np.float32(1)}), writer.flush, writer.end_episode,
                 lambda: writer.create_item("t", 1.0, [writer.history["a"][-1:]]), writer.why):
        with pytest.raises(RuntimeError, match="TrajectoryWriter::Close has been called."):
            call()


def test_a_writer_that_is_dropped_lets_its_items_go(place):
    writer = place.writer(refs=100)
    writer.configure(("a",), num_keep_alive_refs=100, max_chunk_length=100)
    writer.append({"a": 1})
    writer.create_item("t", 1.0, [writer.history["a"][:]])
    del writer
    gc.collect()
    assert place.size() == 0


def test_the_context_manager_flushes(place):
    with place.writer() as writer:
        fill(writer, 1)
        writer.create_item("t", 1.0, [writer.history["a"][:]])
    assert place.size() == 1
    fill(writer, 1)

    writer.create_item("t", 1.0, [writer.history["a"][:]])  # it is still open
    writer.flush()
    assert place.size() == 2


ENDS = [KeyError, errors.DeadlineExceededError, errors.StatusError, KeyboardInterrupt, SystemExit]


@pytest.mark.parametrize("error", ENDS)
def test_an_exception_ends_the_context_without_waiting(place, error, caplog):
    """Whatever exception ends the block, the writer does not wait: the table is full for ever."""
    with pytest.raises(error), caplog.at_level(logging.WARNING, logger="reprise"):
        with blocked(place) as blocked_writer, blocked_writer as writer:
            writer.flush(block_until_num_items=2)
            raise error("any")
    assert writer.pending == 0
    assert caplog.messages == ["TrajectoryWriter: an exception ended its `with`: 2 items were not "
                               "confirmed and dropped"]
    with pytest.raises(errors.StatusError, match="Close has been called"):
        writer.append({"a": 5})
    assert place.size("small") == 2


def test_an_exception_after_all_is_confirmed_logs_nothing(place, caplog):
    with pytest.raises(KeyError), caplog.at_level(logging.WARNING, logger="reprise"):
        with place.writer() as writer:
            fill(writer, 1)
            writer.create_item("t", 1.0, [writer.history["a"][:]])
            writer.flush()
            raise KeyError("any")
    assert not caplog.messages and place.size() == 1


def test_one_dropped_item_is_logged_in_the_singular(place, caplog):
    with pytest.raises(RuntimeError, match="nope"), place.writer(refs=9) as writer:
        writer.configure(("a",), num_keep_alive_refs=9, max_chunk_length=9)
        fill(writer, 1)
        writer.create_item("t", 1.0, [writer.history["a"][:]])
        place.client.reset("nope")
    assert place.size() == 0
    assert "1 item was not confirmed and dropped" in caplog.text


@pytest.mark.parametrize("where", ["body", "end"])
def test_ctrl_c_ends_a_context_that_waits(place, where, caplog):
    """Ctrl-C in a flush of the block, or in the flush at its end: after that, the writer does not
    wait again."""
    seen = []

    def use():
        with blocked(place) as blocked_writer, blocked_writer as writer:
            seen.append(writer)
            if where == "body":
                writer.flush()

    assert_interrupted(use, lambda: waits(place))
    assert "2 items were not confirmed and dropped" in caplog.text
    assert seen[0].pending == 0


def test_bounds_make_create_item_wait(place):
    writer = place.writer(refs=1, max_items=3)
    for i in range(5):
        writer.append({"a": i})
        if i < 4:
            writer.create_item("small", 1.0, [writer.history["a"][-1:]])
    done = threading.Event()

    def create():
        writer.create_item("small", 1.0, [writer.history["a"][-1:]])
        done.set()

    writer.append({"a": 9})
    writer.create_item("small", 1.0, [writer.history["a"][-1:]])
    thread = threading.Thread(target=create)
    thread.start()
    assert not done.wait(0.1)
    assert [columns[0].tolist() for columns in place.read(2, "small")] == [[0], [1]]
    assert done.wait(WAIT_MS / 1000)
    thread.join()
    writer.close()


@pytest.mark.parametrize("options", [{"refs": 0}, {"refs": -1}, {"max_items": -1},
                                     {"max_bytes": -1}, {"refs": 1 << 40}], ids=repr)
def test_bad_options(local, options):
    with pytest.raises(ValueError, match="must be"):
        local.writer(**options)


def test_a_writer_to_an_absent_server_times_out(tmp_path):
    client = _core.Client(f"unix:{tmp_path}/nobody")

    with pytest.raises(errors.DeadlineExceededError):
        TrajectoryWriter(client, 1, timeout=0.05)
    writer = TrajectoryWriter(client, 1, validate=False)
    writer.append([1])
    writer.create_item("t", 1.0, [writer.history[0][:]])
    with pytest.raises(errors.DeadlineExceededError):
        writer.flush(timeout_ms=100)
    assert writer.pending == 1
