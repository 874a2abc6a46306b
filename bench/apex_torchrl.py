# SPDX-License-Identifier: Apache-2.0
"""Ape-X DQN with PyTorch, TorchRL's prioritized buffer and processes that act: the peer of apex.py.

    apex_torchrl.py cartpole ACTORS COPIES SECONDS     64-64, batch 64, 16 samples an insert
    apex_torchrl.py frames ACTORS COPIES SECONDS       Atari network, batch 32, 8 samples an insert

The algorithm and its settings are those of bench/apex.c: double Q, dueling, 5-step returns, priorities
from the Q-values of the actor, importance weights, Huber loss, Adam, norms clipped, the target copied
every 100 updates, parameters pulled every 400 steps of a group.

What makes it fast: actors step Gymnasium's vectorized CartPole, act for all copies in one forward pass
and send transitions in large blocks through shared memory; the learner draws the items of four updates
and writes their priorities in one call each, as ours does, compiles its forward and backward passes, has a
fused optimizer and a storage of preallocated tensors; the sum trees of the buffer are TorchRL's C++.
Frames are random and cost nothing to make. Prints one line: steps, updates, wall seconds, processor
seconds.
"""

import argparse
import os
import pathlib
import time

import numpy as np
import torch
import torch.multiprocessing as mp
from tensordict import TensorDict
from torch import nn
from torchrl.data import LazyMemmapStorage, LazyTensorStorage, TensorDictPrioritizedReplayBuffer

N_STEP, DISCOUNT = 5, 0.99
START, TARGET_EVERY, PULL_EVERY = 1000, 100, 400
WARM_UP = 20  # updates before the clock starts
TASKS = {
    "cartpole": {"actions": 2, "batch": 64, "capacity": 100_000, "block": 64},
    "frames": {"actions": 3, "batch": 32, "capacity": 20_000, "block": 16},
}
STEPS_PER_UPDATE = 4
COLUMNS = ("observation", "action", "reward", "discount", "next", "priority_weight")
FRAME = (4, 84, 84)


class Network(nn.Module):
    """Features, then one layer with the value and the advantages."""

    def __init__(self, task):
        super().__init__()
        if task == "frames":
            self.features = nn.Sequential(
                nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(),
                nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU())
        else:
            self.features = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(512 if task == "frames" else 64, 1 + TASKS[task]["actions"])

    def forward(self, observations):
        if observations.dtype == torch.uint8:
            observations = observations.float().mul_(1 / 255)
        out = self.head(self.features(observations))
        value, advantages = out[:, :1], out[:, 1:]
        return value + advantages - advantages.mean(1, keepdim=True)


class RandomFrames:
    """Environments whose observations are slices of random bytes."""

    def __init__(self, copies):
        self.random = np.random.default_rng(1)
        self.pool = self.random.integers(0, 256, (512, *FRAME), dtype=np.uint8)
        self.copies, self.steps = copies, np.arange(copies) * 20

    def observe(self):
        first = int(self.random.integers(0, len(self.pool) - self.copies))
        return self.pool[first:first + self.copies]

    def reset(self, seed=None):
        return self.observe(), {}

    def step(self, actions):
        self.steps += 1
        ended = self.steps % 200 == 0
        return self.observe(), np.ones(self.copies), ended, np.zeros(self.copies, bool), {}


def make_env(task, copies):
    if task == "frames":
        return RandomFrames(copies)
    import gymnasium

    return gymnasium.make_vec("CartPole-v1", num_envs=copies, vectorization_mode="vector_entry_point")


def n_step(rewards, ended, terminated, q, actions):
    """Returns n-step rewards, discounts of the last value, the offset of the last observation and the
    priority of each step but the last N_STEP ones; all arrays are steps x copies."""
    count = len(rewards) - N_STEP
    total = np.zeros((count, rewards.shape[1]), np.float32)
    discount = np.ones_like(total)
    offset = np.zeros(total.shape, np.int64)
    alive = np.ones(total.shape, bool)
    for k in range(N_STEP):
        part = slice(k, count + k)
        total += alive * discount * rewards[part]
        discount = np.where(alive, discount * DISCOUNT * ~terminated[part], discount)
        offset += alive
        alive &= ~ended[part]
    row, column = np.indices(total.shape)
    best = q.max(2)[row + offset, column]
    chosen = q[row, column, actions[:count]]
    return total, discount, offset, np.abs(total + discount * best - chosen) + 1e-6


