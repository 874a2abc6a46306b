# SPDX-License-Identifier: Apache-2.0
"""Runs the examples, and checks their results."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def dqn():
    spec = importlib.util.spec_from_file_location("dqn_cartpole", EXAMPLES / "dqn_cartpole.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_dqn_improves():
    """After the short run the return is at least twice that at the beginning."""
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # the matrices are small
    done = subprocess.run([sys.executable, EXAMPLES / "dqn_cartpole.py", "--quick"], timeout=300,
                          capture_output=True, text=True, env={**os.environ, **one_thread})
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    best = float(last.split("best mean return ")[1].split(";")[0])
    first = float(last.split("while exploring ")[1].split(" at first")[0])
    assert best > 2 * first, last


def test_the_learner_of_apex_learns_from_its_actors():
    pytest.importorskip("torch")
    done = subprocess.run([sys.executable, EXAMPLES / "apex_torch.py", "--updates", "120", "--start", "200",
                           "--device", "cpu"], timeout=300, capture_output=True, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "120 updates in" in done.stdout.splitlines()[-1]


def test_the_gradient_of_the_network(dqn):
    """Compares the gradient of NumpyNetwork with finite differences."""
    network = dqn.NumpyNetwork(seed=3)
    network.weights = [w.astype(np.float64) for w in network.weights]
    network.sync()
    rng = np.random.default_rng(0)
    batch = (rng.normal(size=(8, 4)), rng.integers(0, 2, 8), 0.1 * rng.normal(size=8),
             rng.normal(size=(8, 4)), rng.random(8) < 0.5)
    weights = rng.random(8)
    found = []
    network.adam = lambda gradients, rate: found.extend(gradients)

    def loss():
        rows = np.arange(8)
        then = network.forward(batch[3], network.target)[-1][rows, best]
        goal = batch[2] + dqn.GAMMA * then * ~batch[4]
        error = np.abs(network.values(batch[0])[rows, batch[1]] - goal)
        return (weights * np.where(error < 1, 0.5 * error**2, error - 0.5)).mean()

    best = network.values(batch[3]).argmax(1)
    network.learn(*batch, weights, rate=0.0)
    for layer, place in ((0, (1, 5)), (1, (7,)), (2, (3, 4)), (4, (6, 1)), (5, (0,))):
        before, h = network.weights[layer][place], 1e-6
        network.weights[layer][place] = before + h
        above = loss()
        network.weights[layer][place] = before - h
        below = loss()
        network.weights[layer][place] = before
        assert found[layer][place] == pytest.approx((above - below) / (2 * h), abs=1e-7)


def test_the_pole_falls_when_pushed_one_way(dqn):
    """When it is always pushed in one direction, the pole falls after 9 or 10 steps, as in
    gymnasium.
    """
    env, lengths = dqn.CartPole(seed=1), []
    for _ in range(20):
        env.reset()
        over, steps = False, 0
        while not over:
            observation, reward, over, late = env.step(1)
            assert observation.dtype == np.float32 and reward == 1.0 and not late
            steps += 1
        lengths.append(steps)
    assert 8 <= min(lengths) and max(lengths) <= 11


def test_time_is_up_after_500_steps(dqn):
    env = dqn.CartPole(seed=1)
    env.reset()
    for step in range(500):
        env.state[:] = 0.0
        _, _, fell, late = env.step(step % 2)
        assert not fell
        assert late == (step == 499)
