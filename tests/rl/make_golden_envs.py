# SPDX-License-Identifier: Apache-2.0
"""Writes tests/rl/golden/<task>.txt: steps of Gymnasium's classic-control tasks, bit by bit.

    python -m pip install gymnasium==1.4.0 numpy==2.4.6
    python tests/rl/make_golden_envs.py

Numbers are the bits of a double as 16 hexadecimal digits. The lines of a file:

    math X SIN COS POW             what libm says: pow is X ** 2
    narrow X SIN COS               NumPy's sine and cosine of a float32
    forced VARIABLES ACTION VARIABLES REWARD TERMINATED
    run SEED MIX STEPS BEYOND LIMIT NAME=VALUE...
    row KIND ACTION REWARD TERMINATED TRUNCATED VARIABLES OBSERVATION
    hash H                         of all rows of the run, of which only the first are written

The hash is FNV-1a over 64-bit words, each followed by h ^= h >> 32.
"""

import math
import pathlib
import struct

import gymnasium
import numpy as np
from gymnasium_runs import GYMNASIUM, NUMPY, SETTINGS, TASKS, forced, rows_of, runs

FOLDER = pathlib.Path(__file__).parent / "golden"
FORCED, WRITTEN, STEPS = 120, 50, 20000


def bits(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def line(word, values):
    return " ".join([word, *(f"{bits(float(v)):016x}" for v in values)]) + "\n"


def fnv(digest, values):
    for value in values:
        digest = (digest ^ bits(float(value))) * 0x100000001b3 & (1 << 64) - 1
        digest ^= digest >> 32
    return digest


def math_lines(out):
    rng = np.random.default_rng(7)
    for x in rng.uniform(-20, 20, 40):
        out.write(line("math", [x, np.sin(x), np.cos(x), x ** 2]))
    for x in rng.uniform(-3, 3, 40).astype(np.float32):
        out.write(line("narrow", [x, np.sin(x), np.cos(x)]))


def write_run(out, task, run):
    settings = [f"{SETTINGS[k]}={bits(float(v)):016x}" for k, v in task.bounds.items()]
    out.write(" ".join(["run", str(run.seed), f"{bits(run.mix):016x}", str(run.steps),
                        str(run.beyond), str(run.limit), *(settings if run.custom else [])]) + "\n")
    digest = 0xcbf29ce484222325
    for index, row in enumerate(rows_of(task, run)):
        if index < WRITTEN:
            out.write(line("row", row))
        digest = fnv(digest, row)
    out.write(f"hash {digest:016x}\n")


def main():
    assert gymnasium.__version__ == GYMNASIUM and np.__version__.startswith(NUMPY)
    assert all(np.sin(x) == math.sin(x) for x in np.linspace(-9, 9, 10000))
    for task in TASKS:
        with open(FOLDER / f"{task.name}.txt", "w") as out:
            out.write(f"# gymnasium {GYMNASIUM}, numpy {np.__version__}: make_golden_envs.py\n")
            math_lines(out)
            for before, action, after, reward, terminated in forced(task, FORCED, 1):
                out.write(line("forced", [*before, action, *after, reward, terminated]))
            for run in runs(task, STEPS):
                write_run(out, task, run)


if __name__ == "__main__":
    main()