def act(task, index, actors, copies, shared, blocks, steps_done):
    """An actor: acts for a group of environments, and sends blocks of transitions with priorities."""
    torch.set_num_threads(1)
    torch.manual_seed(index)
    net = Network(task)
    env = make_env(task, copies)
    random = np.random.default_rng(index)
    ladder = (np.arange(copies) + index * copies) / max(1, actors * copies - 1)
    epsilon = 0.4 ** (1 + 7 * ladder)
    block, n_actions = TASKS[task]["block"], TASKS[task]["actions"]
    length = block + N_STEP
    observation, _ = env.reset(seed=index)
    observations = np.empty((length + 1, *observation.shape), observation.dtype)
    q = np.empty((length + 1, copies, n_actions), np.float32)
    actions = np.empty((length, copies), np.int64)
    rewards = np.empty((length, copies), np.float32)
    ended, terminated = (np.empty((length, copies), bool) for _ in range(2))
    was_ended = np.zeros((length, copies), bool)
    before = np.zeros(copies, bool)
    filled, pulled = 0, -PULL_EVERY
    step = 0
    with torch.inference_mode():
        while True:
            if step - pulled >= PULL_EVERY:
                torch._foreach_copy_(list(net.parameters()), list(shared.parameters()))
                pulled = step
            observations[filled] = observation
            q[filled] = net(torch.from_numpy(observations[filled])).numpy()
            if filled == length:  # the block is complete: its Q-values give the priorities
                total, discount, offset, priority = n_step(rewards, ended, terminated, q, actions)
                row, column = np.nonzero(~was_ended[:block])  # steps that were no resets
                blocks.put(TensorDict({
                    "observation": torch.from_numpy(observations[row, column]),
                    "action": torch.from_numpy(actions[row, column]),
                    "reward": torch.from_numpy(total[row, column]),
                    "discount": torch.from_numpy(discount[row, column]),
                    "next": torch.from_numpy(observations[row + offset[row, column], column]),
                    "td_error": torch.from_numpy(priority[row, column]),
                }, [len(row)]))
                for array in (observations, q, actions, rewards, ended, terminated, was_ended):
                    array[:len(array) - block] = array[block:].copy()
                filled -= block
            chosen = q[filled].argmax(1)
            explores = random.random(copies) < epsilon
            chosen[explores] = random.integers(0, n_actions, explores.sum())
            actions[filled], was_ended[filled] = chosen, before
            observation, rewards[filled], terminated[filled], truncated, _ = env.step(chosen)
            ended[filled] = terminated[filled] | truncated
            before = ended[filled].copy() if task == "cartpole" else before  # the next step resets it
            filled += 1
            step += 1
            steps_done[index] += copies


def learner_step(net, target, optimizer, options):
    """Returns a function that makes an update and returns the errors."""
    def losses(batch):
        observation, action, reward, discount, following, weight = batch
        chosen = net(observation).gather(1, action[:, None])[:, 0]
        with torch.no_grad():
            best = net(following).argmax(1, keepdim=True)
            goal = reward + discount * target(following).gather(1, best)[:, 0]
        error = goal - chosen
        loss = (weight * nn.functional.huber_loss(chosen, goal, reduction="none")).mean()
        return loss, error.detach().abs()

    function = torch.compile(losses, mode=options.mode) if options.compile else losses

    def update(batch):
        loss, error = function(batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 10, foreach=True)
        optimizer.step()
        return error

    return update


def cpu_seconds(pids):
    tick = os.sysconf("SC_CLK_TCK")
    total = 0.0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / tick
    return total


def learn(options, net, blocks, pids):
    """Learns, and prints how fast. The limiter: so many updates as transitions have arrived, no more."""
    task = TASKS[options.task]
    target = Network(options.task)
    target.load_state_dict(net.state_dict())
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3 if options.task == "cartpole" else 1e-4,
                                 fused=True)
    update = learner_step(net, target, optimizer, options)
    storage = LazyMemmapStorage if options.memmap else LazyTensorStorage
    draws, batch = options.draws, task["batch"]
    buffer = TensorDictPrioritizedReplayBuffer(
        alpha=0.6, beta=0.4, priority_key="td_error", batch_size=draws * batch,
        storage=storage(task["capacity"]), prefetch=options.prefetch or None)
    steps = updates = 0
    began = None
    while began is None or time.monotonic() - began < options.seconds:
        if steps < START or updates + draws > (steps - START) // STEPS_PER_UPDATE:
            block = blocks.get()
            buffer.extend(block)
            steps += len(block)
            continue
        drawn = buffer.sample()
        parts = zip(*(drawn[key].split(batch) for key in COLUMNS))
        drawn["td_error"] = torch.cat([update(part) for part in parts])
        buffer.update_tensordict_priority(drawn)
        updates += draws
        if updates % TARGET_EVERY == 0:
            target.load_state_dict(net.state_dict())
        if began is None and updates == WARM_UP:  # it is compiled, and its memory is there
            began, cpu = time.monotonic(), cpu_seconds(pids)
    seconds = time.monotonic() - began
    updates -= WARM_UP
    print(updates * STEPS_PER_UPDATE, updates, f"{seconds:.3f}", f"{cpu_seconds(pids) - cpu:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("task", choices=sorted(TASKS))
    parser.add_argument("actors", type=int)
    parser.add_argument("copies", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--compile", action="store_true", help="compile the forward and backward passes")
    parser.add_argument("--mode", help="of torch.compile")
    parser.add_argument("--draws", type=int, default=1, choices=[1, 2, 4],
                        help="batches that are drawn, and whose priorities are written, in one call")
    parser.add_argument("--memmap", action="store_true", help="the storage is a file that is mapped")
    parser.add_argument("--block", type=int, help="steps of a copy that an actor sends at once")
    parser.add_argument("--prefetch", type=int, default=0, help="batches drawn ahead by a thread")
    parser.add_argument("--threads", type=int, default=1, help="of the learner")
    options = parser.parse_args()
    if options.block:
        TASKS[options.task]["block"] = options.block  # actors are forked
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    net = Network(options.task)
    net.share_memory()  # actors read it
    blocks = mp.Queue(maxsize=2 * options.actors)
    steps_done = torch.zeros(options.actors, dtype=torch.int64).share_memory_()
    processes = [mp.Process(target=act, daemon=True, args=(
        options.task, i, options.actors, options.copies, net, blocks, steps_done))
        for i in range(options.actors)]
    for process in processes:
        process.start()
    try:
        learn(options, net, blocks, [os.getpid(), *(p.pid for p in processes)])
    finally:
        for process in processes:
            process.kill()
            process.join()


if __name__ == "__main__":
    main()
