# SPDX-License-Identifier: Apache-2.0
"""DQN over Gymnasium environments. The learning is in C (docs/agents/dqn.md)."""

import difflib
import os
import time
from typing import Any, Dict, Optional, Tuple, Union

import numpy as np
from reprise import _rl
from reprise.rl.agent_file import add_metadata, read_metadata
from reprise.rl.callbacks import Callbacks
from reprise.rl.group import Group, seeds_of
from reprise.rl.interrupt import Interrupt
from reprise.rl.progress import Bar, Episodes, table
from reprise.rl.source import EnvSource
from reprise.rl.spaces import Observations

Path = Union[str, "os.PathLike[str]"]
SUFFIX = ".safetensors"
# Names of Stable-Baselines3 and others, and the settings that they are here.
SB3_NAMES = {
    "batch_size": "batch", "buffer_size": "capacity", "exploration_final_eps": "epsilon_last",
    "exploration_fraction": "epsilon_steps", "exploration_initial_eps": "epsilon_first",
    "gamma": "discount", "learning_rate": "rate", "learning_starts": "start",
    "max_grad_norm": "max_norm", "net_arch": "hidden", "policy_kwargs": "hidden",
    "target_update_interval": "target_every", "tau": "target_rate",
    "lr": "rate", "train_freq": "steps_per_update", "n_steps": "n_step", "n_envs": "copies",
}


def _check_names(settings: Dict[str, Any]) -> None:
    names = [row[0] for row in _rl.dqn_settings()]
    for name in settings:
        if name in names:
            continue
        near = difflib.get_close_matches(name, [*SB3_NAMES, *names], 1)
        hint = f"; did you mean {SB3_NAMES.get(near[0], near[0])!r}?" if near else ""
        raise TypeError(f"DQN has no setting {name!r}{hint}")


