# SPDX-License-Identifier: Apache-2.0
"""reprise.Writer, Reverb's older writer."""

import gc
import logging
import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

import reprise
from reprise import _core, errors

SPEC = {"x": reprise.TensorSpec([2], np.float32), "y": reprise.TensorSpec([], np.int64)}


def table(name, **options):
    return reprise.Table(
        name,
        reprise.selectors.Fifo(),
        reprise.selectors.Fifo(),
        1000,
        reprise.rate_limiters.MinSize(1),
        **options,
    )


@pytest.fixture(params=["process", "tcp", "child"])
def client(request):
    tables = [table("t"), table("s", signature=SPEC), reprise.Table.queue("q", 2)]
    where = "child" if request.param == "child" else "process"
    with reprise.Server(tables, where=where) as server:
        yield server.localhost_client(transport="tcp" if request.param == "tcp" else None)


def items(client, count, name="t"):
    return [s.data for s in client.sample(name, count, emit_timesteps=False)]


def size(client, name="t"):
    return client.server_info()[name].current_size


def test_items_of_the_latest_steps(client):
    with client.writer(max_sequence_length=3) as writer:
        keys = []
        for i in range(5):
            writer.append([i, np.full(2, i)])
            if i >= 2:
                keys.append(writer.create_item("t", num_timesteps=3, priority=float(i)))
    assert size(client) == 3
    assert len(set(keys)) == 3

    # a fifo table gives the oldest item every time
    for key, first in zip(keys, (0, 1, 2)):
        (sample,) = client.sample("t", emit_timesteps=False)
        assert (sample.info.key, sample.info.priority) == (key, first + 2.0)
        np.testing.assert_array_equal(sample.data[0], np.arange(first, first + 3))
        assert sample.data[1].shape == (3, 2)
        client.mutate_priorities("t", deletes=[key])


def test_steps_are_given_one_by_one(client):
    with client.writer(4) as writer:
        for i in range(4):
            writer.append({"b": i, "a": i * 1.5})
        writer.create_item("t", 4, 1.0)
    (steps,) = client.sample("t")
    assert [[float(x) for x in step.data] for step in steps] == [
        [i * 1.5, i] for i in range(4)
    ]
    assert len({step.info for step in steps}) == 1


@pytest.mark.parametrize("chunk_length", [None, 1, 2, 5])
@pytest.mark.parametrize("delta_encoded", [False, True])
def test_chunks_do_not_change_the_data(client, chunk_length, delta_encoded):
    frames = np.random.default_rng(1).integers(0, 255, (8, 6), np.uint8)
    with client.writer(5, delta_encoded, chunk_length) as writer:
        for i, frame in enumerate(frames):
            writer.append(frame)
            if i >= 4:
                writer.create_item("t", 5, 1.0)
    for i in range(4):
        (sample,) = client.sample("t", emit_timesteps=False)
        np.testing.assert_array_equal(sample.data[0], frames[i : i + 5])
        client.mutate_priorities("t", deletes=[sample.info.key])


def test_nothing_is_inserted_without_an_item(client):
    with client.writer(3) as writer:
        writer.append(1)
        writer.append(2)
    assert size(client) == 0


def test_an_item_may_go_to_several_tables(client):
    with client.writer(1) as writer:
        writer.append({"x": np.zeros(2, np.float32), "y": np.int64(1)})
        writer.create_item("t", 1, 1.0)
        writer.create_item("s", 1, 1.0)
    assert (size(client), size(client, "s")) == (1, 1)


def test_flush_waits_until_items_are_inserted(client):
    writer = client.writer(10)
    for i in range(3):
        writer.append(i)
        writer.create_item("t", 1, 1.0)
        writer.flush()
        assert size(client) == i + 1
    writer.close()


def test_close_sends_pending_items(client):
    writer = client.writer(10)
    writer.append(1)
    writer.create_item("t", 1, 1.0)
    writer.close()
    assert size(client) == 1


def test_a_full_chunk_goes_out_by_itself(client):
    writer = client.writer(2, chunk_length=2)
    for i in range(2):
        writer.append(i)
        writer.create_item("t", 1, 1.0)
    deadline = time.monotonic() + 20
    while size(client) < 2:
        assert time.monotonic() < deadline
    writer.close()


def test_append_sequence(client):
    with client.writer(5) as writer:
        writer.append_sequence({"a": np.arange(4), "b": np.arange(8.0).reshape(4, 2)})
        writer.create_item("t", 3, 1.0)
        writer.append({"a": 9, "b": np.zeros(2)})
        writer.create_item("t", 2, 1.0)
    (a, b) = items(client, 1)[0]
    np.testing.assert_array_equal(a, [1, 2, 3])
    np.testing.assert_array_equal(b, np.arange(8.0).reshape(4, 2)[1:])


def test_append_sequence_of_strings(client):
    with client.writer(3) as writer:
        writer.append_sequence([np.array(["a", "bb", "ccc"])])
        writer.create_item("t", 3, 1.0)
    assert items(client, 1)[0][0].tolist() == [b"a", b"bb", b"ccc"]


