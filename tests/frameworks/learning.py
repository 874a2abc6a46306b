# SPDX-License-Identifier: Apache-2.0
"""Compares the returns of trainings that differ in nothing but the buffer."""

import statistics


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
