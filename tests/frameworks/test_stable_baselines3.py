# SPDX-License-Identifier: Apache-2.0
"""reprise.frameworks.stable_baselines3 beside Stable-Baselines3's own buffers."""

import io
import pathlib
import tempfile
import unittest

import framework_scripts
import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from learning import agree, returns_of
from stable_baselines3 import DQN, SAC
from stable_baselines3.common import buffers
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import reprise
from reprise.frameworks.stable_baselines3 import (PrioritizedDQN, PrioritizedReplayBuffer,
                                                  ReplayBuffer)

BOX = spaces.Box(-1e6, 1e6, (3,), np.float32)
IMAGES = spaces.Box(0, 255, (4, 8, 8), np.uint8)
DICT = spaces.Dict({"place": spaces.Box(-1e6, 1e6, (2, 2), np.float64), "room": spaces.Discrete(9)})
ACTION = spaces.Discrete(5)
ARRAYS = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


def observation(space, number, envs):
    """Returns observations that tell which step and environment they are of."""
    if isinstance(space, spaces.Dict):
        return {key: observation(part, number, envs) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Discrete):
        return np.array([(number + e) % space.n for e in range(envs)])
    values = np.array([number * 10 + e for e in range(envs)])
    return np.broadcast_to(values.reshape(envs, *[1] * len(space.shape)),
                           (envs, *space.shape)).astype(space.dtype)


def fill(pair, space, action_space, steps, envs=1):
    """Adds the same steps to all buffers. Every seventh step ends an episode, and every second of
    those ends by a time limit."""
    for n in range(steps):
        done = np.full(envs, n % 7 == 6)
        infos = [{"TimeLimit.truncated": bool(n % 14 == 13)} for _ in range(envs)]
        action = np.array([action_space.sample() for _ in range(envs)])
        reward = np.arange(envs, dtype=np.float32) + n
        for buffer in pair:
            buffer.add(observation(space, n, envs), observation(space, n + 1, envs), action,
                       reward, done, infos)


def rows(sample):
    """Returns the transitions of a sample as tuples of bytes."""
    def flat(field):
        return [field[k] for k in sorted(field)] if isinstance(field, dict) else [field]

    fields = [f.numpy() for part in sample[:5] for f in flat(part)]
    return {tuple(f[i].tobytes() for f in fields) for i in range(len(fields[0]))}


def pair_of(space, action_space, size, envs, **options):
    own = buffers.DictReplayBuffer if isinstance(space, spaces.Dict) else buffers.ReplayBuffer
    made = own(size, space, action_space, "cpu", envs, **options)
    return made, ReplayBuffer(size, space, action_space, "cpu", envs, seed=1, **options)