@pytest.mark.parametrize(
    "sequence, text",
    [
        ([1], "AppendSequence called with scalar tensor at index 0."),
        ([np.zeros(2), 1.0], "scalar tensor at index 1"),
        ([np.zeros(2), np.zeros(3)], "tensors of non equal batch dimension"),
        ([], "AppendSequence called with empty data."),
        ({}, "empty data"),
    ],
)
def test_invalid_sequences_are_refused(client, sequence, text):
    writer = client.writer(3)
    with pytest.raises(ValueError, match=text):
        writer.append_sequence(sequence)
    writer.append_sequence([np.zeros((0, 2))])  # an empty sequence is accepted
    writer.append_sequence([np.zeros((2, 2))])
    writer.close()


@pytest.mark.parametrize(
    "options, text",
    [
        ((0,), r"max_sequence_length \(0\) must be a positive integer"),
        ((-3,), r"max_sequence_length \(-3\)"),
        ((2, False, 3), r"chunk_length \(3\) must be a positive integer le to max_sequence_"),
        ((2, False, 0), r"chunk_length \(0\)"),
        ((2, False, 1, 0), r"max_in_flight_items \(0\) must be a positive integer"),
    ],
)
def test_wrong_arguments(client, options, text):
    with pytest.raises(ValueError, match=text):
        client.writer(*options)


def test_any_number_in_flight(client):
    with client.writer(1, max_in_flight_items=None) as writer:
        for i in range(100):
            writer.append(i)
            writer.create_item("t", 1, 1.0)
    assert size(client) == 100


def test_wrong_items(client):
    writer = client.writer(2)
    text = "Argument `num_timesteps` is larger than number of buffered timesteps."
    with pytest.raises(ValueError, match=text):
        writer.create_item("t", 1, 1.0)
    writer.append({"x": np.zeros(2), "y": 1})
    with pytest.raises(ValueError, match=text):
        writer.create_item("t", 2, 1.0)
    with pytest.raises(ValueError, match="must be a positive integer"):
        writer.create_item("t", 0, 1.0)
    with pytest.raises(ValueError, match="`num_timesteps` must be <= `max_timesteps`"):
        writer.create_item("t", 3, 1.0)
    with pytest.raises(ValueError, match="`priority` must not be nan"):
        writer.create_item("t", 1, float("nan"))
    text = "Unable to CreateItem in table 's' because Append was called with a tensor signature"
    with pytest.raises(ValueError, match=text + ".*float64.*float32"):
        writer.create_item("s", 1, 1.0)
    for wrong in ((3, 1, 1.0), ("t", "one", 1.0), ("t", 1, "high")):
        with pytest.raises(TypeError):
            writer.create_item(*wrong)
    writer.close()
    assert size(client) == size(client, "s") == 0


def test_steps_must_be_alike(client):
    writer = client.writer(3)
    writer.append([1, np.zeros(2)])
    text = "Number of tensors per timestep was inconsistent. Previously it was 2, but is now 1"
    with pytest.raises(ValueError, match=text):
        writer.append([1])
    text = "Cannot concatenate tensors that have different data types. Got int64 and double"
    with pytest.raises(ValueError, match=text):
        writer.append([1.5, np.zeros(2)])
    text = r"at index 1 due to mismatched shapes.  Tensor 0 has shape: \[2\], .* shape: \[3\]"
    with pytest.raises(ValueError, match=text):
        writer.append([1, np.zeros(3)])
    with pytest.raises(ValueError, match="mismatched shapes"):
        writer.append_sequence([np.zeros(3, np.int64), np.zeros((3, 4))])
    with pytest.raises(TypeError, match="leaf '1'"):
        writer.append([1, None])
    with pytest.raises(ValueError):
        client.writer(1).append({})
    writer.append([2, np.ones(2)])
    writer.create_item("t", 2, 1.0)
    writer.close()
    np.testing.assert_array_equal(items(client, 1)[0][0], [1, 2])


def test_a_closed_writer(client):
    writer = client.writer(1)
    assert "closed: False" in repr(writer) and "max_timesteps=1" in repr(writer)
    writer.append(1)
    writer.close()
    assert "closed: True" in repr(writer)
    with pytest.raises(ValueError, match="close\\(\\) has already been called on Writer."):
        writer.close()
    with pytest.raises(ValueError, match="Cannot reuse already closed Writer"):
        writer.__enter__()
    for name, call in (
        ("Append", lambda: writer.append(1)),
        ("AppendSequence", lambda: writer.append_sequence([np.zeros(1)])),
        ("CreateItem", lambda: writer.create_item("t", 1, 1.0)),
        ("Flush", lambda: writer.flush()),
    ):
        text = f"Calling method {name} after Close has been called"
        with pytest.raises(RuntimeError, match=text):
            call()


def test_a_writer_that_is_dropped_warns_and_sends(client, caplog):
    writer = client.writer(1)
    writer.append(1)
    writer.create_item("t", 1, 1.0)
    with caplog.at_level(logging.WARNING, logger="reprise"):
        del writer
        gc.collect()
    assert "Writer-object deleted without calling .close explicitly." in caplog.text
    assert size(client) == 1


