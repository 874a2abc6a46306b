# SPDX-License-Identifier: Apache-2.0
"""Compares the returns of trainings that differ in nothing but the buffer.

The scripts are those of bench/framework_scripts.py. The return of a training is the mean of its last
episodes, which still explore a little. The trainings of all seeds run in as many processes as there
are cores.
"""

import concurrent.futures
import logging
import multiprocessing
import os
import statistics

import scipy.stats
import torch

SEEDS = range(5)
LEVEL = 0.99  # of the interval of the difference


def return_of(script, kind, steps, seed):
    """Returns the return of one training on CartPole."""
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    return statistics.mean(script("cartpole", kind, steps, seed).returns)


def returns_of(script, kinds, steps):
    """Returns the returns of all seeds, for each kind of buffer."""
    spawn = multiprocessing.get_context("spawn")  # the frameworks have threads, so no fork
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count(), spawn) as pool:
        running = [[pool.submit(return_of, script, kind, steps, seed) for seed in SEEDS]
                   for kind in kinds]
        return [[training.result() for training in each] for each in running]


def agree(test, name, theirs, ours, least):
    """Fails if either mean return is below `least`: then the training does not learn, and the
    comparison says nothing. Fails also if the interval of the difference of the means (Welch's t)
    says that ours is lower."""
    means = statistics.mean(theirs), statistics.mean(ours)
    interval = scipy.stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval(LEVEL)
    print(f"# {name}: mean return {means[0]:.0f} with theirs {[round(r) for r in theirs]}, "
          f"{means[1]:.0f} with ours {[round(r) for r in ours]}; difference "
          f"{means[1] - means[0]:+.0f}, {LEVEL:.0%} interval {interval.low:+.0f} .. "
          f"{interval.high:+.0f}", flush=True)
    test.assertGreater(means[0], least)
    test.assertGreater(means[1], least)
    test.assertGreater(interval.high, 0)
