# SPDX-License-Identifier: Apache-2.0
"""DQN on CartPole, with the replay buffer in a server that is reached over TCP.

    python examples/dqn_cartpole.py             until the mean return is 475, a minute or two
    python examples/dqn_cartpole.py --quick     a few seconds, enough to see it improve

One file, as in CleanRL: read it from top to bottom. The actor writes every step with a
TrajectoryWriter. An item is one transition; each observation is stored once, although two items
use it. The learner takes batches from a Dataset, which prefetches them in C, and sends new
priorities to the server. Actor and learner reach the server over the network, so each could run on
another machine.

The network uses torch if it is installed, otherwise NumPy with an Adam of its own. The environment
is gymnasium's if that is installed, otherwise the same equations below.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import math
import os
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the layers are small

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

import reprise  # noqa: E402
from reprise.dataset import BatchIterator  # noqa: E402


def find(name: str) -> Any:
    """Returns a module, or None if it is not installed."""
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


torch, gymnasium = find("torch"), find("gymnasium")
Array = NDArray[Any]
Step = Tuple[Array, float, bool, bool]  # observation, reward, whether the pole fell, whether time is up

GOAL = 475.0  # CartPole-v1 counts as solved
HIDDEN = (128, 128)
GAMMA = 0.99
BATCH = 64
LEARNING_STARTS = 500
TRAIN_EVERY = 2
TARGET_EVERY = 250  # updates
ALPHA, BETA = 0.6, 0.4  # of prioritized replay


class CartPole:
    """A pole on a cart: the equations of Barto, Sutton and Anderson (1983), 500 steps at most."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)

    def reset(self) -> Array:
        self.state: Array = self.rng.uniform(-0.05, 0.05, 4)
        self.steps = 0
        return self.state.astype(np.float32)

    def step(self, action: int) -> Step:
        x, x_dot, theta, theta_dot = self.state
        cos, sin = math.cos(theta), math.sin(theta)
        push = ((10.0 if action else -10.0) + 0.05 * theta_dot**2 * sin) / 1.1
        theta_acc = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
        x_acc = push - 0.05 * theta_acc * cos / 1.1
        self.state = self.state + 0.02 * np.array([x_dot, x_acc, theta_dot, theta_acc])
        self.steps += 1
        fell = abs(self.state[0]) > 2.4 or abs(self.state[2]) > math.radians(12)
        return self.state.astype(np.float32), 1.0, bool(fell), self.steps >= 500


class GymnasiumCartPole:
    def __init__(self, seed: int):
        self.env = gymnasium.make("CartPole-v1")
        self.seed: Optional[int] = seed

    def reset(self) -> Array:
        observation: Array = self.env.reset(seed=self.seed)[0]
        self.seed = None
        return observation

    def step(self, action: int) -> Step:
        observation, reward, fell, late, _ = self.env.step(action)
        return observation, float(reward), fell, late


def make_env(seed: int) -> Union[CartPole, GymnasiumCartPole]:
    return GymnasiumCartPole(seed) if gymnasium else CartPole(seed)