class DQN:
    """A DQN agent: double, dueling, n-step, prioritized, each a setting.

    `env` is the name of a Gymnasium environment, a callable that makes one, or an environment.
    Its actions are Discrete; its observations are numbers (float32 for the network) or images of
    bytes. `seed` makes runs repeatable. With `verbose=1` learn() prints a table now and then. With
    `workers=N` the environments run in N processes, which pays when a step takes long.

    The settings, with their defaults. The environments that the C library has, by the name of
    Gymnasium's, may have other defaults (docs/agents/dqn.md).

      copies=8                 environments stepped as one group; 1 if `env` is an environment
      hidden=64                units of a hidden layer
      layers=2                 hidden layers
      dueling=True             streams for value and advantages
      double_q=True            online network picks the next action
      n_step=5                 rewards in a target
      discount=0.99            discount factor per step
      reward_scale=1.0         factor of all rewards
      rmsprop=False            centred RMSProp in place of Adam
      rate=0.002               learning rate of the optimizer
      adam_epsilon=1e-08       epsilon of the optimizer
      max_norm=10.0            clip gradients to this norm; 0: never
      huber=1.0                loss is linear from this error on; 0: square
      batch=32                 items sampled for an update
      steps_per_update=4       items inserted per update
      start=1000               items before the first update
      capacity=10000           items in the replay
      prioritized=True         sample by TD error
      priority_exponent=0.6    alpha of priorities
      weight_exponent=0.4      beta of importance weights
      target_every=100         updates between changes of the target net
      target_rate=1.0          soft update rate of the target net; 1: copy
      ladder=True              a fixed epsilon per environment, .4 to .0007
      epsilon_first=1.0        without ladder: epsilon at first
      epsilon_last=0.05        without ladder: epsilon at last
      epsilon_steps=10000      without ladder: steps from first to last
      max_loss=1000000.0       loss above which a run has diverged
      learners=1               threads that learn together
      async_learners=False     each learner applies its gradients when ready
    """

    def __init__(self, env: Any, *, seed: Optional[int] = None, verbose: int = 0, workers: int = 0,
                 **settings: float) -> None:
        _check_names(settings)
        source = EnvSource(env)
        if source.single is not None:
            if settings.setdefault("copies", 1) != 1:
                raise ValueError(f"there is one environment, {source.name!r}, for "
                                 f"{settings['copies']} copies: pass its name or a callable that "
                                 "makes it")
            if workers:
                raise ValueError("workers make their environments themselves: pass a name or a "
                                 "callable, not an environment")
        self._init(source.observations, source.action_count, source.first_action, source.name,
                   seed, verbose, workers, settings)
        self._source: Optional[EnvSource] = source

    def _init(self, observations: Observations, action_count: int, first_action: int, name: str,
              seed: Optional[int], verbose: int, workers: int, settings: Dict[str, Any]) -> None:
        if seed is None:
            seed = int.from_bytes(os.urandom(4), "little")
        if not 0 <= seed < 1 << 64:
            raise ValueError(f"seed must be from 0 to 2^64 - 1, got {seed}")
        if workers < 0:
            raise ValueError(f"workers must be >= 0, got {workers}")
        self.seed, self.verbose, self.workers = seed, verbose, workers
        self.num_timesteps = 0
        self._observations, self._name = observations, name
        self._action_count, self._first_action = action_count, first_action
        self._agent = _rl.Dqn(settings, name=name, shape=observations.shape,
                              pixels=observations.pixels, actions=action_count, seed=seed)
        self._copies = int(self._agent.settings()["copies"])
        self._source = None
        self._group: Any = None
        self._whole = False  # the episodes of agent and group are the same ones
        self._seeded = False
        self._episodes = Episodes(self._copies)
        self._random = np.random.default_rng(seed)
        self._metrics: Dict[str, float] = {}
        self._began_s, self._began_steps = time.monotonic(), 0  # of the last call of learn()

    @property
    def settings(self) -> Dict[str, Any]:
        """All settings by name."""
        return self._agent.settings()

    @property
    def exploration_rate(self) -> float:
        """The epsilon of the copy that explores most, now."""
        return float(self._read()["epsilon"])

    def _read(self) -> Dict[str, float]:
        """Reads the numbers of the agent. Means that are not known now are the last known."""
        now = self._agent.metrics()
        self._metrics = {key: value if value == value else self._metrics.get(key, value)
                         for key, value in now.items()}
        return self._metrics

    def get_env(self) -> Any:
        """Returns the environment as it was given; None if there is none."""
        return self._source.given if self._source is not None else None

    def set_env(self, env: Any) -> None:
        """Learns in another environment from now on. It must have the same spaces."""
        source = EnvSource(env)
        self._check_source(source)
        self._close_group()
        self._source, self._name, self._seeded = source, source.name, False

    def _check_source(self, source: EnvSource) -> None:
        if source.single is not None and (self._copies != 1 or self.workers):
            raise ValueError(f"the agent has {self._copies} copies and {self.workers} workers: "
                             f"pass the name of {source.name!r} or a callable that makes it")
        if source.observations != self._observations:
            raise ValueError(f"environment {source.name!r} has observations {source.observations}; "
                             f"the agent has {self._observations}")
        if (source.action_count, source.first_action) != (self._action_count, self._first_action):
            raise ValueError(f"environment {source.name!r} has {source.action_count} actions from "
                             f"{source.first_action} on; the agent has {self._action_count} from "
                             f"{self._first_action} on")

    def _close_group(self) -> None:
        if self._group is not None:
            self._group.close()
        self._group, self._whole = None, False

    def _begin(self) -> None:
        """Makes the group, if there is none, and begins episodes, if they are not whole."""
        if self._source is None:
            raise ValueError("the agent has no environment: call set_env(), or load(path, env=)")
        if self._whole:
            return
        if self._group is not None and self.workers:
            self._close_group()  # replies of a step that was cut short may be in their pipes
        if self._group is None:
            if self.workers:
                from reprise.rl.workers import WorkerGroup
                self._group = WorkerGroup(self._source, self._copies,
                                          min(self.workers, self._copies))
            else:
                self._group = Group(self._source, self._copies)
            self._seeded = False
        # Episodes after a failure are others than those before it.
        more = self._read()["inserts"]
        self._group.reset(None if self._seeded else seeds_of(self.seed + int(more), self._copies))
        self._seeded = True
        self._agent.begin(self._group.arrays.observations)
        self._episodes.begin()
        self._whole = True

    def _step(self, before: np.ndarray) -> None:
        """Acts, steps all copies, learns."""
        arrays = self._group.arrays
        self._agent.act(arrays.observations, arrays.actions)
        np.copyto(before, arrays.observations)
        self._whole = False
        try:
            self._group.step()
        except RuntimeError:
            self._close_group()
            raise
        self._agent.step(before, arrays.actions, arrays.observations, arrays.last, arrays.rewards,
                         arrays.terminated, arrays.truncated)
        self._whole = True
        self.num_timesteps += self._copies
        self._episodes.add(arrays.rewards, arrays.terminated | arrays.truncated)

    def learn(self, total_timesteps: int, callback: Any = None, log_interval: int = 4,
              tb_log_name: str = "DQN", reset_num_timesteps: bool = True,
              progress_bar: bool = False) -> "DQN":
        """Learns for a number of steps of all copies together. Returns the agent.

        `callback` is called after every step of the group: a function of two dicts, the locals and
        the globals, or an object with on_step(), or a list of them. False stops. With `verbose`, a
        table is printed every `log_interval` episodes. A further call goes on with the episodes,
        the replay and the networks of the last one. `tb_log_name` is not used.

        Ctrl-C stops after the step in progress and raises KeyboardInterrupt; the agent can be used
        and saved afterwards, and goes on learning if asked. A second Ctrl-C does not wait.
        """
        if total_timesteps < 0:
            raise ValueError(f"total_timesteps must be >= 0, got {total_timesteps}")
        callbacks = Callbacks(callback)
        if reset_num_timesteps:
            self.num_timesteps = 0
        began_steps, goal = self.num_timesteps, self.num_timesteps + total_timesteps
        self._began_s, self._began_steps = time.monotonic(), began_steps
        with Interrupt() as interrupt:
            self._begin()
            arrays = self._group.arrays
            before = np.empty_like(arrays.observations)
            values = {"self": self, "total_timesteps": total_timesteps, "callback": callback,
                      "log_interval": log_interval, "rewards": arrays.rewards,
                      "new_obs": arrays.observations, "num_timesteps": self.num_timesteps,
                      "dones": arrays.terminated | arrays.truncated}
            bar, logged = Bar(total_timesteps, progress_bar), self._episodes.count
            callbacks.start(self, values)
            while self.num_timesteps < goal and not interrupt.asked:
                self._step(before)
                bar.show(self.num_timesteps - began_steps, self._episodes)
                if self.verbose and self._episodes.count >= logged + log_interval > logged:
                    logged = self._episodes.count
                    print(table(self.metrics()), flush=True)
                if callbacks:
                    values["num_timesteps"] = self.num_timesteps
                    values["dones"] = arrays.terminated | arrays.truncated
                    if not callbacks.step(values):
                        break
            bar.show(self.num_timesteps - began_steps, self._episodes, force=True)
            callbacks.end()
        return self

    def metrics(self) -> Dict[str, float]:
        """Returns numbers about learning, by the names of Stable-Baselines3.

        Those of updates are means since the last call, or the last known.
        """
        inner, episodes = self._read(), self._episodes
        seconds = time.monotonic() - self._began_s
        steps = self.num_timesteps - self._began_steps
        return {
            "rollout/ep_len_mean": episodes.mean_length,
            "rollout/ep_rew_mean": episodes.mean_return,
            "rollout/exploration_rate": inner["epsilon"],
            "time/episodes": episodes.count,
            "time/fps": int(steps / seconds) if seconds > 0 else 0,
            "time/time_elapsed": int(seconds),
            "time/total_timesteps": self.num_timesteps,
            "train/learning_rate": inner["rate"],
            "train/loss": inner["loss"],
            "train/n_updates": inner["updates"],
            "train/q_value": inner["value"],
            "train/td_error": inner["error"],
            "train/gradient_norm": inner["norm"],
            "replay/size": inner["item_size"],
        }

    def predict(self, observation: Any, state: Any = None, episode_start: Any = None,
                deterministic: bool = True) -> Tuple[Any, None]:
        """Returns the action for an observation, or those for a batch of them, and None.

        Without `deterministic`, actions are random with probability `exploration_rate`. `state` and
        `episode_start` are not used.
        """
        rows, several = self._observations.rows(observation)
        actions = np.empty(len(rows), np.int32)
        self._agent.predict(rows, actions, len(rows))
        if not deterministic:
            explore = self._random.random(len(rows)) < self.exploration_rate
            random = self._random.integers(0, self._action_count, len(rows), np.int32)
            actions = np.where(explore, random, actions)
        chosen = actions.astype(np.int64) + self._first_action
        return (chosen if several else chosen[0]), None

    def save(self, path: Path) -> None:
        """Saves networks and settings as a safetensors file; ".safetensors" is added to a name
        without a suffix. The replay and the state of the optimizer are not saved."""
        name = _with_suffix(path)
        part = f"{name}.part"
        self._agent.save(part)
        text = {"reprise.agent": "dqn", "reprise.env": self._name,
                "reprise.num_timesteps": str(self.num_timesteps),
                "actions.count": str(self._action_count),
                "actions.first": str(self._first_action), **self._observations.as_text()}
        for key, value in self._agent.settings().items():
            text[f"dqn.{key}"] = repr(float(value))
        add_metadata(part, name, text)

    @classmethod
    def load(cls, path: Path, env: Any = None, *, seed: Optional[int] = None, verbose: int = 0,
             workers: int = 0, **settings: float) -> "DQN":
        """Loads an agent that save() wrote. Settings that are given replace those of the file.

        Without `env` it can predict; set_env() makes it learn.
        """
        _check_names(settings)
        name = _with_suffix(path)
        text = read_metadata(name)
        try:
            known: Dict[str, Any] = {row[0]: float(text[f"dqn.{row[0]}"])
                                     for row in _rl.dqn_settings() if f"dqn.{row[0]}" in text}
            observations = Observations.from_text(text)
            actions = int(text["actions.count"]), int(text["actions.first"])
        except (KeyError, ValueError) as error:
            raise ValueError(f"{name!r}: the settings of the agent are damaged: {error}") from None
        known.update(settings)
        source = EnvSource(env) if env is not None else None
        if source is not None and source.single is not None:
            known.setdefault("copies", 1)
            if "copies" not in settings:
                known["copies"] = 1
        agent = cls.__new__(cls)
        agent._init(observations, *actions, text.get("reprise.env", "?"), seed, verbose, workers,
                    known)
        if source is not None:
            agent._check_source(source)
            agent._source, agent._name = source, source.name
        agent._agent.load(name)
        return agent

    def close(self) -> None:
        """Ends workers and closes the environments that the agent made."""
        self._close_group()


def _with_suffix(path: Path) -> str:
    name = os.fspath(path)
    return name if os.path.splitext(name)[1] else name + SUFFIX
