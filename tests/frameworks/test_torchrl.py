# SPDX-License-Identifier: Apache-2.0
"""reprise.frameworks.torchrl beside TorchRL's TensorDictPrioritizedReplayBuffer."""

import pathlib
import pickle
import tempfile
import unittest

import framework_scripts
import numpy as np
import torch
from learning import agree, returns_of
from tensordict import TensorDict
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage
from torchrl.data import TensorDictPrioritizedReplayBuffer as Theirs
from torchrl.envs import GymEnv

from reprise.frameworks.torchrl import TensorDictPrioritizedReplayBuffer as Ours

CAPACITY = 50
OPTIONS = {"alpha": 0.7, "beta": 0.5, "eps": 0.01, "batch_size": 40}


def made():
    return Theirs(storage=LazyTensorStorage(CAPACITY), **OPTIONS), Ours(capacity=CAPACITY, seed=1,
                                                                       **OPTIONS)


def steps(first, count, *shape, **more):
    """Returns a tensordict whose values tell its rows apart."""
    size = [count, *shape]
    number = torch.arange(first, first + count).reshape(-1, *[1] * len(shape)).expand(size)
    wide = number.unsqueeze(-1)
    return TensorDict({
        "observation": wide.expand(*size, 3).float() / 7, "action": number.clone(),
        "next": {"observation": wide.expand(*size, 3).float() + 0.5, "done": wide % 7 == 6,
                 "reward": wide.double()}, **more}, batch_size=size)


def fill(buffers, *counts, shape=(), **more):
    """Adds the same rows to all buffers. Returns the places."""
    places, first = [], 0
    for count in counts:
        places.append([buffer.extend(steps(first, count, *shape, **more)) for buffer in buffers])
        first += count
    return places


