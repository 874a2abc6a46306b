# SPDX-License-Identifier: Apache-2.0
"""Tries an installed copy of the package, with the standard library and NumPy alone.

RP_SITE is the folder into which `pip install --target` put it, if it is not in an environment.
RP_EMULATED says that the machine is emulated, so that no program can be started.
"""

import importlib
import importlib.metadata
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile

import numpy as np
import reprise
import reprise.__main__

EMULATED = "RP_EMULATED" in os.environ


def tables():
    return [reprise.Table(name="replay", sampler=reprise.selectors.Prioritized(0.6),
                          remover=reprise.selectors.Fifo(), max_size=100,
                          rate_limiter=reprise.rate_limiters.MinSize(1))]


def check_server(server):
    """Writes trajectories over TCP, and reads them."""
    client = reprise.Client(f"localhost:{server.port}")
    with client.trajectory_writer(num_keep_alive_refs=3) as writer:
        for step in range(20):
            writer.append({"obs": np.full(1000, step, np.float32), "reward": float(step)})
            if step >= 2:
                writer.create_item("replay", 1.0, {"obs": writer.history["obs"][-3:]})
    for sample in client.sample("replay", 5, emit_timesteps=False):
        [obs] = sample.data
        assert obs.shape == (3, 1000), obs.shape
        assert (np.diff(obs[:, 0]) == 1).all()
    assert client.server_info()["replay"].current_size == 18


def check_storage():
    """Writes a checkpoint, and loads it."""
    with tempfile.TemporaryDirectory() as folder:
        for size in (0, 1):
            with reprise.Server(tables(), storage=folder) as server:
                client = server.localhost_client()
                assert client.server_info()["replay"].current_size == size
                client.insert([np.zeros(3)], {"replay": 1.0})
                client.checkpoint()


def check_files(place):
    """The command, its man pages and completions are installed."""
    share = place / "share"
    for name in ("man/man1/reprise.1", "man/man1/reprise-serve.1", "zsh/site-functions/_reprise",
                 "bash-completion/completions/reprise", "fish/vendor_completions.d/reprise.fish"):
        assert "reprise" in (share / name).read_text(), name
    if not EMULATED:
        # `pip install --target` writes a script for the interpreter of pip.
        script = [] if "RP_SITE" in os.environ else [[place / "bin" / "reprise"]]
        for words in (*script, [sys.executable, "-m", "reprise"], [reprise.__main__.command()]):
            said = subprocess.run([*words, "--version"], capture_output=True, text=True, timeout=60)
            assert said.stdout == f"reprise {reprise.__version__}\n", said


def main():
    for compiler in ("cc", "gcc", "clang", "c++"):
        assert shutil.which(compiler) is None, compiler
    assert importlib.metadata.version("reprise-rl") == reprise.__version__
    for where in ("process",) if EMULATED else ("process", "child"):
        with reprise.Server(tables(), where=where) as server:
            check_server(server)
    check_storage()
    buffer = reprise.ReplayBuffer(10, {"obs": ((4,), np.float32)})
    buffer.add(obs=np.ones((5, 4)))
    assert buffer.sample(3)["obs"].sum() == 12
    importlib.import_module("reprise._rl")  # the agents are in the package
    check_files(pathlib.Path(os.environ.get("RP_SITE") or sysconfig.get_path("data")))
    with open("/proc/self/maps") as maps:
        loaded = {line.split()[-1] for line in maps if ".so" in line}
    foreign = ("libnghttp2", "libsnappy", "liblz4", "libmicrohttpd", "libyaml", "libgnutls")
    assert not [name for name in loaded if any(f in name for f in foreign)], loaded
    print("ok")


if __name__ == "__main__":
    main()
