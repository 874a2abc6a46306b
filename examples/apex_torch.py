# SPDX-License-Identifier: Apache-2.0
"""Ape-X DQN whose learner is PyTorch, on a GPU if there is one, and whose actors are in C.

    python examples/apex_torch.py                          CartPole, until it is solved
    python examples/apex_torch.py --env bricks --batch 512 --steps-per-update 64

One file: read it from top to bottom. This process has the replay and the learner. It starts
`reprise train apex-dqn --role actor` processes, which act with the parameters that they find in the
table "variables" and write transitions with priorities to the table "replay", and an evaluator, which
ends when the task is solved. Batches arrive in pinned memory and go to the GPU while the update before
is computed. The limiter of the table holds actors and learner at `batch / steps_per_update` samples of
each transition: actors or the learner wait if they are ahead.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from typing import Any, List, Tuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

import reprise

DISCOUNT = 0.99
TARGET_EVERY, PUBLISH_EVERY, REPORT_EVERY = 100, 50, 500  # updates
PRIORITIES_FOR = 4  # updates whose priorities are sent together
ENVS = {"cartpole": ((4,), 2), "acrobot": ((6,), 3), "lunarlander": ((8,), 4), "bricks": ((4, 84, 84), 3)}


Processes = List["subprocess.Popen[bytes]"]


class Network(nn.Module):
    """The network of the actors: convolutions for images, hidden layers, and a dueling head."""

    def __init__(self, shape: Tuple[int, ...], actions: int, hidden: int, layers: int):
        super().__init__()
        self.convolutions = nn.ModuleList()
        self.image = None  # what the first dense layer flattens
        size = int(np.prod(shape))
        if len(shape) == 3:
            sizes = [(shape[0], 32, 8, 4), (32, 64, 4, 2), (64, 64, 3, 1)]
            self.convolutions.extend(nn.Conv2d(*s) for s in sizes)
            with torch.no_grad():
                self.image = self.see(torch.zeros(1, *shape)).shape[1:]
            size = int(np.prod(self.image))
        self.hidden = nn.ModuleList(nn.Linear(size if i == 0 else hidden, hidden) for i in range(layers))
        self.value = nn.Linear(hidden, 1)
        self.advantage = nn.Linear(hidden, actions)

    def see(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.convolutions:
            x = torch.relu(layer(x))
        return x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dtype == torch.uint8:
            x = x.float() / 255
        x = self.see(x).flatten(1)
        for layer in self.hidden:
            x = torch.relu(layer(x))
        advantage = self.advantage(x)
        return self.value(x) + advantage - advantage.mean(1, keepdim=True)

    def numbers(self) -> NDArray[np.float32]:
        """All parameters in the layout of the actors: layer by layer, weights before biases, inputs
        before outputs, channels last."""
        flat = []
        for i, layer in enumerate([*self.convolutions, *self.hidden, self.value, self.advantage]):
            weight = layer.weight
            if weight.dim() == 4:  # out, in, height, width
                weight = weight.permute(2, 3, 1, 0)
            elif self.image is not None and i == len(self.convolutions):
                weight = weight.view(-1, *self.image).permute(2, 3, 1, 0)
            else:
                weight = weight.t()
            flat += [weight.reshape(-1), layer.bias]
        return torch.cat(flat).detach().cpu().numpy()


class Publisher:
    """Writes parameters to the table "variables": {version, steps}, and the numbers."""

    def __init__(self, client: reprise.Client):
        self.writer, self.version = client.trajectory_writer(num_keep_alive_refs=1), 0

    def publish(self, net: Network, steps: int) -> None:
        self.version += 1  # the number of inserts, too: actors compare
        self.writer.append({"head": np.array([self.version, steps], np.int64), "numbers": net.numbers()})
        self.writer.create_item("variables", 1.0, {
            name: column[-1] for name, column in self.writer.history.items()})
        self.writer.flush()


class Learner:
    """Double Q-learning with n-step returns, from prioritized batches."""

    def __init__(self, net: Network, target: Network, rate: float):
        self.net, self.target = net, target
        self.optimizer = torch.optim.Adam(net.parameters(), lr=rate, fused=next(net.parameters()).is_cuda)
        self.updates = 0
        self.sync()

    def sync(self) -> None:
        self.target.load_state_dict(self.net.state_dict())

    def update(self, data: Any, weights: torch.Tensor) -> torch.Tensor:
        """Makes an update. Returns the new priorities."""
        observation, action, reward, discount, following = data  # the columns of an item
        with torch.no_grad():
            best = self.net(following).argmax(1, keepdim=True)
            then = self.target(following).gather(1, best)[:, 0]
            goal = reward + DISCOUNT * discount * then
        chosen = self.net(observation).gather(1, action.long()[:, None])[:, 0]
        loss = (weights * nn.functional.huber_loss(chosen, goal, reduction="none")).mean()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 10)
        self.optimizer.step()
        self.updates += 1
        if self.updates % TARGET_EVERY == 0:
            self.sync()
        return (goal - chosen.detach()).abs() + 1e-6


def start_parts(options: argparse.Namespace, address: str) -> Processes:
    """Starts the evaluator, then the actors."""
    common = [sys.executable, "-m", "reprise", "train", "apex-dqn", f"--env={options.env}",
              f"--of={options.actors}", f"--replay={address}", f"--batch={options.batch}",
              f"--steps-per-update={options.steps_per_update}", f"--hidden={options.hidden}",
              f"--layers={options.layers}", f"--capacity={options.capacity}", f"--start={options.start}",
              f"--discount={DISCOUNT}", f"--seed={options.seed}"]
    roles = [["--role=evaluator"], *(["--role=actor", f"--index={i}", "--quiet"]
                                     for i in range(options.actors))]
    return [subprocess.Popen(common + role) for role in roles]


def wait_for_table(client: reprise.Client, processes: Processes) -> None:
    """The actors make the table "replay"."""
    while "replay" not in client.server_info():
        if processes[0].poll() is not None:
            sys.exit("the evaluator has ended")
        time.sleep(0.05)


def train(options: argparse.Namespace) -> None:
    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(options.seed)
    shape, actions = ENVS[options.env]
    net, target = (Network(shape, actions, options.hidden, options.layers).to(device) for _ in range(2))
    learner = Learner(net, target, options.rate)
    variables = reprise.Table("variables", reprise.selectors.Uniform(), reprise.selectors.Fifo(), 1,
                              reprise.rate_limiters.MinSize(1))
    with reprise.Server([variables]) as server:
        client = reprise.Client(f"localhost:{server.port}")
        publisher = Publisher(client)
        publisher.publish(net, 0)
        processes = start_parts(options, f"localhost:{server.port}")
        try:
            wait_for_table(client, processes)
            learn(options, learner, publisher, client, device, processes)
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait()


def learn(options: argparse.Namespace, learner: Learner, publisher: Publisher, client: reprise.Client,
          device: str, processes: Processes) -> None:
    batches = client.sampler("replay", options.batch, beta=0.4, rate_limiter_timeout=1.0).torch(device=device)
    began, late = time.monotonic(), []
    evaluator = processes[0]
    while evaluator.poll() is None and learner.updates < options.updates:
        for batch in batches:  # until a batch is late
            late.append((batch.keys, learner.update(batch.data, batch.weights.to(device))))
            if len(late) == PRIORITIES_FOR:  # one copy from the GPU, one call
                client.update_priorities("replay", np.concatenate([np.asarray(k) for k, _ in late]),
                                         torch.cat([p for _, p in late]).cpu().numpy())
                late.clear()
            if learner.updates % PUBLISH_EVERY == 0:
                publisher.publish(learner.net, learner.updates * options.steps_per_update)
            if learner.updates % REPORT_EVERY == 0:
                seconds = time.monotonic() - began
                print(f"learner    {learner.updates} updates on {device}, {learner.updates / seconds:.0f} a "
                      f"second, {learner.updates * options.steps_per_update / seconds:.0f} steps a second",
                      flush=True)
            if evaluator.poll() is not None or learner.updates >= options.updates:
                break
    print(f"learner    {learner.updates} updates in {time.monotonic() - began:.1f} s on {device}; the task is "
          + ("solved" if evaluator.poll() == 0 else "not solved"))


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--env", choices=sorted(ENVS), default="cartpole")
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps-per-update", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--capacity", type=int, default=20_000)
    parser.add_argument("--start", type=int, default=1000, help="transitions before the first update")
    parser.add_argument("--rate", type=float, default=1e-3, help="of Adam")
    parser.add_argument("--updates", type=int, default=100_000, help="stop after these")
    parser.add_argument("--device", help="cpu or cuda")
    parser.add_argument("--seed", type=int, default=1)
    train(parser.parse_args())


if __name__ == "__main__":
    main()
