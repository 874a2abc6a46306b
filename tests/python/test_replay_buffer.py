# SPDX-License-Identifier: Apache-2.0
"""reprise.ReplayBuffer, the buffer in one process."""

import doctest
import gc
import os
import pickle
import sys
import threading
import time
import zipfile

import numpy as np
import pytest
from events import LIMIT_S, Witness

import reprise
import reprise.replay_buffer
from reprise.free_memory import available_bytes
from reprise.replay_buffer import ReplayBuffer

SPEC = {"obs": ((3,), np.float32), "next_obs": ((3,), np.float32), "action": ((), np.int64),
        "reward": ((), np.float32), "done": ((), np.bool_)}


def rows(first, count):
    """Returns transitions whose values follow from their numbers."""
    n = np.arange(first, first + count)
    obs = (n[:, None] + np.array([0, 0.25, 0.5])).astype(np.float32)
    return {"obs": obs, "next_obs": obs + 1, "action": n, "reward": (n / 2).astype(np.float32),
            "done": n % 3 == 0}


def expect_rows(batch):
    """Checks that every sampled row has the values of its index."""
    for name, values in rows(0, int(batch["indices"].max()) + 1).items():
        np.testing.assert_array_equal(batch[name], values[batch["indices"]], err_msg=name)


def make(capacity=100, **options):
    return ReplayBuffer(capacity, SPEC, **{"seed": 1, "epsilon": 0.0, **options})


def test_docstrings_are_true():
    assert doctest.testmod(reprise.replay_buffer).failed == 0


def test_replay_buffer_is_exported_by_the_package():
    assert reprise.ReplayBuffer is ReplayBuffer


@pytest.mark.parametrize("alpha", [0.0, 0.6])
@pytest.mark.parametrize("size", [1, 7, 64, 250])
def test_rows_come_back_as_added(alpha, size):
    buffer = make(200, alpha=alpha)
    for first in range(0, 600, size):
        buffer.add(**rows(first, size))
        batch = buffer.sample(50)
        expect_rows(batch)
        assert batch["indices"].min() >= buffer.added - len(buffer)
    assert len(buffer) == 200
    assert buffer._check()


def test_one_transition_is_a_row():
    buffer = make()
    for i in range(5):
        buffer.add(**{k: v[0] for k, v in rows(i, 1).items()})
    buffer.add(obs=[5, 5.25, 5.5], next_obs=[6, 6.25, 6.5], action=5, reward=2.5, done=False)

    assert len(buffer) == 6
    expect_rows(buffer.sample(100))


def test_columns_by_position_by_name_and_as_a_dict():
    buffer = make()
    r = rows(0, 2)
    buffer.add(*r.values())
    buffer.add(rows(2, 2))
    r = rows(4, 2)
    buffer.add(r["obs"], r["next_obs"], done=r["done"], reward=r["reward"], action=r["action"])
    buffer.add(rows(6, 1), priorities=[2.0])

    assert len(buffer) == 7
    expect_rows(buffer.sample(200))


def test_stable_baselines_shapes_fit():
    """The actions of n vectorized environments have the shape (n, 1)."""
    buffer = make()
    r = rows(0, 4)
    buffer.add(r["obs"], r["next_obs"], r["action"].reshape(4, 1), r["reward"], r["done"])
    r = rows(4, 1)
    buffer.add(r["obs"], r["next_obs"], r["action"].reshape(1, 1), r["reward"], r["done"])

    expect_rows(buffer.sample(100))


def test_numbers_are_converted_within_their_kind():
    buffer = make()
    r = rows(0, 3)
    buffer.add(obs=r["obs"].astype(np.float64), next_obs=r["next_obs"].tolist(),
               action=r["action"].astype(np.int16), reward=r["reward"].astype(np.float16),
               done=r["done"])
    expect_rows(buffer.sample(20))
    with pytest.raises(TypeError, match="column 'action' has dtype int64; float64 cannot"):
        buffer.add(**{**r, "action": r["action"] / 2})


def test_views_that_are_not_contiguous_are_copied():
    buffer = make()
    r = {k: np.repeat(v, 2, axis=0)[::2] for k, v in rows(0, 6).items()}
    r["obs"] = np.asfortranarray(r["obs"])
    r["next_obs"] = r["next_obs"].astype(">f4")
    assert not r["reward"].flags.c_contiguous
    buffer.add(**r)
    expect_rows(buffer.sample(50))


