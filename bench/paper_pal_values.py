# SPDX-License-Identifier: Apache-2.0
"""What Zhang et al. (2021) measured, for the tables of paper_pal.py.

The paper prints its figures without numbers. Those of figures 8 and 9 are from the tables of results beside
the authors' program, github.com/vermouth1992/hipc21; those of the others are in the text of the paper. Their
machine: Xeon Gold 5120 with 56 cores. Their times include the call from Python and the random numbers.
"""

# ms of a call with a batch of 128, by capacity: update of priorities (their "insertion"), and sample.
LATENCY = {
    "ours": {1024: (0.0163, 0.0135), 16384: (0.0165, 0.0168), 131072: (0.0213, 0.0202), 1048576: (0.0178, 0.0239)},
    "Tianshou": {1024: (0.0335, 0.0238), 16384: (0.0372, 0.0270), 131072: (0.0421, 0.0295), 1048576: (0.0573, 0.0341)},
    "RLlib": {1024: (1.57, 0.644), 16384: (2.16, 0.843), 131072: (2.62, 1.035), 1048576: (3.13, 1.255)},
}
# ns for one more element of a batch, from the times of batches of 64 and 512: update, draw.
BY_K = {2: (65.7, 205.9), 4: (39.3, 170.8), 8: (31.7, 158.5), 16: (29.7, 161.2), 32: (28.2, 187.6),
        64: (27.2, 227.9)}  # at a capacity of 1e6
BY_CAPACITY = {1000: (20.6, 72.4), 10000: (34.5, 99.9), 100000: (30.3, 125.3), 1000000: (29.7, 161.2),
               10000000: (65.0, 243.6)}  # with K = 16
TIMES_TIANSHOU, TIMES_RLLIB = "about 4", "about 100"  # of figure 8, in the text
OVER_GLOBAL, OVER_NONE = "2 to 5", "1.01 to 5"  # of figure 10: speedup, and slowdown
PLUG_IN = "1.19 to 1.75"  # of figure 11, in RLlib
LAYOUT = "about 1 %"
