# SPDX-License-Identifier: Apache-2.0
"""Makes the updates of DPG that tests/rl/dpg_driver.c made with PyTorch, and compares.

    python -m pip install torch==2.15.0 numpy==2.4.6
    python tests/rl/compare_dpg.py build/test/release

`make test-rl-peers` does both, in an environment of its own (tools/peers.py).

Both sides begin with the same parameters and get the same 100 batches. PyTorch's side is written from
the formulas: a critic's loss to n-step targets by target networks, and a policy that ascends its critic
with dQ/da clipped. Prints the largest differences of each case, and exits with 1 if a parameter, a loss
or a TD error is further than 1e-4 from ours, relative to the larger of 1 and our number.
"""

import argparse
import copy
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch import nn

BOUND = 1e-4
ROWS, NUMBERS, ACTIONS, HIDDEN, STEPS = 16, 5, 3, 24, 100
# The cases of dpg_driver.c: max_slope, max_norm, huber, target_every, target_rate, weighted.
CASES = {"plain": (0, 0, 0, 10, 1, False), "clipped": (0.05, 0.5, 0, 10, 1, True),
         "moved": (1, 40, 0.5, 1, 0.05, True)}
COLUMNS = [("now", NUMBERS), ("actions", ACTIONS), ("reward", 1), ("discount", 1), ("next", NUMBERS),
           ("weights", 1)]


def network(size_in, size_out, *last):
    return nn.Sequential(nn.Linear(size_in, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(),
                         nn.Linear(HIDDEN, size_out), *last)


def parts(policy, critic):
    """Returns the parameters in the order of the driver; a weight there is in x out."""
    return [p.T if p.dim() == 2 else p for net in (policy, critic) for p in net.parameters()]


def set_parameters(tensors, numbers):
    at = 0
    with torch.no_grad():
        for tensor in tensors:
            tensor.copy_(torch.from_numpy(numbers[at:at + tensor.numel()]).reshape(tensor.shape))
            at += tensor.numel()
    assert at == len(numbers)


def get_parameters(tensors):
    return np.concatenate([t.detach().numpy().reshape(-1) for t in tensors])


def batch_of(numbers):
    out, at = {}, 0
    for name, width in COLUMNS:
        rows = torch.from_numpy(numbers[at:at + ROWS * width].copy())
        out[name] = rows.reshape(ROWS, width) if width > 1 else rows
        at += ROWS * width
    assert at == len(numbers)
    return out


class Learner:
    def __init__(self, first, max_slope, max_norm, huber, target_every, target_rate, weighted):
        self.max_slope, self.max_norm, self.huber, self.weighted = max_slope, max_norm, huber, weighted
        self.target_every, self.target_rate, self.updates = target_every, target_rate, 0
        self.policy = network(NUMBERS, ACTIONS, nn.Tanh())
        self.critic = network(NUMBERS + ACTIONS, 1)
        set_parameters(parts(self.policy, self.critic), first)
        self.targets = copy.deepcopy(self.policy), copy.deepcopy(self.critic)
        self.adam = (torch.optim.Adam(self.policy.parameters(), lr=5e-4),
                     torch.optim.Adam(self.critic.parameters(), lr=1e-3))

    def update(self, b):
        """Makes an update; returns the loss of the critic and the TD errors."""
        policy_target, critic_target = self.targets
        with torch.no_grad():
            later = critic_target(torch.cat([b["next"], policy_target(b["next"])], 1))[:, 0]
            target = b["reward"] + b["discount"] * later
        error = target - self.critic(torch.cat([b["now"], b["actions"]], 1))[:, 0]
        each = error ** 2 / 2
        if self.huber:
            each = torch.where(error.abs() <= self.huber, each,
                               self.huber * (error.abs() - self.huber / 2))
        loss = (each * b["weights"] if self.weighted else each).mean()
        critic_grads = torch.autograd.grad(loss, list(self.critic.parameters()))

        action = self.policy(b["now"])
        chosen = action.detach().requires_grad_()
        slope, = torch.autograd.grad(self.critic(torch.cat([b["now"], chosen], 1)).sum(), chosen)
        if self.max_slope:
            slope = slope.clamp(-self.max_slope, self.max_slope)
        ascent = -(slope * action).sum(1).mean()
        policy_grads = torch.autograd.grad(ascent, list(self.policy.parameters()))

        for net, grads, adam in ((self.policy, policy_grads, self.adam[0]),
                                 (self.critic, critic_grads, self.adam[1])):
            for parameter, grad in zip(net.parameters(), grads):
                parameter.grad = grad
            if self.max_norm:
                nn.utils.clip_grad_norm_(net.parameters(), self.max_norm)
            adam.step()
        self.updates += 1
        if self.updates % self.target_every == 0:
            self.move_targets()
        return float(loss.detach()), error.detach().numpy()

    def move_targets(self):
        with torch.no_grad():
            for target, net in zip(self.targets, (self.policy, self.critic)):
                for old, new in zip(target.parameters(), net.parameters()):
                    old.copy_((1 - self.target_rate) * old + self.target_rate * new)


def difference(theirs, ours):
    away = np.abs(np.asarray(theirs, np.float64) - ours) / np.maximum(1, np.abs(ours))
    return float(away.max()) if np.isfinite(away).all() else float("inf")


def compare(folder, name):
    """Returns the largest differences of parameters, losses and errors."""
    read = lambda part: np.fromfile(folder / f"{name}.{part}", np.float32)
    params = read("params").reshape(STEPS + 1, -1)
    batches, losses = read("batches").reshape(STEPS, -1), read("losses")
    errors = read("errors").reshape(STEPS, ROWS)
    learner = Learner(params[0], *CASES[name])
    worst = [0.0, 0.0, 0.0]
    for i in range(STEPS):
        loss, error = learner.update(batch_of(batches[i]))
        tensors = parts(learner.policy, learner.critic)
        found = (difference(get_parameters(tensors), params[i + 1]), difference(loss, losses[i]),
                 difference(error, errors[i]))
        worst = [max(pair) for pair in zip(worst, found)]
    assert difference(params[-1], params[0]) > 100 * BOUND, "the updates change next to nothing"
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    bad = False
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([options.build / "tests" / "dpg_driver", folder], check=True)
        for name in CASES:
            worst = compare(pathlib.Path(folder), name)
            bad |= max(worst) > BOUND
            print(f"dpg {name}: {STEPS} updates, largest difference of parameters {worst[0]:.1e}, "
                  f"losses {worst[1]:.1e}, TD errors {worst[2]:.1e}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
