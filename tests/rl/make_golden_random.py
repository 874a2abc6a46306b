# SPDX-License-Identifier: Apache-2.0
"""Writes tests/rl/golden/random.txt: draws from NumPy's generators, bit by bit.

    python -m pip install numpy==2.4.6
    python tests/rl/make_golden_random.py

The lines of the file; numbers are hexadecimal, doubles are their bits:

    sequence WORD... : WORD...                   SeedSequence(entropy).generate_state(12)
    GENERATOR KIND SEED LOW HIGH HASH FIRST...   the hash (FNV-1a over 64-bit words, each followed by h ^= h >> 32) of 3000 draws

and the first four draws.
"""

import pathlib
import struct

import numpy as np

NUMPY = "2.4"
DRAWS = 3000
SEEDS = [0, 1, 42, 2**32 - 1, 2**32 + 5, 123456789012, 2**64 - 1]
RANGES = [(0, 1), (0, 2), (0, 5), (-7, 6), (0, 3 * 2**30), (0, 2**32), (-5, 2**32 - 4),
          (0, 3 * 2**61), (-2**63, 2**63 - 1)]


def bits(value):
    if isinstance(value, float):
        return struct.unpack("<Q", struct.pack("<d", value))[0]
    return int(value) % 2**64


def write(out, generator, kind, seed, limits, draw):
    digest, first = 0xcbf29ce484222325, []
    for index in range(DRAWS):
        value = bits(draw(index))
        first += [value] if index < 4 else []
        digest = (digest ^ value) * 0x100000001b3 & (1 << 64) - 1
        digest ^= digest >> 32
    numbers = [seed, *map(bits, limits), digest, *first]
    out.write(" ".join([generator, kind, *(f"{n:x}" for n in numbers)]) + "\n")


def pcg64(out, seed):
    def rng():
        return np.random.default_rng(seed)
    one = rng()
    write(out, "pcg64", "next", seed, (0, 0), lambda _: one.bit_generator.random_raw())
    two = rng()
    write(out, "pcg64", "double", seed, (0, 0), lambda _: float(two.random()))
    for low, high in ((-.05, .05), (-3.5, 17.25)):
        three = rng()
        write(out, "pcg64", "uniform", seed, (low, high), lambda _: float(three.uniform(low, high)))
    for low, high in RANGES:
        four = rng()
        write(out, "pcg64", "integers", seed, (low, high), lambda _: int(four.integers(low, high)))
    five = rng()
    write(out, "pcg64", "mixed", seed, (0, 10),
          lambda i: int(five.integers(0, 10)) if i % 3 else float(five.random()))


def mt19937(out, seed):
    def rng():
        return np.random.RandomState(seed)
    one = rng()
    write(out, "mt19937", "next", seed, (0, 0),
          lambda _: int(one.randint(0, 2**32, dtype=np.uint32)))
    two = rng()
    write(out, "mt19937", "double", seed, (0, 0), lambda _: float(two.random_sample()))
    three = rng()
    write(out, "mt19937", "uniform", seed, (-3.5, 17.25), lambda _: float(three.uniform(-3.5, 17.25)))
    for bound in (1, 2, 5, 9, 1000):
        four = rng()
        write(out, "mt19937", "randint", seed, (0, bound), lambda _: int(four.randint(bound)))
    five = rng()
    write(out, "mt19937", "normal", seed, (0, 0), lambda _: float(five.randn()))


def main():
    assert np.__version__.startswith(NUMPY)
    with open(pathlib.Path(__file__).parent / "golden" / "random.txt", "w") as out:
        out.write(f"# numpy {np.__version__}: make_golden_random.py\n")
        for entropy in ([0], [1], [5, 1], [1, 2, 3, 4], [9, 8, 7, 6, 5, 4]):
            state = np.random.SeedSequence(sum(w << 32 * i for i, w in enumerate(entropy)))
            out.write("sequence " + " ".join(f"{w:x}" for w in entropy) + " : "
                      + " ".join(f"{w:x}" for w in state.generate_state(12)) + "\n")
        for seed in SEEDS:
            pcg64(out, seed)
        for seed in (0, 1, 42, 2**32 - 1):
            mt19937(out, seed)


if __name__ == "__main__":
    main()
