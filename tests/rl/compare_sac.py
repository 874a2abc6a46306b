# SPDX-License-Identifier: Apache-2.0
"""Makes the updates of SAC that tests/rl/sac_driver.c made with PyTorch, and compares.

    python -m pip install torch==2.15.0 numpy==2.4.6
    python tests/rl/compare_sac.py build/test/release

`make test-rl-peers` does both, in an environment of its own (tools/peers.py).

Both sides begin with the same parameters and get the same 100 batches. PyTorch's side is written from
the formulas: the critics' loss to soft targets, a policy of squashed Gaussians (torch.distributions) that
ascends the smaller value, and the temperature. Prints the largest differences of each case, and exits with 1 if a parameter, a loss
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
# The cases of sac_driver.c: max_norm, huber, target_entropy, target_rate, weighted, tunes.
CASES = {"plain": (0, 0, -3, 0.005, False, True), "clipped": (0.5, 0.5, 1, 0.05, True, True),
         "untuned": (40, 0, -3, 0.05, True, False)}
COLUMNS = [("now", NUMBERS), ("actions", ACTIONS), ("reward", 1), ("discount", 1), ("next", NUMBERS),
           ("weights", 1), ("noise", ACTIONS), ("next_noise", ACTIONS)]


def network(size_in, size_out):
    return nn.Sequential(nn.Linear(size_in, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(),
                         nn.Linear(HIDDEN, size_out))


def parts(*nets):
    """Returns the parameters in the order of the driver; a weight there is in x out."""
    return [p.T if p.dim() == 2 else p for net in nets for p in net.parameters()]


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
    def __init__(self, first, max_norm, huber, target_entropy, target_rate, weighted, tunes):
        self.max_norm, self.huber, self.weighted, self.tunes = max_norm, huber, weighted, tunes
        self.target_entropy, self.target_rate = target_entropy, target_rate
        self.policy = network(NUMBERS, 2 * ACTIONS)
        self.critics = nn.ModuleList(network(NUMBERS + ACTIONS, 1) for _ in range(2))
        self.log_temperature = nn.Parameter(torch.zeros(1))
        set_parameters(self.tensors(), first)
        self.targets = copy.deepcopy(self.critics)
        self.groups = [(list(self.policy.parameters()), 5e-4), (list(self.critics.parameters()), 1e-3),
                       ([self.log_temperature], 2e-3)]
        self.adams = [torch.optim.Adam(group, lr=rate) for group, rate in self.groups]

    def tensors(self):
        return [*parts(self.policy, *self.critics), self.log_temperature]

    def draw(self, observations, noise):
        """Returns actions, and the logarithms of their densities."""
        mean, log_deviation = self.policy(observations).chunk(2, 1)
        gaussian = torch.distributions.Normal(mean, log_deviation.clamp(-20, 2).exp())
        squash = torch.distributions.transforms.TanhTransform()
        before = gaussian.mean + gaussian.stddev * noise
        action = squash(before)
        return action, (gaussian.log_prob(before) - squash.log_abs_det_jacobian(before, action)).sum(1)

    def update(self, b):
        """Makes an update; returns the mean loss of the critics and the larger TD errors."""
        temperature = self.log_temperature.exp().detach()
        with torch.no_grad():
            later, density = self.draw(b["next"], b["next_noise"])
            values = [q(torch.cat([b["next"], later], 1))[:, 0] for q in self.targets]
            target = b["reward"] + b["discount"] * (torch.minimum(*values) - temperature * density)
        errors = [target - q(torch.cat([b["now"], b["actions"]], 1))[:, 0] for q in self.critics]
        losses = []
        for error in errors:
            each = error ** 2 / 2
            if self.huber:
                each = torch.where(error.abs() <= self.huber, each, self.huber * (error.abs() - self.huber / 2))
            losses.append((each * b["weights"] if self.weighted else each).mean())
        action, density = self.draw(b["now"], b["noise"])
        values = [q(torch.cat([b["now"], action], 1))[:, 0] for q in self.critics]
        policy_loss = (temperature * density - torch.minimum(*values)).mean()
        gap = (density.detach() + self.target_entropy).mean()
        temperature_loss = -(self.log_temperature * gap).sum() * (1 if self.tunes else 0)
        grads = [torch.autograd.grad(loss, group, retain_graph=True) for loss, (group, _) in
                 zip((policy_loss, sum(losses), temperature_loss), self.groups)]
        for (group, _), grad, adam in zip(self.groups, grads, self.adams):
            for parameter, value in zip(group, grad):
                parameter.grad = value
            if self.max_norm:
                nn.utils.clip_grad_norm_(group, self.max_norm)
            adam.step()
        with torch.no_grad():
            for old, new in zip(self.targets.parameters(), self.critics.parameters()):
                old.copy_((1 - self.target_rate) * old + self.target_rate * new)
        first, second = (error.detach().numpy() for error in errors)
        return float(sum(losses).detach() / 2), np.where(np.abs(second) > np.abs(first), second, first)


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
        found = (difference(get_parameters(learner.tensors()), params[i + 1]), difference(loss, losses[i]),
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
        subprocess.run([options.build / "tests" / "sac_driver", folder], check=True)
        for name in CASES:
            worst = compare(pathlib.Path(folder), name)
            bad |= max(worst) > BOUND
            print(f"sac {name}: {STEPS} updates, largest difference of parameters {worst[0]:.1e}, "
                  f"losses {worst[1]:.1e}, TD errors {worst[2]:.1e}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
