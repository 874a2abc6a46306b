# SPDX-License-Identifier: Apache-2.0
"""One training script for each framework, with the buffer as an argument.

bench/frameworks.py measures how long they take, and tests/frameworks whether they learn. Each is a
function of the task ("cartpole" or "wide"), the kind of the buffer ("theirs", "ours", or
"prioritized" in Stable-Baselines3), the number of steps, the seed, and a clock that is told the
methods of the buffer. It returns the seconds of processor time without the preparation, and the
returns of the last 20 episodes.
"""

import functools
import time
from typing import List, NamedTuple

import gymnasium
import numpy as np
import torch

START = 500  # steps before the first update
BATCH = {"cartpole": 64, "wide": 256}
CAPACITY = 50_000
ALPHA, BETA, GAMMA, RATE = 0.6, 0.4, 0.99, 1e-3
LAYERS = [64, 64]
LATE = 20  # episodes whose returns count


class Result(NamedTuple):
    seconds: float
    returns: List[float]


class Clock:
    """Adds up the processor time in methods of objects."""

    def __init__(self):
        self.seconds, self.inside = 0.0, False

    def watch(self, owner, *names):
        for name in names:
            setattr(owner, name, self.timed(getattr(owner, name)))

    def timed(self, method):
        @functools.wraps(method)
        def call(*args, **kwargs):
            if self.inside:  # one method of the buffer calls another
                return method(*args, **kwargs)
            self.inside, began = True, time.thread_time()
            try:
                return method(*args, **kwargs)
            finally:
                self.seconds += time.thread_time() - began
                self.inside = False
        return call


class Wide(gymnasium.Env):
    """An environment with wide observations that costs almost nothing."""

    observation_space = gymnasium.spaces.Box(-10, 10, (376,), np.float32)
    action_space = gymnasium.spaces.Discrete(4)

    def __init__(self, config=None):
        self.seen = np.random.default_rng(0).normal(size=(1000, 376)).astype(np.float32)
        self.seen = self.seen.clip(-10, 10)
        self.at = self.left = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 200
        return self.seen[self.at], {}

    def step(self, action):
        self.at = (self.at + 1) % 1000
        self.left -= 1
        return self.seen[self.at], float(self.at % 3), False, self.left == 0, {}


def make_env(task):
    return gymnasium.make("CartPole-v1") if task == "cartpole" else Wide()


def seed_all(seed):
    np.random.seed(seed)
    torch.manual_seed(seed)


def stable_baselines3(task, kind, steps, seed=1, clock=None):
    """DQN with uniform replay. Of "prioritized", the rest is the same."""
    import stable_baselines3 as sb3

    from reprise.frameworks import stable_baselines3 as ours

    options = {"replay_buffer_class": ours.ReplayBuffer} if kind == "ours" else {}
    model = (ours.PrioritizedDQN if kind == "prioritized" else sb3.DQN)(
        "MlpPolicy", make_env(task), seed=seed, device="cpu", learning_rate=RATE,
        batch_size=BATCH[task], buffer_size=CAPACITY, learning_starts=START, train_freq=4,
        gradient_steps=2, target_update_interval=200, exploration_fraction=0.3, gamma=GAMMA,
        policy_kwargs={"net_arch": LAYERS}, **options)
    if clock is not None:
        clock.watch(model.replay_buffer, "add", "sample",
                    *["update_priorities"] * (kind == "prioritized"))
    began = time.process_time()
    model.learn(steps)
    seconds = time.process_time() - began
    return Result(seconds, [e["r"] for e in model.ep_info_buffer][-LATE:])


