# SPDX-License-Identifier: Apache-2.0
"""A prioritized replay buffer for RLlib. Imports ray.rllib.

    from ray.rllib.algorithms.dqn import DQNConfig

    config = DQNConfig().environment("CartPole-v1").training(replay_buffer_config={
        "type": "reprise.frameworks.rllib.PrioritizedEpisodeReplayBuffer", "capacity": 50_000,
        "alpha": 0.6, "beta": 0.4})

The class takes the place of RLlib's `PrioritizedEpisodeReplayBuffer`, the default of DQN and SAC on
the new API stack, for one agent. It holds the same episodes and returns the same samples: a list of
episodes of one step. The priorities are in a sum tree in C.
"""

from __future__ import annotations

import copy
import math
import uuid
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Sequence, Set, Tuple, Union

import numpy as np
from ray.rllib.core import DEFAULT_AGENT_ID, DEFAULT_MODULE_ID
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer
from ray.rllib.utils import force_list
from ray.rllib.utils import replay_buffers

from reprise.frameworks._weights import Tree, Weights

__all__ = ["PrioritizedEpisodeReplayBuffer"]

_LEAST_PRIORITY = 1e-12  # as in RLlib
_MOST_ROUNDS = 10_000  # of draws for one sample


class _Places:
    """The place in the tree of each step, and the step at each place."""

    def __init__(self, capacity: int):
        self.episode = np.zeros(capacity, np.int64)  # number of the episode
        self.step = np.zeros(capacity, np.int64)  # in the episode
        self._free = np.arange(capacity)[::-1].copy()  # a stack
        self._free_count = capacity

    def take(self, episode: int, first_step: int, count: int) -> np.ndarray:
        """Returns places for steps of an episode."""
        self._free_count -= count
        places = self._free[self._free_count:self._free_count + count].copy()
        self.episode[places] = episode
        self.step[places] = np.arange(first_step, first_step + count)
        return places

    def give_back(self, places: np.ndarray) -> None:
        self._free[self._free_count:self._free_count + len(places)] = places
        self._free_count += len(places)

    def missing(self, count: int) -> bool:
        """True if there are fewer than `count` free places."""
        return count > self._free_count

    def used(self) -> int:
        """Returns how many places hold a step."""
        return len(self.step) - self._free_count

    def grow(self) -> None:
        """Doubles the number of places."""
        old = len(self.step)
        self.episode, self.step = (np.concatenate([a, np.zeros(old, np.int64)])
                                   for a in (self.episode, self.step))
        self._free = np.concatenate([self._free[:self._free_count], np.arange(old, 2 * old),
                                     np.zeros(old - self._free_count, np.int64)])
        self._free_count += old


def _discounted(rewards: Sequence[float], gamma: float) -> float:
    """Returns the sum of rewards, each discounted once more than the one before."""
    total = 0.0
    for reward in reversed(rewards):
        total = reward + gamma * total
    return total


def _item(values: InfiniteLookbackBuffer, at: int) -> Any:
    """Returns values.get(at)."""
    if isinstance(values.data, (list, np.ndarray)):
        return values.data[values.lookback + at]
    return values.get(at)  # a nest of arrays


def _copy_of(episode: SingleAgentEpisode) -> SingleAgentEpisode:
    """Returns a deep copy that has the same spaces: to copy those takes most of the time."""
    spaces = (episode.observation_space, episode.action_space, episode.rewards.space)
    return copy.deepcopy(episode, {id(space): space for space in spaces})


class _Template:
    """Makes episodes of one step. The constructors of RLlib do the same in five times the time, so
    one episode is constructed, and the others are copies of it with other data."""

    def __init__(self, like: SingleAgentEpisode):
        self.spaces = like.observation_space, like.action_space
        self._first = SingleAgentEpisode(
            observations=[like.get_observations(0)] * 2, observation_space=self.spaces[0],
            actions=[like.get_actions(0)], action_space=self.spaces[1], rewards=[0.0],
            len_lookback_buffer=0, extra_model_outputs={"weights": [0.0]})
        self._values = self._first.extra_model_outputs["weights"]
        self._prefix, self._count = uuid.uuid4().hex, 0

    def fits(self, episode: SingleAgentEpisode) -> bool:
        return self.spaces[0] is episode.observation_space and (
            self.spaces[1] is episode.action_space)

    @staticmethod
    def _with(values: InfiniteLookbackBuffer, data: List[Any]) -> InfiniteLookbackBuffer:
        copied = InfiniteLookbackBuffer.__new__(InfiniteLookbackBuffer)
        copied.__dict__.update(values.__dict__)
        copied.data = data
        return copied

    def make(self, at: int, ends: Tuple[bool, bool], fields: Dict[str, List[Any]],
             extra: Dict[str, List[Any]]) -> SingleAgentEpisode:
        """Returns the step `at` of an episode, with these fields and extra model outputs. `ends`:
        whether the episode is terminated, truncated."""
        made, first = SingleAgentEpisode.__new__(SingleAgentEpisode), self._first
        for name in SingleAgentEpisode.__slots__:
            setattr(made, name, getattr(first, name))
        self._count += 1
        made.id_ = f"{self._prefix}{self._count:x}"
        made.t_started, made.t = at, at + 1
        made.is_terminated, made.is_truncated = ends
        made._custom_data = {}
        for name, data in fields.items():
            setattr(made, name, self._with(getattr(first, name), data))
        made.extra_model_outputs = {k: self._with(self._values, v) for k, v in extra.items()}
        return made


