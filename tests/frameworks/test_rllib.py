# SPDX-License-Identifier: Apache-2.0
"""reprise.frameworks.rllib beside RLlib's PrioritizedEpisodeReplayBuffer."""

import pickle
import unittest

import framework_scripts
import gymnasium
import numpy as np
from learning import agree, returns_of
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.utils.replay_buffers import PrioritizedEpisodeReplayBuffer as Theirs

from reprise.frameworks.rllib import PrioritizedEpisodeReplayBuffer as Ours


def made(capacity=100, alpha=0.7):
    theirs, ours = Theirs(capacity, alpha=alpha), Ours(capacity, alpha=alpha, seed=1)
    theirs.rng = np.random.default_rng(1)
    return theirs, ours


def episode(name, first, count, end=""):
    """Returns steps of an episode, whose values tell the steps of all episodes apart."""
    base = float(ord(name)) * 1000 + first
    observations = [np.full(3, base + i, np.float32) for i in range(count + 1)]
    return SingleAgentEpisode(
        id_=name, observations=observations, actions=[int(base) + i for i in range(count)],
        rewards=[base / 8 + i for i in range(count)], terminated=end == "terminated",
        truncated=end == "truncated", t_started=first, len_lookback_buffer=0,
        infos=[{"at": base + i} for i in range(count + 1)],
        extra_model_outputs={"logit": [base + i for i in range(count)]})


def step_of(sampled):
    """Returns what is in an episode of one step."""
    return (tuple(sampled.get_observations(0)), tuple(sampled.get_observations(1)),
            sampled.get_actions(0), round(float(sampled.get_rewards(0)), 6),
            sampled.is_terminated, sampled.is_truncated, sampled.t_started, len(sampled),
            sampled.get_extra_model_outputs("n_step", 0))


