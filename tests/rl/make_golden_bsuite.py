# SPDX-License-Identifier: Apache-2.0
"""Writes tests/rl/golden/bsuite.txt: runs of bsuite's Catch, DeepSea and MemoryChain, as hashes.

    python -m pip install --no-deps bsuite==0.3.6 dm_env==1.6
    python -m pip install numpy==2.4.6 absl-py dm-tree
    python tests/rl/make_golden_bsuite.py

A line is a run:

    NAME SEED STEPS ENDS RETURN HASH [SETTING=VALUE...]

Actions are numpy.random.default_rng(SEED + 1).integers(0, count). Where an episode ends, the next
one begins at once. ENDS counts the episodes, RETURN is the sum of the rewards. The hash is FNV-1a
over 64-bit words: the bits, as doubles, of every reward, of 1 or 0 for the end of the episode, and of
every element of every observation, also of those after a reset.
"""

import pathlib
import struct
import sys
import types
import warnings

import numpy as np

# The package itself imports plotting libraries; its environments do not need them.
sys.modules["bsuite"] = types.ModuleType("bsuite")
sys.modules["bsuite"].__path__ = [
    str(pathlib.Path(folder) / "bsuite") for folder in sys.path
    if (pathlib.Path(folder) / "bsuite").is_dir()]

from bsuite.environments import catch, deep_sea, memory_chain  # noqa: E402

STEPS = 1500


def bits(value):
    return struct.unpack("<Q", struct.pack("<d", float(value)))[0]


class Run:
    """Feeds the hash of one run."""

    def __init__(self):
        self.digest = 0xcbf29ce484222325

    def add(self, values):
        for value in values:
            self.digest = (self.digest ^ bits(value)) * 0x100000001b3 & (1 << 64) - 1
            self.digest ^= self.digest >> 32


def play(env, seed, steps):
    run, rng = Run(), np.random.default_rng(seed + 1)
    count, ends, total = env.action_spec().num_values, 0, 0.0
    run.add(env.reset().observation.ravel())
    for _ in range(steps):
        step = env.step(int(rng.integers(0, count)))
        run.add([step.reward, step.last()])
        run.add(step.observation.ravel())
        total += step.reward
        if step.last():
            ends += 1
            run.add(env.reset().observation.ravel())
    return ends, total, run.digest


def write(out, name, env, seed, settings, steps=STEPS):
    ends, total, digest = play(env, seed, steps)
    words = [name, seed, steps, ends, f"{bits(total):016x}", f"{digest:016x}",
             *(f"{k}={v}" for k, v in settings.items())]
    out.write(" ".join(map(str, words)) + "\n")


def main():
    warnings.simplefilter("ignore")
    with open(pathlib.Path(__file__).parent / "golden" / "bsuite.txt", "w") as out:
        out.write(f"# bsuite 0.3.6, numpy {np.__version__}: make_golden_bsuite.py\n")
        for seed in (0, 1, 2**32 - 1):
            write(out, "catch", catch.Catch(seed=seed), seed, {})
        write(out, "catch", catch.Catch(rows=6, columns=8, seed=3), 3, {"rows": 6, "columns": 8})
        for seed, size, mapping in ((0, 10, 42), (1, 20, 42), (5, 7, 1)):
            write(out, "deep_sea", deep_sea.DeepSea(size, seed=seed, mapping_seed=mapping), seed,
                  {"size": size, "mapping_seed": mapping})
        write(out, "deep_sea", deep_sea.DeepSea(10, deterministic=False, seed=4, mapping_seed=42), 4,
              {"size": 10, "deterministic": 0})
        write(out, "deep_sea", deep_sea.DeepSea(10, randomize_actions=False, seed=4), 4,
              {"size": 10, "randomize": 0})
        for seed, length, count in ((0, 1, 1), (1, 10, 1), (2, 100, 1), (3, 4, 5)):
            env = memory_chain.MemoryChain(length, count, seed=seed)
            write(out, "memory_chain", env, seed, {"length": length, "bits": count})


if __name__ == "__main__":
    main()
