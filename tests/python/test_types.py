# SPDX-License-Identifier: Apache-2.0
"""The programs of the documents and the examples pass `mypy --strict`; so do calls with wrong
arguments not. `make test-long` has pyright check the same programs."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from runner import typed  # noqa: E402

pytest.importorskip("mypy")

# What type checkers must find, and what they must know.
WRONG = '''
import reprise
from reprise import aio

client = reprise.Client("localhost:8000")
for item in client.sample("t", emit_timesteps=False):
    reveal_type(item)  # ReplaySample
    reveal_type(item.info.key)  # int
    reveal_type(item.info.probability)  # float
for steps in client.sample("t"):
    reveal_type(steps)  # "list[tuple
client.sampler("t", 32, betta=0.4)  # Unexpected keyword argument "betta"
for batch in client.sampler("t", 32, beta=0.4):
    reveal_type(batch["obs"])  # numpy.ndarray
    reveal_type(batch["obs"]["pixels"])  # numpy.ndarray
    reveal_type(batch.keys)  # numpy.ndarray
    reveal_type(batch.weights)  # numpy.ndarray
    reveal_type(batch.size)  # int
for batch in client.sampler("t", 32).torch():
    reveal_type(batch)  # reprise.batch.TensorBatch
    reveal_type(batch["obs"].device)  # Any
reprise.Tabel  # Module has no attribute "Tabel"
reprise.ReplayBuffer.from_spaces(10, None, None, bta=0.4)  # Unexpected keyword argument "bta"
with client.trajectory_writer(1) as writer:
    reveal_type(writer.history["obs"][-1:])  # TrajectoryColumn
    reveal_type(writer.history["obs"]["pixels"][-1])  # TrajectoryColumn
    reveal_type(writer.history[-1:])  # TrajectoryColumn
    reveal_type(writer.history.obs)  # Any
client.rollouts("r", create=dict(group_size=2, consumers={"trainer": ["tokens"]}), timeout=1)
client.rollouts("r", create=dict(group_sise=2))  # incompatible type
for group in client.rollouts("r").draw(1):
    for each in group.items:
        reveal_type(each.columns["a"])  # Any

async def main() -> None:
    async for item in aio.AsyncClient(client).sample("t", emit_timesteps=False):
        reveal_type(item)  # ReplaySample
    async for one in aio.AsyncClient(client).batches("t", 32, beta=0.4):
        reveal_type(one)  # reprise.batch.Batch
'''


def test_mypy(tmp_path):
    (tmp_path / "wrong.py").write_text(WRONG)
    command = [*typed.mypy(sys.executable, tmp_path, os.devnull), tmp_path / "wrong.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600,
                          env={**os.environ, "MYPYPATH": str(ROOT / "python")})
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert [line for line in lines if "/wrong.py:" not in line] == []
    said = {}
    for line in lines:
        number = int(line.split(":")[1])
        said[number] = said.get(number, "") + line
    wanted = {number: line.partition("  # ")[2] for number, line in enumerate(WRONG.splitlines(), 1)
              if "  # " in line}
    assert {n: text for n, text in wanted.items() if text not in said.get(n, "")} == {}, said
    assert sorted(said) == sorted(wanted)
