#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Takes pictures of every view of the page in light and dark, on a server with load.

    python3 tests/page/shots.py FOLDER

docs/page.md shows four of them: take them again when the page changes.
"""

import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import time

from browser import Browser
from conftest import REPRISE, Server
from test_page import save_npy

RUN = "dqn-cartpole"
VIEWS = {"overview": "#/", "table": "#/table/replay", "item": None, "storage": "#/storage", "clients": "#/clients",
         "runs": "#/runs", "run": f"#/runs/{RUN}"}


def train(server, seed, folder):
    """Trains DQN on CartPole, and reports to the server."""
    name = f"{RUN}-seed{seed}"
    done = subprocess.run([REPRISE, "train", "dqn", "--env", "cartpole", "--seed", str(seed), "--steps", "30000", "--keep-going",
                           "--dir", folder / name, "--report", f"localhost:{server.port}", "--report-name", name, "--quiet"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class Load:
    """An actor and a learner that the rate limiter paces, and a writer whose learner is gone."""

    def __init__(self, server):
        self.server, self.rng = server, random.Random(1)
        server.insert("queue", [self.item()] * 12, timeout=0)
        self.actor = server.command("insert", "replay", "-", "--timeout", 0, stdin=subprocess.PIPE)
        self.learner = None

    def item(self):
        return {"observation": [self.rng.gauss(0, 1) for _ in range(4)], "action": self.rng.randrange(2), "reward": 1.0}

    def run_for(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for _ in range(20):
                line = json.dumps({"priority": self.rng.expovariate(1), "data": self.item()}) + "\n"
                self.actor.stdin.write(line.encode())
            self.actor.stdin.flush()
            if self.learner is None or self.learner.poll() is not None:
                self.learner = self.server.sample("replay", 2000)
            time.sleep(0.05)


def picture(server, folder):
    """Inserts an item with a camera, a vector over steps and a picture stack. Returns its key."""
    with tempfile.TemporaryDirectory() as name:
        where = pathlib.Path(name)
        save_npy(where / "camera.npy", "|u1", (1, 48, 64, 3), bytes(v for y in range(48) for x in range(64) for v in (
            4 * x, 5 * y, 255 if (x - 32) ** 2 + (y - 24) ** 2 < 99 else 40)))
        save_npy(where / "frames.npy", "|u1", (1, 4, 42, 42), bytes(
            230 if (x - 10 - 6 * t) ** 2 + (y - 8 - 7 * t) ** 2 < 14 or (y == 40 and abs(x - 24 - t) < 5) else 20
            for t in range(4) for y in range(42) for x in range(42)))
        wave = b"".join(struct.pack("<f", math.sin(i / 5)) for i in range(64))
        save_npy(where / "velocity.npy", "<f4", (1, 64), wave)
        assert server.command("insert", "vision", where / "camera.npy", where / "frames.npy", where / "velocity.npy").wait(120) == 0
    return server.ask("/v1/tables/vision")["recent"][0]["key"]


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data, Browser() as browser:
        server = Server("--data", pathlib.Path(data) / "data", "--durability", "interval", tables=[
            "replay:prioritized:20000,samples_per_insert=4,min_size=100,error_buffer=50", "queue:queue:8", "vision:uniform:1000"])
        try:
            for seed in range(1, 6):
                train(server, seed, pathlib.Path(data))
            VIEWS["item"] = f"#/table/vision/item/{picture(server, folder)}"
            load = Load(server)
            for dark in (False, True):
                page = browser.open(server.address(), 1280, 900, dark)
                load.run_for(45)
                for name, view in VIEWS.items():
                    page.evaluate(f"location.hash = {view!r}")
                    load.run_for(4)
                    height = page.evaluate("Math.round(document.querySelector('footer').getBoundingClientRect().bottom + scrollY)")
                    page.resize(1280, min(1600, max(720, height + 8)))
                    load.run_for(1)
                    page.screenshot(folder / f"{name}-{'dark' if dark else 'light'}.png")
                    page.resize(1280, 900)
                assert not page.troubles(), page.troubles()
                page.close()
        finally:
            server.close()


if __name__ == "__main__":
    main()