class Conformance(unittest.TestCase):
    def same(self, theirs, ours, count=1500):
        """Compares samples by their places."""
        self.assertEqual(len(theirs), len(ours))
        a, b = theirs.sample(count), ours.sample(count)
        self.assertEqual(a.batch_size, b.batch_size)
        keys = [set(map(str, td.keys(True, True))) for td in (a, b)]
        self.assertEqual(*keys)
        for key in a.keys(True, True):
            self.assertEqual((a[key].shape, a[key].dtype), (b[key].shape, b[key].dtype), key)
        first = b["index"].reshape(count, -1)[:, 0]
        self.assertEqual(set(first.tolist()), set(a["index"].reshape(count, -1)[:, 0].tolist()))
        stored = theirs.storage[first]
        for key in a.keys(True, True):
            if key not in ("index", "priority_weight", "td_error"):
                torch.testing.assert_close(b[key], stored[key], rtol=0, atol=0)

    def same_weights(self, theirs, ours):
        """Compares the weight of each place."""
        found = []
        for buffer in (theirs, ours):
            sample = buffer.sample(3000)
            found.append(dict(zip(sample["index"].tolist(), sample["priority_weight"].tolist())))
        self.assertEqual(set(found[0]), set(found[1]))
        for place, weight in found[0].items():
            self.assertAlmostEqual(weight, found[1][place], delta=1e-5 * weight)

    def test_same_rows(self):
        for counts in ((20,), (20, 20, 20), (50, 1), (7,) * 20, (50, 50, 49)):
            with self.subTest(counts=counts):
                buffers = made()
                for a, b in fill(buffers, *counts):
                    self.assertEqual(a.tolist(), b.tolist())
                self.same(*buffers)

    def test_more_rows_than_there_is_space(self):
        _, ours = made()
        places = ours.extend(steps(0, 120))
        self.assertEqual(places.tolist(), [i % 50 for i in range(120)])
        sample = ours.sample(1500)
        self.assertEqual(set(sample["action"].tolist()), set(range(70, 120)))
        self.assertTrue((sample["action"] % 50 == sample["index"]).all())

    def test_single_rows(self):
        buffers = made()
        for i in range(60):
            self.assertEqual(*(int(b.add(steps(i, 1)[0])) for b in buffers))
        self.same(*buffers)

    def test_rows_of_several_steps(self):
        buffers = made()
        fill(buffers, 30, 30, shape=(5,))
        self.same(*buffers)
        for buffer in buffers:
            sample = buffer.sample(40)
            sample["td_error"] = (sample["action"].float() * sample["index"] + 1).unsqueeze(-1)
            buffer.update_tensordict_priority(sample)

    def test_weights(self):
        buffers = made()
        fill(buffers, 30)
        priorities = torch.linspace(0.3, 3.0, 30)
        for buffer in buffers:
            buffer.update_priority(torch.arange(30), priorities)
        self.same_weights(*buffers)
        fill(buffers, 15)  # these have the largest priority
        self.same_weights(*buffers)
        for buffer in buffers:
            buffer.update_priority(torch.tensor([0, 29]), torch.tensor([2.0, 9.0]))
        self.same_weights(*buffers)  # the smallest of the buffer is another one now
        fill(buffers, 30)
        self.same_weights(*buffers)

    def test_weights_are_scaled_by_the_smallest_of_the_buffer(self):
        _, ours = made()
        fill([ours], 50)
        ours.update_priority(torch.arange(50), torch.arange(1.0, 51.0))
        sample = ours.sample(5)
        expected = ((sample["index"] + 1.01) / 1.01) ** (0.7 * -0.5)
        torch.testing.assert_close(sample["priority_weight"], expected.float())

    def test_probabilities(self):
        _, ours = made()
        fill([ours], 50)
        priorities = torch.linspace(0, 3, 50)
        ours.update_priority(torch.arange(50), priorities)
        weights = (priorities.double().numpy() + 0.01) ** 0.7
        expected = weights / weights.sum() * 40_000
        count = np.bincount(ours.sample(40_000)["index"].numpy(), minlength=50)
        # 49 degrees of freedom: this is exceeded once in a million.
        self.assertLess(((count - expected) ** 2 / expected).sum(), 110)

    def test_priorities_that_are_given_with_the_rows(self):
        buffers = made()
        for buffer in buffers:
            buffer.extend(steps(0, 20, td_error=torch.linspace(0.1, 2, 20)))
        self.same_weights(*buffers)

    def test_priorities_of_a_sample(self):
        buffers = made()
        fill(buffers, 50)
        for buffer in buffers:
            for _ in range(20):
                sample = buffer.sample()
                sample["td_error"] = (sample["action"].float() + 1).unsqueeze(-1)
                buffer.update_tensordict_priority(sample)
            rest = torch.arange(50)
            buffer.update_priority(rest, rest.float() + 10)
        self.same_weights(*buffers)

    def test_emptied(self):
        _, ours = made()
        fill([ours], 30)
        ours.empty()
        self.assertEqual(len(ours), 0)
        with self.assertRaises(RuntimeError):
            ours.sample()
        ours.extend(steps(100, 10))
        self.assertEqual(set(ours.sample(300)["action"].tolist()), set(range(100, 110)))

    def test_places_without_rows_are_refused(self):
        _, ours = made()
        fill([ours], 30)
        with self.assertRaises(IndexError):
            ours.update_priority(torch.tensor([40]), torch.tensor([1.0]))

    def test_wrong_input_is_refused(self):
        _, ours = made()
        with self.assertRaisesRegex(RuntimeError, "the buffer is empty"):
            ours.sample()
        with self.assertRaisesRegex(TypeError, "use add\\(\\) for one row"):
            ours.extend(steps(0, 1)[0])
        with self.assertRaisesRegex(TypeError, "'h' has the dtype bfloat16, .* float32"):
            ours.extend(TensorDict({"h": torch.zeros(3, 2, dtype=torch.bfloat16)}, batch_size=[3]))
        ours.extend(steps(0, 5))
        with self.assertRaisesRegex(KeyError, "next.*observation"):
            ours.extend(steps(5, 5).exclude(("next", "observation")))
        with self.assertRaisesRegex(ValueError, "'observation'.*shape"):
            ours.extend(steps(5, 5, 2))
        for wrong in (-3.0, float("nan")):
            with self.assertRaisesRegex(ValueError, "priorities must be finite and >= 0"):
                ours.update_priority(torch.tensor([1]), torch.tensor([wrong]))
            with self.assertRaisesRegex(ValueError, "priorities must be finite and >= 0"):
                ours.extend(steps(5, 5, td_error=torch.full((5,), wrong)))
        with self.assertRaisesRegex(ValueError, "2 places and 3 priorities"):
            ours.update_priority(torch.tensor([1, 2]), torch.ones(3))
        self.assertEqual(len(ours), 5)
        with self.assertRaisesRegex(ValueError, "alpha and beta must be >= 0"):
            Ours(capacity=5, alpha=-1, beta=0)
        with self.assertRaisesRegex(RuntimeError, "must be told a batch_size"):
            unsized = Ours(capacity=5, alpha=1, beta=0)
            unsized.extend(steps(0, 3))
            unsized.sample()

    def test_a_collector_writes_to_the_buffer(self):
        env = GymEnv("CartPole-v1", categorical_action_encoding=True)
        _, ours = made()
        collector = Collector(env, None, frames_per_batch=8, total_frames=40, replay_buffer=ours)
        for _ in collector:
            pass
        collector.shutdown()
        self.assertEqual((len(ours), ours.write_count), (40, 40))
        sample = ours.sample(5)
        self.assertEqual(sample["next", "observation"].shape, (5, 4))
        self.assertTrue((sample["collector", "traj_ids"] >= 0).all())

    def test_pickled(self):
        _, ours = made()
        fill([ours], 30, 35)
        ours.update_priority(torch.arange(50), torch.linspace(0.1, 3, 50))
        again = pickle.loads(pickle.dumps(ours))
        self.assertTrue((ours.sample() == again.sample()).all())

    def test_state(self):
        _, ours = made()
        fill([ours], 30, 35)
        ours.update_priority(torch.arange(50), torch.linspace(0.1, 3, 50))
        with tempfile.TemporaryDirectory() as folder:
            ours.dumps(pathlib.Path(folder) / "state")
            again = Ours(capacity=CAPACITY, **OPTIONS)
            again.loads(pathlib.Path(folder) / "state")
        for _ in range(3):
            a, b = ours.sample(), again.sample()
            self.assertTrue((a == b).all())
        for buffer in (ours, again):
            buffer.extend(steps(65, 5))
        self.assertTrue((ours.sample() == again.sample()).all())


class Learning(unittest.TestCase):
    def test_returns(self):
        theirs, ours = returns_of(framework_scripts.torchrl, ("theirs", "ours"), 12_000)
        agree(self, "torchrl", theirs, ours, 60)


if __name__ == "__main__":
    unittest.main()