class PrioritizedEpisodeReplayBuffer(replay_buffers.PrioritizedEpisodeReplayBuffer):
    """Episodes whose steps are drawn by priority (Schaul et al., 2016).

    The methods and their arguments are those of RLlib's class. A step is drawn with a probability
    proportional to priority^alpha. A new step has the largest priority that was given so far.
    When the buffer is full, whole episodes are removed, the oldest first.

    Args:
      capacity: how many steps the buffer holds.
      batch_size_B: how many steps `sample` draws, if it is not told.
      batch_length_T: must be 0 or 1: RLlib has no prioritized sequences either.
      alpha: how much priorities matter.
      seed: the same seed and calls give the same samples. None: a random seed.
    """

    def __init__(self, capacity: int = 10000, *, batch_size_B: int = 16, batch_length_T: int = 1,
                 alpha: float = 1.0, metrics_num_episodes_for_smoothing: int = 100,
                 seed: Optional[int] = None, **kwargs: Any):
        if alpha < 0:
            raise ValueError(f"alpha must be >= 0, got {alpha}")
        if capacity < 1:
            raise ValueError(f"capacity must be >= 1, got {capacity}")
        # The constructor of the base class would make its trees, which take long.
        replay_buffers.EpisodeReplayBuffer.__init__(
            self, capacity=capacity, batch_size_B=batch_size_B, batch_length_T=batch_length_T,
            metrics_num_episodes_for_smoothing=metrics_num_episodes_for_smoothing)
        self._alpha, self._max_priority, self._seed = alpha, 1.0, seed
        self.rng = np.random.default_rng(seed)  # draws the n of n-step returns
        self._tree, self._weights = Tree(capacity, seed), Weights(capacity)
        self._places = _Places(capacity)
        self._places_of: Deque[List[np.ndarray]] = deque()  # of each episode
        self._template: Optional[_Template] = None
        self._forget_sample()

    def _forget_sample(self) -> None:
        self._last_sampled_indices = np.empty(0, np.int64)
        self._last_sampled_episodes = np.empty(0, np.int64)

    def get_num_timesteps(self, module_id: Optional[str] = None) -> int:
        """Returns how many steps are in the buffer."""
        return self._places.used()

    def add(self, episodes: Union[List[SingleAgentEpisode], SingleAgentEpisode],
            weight: Optional[float] = None) -> None:
        """Adds episodes, or further steps of episodes that are in the buffer. `weight` is the
        priority of the steps."""
        episodes = force_list(episodes)
        priority = self._max_priority if weight is None else weight
        if not 0 <= priority < math.inf:
            raise ValueError(f"weight must be a priority >= 0, got {weight}")
        priority = max(priority, _LEAST_PRIORITY)
        added = sum(len(episode) for episode in episodes)
        self._num_timesteps += added
        self._num_timesteps_added += added
        evicted = self._evict(episodes)
        steps_evicted = sum(len(episode) for episode in evicted.values())
        steps_added = episodes_added = 0
        for episode in episodes:
            if episode.id_ not in evicted:
                episodes_added += self._add_one(episode, priority)
                steps_added += len(episode)
        agents, modules = DEFAULT_AGENT_ID, DEFAULT_MODULE_ID
        self._update_add_metrics(
            num_episodes_added=episodes_added, num_env_steps_added=steps_added,
            num_episodes_evicted=len(evicted), num_env_steps_evicted=steps_evicted,
            agent_to_num_episodes_added={agents: episodes_added},
            agent_to_num_steps_added={agents: steps_added},
            agent_to_num_episodes_evicted={agents: len(evicted)},
            agent_to_num_steps_evicted={agents: steps_evicted},
            module_to_num_episodes_added={modules: episodes_added},
            module_to_num_steps_added={modules: steps_added},
            module_to_num_episodes_evicted={modules: len(evicted)},
            module_to_num_steps_evicted={modules: steps_evicted})

    def _evict(self, episodes: List[SingleAgentEpisode]) -> Dict[str, SingleAgentEpisode]:
        """Removes the oldest episodes, until there is space for new steps, which are counted
        already. The last episode stays, however long it is. If an episode is removed, its new steps
        are not added. Returns what was removed, by name."""
        evicted: Dict[str, SingleAgentEpisode] = {}
        lengths = {episode.id_: len(episode) for episode in reversed(episodes)}
        left = len(self.episode_id_to_index.keys() | lengths.keys())
        while self._num_timesteps > self.capacity and left != 1 and self.episodes:
            episode = self.episodes.popleft()
            evicted[episode.id_] = episode
            del self.episode_id_to_index[episode.id_]
            places = np.concatenate(self._places_of.popleft())
            self._tree.set(places, 0.0)
            self._weights.set(places, np.inf)
            self._places.give_back(places)
            new_steps = lengths.get(episode.id_, 0)
            self._num_timesteps -= new_steps + len(episode)
            self._num_timesteps_added -= new_steps
            self._num_episodes_evicted += 1
            left -= 1
        return evicted

    def _add_one(self, episode: SingleAgentEpisode, priority: float) -> bool:
        """Adds the steps of an episode. Returns whether the episode is new."""
        episode = _copy_of(episode)
        number = self.episode_id_to_index.get(episode.id_)
        is_new = number is None
        if number is None:
            number, first = len(self.episodes) + self._num_episodes_evicted, 0
            self.episodes.append(episode)
            self._places_of.append([np.empty(0, np.int64)])
            self.episode_id_to_index[episode.id_] = number
        else:
            existing = self.episodes[number - self._num_episodes_evicted]
            first = len(existing)
            existing.concat_episode(episode)
        while self._places.missing(len(episode)):
            self._grow()
        places = self._places.take(number, first, len(episode))
        self._places_of[number - self._num_episodes_evicted].append(places)
        self._set_weights(places, priority ** self._alpha)
        return is_new

    def _set_weights(self, places: np.ndarray, weights: Any) -> None:
        self._tree.set(places, weights)
        self._weights.set(places, weights)

    def _grow(self) -> None:
        """Makes space for more steps than the capacity, which one long episode may have."""
        used = np.flatnonzero(np.isfinite(self._weights.values))
        weights = self._weights.values[used]
        self._places.grow()
        capacity = len(self._places.step)
        self._tree, self._weights = Tree(capacity, self._seed), Weights(capacity)
        self._set_weights(used, weights)

    def _draw(self, count: int, n_step: Union[int, Tuple[int, int], None]
              ) -> Tuple[List[int], List[int], int]:
        """Draws places whose episode has n more steps. Returns them, each n, and how many draws
        were discarded."""
        places: List[int] = []
        steps: List[int] = []
        discarded = rounds = 0
        while len(places) < count:
            rounds += 1
            if rounds > _MOST_ROUNDS:
                raise ValueError(f"n_step is {n_step}, and {discarded} draws found only "
                                 f"{len(places)} of {count} steps with so many steps after them")
            drawn = self._tree.draw(count - len(places))
            if isinstance(n_step, tuple):
                wanted = self.rng.integers(n_step[0], n_step[1], len(drawn)).tolist()
            else:
                wanted = [n_step or 1] * len(drawn)
            numbers = self._places.episode[drawn] - self._num_episodes_evicted
            ends = self._places.step[drawn] + wanted
            for place, number, end, n in zip(drawn.tolist(), numbers.tolist(), ends.tolist(),
                                             wanted):
                if end > len(self.episodes[number]):
                    discarded += 1
                else:
                    places.append(place)
                    steps.append(n)
        return places, steps, discarded

    def sample(self, num_items: Optional[int] = None, *, batch_size_B: Optional[int] = None,
               batch_length_T: Optional[int] = None,
               n_step: Union[int, Tuple[int, int], None] = None, beta: Optional[float] = 0.0,
               gamma: float = 0.99, include_infos: bool = False,
               include_extra_model_outputs: bool = False, to_numpy: bool = False,
               **kwargs: Any) -> List[SingleAgentEpisode]:
        """Draws steps. Returns an episode of one step for each: the observation, the action, the
        sum of n discounted rewards, and the observation n steps later, with the importance weight
        and n as `weights` and `n_step` of its extra model outputs."""
        if num_items is not None and batch_size_B is not None:
            raise ValueError("sample() takes num_items or batch_size_B, got both")
        if beta is not None and beta < 0:
            raise ValueError(f"beta must be >= 0, got {beta}")
        if not self._places.used():
            raise ValueError("the buffer is empty: add episodes before sample()")
        count = num_items or batch_size_B or self.batch_size_B
        places, steps, discarded = self._draw(count, n_step)
        self._last_sampled_indices = np.array(places)
        self._last_sampled_episodes = self._places.episode[self._last_sampled_indices]
        values = self._weights.values[self._last_sampled_indices]
        weights = ((values / self._weights.minimum()) ** -(beta or 0.0)).tolist()
        sampled = []
        numbers = (self._last_sampled_episodes - self._num_episodes_evicted).tolist()
        at = self._places.step[self._last_sampled_indices].tolist()
        for number, step, n, weight in zip(numbers, at, steps, weights):
            sampled.append(self._step_of(self.episodes[number], step, n, gamma, weight,
                                         (include_infos, include_extra_model_outputs)))
            if to_numpy:
                sampled[-1].to_numpy()
        self.sampled_timesteps += count
        self._count_sample(count, steps, discarded)
        return sampled

    def _step_of(self, episode: SingleAgentEpisode, at: int, n: int, gamma: float, weight: float,
                 included: Tuple[bool, bool]) -> SingleAgentEpisode:
        """Returns one step as an episode."""
        if self._template is None or not self._template.fits(episode):
            self._template = _Template(episode)
        last = at + n >= len(episode)
        extra: Dict[str, List[Any]] = {"weights": [weight], "n_step": [n]}
        if included[1]:
            extra.update({key: [_item(values, at)]
                          for key, values in episode.extra_model_outputs.items()})
        observations, rewards, infos = episode.observations, episode.rewards, episode.infos
        fields = {
            "observations": [_item(observations, at), _item(observations, at + n)],
            "infos": [_item(infos, at), _item(infos, at + n)] if included[0] else [{}, {}],
            "actions": [_item(episode.actions, at)],
            "rewards": [np.float64(_item(rewards, at) if n == 1 else
                                   _discounted(rewards.get(slice(at, at + n)), gamma))]}
        ends = (last and episode.is_terminated, last and episode.is_truncated)
        return self._template.make(at, ends, fields, extra)

    def _count_sample(self, count: int, steps: List[int], discarded: int) -> None:
        distinct: Set[int] = set(self._last_sampled_indices.tolist())
        episodes = len(set(self._last_sampled_episodes.tolist()))
        n = sum(steps) / count
        agents, modules = DEFAULT_AGENT_ID, DEFAULT_MODULE_ID
        self._update_sample_metrics(
            num_env_steps_sampled=count, num_episodes_per_sample=episodes,
            num_env_steps_per_sample=len(distinct), sampled_n_step=n, num_resamples=discarded,
            agent_to_num_steps_sampled={agents: count},
            agent_to_num_episodes_per_sample={agents: episodes},
            agent_to_num_steps_per_sample={agents: len(distinct)},
            agent_to_sampled_n_step={agents: n}, agent_to_num_resamples={agents: discarded},
            module_to_num_steps_sampled={modules: count},
            module_to_num_episodes_per_sample={modules: episodes},
            module_to_num_steps_per_sample={modules: len(distinct)},
            module_to_sampled_n_step={modules: n}, module_to_num_resamples={modules: discarded})

    def update_priorities(self, priorities: Any, module_id: Optional[str] = None) -> None:
        """Sets the priorities of the steps that were sampled last, usually absolute TD errors."""
        places = self._last_sampled_indices
        if len(priorities) != len(places):
            raise ValueError(f"there must be {len(places)} priorities, one for each step of the "
                             f"last sample, got {len(priorities)}")
        given = np.asarray(priorities, np.float64).reshape(-1)
        if not np.isfinite(given).all():
            raise ValueError("priorities must be finite, got "
                             f"{given[~np.isfinite(given)][0]}; does the loss diverge?")
        given = np.maximum(given, _LEAST_PRIORITY)
        here = self._last_sampled_episodes >= self._num_episodes_evicted  # not evicted since then
        self._forget_sample()
        if here.any():
            self._set_weights(places[here], given[here] ** self._alpha)
            self._max_priority = max(self._max_priority, float(given[here].max()))

    def get_state(self) -> Dict[str, Any]:
        """Returns the state, for checkpoints."""
        state = replay_buffers.EpisodeReplayBuffer.get_state(self)
        state.update({"places": copy.deepcopy(self._places), "tree": copy.deepcopy(self._tree),
                      "weights": copy.deepcopy(self._weights),
                      "places_of": copy.deepcopy(self._places_of), "max_priority": self._max_priority,
                      "last_sampled_indices": self._last_sampled_indices.copy(),
                      "last_sampled_episodes": self._last_sampled_episodes.copy()})
        return state

    def set_state(self, state: Dict[str, Any]) -> None:
        """Restores a state."""
        replay_buffers.EpisodeReplayBuffer.set_state(self, state)
        self._places, self._tree = copy.deepcopy((state["places"], state["tree"]))
        self._weights, self._places_of = copy.deepcopy((state["weights"], state["places_of"]))
        self._max_priority = state["max_priority"]
        self._last_sampled_indices = state["last_sampled_indices"].copy()
        self._last_sampled_episodes = state["last_sampled_episodes"].copy()