def torchrl(task, kind, steps, seed=1, clock=None):
    """A collector, DQNLoss, and 32 updates after each 64 steps."""
    from torchrl.collectors import Collector
    from torchrl.data import LazyTensorStorage, TensorDictPrioritizedReplayBuffer
    from torchrl.envs import GymWrapper, RewardSum, TransformedEnv
    from torchrl.modules import MLP, EGreedyModule, QValueActor
    from torchrl.objectives import DQNLoss, HardUpdate
    from tensordict.nn import TensorDictSequential

    from reprise.frameworks import torchrl as ours

    seed_all(seed)
    env = TransformedEnv(GymWrapper(make_env(task), categorical_action_encoding=True), RewardSum())
    env.set_seed(seed)
    actions = env.action_spec.space.n
    network = MLP(in_features=env.observation_spec["observation"].shape[-1], out_features=actions,
                  num_cells=LAYERS, activation_class=torch.nn.ReLU)
    actor = QValueActor(network, spec=env.action_spec, in_keys=["observation"])
    exploring = TensorDictSequential(actor, EGreedyModule(
        env.action_spec, eps_init=1.0, eps_end=0.05, annealing_num_steps=max(steps // 3, 1)))
    options = {"alpha": ALPHA, "beta": BETA, "batch_size": BATCH[task], "priority_key": "td_error"}
    if kind == "theirs":
        buffer = TensorDictPrioritizedReplayBuffer(storage=LazyTensorStorage(CAPACITY), **options)
    else:
        buffer = ours.TensorDictPrioritizedReplayBuffer(capacity=CAPACITY, **options)
    if clock is not None:
        clock.watch(buffer, "extend", "sample", "update_tensordict_priority")
    loss = DQNLoss(actor, loss_function="smooth_l1", delay_value=True, double_dqn=True)
    loss.make_value_estimator(gamma=GAMMA)
    target = HardUpdate(loss, value_network_update_interval=100)
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
    collector = Collector(env, exploring, frames_per_batch=64, total_frames=steps)
    returns = []
    began = time.process_time()
    for data in collector:
        data = data.reshape(-1)
        exploring[1].step(data.numel())
        ended = data["next", "done"].reshape(-1)
        returns += data["next", "episode_reward"].reshape(-1)[ended].tolist()
        buffer.extend(data)
        if len(buffer) < START:
            continue
        for _ in range(32):
            batch = buffer.sample()
            loss(batch)["loss"].backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 10)
            optimizer.step()
            optimizer.zero_grad()
            target.step()
            buffer.update_tensordict_priority(batch)
    seconds = time.process_time() - began
    collector.shutdown()
    return Result(seconds, returns[-LATE:])


def tianshou(task, kind, steps, seed=1, clock=None):
    """A collector over four environments, and 32 updates after each 64 steps."""
    from tianshou.algorithm import DQN
    from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
    from tianshou.algorithm.optim import AdamOptimizerFactory
    from tianshou.data import Collector, PrioritizedVectorReplayBuffer
    from tianshou.env import DummyVectorEnv
    from tianshou.utils.net.common import Net
    from tianshou.utils.torch_utils import policy_within_training_step

    from reprise.frameworks import tianshou as ours

    seed_all(seed)
    envs = DummyVectorEnv([functools.partial(make_env, task) for _ in range(4)])
    envs.seed([seed * 1000 + i for i in range(4)])
    space = make_env(task)
    policy = DiscreteQLearningPolicy(
        model=Net(state_shape=space.observation_space.shape, action_shape=space.action_space.n,
                  hidden_sizes=LAYERS), action_space=space.action_space, eps_training=1.0)
    policy.action_space.seed(seed)
    algorithm = DQN(policy=policy, optim=AdamOptimizerFactory(lr=RATE), gamma=GAMMA,
                    target_update_freq=100, huber_loss_delta=1.0)
    kinds = {"theirs": PrioritizedVectorReplayBuffer, "ours": ours.PrioritizedVectorReplayBuffer}
    buffer = kinds[kind](CAPACITY, 4, alpha=ALPHA, beta=BETA)
    if clock is not None:
        clock.watch(buffer, "add", "sample", "update_weight", "next", "unfinished_index",
                    *["_field"] * (kind == "ours"))  # our batches read their fields later
        # buffer[...] is looked up in the class.
        watched = type(type(buffer).__name__, (type(buffer),), {
            "__getitem__": clock.timed(type(buffer).__getitem__)})
        buffer.__class__ = watched
    collector = Collector(policy, envs, buffer, exploration_noise=True)
    collector.reset()
    returns = []
    began = time.process_time()
    with policy_within_training_step(policy):
        for done in range(0, steps, 64):
            policy.set_eps_training(max(0.05, 1 - 3 * done / steps))
            returns += collector.collect(n_step=64).returns.tolist()
            if len(buffer) < START:
                continue
            for _ in range(32):
                algorithm.update(buffer, BATCH[task])
    seconds = time.process_time() - began
    return Result(seconds, returns[-LATE:])


def start_ray():
    """Starts Ray, which gives up if a part of it takes more than 30 s. On a busy machine one may."""
    import ray

    for left in reversed(range(5)):
        if ray.is_initialized():
            return
        try:
            ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False,
                     logging_level="CRITICAL")
        except Exception:
            ray.shutdown()
            if not left:
                raise


def rllib(task, kind, steps, seed=1, clock=None):
    """The algorithm DQN of RLlib's new API stack, all in this process."""
    from ray.rllib.algorithms.dqn import DQNConfig

    start_ray()
    kinds = {"theirs": "PrioritizedEpisodeReplayBuffer",
             "ours": "reprise.frameworks.rllib.PrioritizedEpisodeReplayBuffer"}
    config = (
        DQNConfig()
        .environment("CartPole-v1" if task == "cartpole" else Wide)
        .env_runners(num_env_runners=0, rollout_fragment_length=4)
        .learners(num_learners=0)
        .training(lr=RATE, gamma=GAMMA, train_batch_size_per_learner=32, n_step=1,
                  num_steps_sampled_before_learning_starts=START, target_network_update_freq=200,
                  training_intensity=8, epsilon=[(0, 1.0), (steps // 3, 0.05)], double_q=True,
                  dueling=False, replay_buffer_config={
                      "type": kinds[kind], "capacity": CAPACITY, "alpha": ALPHA, "beta": BETA})
        .rl_module(model_config={"fcnet_hiddens": LAYERS})
        .reporting(min_sample_timesteps_per_iteration=500, min_time_s_per_iteration=0)
        .debugging(seed=seed, log_level="ERROR")
    )
    algorithm = config.build_algo()
    buffer = algorithm.local_replay_buffer
    if clock is not None:
        clock.watch(buffer, "add", "sample", "update_priorities")
    returns = []
    began = time.process_time()
    while buffer.get_added_timesteps() < steps:
        found = algorithm.train().get("env_runners", {}).get("episode_return_mean")
        if found is not None:
            returns.append(float(found))
    seconds = time.process_time() - began
    algorithm.stop()
    return Result(seconds, returns[-1:])


SCRIPTS = {"sb3": stable_baselines3, "torchrl": torchrl, "tianshou": tianshou, "rllib": rllib}