@pytest.mark.parametrize("change, error, text", [
    ({"obs": np.zeros((2, 4), np.float32)}, ValueError, r"column 'obs': a row has shape \(3,\)"),
    ({"reward": np.zeros(3, np.float32)}, ValueError, "column 'reward' has 3 rows, column 'obs' has 2"),
    ({"surprise": 1}, TypeError, "'surprise', which is no column"),
    ({"action": None}, TypeError, "column 'action'"),
    ({"priorities": [1.0]}, ValueError, "there must be 2 priorities, got 1"),
    ({"priorities": [1.0, -2.0]}, ValueError, "finite and >= 0, got -2 at place 1"),
    ({"priorities": [np.nan, 1.0]}, ValueError, "finite and >= 0"),
])
def test_mistakes_in_add_are_named(change, error, text):
    buffer = make()
    with pytest.raises(error, match=text):
        buffer.add(**{**rows(0, 2), **change})
    assert len(buffer) == 0


def test_missing_and_repeated_columns_are_named():
    buffer = make()
    r = rows(0, 2)
    with pytest.raises(TypeError, match="nothing for column 'done'"):
        buffer.add(r["obs"], r["next_obs"], r["action"], r["reward"])
    with pytest.raises(TypeError, match="two values for column 'obs'"):
        buffer.add(r["obs"], **r)
    with pytest.raises(TypeError, match="got 6 values, there are 5"):
        buffer.add(*r.values(), 1)
    with pytest.raises(TypeError, match="nothing for column 'done'"):
        buffer.add({k: v for k, v in r.items() if k != "done"})
    with pytest.raises(TypeError, match="got 6 columns, there are 5"):
        buffer.add({**r, "more": r["obs"]})


