# SPDX-License-Identifier: Apache-2.0
"""Replay buffers for Stable-Baselines3. Imports stable_baselines3.

    from stable_baselines3 import DQN
    from reprise.frameworks.stable_baselines3 import PrioritizedDQN, ReplayBuffer

    DQN("MlpPolicy", "CartPole-v1", replay_buffer_class=ReplayBuffer).learn(50_000)
    PrioritizedDQN("MlpPolicy", "CartPole-v1").learn(50_000)

`ReplayBuffer` takes the place of Stable-Baselines3's `ReplayBuffer` and `DictReplayBuffer` in every
off-policy algorithm: DQN, DDPG, TD3, SAC and those of sb3-contrib. `PrioritizedReplayBuffer` draws
by priority. The algorithms of Stable-Baselines3 do not update priorities, so `PrioritizedDQN` is a
DQN that does. `HerReplayBuffer` and `NStepReplayBuffer` are not replaced.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import DQN
from stable_baselines3.common import buffers
from stable_baselines3.common.type_aliases import DictReplayBufferSamples, ReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from reprise import replay_buffer

__all__ = ["PrioritizedDQN", "PrioritizedReplayBuffer", "PrioritizedSamples", "ReplayBuffer"]

Observations = Union[np.ndarray, Dict[str, np.ndarray]]
Tensors = Union[torch.Tensor, Dict[str, torch.Tensor]]


class PrioritizedSamples(NamedTuple):
    """What `PrioritizedReplayBuffer.sample` returns: the fields of Stable-Baselines3's samples,
    and two more.

    Fields:
      weights: importance weights, one row for each transition; the largest is 1.
      indices: numbers of the transitions, for `PrioritizedReplayBuffer.update_priorities`.
    """

    observations: Tensors
    actions: torch.Tensor
    next_observations: Tensors
    dones: torch.Tensor
    rewards: torch.Tensor
    discounts: Optional[torch.Tensor]
    weights: torch.Tensor
    indices: np.ndarray


def _frame_count(shape: Tuple[int, ...]) -> int:
    """Returns how many frames an observation has: one for each channel of an image."""
    return shape[0] if len(shape) == 3 and shape[0] < min(shape[1:]) else 1


class ReplayBuffer(buffers.ReplayBuffer):
    """A buffer that draws uniformly, for the argument `replay_buffer_class` of an algorithm.

    The arguments are those of Stable-Baselines3's `ReplayBuffer`, and the samples have the same
    values, shapes, dtypes and probabilities. There are four differences:

    - Observations may be dicts. There is no second class for them.
    - With `optimize_memory_usage`, observations that are equal are stored once, and so is each
      image of a stack. Samples are exact, also at the ends of episodes. So, unlike in
      Stable-Baselines3, `handle_timeout_termination` and dict observations can be combined
      with it.
    - `observations`, `next_observations`, `actions`, `rewards`, `dones` and `timeouts` are copies.
      Each use reads the whole buffer, and writing to them changes nothing.
    - Memory is allocated as transitions are added.

    Args:
      seed: the same seed and calls give the same samples. None: a seed that is drawn from
        numpy.random, which the argument `seed` of an algorithm seeds.
    """

    _alpha, _beta, _epsilon = 0.0, 0.0, 0.0

    def __init__(self, buffer_size: int, observation_space: spaces.Space,
                 action_space: spaces.Space, device: Union[torch.device, str] = "auto",
                 n_envs: int = 1, optimize_memory_usage: bool = False,
                 handle_timeout_termination: bool = True, *, seed: Optional[int] = None):
        # The constructor of buffers.ReplayBuffer would allocate the arrays.
        buffers.BaseBuffer.__init__(self, buffer_size, observation_space, action_space, device,
                                    n_envs=n_envs)
        self.buffer_size = max(buffer_size // n_envs, 1)
        self.optimize_memory_usage = optimize_memory_usage
        self.handle_timeout_termination = handle_timeout_termination
        self._keys: Optional[List[str]] = None
        if isinstance(observation_space, spaces.Dict):
            self._keys = list(observation_space.spaces)
        spec: Dict[str, Any] = {}
        for part in ("observations", "next_observations"):
            spec.update(self._observation_columns(part))
        frames = ({name: _frame_count(shape) for name, (shape, _) in spec.items()}
                  if optimize_memory_usage else None)
        self._observation_dtypes = {name: dtype for name, (_, dtype) in spec.items()}
        self._action_dtype = np.dtype(self._maybe_cast_dtype(action_space.dtype))
        spec["actions"] = ((self.action_dim,), self._action_dtype)
        spec["rewards"] = ((1,), np.float32)
        spec["dones"] = ((1,), np.float32)  # ends of episodes that are no timeouts
        spec["timeouts"] = ((1,), np.bool_)
        if seed is None:
            seed = int(np.random.randint(0, 2**31))
        self._rows = replay_buffer.ReplayBuffer(
            self.buffer_size * n_envs, spec, alpha=self._alpha, beta=self._beta,
            epsilon=self._epsilon, seed=seed, frames=frames)
        self._no_timeouts = np.zeros(n_envs, np.bool_)
        self._first = 0  # the number of the row at place 0

    def _observation_columns(self, part: str) -> Dict[str, Any]:
        if self._keys is None:
            return {part: (self.obs_shape, np.dtype(self.observation_space.dtype))}
        return {f"{part}/{key}": (self.obs_shape[key],
                                  np.dtype(self.observation_space[key].dtype))
                for key in self._keys}

    def _rows_of(self, part: str, value: Observations) -> List[np.ndarray]:
        """Returns the values of the columns of an observation, in their order."""
        if self._keys is None:
            return [np.asarray(value, self._observation_dtypes[part])]
        return [np.asarray(value[key], self._observation_dtypes[f"{part}/{key}"])
                for key in self._keys]

    def add(self, obs: Observations, next_obs: Observations, action: np.ndarray,
            reward: np.ndarray, done: np.ndarray, infos: List[Dict[str, Any]]) -> None:
        timeouts = self._no_timeouts
        if self.handle_timeout_termination and np.count_nonzero(done):
            timeouts = np.array([info.get("TimeLimit.truncated", False) for info in infos],
                                np.bool_)
            done = np.asarray(done, np.bool_) & ~timeouts
        self._rows.add(*self._rows_of("observations", obs),
                       *self._rows_of("next_observations", next_obs),
                       np.asarray(action, self._action_dtype).reshape(self.n_envs, -1), reward, done,
                       timeouts)
        self.pos += 1
        if self.pos == self.buffer_size:
            self.full, self.pos = True, 0

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        """Returns an array of a sample as a tensor, without a copy if the device is the CPU."""
        if self.device.type == "cpu":
            return torch.from_numpy(array)
        return torch.as_tensor(array, device=self.device)

    def _observation(self, part: str, batch: Dict[str, np.ndarray],
                     env: Optional[VecNormalize]) -> Tensors:
        if self._keys is None:
            return self._tensor(self._normalize_obs(batch[part], env))
        parts = {key: batch[f"{part}/{key}"] for key in self._keys}
        return {key: self._tensor(value) for key, value in self._normalize_obs(parts, env).items()}

    def _fields(self, batch: Dict[str, np.ndarray],
                env: Optional[VecNormalize]) -> Tuple[Any, ...]:
        """Returns the fields of a sample, in the order of Stable-Baselines3."""
        return (self._observation("observations", batch, env), self._tensor(batch["actions"]),
                self._observation("next_observations", batch, env), self._tensor(batch["dones"]),
                self._tensor(self._normalize_reward(batch["rewards"], env)))

    def sample(self, batch_size: int, env: Optional[VecNormalize] = None) -> Any:
        fields = self._fields(self._rows.sample(batch_size), env)
        return (ReplayBufferSamples if self._keys is None else DictReplayBufferSamples)(*fields)

    def reset(self) -> None:
        super().reset()
        self._rows.clear()
        self._first = self._rows.added

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the buffer holds."""
        return self._rows.nbytes

    def _column(self, name: str) -> np.ndarray:
        """Returns all values of a column: an array like those of Stable-Baselines3's buffers."""
        shape, dtype = self._rows.columns[name]
        whole = np.zeros((self._rows.capacity, *shape), dtype)
        number = self._rows.added - len(self._rows) - self._first
        for block, _ in self._rows._blocks():
            places = np.arange(number, number + len(block[name])) % self._rows.capacity
            whole[places] = block[name]
            number += len(block[name])
        return whole.reshape(self.buffer_size, self.n_envs, *shape)

    def _observation_arrays(self, part: str) -> Observations:
        if self._keys is None:
            return self._column(part)
        return {key: self._column(f"{part}/{key}") for key in self._keys}

    @property
    def observations(self) -> Observations:
        """A copy of all observations: [place, environment, ...]."""
        return self._observation_arrays("observations")

    @property
    def next_observations(self) -> Observations:
        """A copy of all next observations."""
        return self._observation_arrays("next_observations")

    @property
    def actions(self) -> np.ndarray:
        """A copy of all actions."""
        return self._column("actions")

    @property
    def rewards(self) -> np.ndarray:
        """A copy of all rewards."""
        return self._column("rewards")[..., 0]

    @property
    def timeouts(self) -> np.ndarray:
        """A copy: which episodes ended here by a time limit."""
        return self._column("timeouts")[..., 0].astype(np.float32)

    @property
    def dones(self) -> np.ndarray:
        """A copy: which episodes ended here, also by a time limit."""
        return np.maximum(self._column("dones")[..., 0], self.timeouts)


