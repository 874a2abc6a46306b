# SPDX-License-Identifier: Apache-2.0
"""reprise.frameworks.tianshou beside Tianshou's PrioritizedVectorReplayBuffer."""

import copy
import pathlib
import pickle
import tempfile
import unittest

import framework_scripts
import numpy as np
import torch
from learning import agree, returns_of
from tianshou.data import Batch
from tianshou.data import PrioritizedVectorReplayBuffer as Theirs

from reprise.frameworks.tianshou import PrioritizedVectorReplayBuffer as Ours

ENVS, SIZE = 3, 20  # of each environment
OPTIONS = {"alpha": 0.7, "beta": 0.5}


def made(**options):
    options = {**OPTIONS, **options}
    return Theirs(SIZE * ENVS, ENVS, **options), Ours(SIZE * ENVS, ENVS, seed=1, **options)


def fill(test, buffers, count, first=0, ids=None, **more):
    """Adds the same steps to all buffers, and compares what they say."""
    ids = np.arange(ENVS) if ids is None else ids
    for n in range(first, first + count):
        number = n * 10.0 + ids
        batch = Batch(
            obs=np.repeat(number[:, None], 4, 1).astype(np.float32),
            obs_next=np.repeat(number[:, None] + 10, 4, 1).astype(np.float32), act=ids + n,
            rew=number, terminated=np.full(len(ids), n % 7 == 6),
            truncated=np.full(len(ids), n % 7 == 3),
            info=Batch(number=number, inner=Batch(half=number / 2)), **more)
        found = [buffer.add(copy.deepcopy(batch), buffer_ids=ids) for buffer in buffers]
        for said in zip(*found):
            np.testing.assert_array_equal(said[0], said[-1])