def fill_too_far(writer):
    """Creates two items more than their table takes."""
    for i in range(4):
        writer.append(i)
        writer.create_item("q", 1, 1.0)


@pytest.mark.parametrize("error", [KeyError, errors.DeadlineExceededError, KeyboardInterrupt])
def test_an_exception_ends_the_context_without_waiting(client, error, caplog):
    with pytest.raises(error), caplog.at_level(logging.WARNING, logger="reprise"):
        with client.writer(1) as writer:
            fill_too_far(writer)
            raise error("any")
    assert "Writer: an exception ended its `with`: " in caplog.text
    assert "not confirmed and dropped" in caplog.text
    with pytest.raises(ValueError, match="already been called"):
        writer.close()
    caplog.clear()
    del writer
    gc.collect()
    assert not caplog.text


def test_ctrl_c_ends_the_flush_of_the_context(client, caplog):
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        with client.writer(1) as writer:
            fill_too_far(writer)
            timer.start()
    timer.join()
    assert "2 items were not confirmed and dropped" in caplog.text
    assert "closed: True" in repr(writer)


def test_a_flush_that_must_wait_may_have_a_timeout(client):
    writer = client.writer(1)
    for i in range(4):
        writer.append(i)
        writer.create_item("q", 1, 1.0)
    with pytest.raises(errors.DeadlineExceededError):
        writer.flush(timeout=0.1)
    assert [int(d[0][0]) for d in items(client, 4, "q")] == [0, 1, 2, 3]
    writer.flush(timeout=120)
    writer.close()


def test_close_without_retry_times_out(client):
    writer = client.writer(1)
    for i in range(4):
        writer.append(i)
        writer.create_item("q", 1, 1.0)
    with pytest.raises(errors.DeadlineExceededError):
        writer.close(retry_on_unavailable=False, timeout=0.1)
    with pytest.raises(ValueError):
        writer.close()


def test_create_item_waits_for_an_item_in_flight(client):
    writer = client.writer(1, max_in_flight_items=1)
    with pytest.raises(errors.DeadlineExceededError):
        for i in range(100):
            writer.append(i)
            writer.create_item("q", 1, 1.0, timeout=0.1)
    first = [int(d[0][0]) for d in items(client, 2, "q")]
    assert first == [0, 1]
    del writer


def test_one_writer_and_many_threads(client):
    writer = client.writer(1)

    def work():
        for i in range(100):
            writer.append(i)
            writer.create_item("t", 1, 1.0)
            if i % 20 == 0:
                writer.flush()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    assert size(client) == 400


def test_arrays_are_copied_at_once(client):
    array = np.zeros(3)
    with client.writer(2) as writer:
        writer.append(array)
        array[:] = 7
        writer.append(array)
        writer.create_item("t", 2, 1.0)
    np.testing.assert_array_equal(items(client, 1)[0][0], [[0] * 3, [7] * 3])


def test_odd_arrays(client):
    base = np.arange(24.0).reshape(4, 6)
    odd = [base[::2, ::3], base.T, np.asfortranarray(base), base.astype(">f8"), base[:0]]
    for array in odd:
        with client.writer(1) as writer:
            writer.append(array)
            key = writer.create_item("t", 1, 1.0)
        np.testing.assert_array_equal(items(client, 1)[0][0][0], array)
        client.mutate_priorities("t", deletes=[key])


def test_large_steps(client):
    frame = np.random.default_rng(2).integers(0, 255, (210, 160, 3), np.uint8)
    with client.writer(2) as writer:
        writer.append(frame)
        writer.append(frame[::-1])
        writer.create_item("t", 2, 1.0)
    np.testing.assert_array_equal(items(client, 1)[0][0][1], frame[::-1])


def test_many_columns(client):
    with client.writer(1) as writer:
        writer.append({f"c{i:03}": i for i in range(100)})
        writer.create_item("t", 1, 1.0)
    assert [int(c[0]) for c in items(client, 1)[0]] == list(range(100))


def test_no_references_are_left(client):
    array, other = np.zeros(4), object()
    writer = client.writer(2)
    writer.append([array, 1])
    before = sys.getrefcount(array), sys.getrefcount(other)
    for _ in range(300):
        writer.append([array, 1])
        writer.create_item("t", 1, 1.0)
        with pytest.raises(TypeError):
            writer.append([array, other])
        with pytest.raises(ValueError):
            writer.append([array])
    writer.close()
    assert (sys.getrefcount(array), sys.getrefcount(other)) == before


def test_the_core_takes_a_client():
    with pytest.raises(TypeError):
        _core.StepWriter(None, 1)
    client = _core.Client.local(_core.Store())
    with pytest.raises(ValueError, match="max_sequence_length"):
        _core.StepWriter(client, 0)
    with pytest.raises(ValueError, match="max_in_flight"):
        _core.StepWriter(client, 1, max_in_flight=-1)
    writer = _core.StepWriter(client, 1)
    assert writer.insert.__doc__
    with pytest.raises(TypeError):
        writer.insert(1)
    assert writer.steps == 0