class PrioritizedReplayBuffer(ReplayBuffer):
    """A buffer that draws by priority (Schaul et al., 2016), for an algorithm that updates
    priorities: `PrioritizedDQN`, or one of your own.

    A transition is drawn with a probability proportional to (priority + epsilon)^alpha. A new one
    has the largest priority that was given so far. The other arguments are those of
    `ReplayBuffer`.

    Args:
      alpha: how much priorities matter.
      beta: the exponent of the importance weights.
      epsilon: added to every priority, so that every transition can be drawn.
    """

    def __init__(self, buffer_size: int, observation_space: spaces.Space,
                 action_space: spaces.Space, device: Union[torch.device, str] = "auto",
                 n_envs: int = 1, optimize_memory_usage: bool = False,
                 handle_timeout_termination: bool = True, *, seed: Optional[int] = None,
                 alpha: float = 0.6, beta: float = 0.4, epsilon: float = 1e-6):
        self._alpha, self._beta, self._epsilon = alpha, beta, epsilon
        super().__init__(buffer_size, observation_space, action_space, device, n_envs,
                         optimize_memory_usage, handle_timeout_termination, seed=seed)

    @property
    def beta(self) -> float:
        """The exponent of the importance weights, if `sample` is given no other."""
        return self._beta

    def sample(self, batch_size: int, env: Optional[VecNormalize] = None,
               beta: Optional[float] = None) -> PrioritizedSamples:
        batch = self._rows.sample(batch_size, self._beta if beta is None else beta)
        weights = self._tensor(batch["weights"]).reshape(-1, 1)
        return PrioritizedSamples(*self._fields(batch, env), None, weights, batch["indices"])

    def update_priorities(self, indices: np.ndarray, priorities: np.ndarray) -> int:
        """Sets the priorities of sampled transitions, usually absolute TD errors. Those that have
        been overwritten since then are ignored. Returns the number of the others."""
        return self._rows.update_priorities(indices, priorities)


