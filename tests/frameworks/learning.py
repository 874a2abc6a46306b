# SPDX-License-Identifier: Apache-2.0
"""Compares the returns of trainings that differ in nothing but the buffer.

The scripts are those of bench/framework_scripts.py. The return of a training is the mean of its last
episodes, which still explore a little.
"""

import statistics

import torch

SEEDS = range(3)


def returns_of(script, kind, steps):
    """Returns the return of a training on CartPole for each seed."""
    torch.set_num_threads(1)
    return [statistics.mean(script("cartpole", kind, steps, seed).returns) for seed in SEEDS]


def agree(test, theirs, ours, least):
    """Fails if the mean return with our buffer is lower than with the framework's own, by more than
    three standard errors of the difference, or if either is below `least`: then the training does
    not learn, and the comparison says nothing."""
    means = statistics.mean(theirs), statistics.mean(ours)
    error = sum(statistics.variance(r) / len(r) for r in (theirs, ours)) ** 0.5
    print(f"returns with theirs {[round(r) for r in theirs]}, with ours {[round(r) for r in ours]}",
          flush=True)
    test.assertGreater(means[0], least)
    test.assertGreater(means[1], least)
    test.assertGreater(means[1], means[0] - 3 * error)