class Box:
    """An object like a space of gymnasium."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, np.dtype(dtype)


@pytest.mark.parametrize("spec", [
    {"x": ((2,), np.float32)},
    {"x": np.zeros(2, np.float32)},
    {"x": reprise.TensorSpec((2,), np.float32)},
    {"x": Box((2,), np.float32)},
])
def test_specs_of_all_kinds(spec):
    assert ReplayBuffer(10, spec).columns == {"x": ((2,), np.dtype(np.float32))}


def test_spaces_of_an_environment():
    buffer = ReplayBuffer.from_spaces(10, Box((2, 2), np.uint8), Box((), np.int64), seed=1)
    obs = np.arange(4, dtype=np.uint8).reshape(2, 2)
    buffer.add(obs, obs + 1, 3, 1.0, True)

    batch = buffer.sample(2)
    np.testing.assert_array_equal(batch["next_obs"], [obs + 1] * 2)
    assert batch["done"].dtype == bool and batch["done"].all()


@pytest.mark.parametrize("arguments, error, text", [
    ({"capacity": 0}, ValueError, "capacity must be from 1 to 2"),
    ({"capacity": -3}, ValueError, "capacity must be >= 1, got -3"),
    ({"alpha": -1.0}, ValueError, "alpha must be finite and >= 0, got -1"),
    ({"epsilon": -1.0}, ValueError, "epsilon"),
    ({"spec": {}}, ValueError, "from 1 to 256 columns, got 0"),
    ({"spec": [1, 2]}, TypeError, "spec must map names"),
    ({"spec": {"weights": 1.0}}, ValueError, "must not be called 'weights'"),
    ({"spec": {"x": {"y": 1.0}}}, TypeError, "column 'x'"),
    ({"spec": {"x": reprise.TensorSpec((None, 2), np.float32)}}, ValueError, "one shape"),
    ({"spec": {"x": ((2,), object)}}, TypeError, "dtype"),
    ({"frames": {"y": 4}}, ValueError, "'y', which is no column"),
    ({"frames": {"x": 4}}, ValueError, "is not 4 frames"),
])
def test_mistakes_in_making_one_are_named(arguments, error, text):
    with pytest.raises(error, match=text):
        ReplayBuffer(**{"capacity": 10, "spec": {"x": ((3,), np.float32)}, **arguments})


def test_an_empty_buffer_cannot_be_sampled():
    buffer = make()
    with pytest.raises(reprise.StatusError, match="empty") as caught:
        buffer.sample(1)
    assert caught.value.code == "FAILED_PRECONDITION"


def test_sample_returns_columns_weights_and_indices():
    buffer = make()
    buffer.add(**rows(0, 10))

    batch = buffer.sample(4)
    assert list(batch) == [*SPEC, "weights", "indices"]
    assert batch["obs"].shape == (4, 3) and batch["obs"].dtype == np.float32
    assert batch["weights"].dtype == np.float32 and batch["indices"].dtype == np.int64
    assert buffer.sample(0)["obs"].shape == (0, 3)
    with pytest.raises(ValueError, match="cannot sample -1 rows"):
        buffer.sample(-1)
    with pytest.raises(ValueError, match="beta"):
        buffer.sample(1, beta=-1)
    with pytest.raises(TypeError, match="how many"):
        buffer.sample()
    with pytest.raises(TypeError, match="'m'"):
        buffer.sample(1, m=2)


def test_memory_of_a_batch_is_used_again():
    buffer = make()
    buffer.add(**rows(0, 50))
    batch = buffer.sample(30)
    places = {k: v.ctypes.data for k, v in batch.items()}

    again = buffer.sample(30, out=batch)
    assert again is batch
    assert {k: v.ctypes.data for k, v in batch.items()} == places
    expect_rows(batch)
    with pytest.raises(ValueError, match=r"out\['obs'\] must be .* of 29 rows"):
        buffer.sample(29, out=batch)
    with pytest.raises(ValueError, match="out has no 'obs'"):
        buffer.sample(30, out={})
    batch["obs"].flags.writeable = False
    with pytest.raises(ValueError, match="writable"):
        buffer.sample(30, out=batch)


def test_the_same_seed_gives_the_same_samples():
    batches = []
    for _ in range(2):
        buffer = make(seed=7)
        buffer.add(**rows(0, 90))
        batches.append(buffer.sample(60))
    other = make(seed=8)
    other.add(**rows(0, 90))

    np.testing.assert_array_equal(batches[0]["indices"], batches[1]["indices"])
    assert (other.sample(60)["indices"] != batches[0]["indices"]).any()


def test_frequencies_follow_priorities():
    buffer = make(64, alpha=0.7)
    priorities = np.linspace(0.1, 4, 64)
    buffer.add(**rows(0, 64), priorities=priorities)
    expected = priorities ** 0.7 / (priorities ** 0.7).sum() * 100_000

    counts = np.bincount(buffer.sample(100_000)["indices"], minlength=64)
    chi2 = ((counts - expected) ** 2 / expected).sum()
    assert 63 - 10 * np.sqrt(2 * 63) < chi2 < 63 + 10 * np.sqrt(2 * 63)


def test_weights_are_those_of_the_paper():
    buffer = make(64, alpha=0.7, beta=0.5)
    priorities = np.linspace(0.1, 4, 64)
    buffer.add(**rows(0, 64), priorities=priorities)
    p = priorities ** 0.7 / (priorities ** 0.7).sum()

    for beta in (None, 0.0, 1.0):
        batch = buffer.sample(100, beta=beta)
        w = (64 * p[batch["indices"]]) ** -(0.5 if beta is None else beta)
        np.testing.assert_allclose(batch["weights"], w / w.max(), rtol=1e-5)


def test_uniform_weights_are_one():
    buffer = make(alpha=0)
    buffer.add(**rows(0, 64), priorities=np.arange(64.0))  # which have no effect
    assert (buffer.sample(100)["weights"] == 1).all()
    with pytest.raises(reprise.StatusError, match="uniform"):
        buffer.update_priorities([1], [1.0])


def test_priority_updates_change_the_draws():
    buffer = make(alpha=1.0)
    buffer.add(**rows(0, 100))

    assert buffer.update_priorities(np.arange(100), np.zeros(100)) == 100
    assert buffer.update_priorities([42], [1]) == 1
    assert (buffer.sample(500)["indices"] == 42).all()


def test_updates_of_overwritten_rows_are_ignored():
    buffer = make(10, alpha=1.0)
    buffer.add(**rows(0, 10))
    old = buffer.sample(32)["indices"]
    buffer.add(**rows(10, 10))
    assert buffer.update_priorities(old, np.full(32, 1e9)) == 0

    counts = np.bincount(buffer.sample(10_000)["indices"], minlength=20)
    assert (counts[:10] == 0).all() and (counts[10:] > 700).all()


def test_new_rows_get_the_largest_priority():
    buffer = make(10, alpha=1.0)
    buffer.add(**rows(0, 1), priorities=[3.0])
    buffer.update_priorities([0], [8.0])
    buffer.update_priorities([0], [1.0])
    buffer.add(**rows(1, 1))
    assert buffer.state_dict()["row_weights"] == pytest.approx([1.0, 8.0])


@pytest.mark.parametrize("indices, priorities, text", [
    ([0, 1], [1.0], "there must be 2 priorities, got 1"),
    ([5], [1.0], "no row has the number 5; the next will be 5"),
    ([-1], [1.0], "no row has the number -1"),
    ([0], [-1.0], "finite and >= 0, got -1"),
    ([0], [np.inf], "finite"),
])
def test_mistakes_in_updates_are_named(indices, priorities, text):
    buffer = make()
    buffer.add(**rows(0, 5))
    with pytest.raises(ValueError, match=text):
        buffer.update_priorities(indices, priorities)


def test_arrays_of_other_dtypes_are_fine_in_updates():
    buffer = make(alpha=1.0)
    buffer.add(**rows(0, 5))
    buffer.update_priorities(np.arange(5, dtype=np.int32), np.arange(5, dtype=np.float32) + 1)
    assert buffer.state_dict()["row_weights"] == pytest.approx([1, 2, 3, 4, 5])


def test_clear():
    buffer = make()
    buffer.add(**rows(0, 50))
    buffer.clear()
    assert len(buffer) == 0 and buffer.added == 50
    buffer.add(**rows(50, 5))
    expect_rows(buffer.sample(20))


def stacks(count, lanes, seed=0, noise=False):
    """Yields steps of `lanes` environments: stacks of four frames, in episodes of random length."""
    rng = np.random.default_rng(seed)
    background = rng.integers(0, 200, (84, 84), dtype=np.uint8)

    def frame():
        if noise:
            return rng.integers(0, 256, (84, 84), dtype=np.uint8)
        image = background.copy()
        x, y = rng.integers(0, 76, 2)
        image[x:x + 8, y:y + 8] = rng.integers(0, 256)
        return image

    state = [None] * lanes
    for _ in range(count):
        obs, following = [], []
        for lane in range(lanes):
            if state[lane] is None:
                state[lane] = np.repeat(frame()[None], 4, axis=0)
            obs.append(state[lane])
            following.append(np.concatenate([state[lane][1:], frame()[None]]))
            state[lane] = None if rng.random() < 0.02 else following[-1]
        yield np.stack(obs), np.stack(following)


@pytest.mark.parametrize("lanes", [1, 8])
def test_frames_that_are_shared_come_back(lanes):
    shape = ((4, 84, 84), np.uint8)
    buffer = ReplayBuffer(300, {"obs": shape, "next_obs": shape}, seed=1,
                          frames={"obs": 4, "next_obs": 4})
    kept = []
    for obs, next_obs in stacks(800 // lanes, lanes):
        buffer.add(obs, next_obs)
        kept += zip(obs, next_obs)
        batch = buffer.sample(4)
        for i, index in enumerate(batch["indices"]):
            assert index >= len(kept) - 300
            assert np.array_equal(batch["obs"][i], kept[index][0])
            assert np.array_equal(batch["next_obs"][i], kept[index][1])
    assert buffer._check()


def test_observations_that_are_not_stacked_are_shared_too():
    shape = ((150,), np.float32)
    options = {"capacity": 20_000, "spec": {"obs": shape, "next_obs": shape}, "alpha": 0, "seed": 1}
    plain, shared = ReplayBuffer(**options), ReplayBuffer(**options, frames={"obs": 1, "next_obs": 1})
    values = np.random.default_rng(0).random((30_001, 150), dtype=np.float32)
    for buffer in (plain, shared):
        for i in range(0, 30_000, 50):
            buffer.add(values[i:i + 50], values[i + 1:i + 51])

    a, b = plain.sample(100), shared.sample(100)
    for name in a:
        np.testing.assert_array_equal(a[name], b[name])
    assert shared.nbytes < 0.75 * plain.nbytes


@pytest.mark.parametrize("noise", [False, True])
def test_memory_of_atari_stacks(noise):
    """The buffer takes an eighth of the memory of a plain ring, or slightly more if frames are
    noise.
    """
    count, shape = 5000 if os.environ.get("RP_SHORT") else 8000, ((4, 84, 84), np.uint8)
    buffer = ReplayBuffer(count, {"obs": shape, "next_obs": shape, "action": ((), np.int64),
                                  "reward": ((), np.float32), "done": ((), np.bool_)}, seed=1,
                          frames={"obs": 4, "next_obs": 4})
    for obs, next_obs in stacks(count // 4 + 300, 4, noise=noise):
        buffer.add(obs, next_obs, np.zeros(4, int), np.zeros(4), np.zeros(4, bool))
    plain = count * (2 * 4 * 84 * 84 + 8 + 4 + 1)

    assert len(buffer) == count
    assert buffer.nbytes < plain / (6 if noise else 8)


def expect_same(a, b):
    """Checks that both buffers give the same samples from now on."""
    assert len(a) == len(b) and a.added == b.added and b._check()
    for _ in range(2):
        x, y = a.sample(70), b.sample(70)
        for name in x:
            np.testing.assert_array_equal(x[name], y[name])
        for buffer in (a, b):
            buffer.update_priorities(x["indices"], x["weights"] * 3 + 0.1)
            buffer.add(**rows(buffer.added, 20))


def used():
    buffer = make(200, alpha=0.8, epsilon=0.01)
    for first in range(0, 330, 30):
        buffer.add(**rows(first, 30))
        batch = buffer.sample(40)
        buffer.update_priorities(batch["indices"], batch["reward"])
    return buffer


def test_a_loaded_state_dict_continues_the_same_samples():
    a = used()
    b = make(200, alpha=0.8, epsilon=0.01, seed=99)
    b.add(**rows(0, 10))
    b.load_state_dict(a.state_dict())
    expect_same(a, b)


def test_pickle():
    a = used()
    expect_same(a, pickle.loads(pickle.dumps(a)))


@pytest.mark.parametrize("frames", [{}, {"obs": 1, "next_obs": 1}])
def test_files(tmp_path, monkeypatch, frames):
    monkeypatch.setattr(reprise.replay_buffer, "_BLOCK_BYTES", 1000)  # many blocks
    a = make(200, frames=frames)
    for first in range(0, 330, 30):
        a.add(**rows(first, 30))
    path = tmp_path / "buffer.zip"
    a.save(path)

    assert len(zipfile.ZipFile(path).namelist()) > 20
    assert [p.name for p in tmp_path.iterdir()] == ["buffer.zip"]
    expect_same(a, ReplayBuffer.load(path))


def test_an_empty_buffer_can_be_saved(tmp_path):
    make().save(tmp_path / "x")
    assert len(ReplayBuffer.load(tmp_path / "x")) == 0
    assert len(pickle.loads(pickle.dumps(make()))) == 0


def test_states_of_other_columns_are_refused():
    other = ReplayBuffer(10, {"x": 1.0})
    with pytest.raises(ValueError, match="columns"):
        other.load_state_dict(used().state_dict())
    with pytest.raises(ValueError, match="format 9"):
        other.load_state_dict({**other.state_dict(), "format": 9})
    with pytest.raises(ValueError, match="zeros"):
        other.load_state_dict({**other.state_dict(), "rng": [0, 0, 0, 0]})


def test_before_init_and_twice():
    bare = ReplayBuffer.__new__(ReplayBuffer)
    for call in (lambda: bare.sample(1), lambda: bare.add(1), lambda: len(bare), bare.clear,
                 lambda: bare.nbytes, lambda: bare.update_priorities([1], [1.0])):
        with pytest.raises(RuntimeError, match="initialised"):
            call()
    buffer = make()
    with pytest.raises(RuntimeError, match="once"):
        buffer.__init__(10, SPEC)


def test_no_references_are_lost():
    buffer = make()
    r = rows(0, 8)
    counts = {k: sys.getrefcount(v) for k, v in r.items()}
    dtypes = {k: sys.getrefcount(v.dtype) for k, v in r.items()}
    for _ in range(50):
        buffer.add(**r)
        buffer.add(*r.values(), priorities=np.ones(8))
        batch = buffer.sample(5)
        buffer.sample(5, out=batch)
        buffer.update_priorities(batch["indices"], np.ones(5))
        for bad in ({"obs": 1}, {"action": 0.5}, {"priorities": [1]}, {"x": 1}):
            with pytest.raises((TypeError, ValueError)):
                buffer.add(**{**r, **bad})
        for bad in ({}, {**batch, "obs": 1}, 5):
            with pytest.raises((TypeError, ValueError)):
                buffer.sample(5, out=bad)
    del batch
    gc.collect()

    assert {k: sys.getrefcount(v) for k, v in r.items()} == counts
    assert all(abs(sys.getrefcount(v.dtype) - dtypes[k]) < 20 for k, v in r.items())


def test_values_that_empty_their_dict_do_no_harm():
    class Value:
        def __array__(self, *args, **kwargs):
            values.clear()
            gc.collect()
            return np.zeros((2, 3), np.float32)

    values = {**rows(0, 2), "obs": Value()}
    buffer = make()
    buffer.add(values)
    assert len(buffer) == 2 and not values


def test_a_preallocated_buffer_grows_no_more():
    buffer, lazy = (make(200_000, preallocate=p) for p in (True, False))
    before = buffer.nbytes
    assert before > lazy.nbytes
    for first in range(0, 200_000, 50_000):
        for one in (buffer, lazy):
            one.add(**rows(first, 50_000))
    assert buffer.nbytes == before == lazy.nbytes
    batches = [one.sample(300) for one in (buffer, lazy)]
    expect_rows(batches[0])
    np.testing.assert_array_equal(batches[0]["indices"], batches[1]["indices"])


def test_preallocation_of_more_than_there_is():
    spec = {"obs": ((84, 84, 4), np.uint8)}
    with pytest.raises(MemoryError, match=r"needs 28,224,000,000,000 bytes, but only [\d,]+ bytes"):
        ReplayBuffer(10**9, spec, preallocate=True)
    with pytest.raises(MemoryError, match="a capacity of 1,000,000,000,000 needs 1,000,000,000,000 bytes"):
        ReplayBuffer(10**12, {"obs": ((4, 84), np.uint8), "n": ((), np.uint8)}, frames={"obs": 4},
                     preallocate=True)
    assert len(ReplayBuffer(10, spec, preallocate=True)) == 0


@pytest.mark.parametrize("files, available", [
    ({"proc/meminfo": "MemTotal: 9 kB\nMemAvailable:    5 kB\n"}, 5120),
    ({"proc/meminfo": "MemAvailable: 5 kB\n", "proc/self/cgroup": "0::/a/b\n",
      "sys/fs/cgroup/a/memory.max": "3000\n", "sys/fs/cgroup/a/b/memory.max": "max\n"}, 3000),
    ({"proc/self/cgroup": "4:cpu:/x\n3:pids,memory:/\nbad\n",
      "sys/fs/cgroup/memory/memory.limit_in_bytes": "70\n"}, 70),
    ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "80\n"}, 80),
    ({"proc/meminfo": "MemAvailable:\n"}, None),
    ({}, None),
])
def test_the_memory_that_is_available(tmp_path, files, available):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert available_bytes(str(tmp_path)) == available


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_has_a_buffer_of_its_own():
    buffer = make()
    buffer.add(**rows(0, 10))
    child = os.fork()
    if child == 0:
        try:
            buffer.add(**rows(10, 10))
            buffer.sample(100)
            os._exit(0 if len(buffer) == 20 and buffer._check() else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert len(buffer) == 10


def test_threads_share_a_buffer():
    buffer = ReplayBuffer(1000, {"n": ((2000,), np.int64)}, seed=1)
    buffer.add(np.zeros((1, 2000), np.int64))
    wrong = []

    def adder(k):
        for i in range(60):
            buffer.add(np.full((20, 2000), 1000 * k + i))

    def sampler():
        for _ in range(60):
            batch = buffer.sample(30)
            if (batch["n"] != batch["n"][:, :1]).any():
                wrong.append(batch)
            buffer.update_priorities(batch["indices"], np.ones(30))

    threads = [threading.Thread(target=adder, args=(k,)) for k in range(2)]
    threads += [threading.Thread(target=sampler) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong and buffer.added == 2401 and buffer._check()


def test_the_gil_is_let_go_while_rows_are_copied():
    buffer = ReplayBuffer(64, {"n": ((500_000,), np.float64)}, seed=1)
    buffer.add(np.zeros((64, 500_000)))
    out = buffer.sample(20)
    end = time.monotonic() + LIMIT_S

    with Witness() as witness:  # runs only if sample() releases the GIL
        while not witness.has_run and time.monotonic() < end:
            buffer.sample(20, out=out)
        has_run = witness.has_run

    assert has_run


def test_a_folder_is_no_file_to_save_to(tmp_path):
    with pytest.raises(IsADirectoryError, match="needs the name of a file, and this is a directory") as raised:
        make().save(tmp_path / "")
    assert raised.value.filename == str(tmp_path)
    assert not list(tmp_path.parent.glob("*.part"))


def test_a_save_that_fails_leaves_no_part(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("no")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no"):
        make().save(tmp_path / "x")
    assert not list(tmp_path.iterdir())