class PrioritizedDQN(DQN):
    """Stable-Baselines3's DQN with prioritized replay.

    The arguments are those of `DQN`. Those of the buffer are in `replay_buffer_kwargs`, for example
    `{"alpha": 0.6, "beta": 0.4}`. The exponent beta grows from that value to 1 over the steps of
    `learn`. A loss is multiplied by the importance weight of its transition, and the absolute TD
    error becomes the priority.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        kwargs.setdefault("replay_buffer_class", PrioritizedReplayBuffer)
        super().__init__(*args, **kwargs)

    def _learn_from(self, batch: PrioritizedSamples) -> Tuple[torch.Tensor, torch.Tensor]:
        """Makes one step of the optimizer. Returns the loss and the TD errors."""
        with torch.no_grad():
            best = self.q_net_target(batch.next_observations).amax(dim=1, keepdim=True)
            wanted = batch.rewards + self.gamma * (1 - batch.dones) * best
        taken = self.q_net(batch.observations).gather(1, batch.actions.long())
        each = torch.nn.functional.smooth_l1_loss(taken, wanted, reduction="none")
        loss = (batch.weights * each).mean()
        self.policy.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
        self.policy.optimizer.step()
        return loss.detach(), (taken.detach() - wanted).abs_()

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        buffer = self.replay_buffer
        if not isinstance(buffer, PrioritizedReplayBuffer):
            raise TypeError("PrioritizedDQN needs a PrioritizedReplayBuffer, got "
                            f"{type(buffer).__name__}")
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        beta = 1 - (1 - buffer.beta) * self._current_progress_remaining
        total = 0.0
        for _ in range(gradient_steps):
            batch = buffer.sample(batch_size, self._vec_normalize_env, beta)
            loss, errors = self._learn_from(batch)
            buffer.update_priorities(batch.indices, errors.cpu().numpy())
            total += loss.item()
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/loss", total / gradient_steps)
        self.logger.record("train/beta", beta)
