# SPDX-License-Identifier: Apache-2.0
"""Converts checkpoints in both directions: dm-reverb writes one, it is converted to a data
directory and back, and dm-reverb loads it. Its information and its samples must be as before."""

import importlib.util
import pathlib
import shutil
import subprocess

import numpy as np
import pytest
import reverb

import harness

DATA = harness.ROOT / "tests" / "data" / "reverb"
spec = importlib.util.spec_from_file_location("make", DATA / "make.py")
make = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make)


def reprise(*words):
    done = subprocess.run([harness.binary(), *map(str, words)], capture_output=True, text=True,
                          timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def serve(root, tables=None):
    checkpointer = reverb.checkpointers.DefaultCheckpointer(str(root))
    return reverb.Server(tables or make.tables(), checkpointer=checkpointer)


def described(info):
    """Returns a server's information on a table, without the times of its threads."""
    return {name: str(value) if name == "signature" else value
            for name, value in vars(info).items() if name != "table_worker_time"}


def drawn(client, name, count):
    """Returns samples by key."""
    found = {}
    for sample in client.sample(name, count, emit_timesteps=False):
        found[int(sample.info.key)] = (sample.info.priority,
                                       [np.asarray(c).tolist() for c in sample.data])
    return found


def observe(root):
    """Loads the checkpoint in `root` with dm-reverb. Returns all that can be observed of it."""
    server = serve(root)
    client = reverb.Client(f"localhost:{server.port}")
    infos = {name: described(info) for name, info in client.server_info().items()}
    data = {}
    for name, info in infos.items():
        # Random samplers draw so often that each item is met, except with probability 10^-9.
        count = {"uniform": 300, "prioritized": 300}.get(name, 3)
        data[name] = drawn(client, name, count) if info["current_size"] else {}
    server.stop()
    return infos, data


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """A folder with a checkpoint that dm-reverb has just written."""
    root = tmp_path_factory.mktemp("checkpoints")
    server = serve(root)
    client = reverb.Client(f"localhost:{server.port}")
    make.fill(client, np.random.default_rng(11))
    make.use(client)
    path = client.checkpoint()
    server.stop()
    return root, pathlib.Path(path)


@pytest.mark.seconds(120)
def test_checkpoints_round_trip(checkpoints, tmp_path):
    root, written = checkpoints
    before = make.describe(written)
    reprise("data", "convert", "--from", "reverb", root, tmp_path / "data")
    assert "all fine" in reprise("data", "verify", tmp_path / "data")
    said = reprise("data", "convert", "--to", "reverb", tmp_path / "data", tmp_path / "root")
    folder = pathlib.Path(said.rsplit(": ", 1)[0])
    assert (folder / "DONE").exists() and folder.parent == tmp_path / "root"

    again = make.describe(folder)
    assert again["tables"] == before["tables"]
    infos, data = observe(root)
    infos_again, data_again = observe(tmp_path / "root")
    assert infos == infos_again
    for name, items in data.items():
        if name not in ("uniform", "prioritized"):
            assert data_again[name] == items, name
        for key in items.keys() & data_again[name].keys():
            assert data_again[name][key] == items[key]
    assert data["uniform"].keys() == data_again["uniform"].keys()


def test_an_old_checkpoint_is_loaded(tmp_path):
    """The stored checkpoint that other tests use, which is never written again."""
    shutil.copytree(DATA / "zlib", tmp_path / "root" / "2021-01-01T00:00:00+00:00")
    reprise("data", "convert", "--from", "reverb", tmp_path / "root", tmp_path / "data")
    reprise("data", "convert", "--to", "reverb", tmp_path / "data", tmp_path / "again")
    assert observe(tmp_path / "root")[0] == observe(tmp_path / "again")[0]


@pytest.mark.parametrize("name", ["plain", "old"])
def test_old_formats_read_the_same_after_conversion(name, tmp_path):
    """dm-reverb loads the same from a checkpoint of an old format and from our conversion of it."""
    shutil.copytree(DATA / name, tmp_path / "root" / "2021-01-01T00:00:00+00:00")
    reprise("data", "convert", "--from", "reverb", DATA / name, tmp_path / "data")
    reprise("data", "convert", "--to", "reverb", tmp_path / "data", tmp_path / "again")
    infos, data = observe(tmp_path / "root")
    infos_again, data_again = observe(tmp_path / "again")
    assert infos == infos_again
    for table in ("small", "ratio", "queue", "stack"):
        assert data[table] == data_again[table]