class Conformance(unittest.TestCase):
    def same(self, theirs, ours):
        """Compares the state, and enough draws to see each transition."""
        self.assertEqual((theirs.pos, theirs.full, theirs.size(), theirs.buffer_size),
                         (ours.pos, ours.full, ours.size(), ours.buffer_size))
        samples = theirs.sample(1500), ours.sample(1500)
        for a, b in zip(*samples):
            for x, y in ((a[k], b[k]) for k in a) if isinstance(a, dict) else [(a, b)]:
                if x is not None:
                    self.assertEqual((x.shape, x.dtype, x.device), (y.shape, y.dtype, y.device))
        self.assertIs(type(samples[0]), type(samples[1]))
        self.assertEqual(rows(samples[0]), rows(samples[1]))

    def test_same_transitions(self):
        for space in (BOX, DICT, IMAGES, spaces.Discrete(9), spaces.MultiBinary(3)):
            for action in (ACTION, spaces.Box(-1, 1, (2, 3), np.float64)):
                for envs, steps in ((1, 9), (1, 45), (3, 5), (3, 47)):
                    with self.subTest(space=space, action=action, envs=envs, steps=steps):
                        pair = pair_of(space, action, 61, envs)
                        fill(pair, space, action, steps, envs)
                        self.same(*pair)

    def test_arrays_are_theirs(self):
        for space in (BOX, DICT):
            theirs, ours = pair_of(space, ACTION, 20, 2)
            fill((theirs, ours), space, ACTION, 33, 2)
            for name in ARRAYS:
                a, b = getattr(theirs, name), getattr(ours, name)
                for x, y in ((a[k], b[k]) for k in a) if isinstance(a, dict) else [(a, b)]:
                    np.testing.assert_array_equal(x, y)
                    self.assertEqual(x.dtype, y.dtype)

    def test_timeouts(self):
        for handled in (False, True):
            pair = pair_of(BOX, ACTION, 100, 1, handle_timeout_termination=handled)
            fill(pair, BOX, ACTION, 80)
            self.same(*pair)
        self.assertEqual(ours_ends(pair[1]), {6, 20, 34, 48, 62, 76})

    def test_reset_and_reuse(self):
        pair = pair_of(BOX, ACTION, 20, 2)
        fill(pair, BOX, ACTION, 14, 2)
        for buffer in pair:
            buffer.reset()
        fill(pair, BOX, ACTION, 3, 2)
        self.same(*pair)
        np.testing.assert_array_equal(pair[0].rewards[:3], pair[1].rewards[:3])

    def test_extend(self):
        pair = pair_of(BOX, ACTION, 20, 1)
        many = [np.arange(15, dtype=np.float32).reshape(5, 1, 3) for _ in range(2)]
        for buffer in pair:
            buffer.extend(*many, np.zeros((5, 1)), np.ones((5, 1)), np.zeros((5, 1)), [[{}]] * 5)
        self.same(*pair)

    def test_rows_are_equally_likely(self):
        _, ours = pair_of(BOX, ACTION, 30, 3)
        fill([ours], BOX, ACTION, 25, 3)
        count = np.bincount(ours.sample(30_000).rewards.numpy().astype(int).ravel(), minlength=27)
        # Rewards are step + environment, so one value is that of up to three rows.
        expected = np.bincount((np.arange(15, 25)[:, None] + np.arange(3)).ravel()) * 1000.0
        used = expected > 0
        self.assertEqual(count[~used].sum(), 0)
        self.assertLess((((count - expected) ** 2)[used] / expected[used]).sum(), 35)  # 11 free

    def test_normalized(self):
        env = VecNormalize(DummyVecEnv([lambda: gymnasium.make("CartPole-v1")]))
        env.reset()
        for _ in range(50):
            env.step([env.action_space.sample()])
        env.training = False
        pair = pair_of(env.observation_space, env.action_space, 50, 1)
        fill(pair, env.observation_space, env.action_space, 40)
        a, b = (buffer.sample(2000, env=env) for buffer in pair)
        self.assertEqual([f.dtype for f in a[:5]], [f.dtype for f in b[:5]])
        self.assertEqual(rows(a), rows(b))

    def test_optimized_memory_is_exact(self):
        stacks = spaces.Box(0, 255, (4, 84, 84), np.uint8)
        plain = ReplayBuffer(60, stacks, ACTION, "cpu", 2)
        small = ReplayBuffer(60, stacks, ACTION, "cpu", 2, optimize_memory_usage=True)
        fill((plain, small), stacks, ACTION, 95, 2)
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(plain, name), getattr(small, name))
        self.assertLess(small.nbytes, plain.nbytes / 4)
        self.assertEqual(rows(plain.sample(600)), rows(small.sample(600)))

    def test_wrong_input_is_refused(self):
        _, ours = pair_of(BOX, ACTION, 20, 2)
        with self.assertRaisesRegex(reprise.StatusError, "the buffer is empty"):
            ours.sample(4)
        good = [np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 1)), np.zeros(2), np.zeros(2),
                [{}, {}]]
        for place, wrong, said in ((0, np.zeros((2, 4)), r"'observations': a row has shape \(3,\)"),
                                   (1, np.zeros((3, 3)), "'next_observations' has 3 rows"),
                                   (3, np.zeros(5), "'rewards' has 5 rows"),
                                   (0, [["x"] * 3] * 2, "could not convert")):
            with self.assertRaisesRegex(ValueError, said):
                ours.add(*good[:place], wrong, *good[place + 1:])
        self.assertEqual((ours.size(), ours.pos), (0, 0))
        ours.add(*good)
        self.assertEqual(ours.size(), 1)

    def test_seeds(self):
        def draw(seed):
            np.random.seed(seed)
            buffer = ReplayBuffer(50, BOX, ACTION, "cpu")
            fill([buffer], BOX, ACTION, 50)
            return buffer.sample(20).rewards.ravel().tolist()

        self.assertEqual(draw(1), draw(1))
        self.assertNotEqual(draw(1), draw(2))


def ours_ends(buffer):
    return {int(r) for r, d in zip(buffer.rewards[:, 0], buffer._column("dones")[:, 0, 0]) if d}