class NumpyNetwork:
    """Estimates the values of the two actions: layers with ReLU, their gradient, and Adam."""

    def __init__(self, seed: int):
        rng = np.random.default_rng(seed)
        sizes = (4, *HIDDEN, 2)
        self.weights: List[Array] = []
        for inputs, outputs in zip(sizes, sizes[1:]):
            limit = 1.0 / math.sqrt(inputs)
            self.weights.append(rng.uniform(-limit, limit, (inputs, outputs)).astype(np.float32))
            self.weights.append(rng.uniform(-limit, limit, outputs).astype(np.float32))
        self.first = [np.zeros_like(w) for w in self.weights]
        self.second = [np.zeros_like(w) for w in self.weights]
        self.updates = 0
        self.sync()

    def sync(self) -> None:
        """Copies the weights to the target network."""
        self.target = [w.copy() for w in self.weights]

    def forward(self, x: Array, weights: Sequence[Array]) -> List[Array]:
        """Returns the input of each layer, and the output of the last."""
        layers = [x]
        for i in range(0, len(weights), 2):
            x = x @ weights[i] + weights[i + 1]
            if i + 2 < len(weights):
                x = np.maximum(x, 0.0)
            layers.append(x)
        return layers

    def values(self, observation: Array) -> Array:
        return self.forward(observation, self.weights)[-1]

    def learn(self, observation: Array, action: Array, reward: Array, following: Array, fell: Array,
              weights: Array, rate: float) -> Array:
        """Makes one update of double DQN. Returns the absolute TD errors."""
        rows = np.arange(len(action))
        best = self.values(following).argmax(1)
        then = self.forward(following, self.target)[-1][rows, best]
        goal = reward + GAMMA * then * ~fell
        layers = self.forward(observation, self.weights)
        error = layers[-1][rows, action] - goal
        delta = np.zeros_like(layers[-1])
        delta[rows, action] = weights * np.clip(error, -1.0, 1.0) / len(action)  # Huber
        gradients: List[Array] = []
        for i in range(len(self.weights) - 2, -1, -2):
            gradients += [delta.sum(0), layers[i // 2].T @ delta]
            delta = (delta @ self.weights[i].T) * (layers[i // 2] > 0)
        self.adam(gradients[::-1], rate)
        return np.asarray(np.abs(error))

    def adam(self, gradients: Sequence[Array], rate: float) -> None:
        self.updates += 1
        rate *= math.sqrt(1 - 0.999**self.updates) / (1 - 0.9**self.updates)
        for w, g, m, v in zip(self.weights, gradients, self.first, self.second):
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            w -= rate * m / (np.sqrt(v) + 1e-8)


class TorchNetwork:
    """The same network in torch."""

    def __init__(self, seed: int):
        torch.manual_seed(seed)
        torch.set_num_threads(1)  # the layers are small
        self.net, self.target = self.build(), self.build()
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.sync()

    def build(self) -> Any:
        layers: List[Any] = []
        sizes = (4, *HIDDEN, 2)
        for inputs, outputs in zip(sizes, sizes[1:]):
            layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
        return torch.nn.Sequential(*layers[:-1])

    def sync(self) -> None:
        self.target.load_state_dict(self.net.state_dict())

    def values(self, observation: Array) -> Array:
        with torch.no_grad():
            return np.asarray(self.net(torch.from_numpy(observation)))

    def learn(self, observation: Array, action: Array, reward: Array, following: Array, fell: Array,
              weights: Array, rate: float) -> Array:
        now, chosen, earned, later, over, importance = (
            torch.as_tensor(np.ascontiguousarray(x))
            for x in (observation, action, reward, following, fell, weights))
        with torch.no_grad():
            best = self.net(later).argmax(1, keepdim=True)
            then = self.target(later).gather(1, best).squeeze(1)
            goal = earned + GAMMA * then * ~over
        value = self.net(now).gather(1, chosen[:, None]).squeeze(1)
        loss = (importance * torch.nn.functional.smooth_l1_loss(value, goal, reduction="none")).mean()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return np.asarray((value.detach() - goal).abs())


Network = Union[NumpyNetwork, TorchNetwork]


def make_server(size: int) -> reprise.Server:
    return reprise.Server([
        reprise.Table(
            name="replay",
            sampler=reprise.selectors.Prioritized(ALPHA),
            remover=reprise.selectors.Fifo(),
            max_size=size,
            rate_limiter=reprise.rate_limiters.MinSize(BATCH),
        )
    ])


class Actor:
    """Plays and writes its steps. An item is a transition: two observations, and the action and
    the reward between them."""

    def __init__(self, client: reprise.Client, seed: int):
        self.env = make_env(seed)
        self.writer = client.trajectory_writer(num_keep_alive_refs=2)
        self.observation = self.env.reset()
        self.total = 0.0

    def step(self, action: int, priority: float) -> Optional[float]:
        """Plays one step. Returns the return of the episode if this was its last step, or None."""
        following, reward, fell, late = self.env.step(action)
        self.writer.append({"observation": self.observation, "action": np.int64(action),
                            "reward": np.float32(reward), "fell": np.bool_(fell)})
        self.observation, self.total = following, self.total + reward
        history = self.writer.history
        if self.writer.episode_steps > 1:
            self.item(history, -2, priority)
        if not (fell or late):
            return None
        # The last step has only an observation; its other fields are absent.
        self.writer.append({"observation": following})
        self.item(self.writer.history, -2, priority)
        self.writer.end_episode()
        self.observation, total, self.total = self.env.reset(), self.total, 0.0
        return total

    def item(self, history: Any, at: int, priority: float) -> None:
        self.writer.create_item("replay", priority, {
            "observation": history["observation"][-2:],
            "action": history["action"][at],
            "reward": history["reward"][at],
            "fell": history["fell"][at],
        })


def evaluate(network: Network, episodes: int, seed: int) -> float:
    """The mean return of the greedy policy."""
    env, total = make_env(seed), 0.0
    for _ in range(episodes):
        observation, over = env.reset(), False
        while not over:
            action = int(network.values(observation[None]).argmax())
            observation, reward, fell, late = env.step(action)
            total, over = total + reward, fell or late
    return total / episodes


def train(steps: int, seed: int, evaluate_every: int,
          say: Callable[[str], None] = print) -> Dict[str, Any]:
    """Learns until the mean return reaches GOAL, for at most `steps` steps. Returns the results."""
    server = make_server(size=50_000)
    client = reprise.Client(f"localhost:{server.port}", transport="tcp")
    network: Network = TorchNetwork(seed) if torch else NumpyNetwork(seed)
    rng, actor = np.random.default_rng(seed), Actor(client, seed)
    structure = {"observation": None, "action": None, "reward": None, "fell": None}
    batches: Optional[BatchIterator] = None
    returns: List[float] = []
    best, priority, updates, step = 0.0, 1.0, 0, 0
    began = time.monotonic()
    for step in range(1, steps + 1):
        explore = max(0.02, 1.0 - step / min(0.2 * steps, 10_000))
        if rng.random() < explore:
            action = int(rng.integers(2))
        else:
            action = int(network.values(actor.observation[None]).argmax())
        total = actor.step(action, priority)
        if total is not None:
            returns.append(total)
        if step < LEARNING_STARTS or step % TRAIN_EVERY:
            continue

        if batches is None:
            actor.writer.flush()
            batches = iter(reprise.Dataset(client, "replay", BATCH, structure=structure,
                                           beta=BETA))
        batch = next(batches)
        errors = network.learn(
            batch["observation"][:, 0], batch["action"], batch["reward"],
            batch["observation"][:, 1], batch["fell"], batch.weights.astype(np.float32),
            rate=1e-3 * max(0.1, 1.0 - step / steps))
        priorities = errors.astype(np.float64) + 1e-3
        client.update_priorities("replay", batch.keys, priorities)
        priority = max(0.99 * priority, float(priorities.max()))
        updates += 1
        if updates % TARGET_EVERY == 0:
            network.sync()

        if step % evaluate_every == 0:
            mean = evaluate(network, 10, seed + step)
            if mean >= GOAL:  # more episodes, since ten may have been lucky
                mean = evaluate(network, 50, seed + step + 1)
            best = max(best, mean)
            say(f"step {step:6}  return {np.mean(returns[-20:]):6.1f}  greedy {mean:6.1f}  "
                f"{step / (time.monotonic() - began):6.0f} steps/s")
            if mean >= GOAL:
                break
    if batches is not None:
        batches.close()
    actor.writer.flush()
    actor.writer.close()
    server.stop()
    return {"steps": step, "returns": returns, "best": best, "solved": best >= GOAL}


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--steps", type=int, default=150_000, help="stop after this many steps")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a short run, which only improves")
    options = parser.parse_args()
    steps = 6_000 if options.quick else options.steps
    result = train(steps, options.seed, evaluate_every=2_000)
    early, late = np.mean(result["returns"][:20]), np.mean(result["returns"][-10:])
    print(f"{'solved' if result['solved'] else 'not solved'} after {result['steps']} steps: "
          f"best mean return {result['best']:.1f}; while exploring {early:.1f} at first, "
          f"{late:.1f} at last")
    return 0 if result["solved"] or options.quick and result["best"] > 2 * early else 1


if __name__ == "__main__":
    raise SystemExit(main())