class Conformance(unittest.TestCase):
    def same(self, theirs, ours, **options):
        """Compares counters, all steps that can be drawn, and their weights."""
        for method in ("get_num_episodes", "get_num_episodes_evicted", "get_num_timesteps",
                       "get_added_timesteps", "__len__"):
            self.assertEqual(getattr(theirs, method)(), getattr(ours, method)(), method)
        self.assertEqual([e.id_ for e in theirs.episodes], [e.id_ for e in ours.episodes])
        found = []
        for buffer in (theirs, ours):
            drawn = buffer.sample(1500, beta=0.5, gamma=0.9, **options)
            self.assertEqual(len(drawn), 1500)
            found.append({step_of(s): s.get_extra_model_outputs("weights", 0) for s in drawn})
        self.assertEqual(set(found[0]), set(found[1]))
        for step, weight in found[0].items():
            self.assertAlmostEqual(weight, found[1][step], delta=1e-9 * weight)

    def test_same_steps(self):
        buffers = made()
        for buffer in buffers:
            buffer.add([episode("a", 0, 10, "terminated"), episode("b", 0, 7, "truncated")])
            buffer.add(episode("c", 0, 12))
        for n_step in (None, 1, 3):
            self.same(*buffers, n_step=n_step)

    def test_the_end_of_an_episode(self):
        _, ours = made()
        ours.add([episode("a", 0, 4, "terminated"), episode("b", 0, 4, "truncated")])
        ends = {(s.t_started, s.is_terminated, s.is_truncated) for s in ours.sample(500, n_step=2)}
        self.assertEqual(ends, {(0, False, False), (1, False, False), (2, True, False),
                                (2, False, True)})

    def test_random_n(self):
        buffers = made()
        for buffer in buffers:
            buffer.add([episode("a", 0, 6, "terminated"), episode("b", 0, 5)])
        self.same(*buffers, n_step=(1, 4))

    def test_episodes_in_parts(self):
        buffers = made()
        for buffer in buffers:
            buffer.add([episode("a", 0, 5), episode("b", 0, 5)])
            buffer.add([episode("a", 5, 3), episode("b", 5, 6, "terminated")])
            buffer.add([episode("a", 8, 4, "truncated")])
        self.same(*buffers, n_step=2)

    def test_eviction(self):
        buffers = made(capacity=40)
        for i, name in enumerate("abcdefghijklmnop"):
            for buffer in buffers:
                buffer.add([episode(name, 0, 9 + i % 4, "terminated")])
            self.same(*buffers)

    def test_eviction_of_an_episode_with_new_steps(self):
        buffers = made(capacity=40)
        for buffer in buffers:
            buffer.add([episode("a", 0, 10), episode("b", 0, 20)])
            buffer.add([episode("a", 10, 8), episode("c", 0, 8)])
        self.same(*buffers)
        for buffer in buffers:
            buffer.add([episode("b", 20, 9), episode("c", 8, 3)])
        self.same(*buffers)

    def test_an_episode_longer_than_the_buffer(self):
        buffers = made(capacity=16)
        for buffer in buffers:
            for i in range(3):
                buffer.add([episode("a", 10 * i, 10)])
        self.same(*buffers)
        for buffer in buffers:
            buffer.add([episode("b", 0, 5)])
        self.same(*buffers)

    def test_an_episode_many_times_longer_than_the_buffer(self):
        _, ours = made(capacity=16)
        for i in range(20):
            ours.add([episode("a", 10 * i, 10)])
        self.assertEqual({s.t_started for s in ours.sample(4000)}, set(range(200)))
        ours.sample(10)
        ours.update_priorities(np.full(10, 100.0))
        self.assertEqual(ours._weights.minimum(), 1.0)

    def test_priorities(self):
        buffers = made()
        for buffer in buffers:
            buffer.add([episode("a", 0, 10, "terminated"), episode("b", 0, 20)])
            for _ in range(2):
                drawn = buffer.sample(1000, beta=0.5)
                buffer.update_priorities(np.array([(s.get_actions(0) % 7) / 2 for s in drawn]))
            buffer.add([episode("c", 0, 6)])  # these have the largest priority
        self.assertEqual(buffers[0]._max_priority, buffers[1]._max_priority)
        # Steps of priority 0 are in no sample, but their weight scales those of all others.
        self.same(*buffers)

    def test_probabilities(self):
        _, ours = made()
        ours.add([episode("a", 0, 30)])
        for _ in range(30):
            drawn = ours.sample(100)
            ours.update_priorities([0.1 + s.t_started / 10 for s in drawn])
        weights = (0.1 + np.arange(30) / 10) ** 0.7
        expected = weights / weights.sum() * 20_000
        count = np.bincount([s.t_started for s in ours.sample(20_000)], minlength=30)
        # 29 degrees of freedom: this is exceeded once in a million.
        self.assertLess(((count - expected) ** 2 / expected).sum(), 80)

    def test_more_fields(self):
        for buffer in made():
            buffer.add([episode("a", 0, 5)])
            drawn = buffer.sample(20, include_infos=True, include_extra_model_outputs=True,
                                  to_numpy=True)
            for step in drawn:
                self.assertTrue(step.is_numpy)
                at = 97_000 + step.t_started
                self.assertEqual([i["at"] for i in step.get_infos()], [at, at + 1])
                self.assertEqual(step.get_extra_model_outputs("logit", 0), at)

    def test_samples_are_whole_episodes(self):
        """A sample has the attributes of one that RLlib made, and shares nothing with another."""
        box, two = gymnasium.spaces.Box(-np.inf, np.inf, (3,)), gymnasium.spaces.Discrete(10**6)
        found = []
        for buffer in made():
            source = episode("a", 0, 1, "terminated")
            source.observation_space, source.action_space = box, two
            buffer.add([source])
            first, second = buffer.sample(2)
            self.assertNotEqual(first.id_, second.id_)
            first.custom_data["x"] = 1
            first.get_infos(0)["x"] = 1
            self.assertEqual((second.custom_data, second.get_infos(0)), ({}, {}))
            second.validate()
            state = second.get_state()
            del state["id_"]
            found.append(state)
            self.assertEqual(second.to_numpy().get_observations().shape, (2, 3))
            self.assertEqual((second.observation_space, second.action_space), (box, two))
        self.assertEqual(str(found[0]), str(found[1]))

    def test_nests(self):
        for buffer in made():
            source = SingleAgentEpisode(
                observations=[{"a": np.full(2, i), "b": i} for i in range(6)],
                actions=list(range(5)), rewards=[1.0] * 5, len_lookback_buffer=0)
            buffer.add([source.to_numpy()])
            for step in buffer.sample(20, n_step=2, gamma=0.5):
                at = step.t_started
                self.assertEqual([o["b"] for o in step.get_observations()], [at, at + 2])
                self.assertEqual([o["a"].tolist() for o in step.get_observations()],
                                 [[at] * 2, [at + 2] * 2])
                self.assertEqual((step.get_actions(0), step.get_rewards(0)), (at, 1.5))

    def test_wrong_input_is_refused(self):
        _, ours = made()
        with self.assertRaisesRegex(ValueError, "the buffer is empty"):
            ours.sample(4)
        ours.add([episode("a", 0, 5)])
        ours.sample(4)
        with self.assertRaisesRegex(ValueError, "must be 4 priorities, .* got 2"):
            ours.update_priorities([1.0, 2.0])
        with self.assertRaisesRegex(ValueError, "priorities must be finite, got nan"):
            ours.update_priorities([1.0, 2.0, np.nan, 1.0])
        ours.update_priorities([1.0, 2.0, 1.0, 1.0])
        with self.assertRaisesRegex(ValueError, "num_items or batch_size_B"):
            ours.sample(4, batch_size_B=4)
        with self.assertRaisesRegex(ValueError, "beta must be >= 0, got -1"):
            ours.sample(4, beta=-1)
        with self.assertRaisesRegex(ValueError, "weight must be a priority >= 0, got -2"):
            ours.add([episode("b", 0, 5)], weight=-2)
        self.assertEqual(ours.get_num_timesteps(), 5)
        for options in ({"alpha": -1}, {"capacity": 0}):
            with self.assertRaisesRegex(ValueError, "must be >= "):
                Ours(**options)

    def test_more_steps_ahead_than_any_episode_has(self):
        _, ours = made()
        ours.add([episode("a", 0, 5)])
        with self.assertRaisesRegex(ValueError, "n_step is 6"):
            ours.sample(2, n_step=6)

    def test_priorities_of_evicted_steps_are_ignored(self):
        _, ours = made(capacity=20)
        ours.add([episode("a", 0, 10)])
        ours.sample(50)
        ours.add([episode("b", 0, 15), episode("c", 0, 3)])
        ours.update_priorities(np.full(50, 5.0))
        self.assertEqual({s.get_actions(0) // 1000 for s in ours.sample(200)}, {98, 99})
        self.assertEqual(ours._max_priority, 1.0)

    def test_state(self):
        _, ours = made()
        ours.add([episode("a", 0, 10), episode("b", 0, 12)])
        ours.sample(30)
        ours.update_priorities(np.linspace(0.1, 3, 30))
        state = pickle.loads(pickle.dumps(ours.get_state()))
        again = Ours(100, alpha=0.7)
        again.set_state(state)
        for buffer in (ours, again):
            buffer.add([episode("a", 10, 5, "terminated")])
        a, b = ([step_of(s) for s in buffer.sample(50)] for buffer in (ours, again))
        self.assertEqual(a, b)

    def test_metrics(self):
        found = []
        for buffer in made():
            buffer.add([episode("a", 0, 10), episode("b", 0, 12)])
            buffer.sample(16, n_step=2)
            found.append(set(buffer.get_metrics()))
        self.assertEqual(*found)


class Learning(unittest.TestCase):
    def test_returns(self):
        theirs, ours = returns_of(framework_scripts.rllib, ("theirs", "ours"), 6_000)
        agree(self, "rllib", theirs, ours, 40)


if __name__ == "__main__":
    unittest.main()