class Priorities(unittest.TestCase):
    def setUp(self):
        self.buffer = PrioritizedReplayBuffer(40, BOX, ACTION, "cpu", 2, seed=1, alpha=0.7,
                                              beta=0.5, epsilon=0.01)
        fill([self.buffer], BOX, ACTION, 33, 2)
        self.priorities = np.linspace(0, 3, 40)
        self.buffer.update_priorities(np.arange(26, 66), self.priorities)

    def test_probabilities_and_weights(self):
        sample = self.buffer.sample(40_000)
        wanted = (self.priorities + 0.01) ** 0.7
        expected = wanted / wanted.sum() * 40_000
        count = np.bincount(sample.indices - 26, minlength=40)
        # 39 degrees of freedom: this is exceeded once in a million.
        self.assertLess(((count - expected) ** 2 / expected).sum(), 95)
        weights = (wanted[sample.indices - 26] / wanted.sum() * 40) ** -0.5
        np.testing.assert_allclose(sample.weights.numpy()[:, 0], weights / weights.max(), rtol=1e-5)
        self.assertEqual(self.buffer.sample(5, beta=0).weights.tolist(), [[1.0]] * 5)

    def test_indices_belong_to_rows(self):
        sample = self.buffer.sample(500)
        np.testing.assert_array_equal(sample.rewards.numpy()[:, 0],
                                      sample.indices // 2 + sample.indices % 2)

    def test_overwritten_rows_are_ignored(self):
        self.assertEqual(self.buffer.update_priorities([0, 1, 65], [1.0, 1.0, 1.0]), 1)

    def test_wrong_priorities_are_refused(self):
        for indices, priorities, said in (([30], [np.nan], "finite and >= 0, got nan"),
                                          ([30], [-1.0], "finite and >= 0, got -1"),
                                          ([30, 31], [1.0], "must be 2 priorities, got 1"),
                                          ([66], [1.0], "no row has the number 66")):
            with self.assertRaisesRegex(ValueError, said):
                self.buffer.update_priorities(indices, priorities)

    def test_new_rows_have_the_largest_priority(self):
        fill([self.buffer], BOX, ACTION, 1, 2)
        weights = self.buffer._rows._read(64, 4)[1]
        np.testing.assert_allclose(weights[1:], 3.01 ** 0.7)


class Algorithms(unittest.TestCase):
    def test_a_prioritized_update_with_equal_weights_is_dqn(self):
        models = []
        for kind in (DQN, PrioritizedDQN):
            model = kind("MlpPolicy", "CartPole-v1", seed=3, device="cpu",
                         learning_starts=1000)
            model.learn(60)
            models.append(model)
        batch = models[1].replay_buffer.sample(32, beta=0)
        models[0].replay_buffer.sample = lambda *a, **k: batch
        models[1].replay_buffer.sample = lambda *a, **k: batch
        for model in models:
            model.train(3, 32)
        self.assertEqual(models[0]._n_updates, models[1]._n_updates)
        for a, b in zip(*(m.policy.parameters() for m in models)):
            torch.testing.assert_close(a, b)

    def test_a_uniform_buffer_is_refused(self):
        model = PrioritizedDQN("MlpPolicy", "CartPole-v1", device="cpu", learning_starts=10,
                               replay_buffer_class=ReplayBuffer)
        with self.assertRaisesRegex(TypeError, "needs a PrioritizedReplayBuffer, got ReplayBuffer"):
            model.learn(40)

    def test_an_update_sets_priorities(self):
        model = PrioritizedDQN("MlpPolicy", "CartPole-v1", seed=3, device="cpu", buffer_size=200,
                               learning_starts=1000)
        model.learn(60)
        model.train(50, 32)
        weights = model.replay_buffer._rows._read(0, 60)[1]
        self.assertGreater(len(np.unique(weights)), 40)

    def test_the_buffer_is_saved_and_loaded(self):
        for kind in (DQN, PrioritizedDQN):
            options = {} if kind is PrioritizedDQN else {"replay_buffer_class": ReplayBuffer}
            model = kind("MlpPolicy", "CartPole-v1", seed=1, device="cpu", learning_starts=20,
                         **options)
            model.learn(100)
            file = io.BytesIO()
            with tempfile.TemporaryDirectory() as folder:
                model.save(pathlib.Path(folder) / "model")
                model.save_replay_buffer(file)
                file.seek(0)
                again = kind.load(pathlib.Path(folder) / "model",
                                  env=gymnasium.make("CartPole-v1"))
            again.load_replay_buffer(file)
            self.assertEqual(again.replay_buffer.size(), 100)
            self.assertEqual(model.replay_buffer.sample(20).rewards.tolist(),
                             again.replay_buffer.sample(20).rewards.tolist())
            np.testing.assert_array_equal(model.replay_buffer.observations,
                                          again.replay_buffer.observations)
            again.learn(50)

    def test_sac_trains(self):
        model = SAC("MlpPolicy", "Pendulum-v1", seed=1, device="cpu", learning_starts=50,
                    buffer_size=100, replay_buffer_class=ReplayBuffer, policy_kwargs={
                        "net_arch": [16]})
        model.learn(120)
        self.assertTrue(model.replay_buffer.full)

    def test_dict_observations_and_optimized_memory_train(self):
        class Env(gymnasium.Env):
            observation_space, action_space = DICT, ACTION

            def reset(self, *, seed=None, options=None):
                super().reset(seed=seed)
                return DICT.sample(), {}

            def step(self, action):
                return DICT.sample(), 1.0, False, bool(self.np_random.integers(5) == 0), {}

        model = DQN("MultiInputPolicy", DummyVecEnv([lambda: Env()] * 2), seed=1, device="cpu",
                    learning_starts=20, replay_buffer_class=ReplayBuffer, buffer_size=60,
                    optimize_memory_usage=True)
        model.learn(100)
        model.learn(20)  # Stable-Baselines3 writes to `dones` here, which must not matter
        self.assertEqual(model.replay_buffer.dones.sum(), model.replay_buffer.timeouts.sum())


class Learning(unittest.TestCase):
    def test_returns(self):
        theirs, ours, prioritized = returns_of(framework_scripts.stable_baselines3,
                                               ("theirs", "ours", "prioritized"), 12_000)
        with self.subTest("uniform"):
            agree(self, "stable_baselines3", theirs, ours, 60)
        with self.subTest("prioritized"):
            agree(self, "stable_baselines3, prioritized", theirs, prioritized, 60)


if __name__ == "__main__":
    unittest.main()