class Conformance(unittest.TestCase):
    def same(self, theirs, ours, places):
        """Compares the transitions at places, with their weights."""
        a, b = theirs[places], ours[places]
        self.assertEqual(set(a.get_keys()), set(b.get_keys()))
        flat = [batch.to_dict() for batch in (a, b)]
        self.compare(*flat)
        np.testing.assert_allclose(theirs.get_weight(places), ours.get_weight(places), rtol=1e-12)
        for name in ("prev", "next"):
            np.testing.assert_array_equal(getattr(theirs, name)(places), getattr(ours, name)(places))
        np.testing.assert_array_equal(theirs.unfinished_index(), ours.unfinished_index())
        self.assertEqual(len(theirs), len(ours))

    def compare(self, a, b):
        self.assertEqual(set(a), set(b))
        for key, value in a.items():
            if isinstance(value, dict):
                self.compare(value, b[key])
            else:
                self.assertEqual(np.asarray(value).dtype, np.asarray(b[key]).dtype, key)
                np.testing.assert_array_equal(value, b[key])

    def test_same_transitions(self):
        for count in (5, 20, 53):
            for options in ({}, {"weight_norm": False}, {"ignore_obs_next": True},
                            {"stack_num": 2}):
                with self.subTest(count=count, options=options):
                    buffers = made(**options)
                    fill(self, buffers, count)
                    self.same(*buffers, buffers[1].sample_indices(200))
                    everything = [buffer.sample_indices(0) for buffer in buffers]
                    np.testing.assert_array_equal(*everything)
                    self.assertEqual(set(buffers[1].sample_indices(2000)), set(everything[0]))

    def test_a_sample_is_what_is_at_its_places(self):
        buffers = made()
        fill(self, buffers, 33)
        batch, places = buffers[1].sample(64)
        self.compare(buffers[0][places].to_dict(), batch.to_dict())

    def test_a_batch_keeps_the_rows_of_its_time(self):
        """Fields are read when they are used, but as they were when the batch was made."""
        _, ours = made()
        fill(self, [ours], 33)
        changes = {
            "add": lambda: fill(self, [ours], 25, first=33),
            "update_weight": lambda: ours.update_weight(np.arange(60), np.linspace(1, 9, 60)),
            "set_beta": lambda: ours.set_beta(0.1),
            "set_array_at_key": lambda: ours.set_array_at_key(np.zeros(60), "rew"),
            "reset": lambda: (ours.reset(), fill(self, [ours], 25, first=80)),
        }
        for name, change in changes.items():
            with self.subTest(change=name):
                places = ours.sample_indices(64)
                expected, kept, used = ours[places], ours[places], ours[places]
                self.compare(expected.to_dict(), ours[places].to_dict())
                used.obs  # noqa: B018  reads one field
                used.weight  # noqa: B018
                change()
                for batch in (kept, used):
                    self.compare(expected.to_dict(), batch.to_dict())

    def test_a_batch_is_a_batch(self):
        _, ours = made()
        fill(self, [ours], 33)
        places = ours.sample_indices(64)
        plain = ours[places]
        plain.to_dict()
        self.assertIs(type(plain), Batch)
        for same in (copy.copy(ours[places]), copy.deepcopy(ours[places]),
                     pickle.loads(pickle.dumps(ours[places])), Batch(ours[places]),
                     Batch.cat([ours[places[:9]], ours[places[9:]]])):
            self.compare(plain.to_dict(), same.to_dict())
        self.assertEqual(ours[places[:9]], plain[:9])
        self.assertEqual(plain[:9], ours[places[:9]])
        batch = ours[places]
        self.assertEqual((len(batch), "obs" in batch, hasattr(batch, "nothing")), (64, True, False))
        batch = ours[places]
        batch.rew = [1] * 64
        batch.returns = torch.ones(64)
        np.testing.assert_array_equal(batch.pop("obs"), plain.obs)
        self.assertEqual(batch.pop("nothing", 5), 5)
        keys = set(plain.get_keys()) - {"obs"} | {"returns"}
        self.assertEqual((set(batch.get_keys()), batch.rew.tolist()), (keys, [1] * 64))

    def test_environments_of_different_lengths(self):
        buffers = made()
        fill(self, buffers, 8)
        fill(self, buffers, 25, first=8, ids=np.array([1]))
        fill(self, buffers, 3, first=33, ids=np.array([0, 2]))
        self.same(*buffers, buffers[1].sample_indices(300))
        self.assertEqual(set(buffers[1].sample_indices(3000)), set(buffers[0].sample_indices(0)))

    def test_keys_of_the_policy(self):
        buffers = made()
        fill(self, buffers, 12, policy=Batch(value=np.arange(3.0)))
        self.same(*buffers, buffers[1].sample_indices(50))

    def test_weights(self):
        buffers = made()
        fill(self, buffers, 20)
        places = buffers[0].sample_indices(0)
        priorities = np.linspace(0.1, 3, len(places))
        for buffer in buffers:
            buffer.update_weight(places, torch.from_numpy(priorities))
        self.same(*buffers, places)
        fill(self, buffers, 4, first=20)  # these have the largest priority
        self.same(*buffers, places)
        for buffer in buffers:
            buffer.update_weight(places[:9], -priorities[:9])
            buffer.set_beta(0.9)
        self.same(*buffers, places)

    def test_probabilities(self):
        _, ours = made()
        fill(self, [ours], 20)
        places = ours.sample_indices(0)
        ours.update_weight(places, np.linspace(0.01, 3, len(places)))
        weights = ours.weight[np.arange(60)]
        expected = weights / weights.sum() * 40_000
        count = np.bincount(ours.sample_indices(40_000), minlength=60)
        # 59 degrees of freedom: this is exceeded once in a million.
        self.assertLess(((count - expected) ** 2 / expected).sum(), 125)

    def test_after_a_reset_only_new_transitions_are_drawn(self):
        _, ours = made()
        fill(self, [ours], 20)
        ours.reset()
        self.assertEqual(len(ours.sample_indices(0)), 0)
        with self.assertRaisesRegex(ValueError, "the buffer is empty"):
            ours.sample(10)
        fill(self, [ours], 2, first=50)
        self.assertEqual({int(r) // 10 for r in ours.sample(500)[0].rew}, {50, 51})

    def test_wrong_input_is_refused(self):
        theirs, ours = made()
        fill(self, [theirs, ours], 20)
        for wrong in (np.nan, np.inf):
            with self.assertRaisesRegex(ValueError, "priorities must be finite"):
                ours.update_weight(np.arange(3), np.array([1.0, wrong, 1.0]))
        with self.assertRaisesRegex(ValueError, "3 places and 2 priorities"):
            ours.update_weight(np.arange(3), np.ones(2))
        for wrong in (60, -1):
            with self.assertRaisesRegex(IndexError, "no place"):
                ours.update_weight(np.array([wrong]), np.ones(1))
        np.testing.assert_array_equal(theirs.weight[np.arange(60)], ours.weight[np.arange(60)])
        with self.assertRaisesRegex(IndexError, "has 60 places, so there is no place 3 or 60"):
            ours[np.array([3, 60])]
        with self.assertRaises(AssertionError):
            Ours(60, 3, alpha=-1.0, beta=0.4)

    def test_saved(self):
        _, ours = made()
        fill(self, [ours], 27)
        ours.update_weight(ours.sample_indices(0), np.linspace(0.01, 3, 60))
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "buffer.hdf5")
            ours.save_hdf5(path)
            loaded = Ours.load_hdf5(path)
        for again in (pickle.loads(pickle.dumps(ours)), loaded):
            np.testing.assert_array_equal(again.weight[np.arange(60)], ours.weight[np.arange(60)])
            self.same(ours, again, np.arange(60))
            again.update_weight(np.arange(60), np.full(60, 1.5))
            self.assertEqual(len(set(again.weight[np.arange(60)])), 1)
            self.assertEqual(set(again.sample_indices(2000)), set(range(60)))


class Learning(unittest.TestCase):
    def test_returns(self):
        theirs, ours = returns_of(framework_scripts.tianshou, ("theirs", "ours"), 12_000)
        agree(self, "tianshou", theirs, ours, 60)


if __name__ == "__main__":
    unittest.main()
