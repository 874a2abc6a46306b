# SPDX-License-Identifier: Apache-2.0
"""Runs networks that we wrote as ONNX files in onnxruntime, and compares with our own outputs.

    python -m pip install onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6
    python tests/rl/compare_onnx.py build/test/release

`make test-rl-peers` does both, in an environment of its own (tools/peers.py).

tests/rl/onnx_driver.c has the networks: each kind of layer, activation and head, and the policies of
DQN and DPG in some environments. Each file is checked by the package onnx, written twice with equal bytes,
and run with 16 rows and with one. Prints a line for each, and exits with 1 if a number is
further than 1e-5 from ours, relative to the larger of 1 and our number.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

BOUND = 1e-5
TYPES = {"tensor(float)": np.float32, "tensor(uint8)": np.uint8, "tensor(int64)": np.int64}


def numbers(folder, name, value):
    """Returns the numbers of the driver for an input or output of the graph, or None."""
    path = folder / f"{name}.{value.name}"
    if not path.exists():
        return None
    return np.fromfile(path, TYPES[value.type]).reshape(-1, *value.shape[1:])


def difference(theirs, ours):
    if theirs.shape != ours.shape or theirs.dtype != ours.dtype:
        return float("inf")
    away = np.abs(theirs.astype(np.float64) - ours) / np.maximum(1, np.abs(ours))
    return float(away.max()) if np.isfinite(away).all() else float("inf")


def compare(folder, name):
    """Returns the largest difference of each output."""
    path = str(folder / f"{name}.onnx")
    onnx.checker.check_model(path, full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    inputs = {v.name: numbers(folder, name, v) for v in session.get_inputs()}
    found = {}
    for rows in (len(inputs["observations"]), 1):
        given = {k: v[:rows] for k, v in inputs.items()}
        for value, theirs in zip(session.get_outputs(), session.run(None, given)):
            ours = numbers(folder, name, value)
            assert ours is not None, f"{name}: we have no {value.name}"
            found[value.name] = max(found.get(value.name, 0), difference(theirs, ours[:rows]))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    driver = parser.parse_args().build / "tests" / "onnx_driver"
    worst = 0
    print(f"# onnxruntime {onnxruntime.__version__}, onnx {onnx.__version__}")
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        for folder in (one, two):
            subprocess.run([driver, folder], check=True)
        files = sorted(pathlib.Path(one).glob("*.onnx"))
        for path in files:
            assert path.read_bytes() == (pathlib.Path(two) / path.name).read_bytes(), path.name
            found = compare(pathlib.Path(one), path.stem)
            worst = max([worst, *found.values()])
            print(f"{path.stem}: " + ", ".join(f"{k} {v:.2g}" for k, v in found.items()))
    print(f"{len(files)} files, largest difference {worst:.2g}, the bound is {BOUND}")
    return worst > BOUND or len(files) == 0


if __name__ == "__main__":
    sys.exit(main())
