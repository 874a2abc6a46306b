#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills parts of `reprise train apex-dqn --processes` at random while it trains.

In the end the task has to be solved, no item that was confirmed may be missing, the replay may never
have counted backwards, and no process may be left. `make test-apex-kills` runs it with 100 kills.

The ledger: two writers beside the actors copy items of the table "replay" into it again, in small
batches, and note the keys that the server has confirmed. They use the same table, the same calls and the same
journal as the actors. When all processes have ended, every key of the ledger must be in the files of
the replay, which are read without a server. The table is so large that it evicts nothing.
"""

import argparse
import csv
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import tempfile
import threading
import time

# The return that solves each task, and options of the command.
TASKS = {"cartpole": (475, []),
         "catch": (0.9, ["--hidden", "32", "--start", "200"])}
PATIENCE = 600  # seconds for anything, on a busy machine
RUN = "run"
WRITERS = 2
BATCH = 16  # items that a writer copies at once
CAPACITY = 4_000_000  # more than a test inserts


def children(pid):
    """The processes that a process has started, with their command lines."""
    found = {}
    for thread in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in thread.read_text().split():
            try:
                line = pathlib.Path(f"/proc/{child}/cmdline").read_bytes().decode()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if "--role=" in line:  # it has become a part already
                found[int(child)] = line.split("\0")
    return found


def name_of(line):
    role = next(a.split("=")[1] for a in line if a.startswith("--role="))
    index = [a.split("=")[1] for a in line if a.startswith("--index=")]
    return " ".join([role, *index])


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Program:
    """The command under test, with a ledger."""

    def __init__(self, reprise, folder, actors, seed, shards, task, threshold):
        self.reprise, self.folder = str(reprise), folder
        self.shards = ["replay", *(f"replay-{i}" for i in range(1, shards))]
        self.log = open(folder / "log.txt", "w+", encoding="utf-8")
        solved, options = TASKS[task]
        self.threshold = solved if threshold is None else threshold
        self.process = subprocess.Popen(
            [self.reprise, "train", "apex-dqn", "--env", task, *options, "--actors", str(actors),
             "--shards", str(shards), "--seed", str(seed), "--capacity", str(CAPACITY),
             "--processes", "--keep-going", "--dir", RUN],
            cwd=folder, stdout=self.log, stderr=self.log)
        self.seen, self.inserts = {}, {}
        self.ledger, self.batches, self.failed_batches = set(), 0, 0
        self.is_over = False
        self.lock = threading.Lock()
        self.writers = [threading.Thread(target=self.write) for _ in range(WRITERS)]

    def ask(self, *arguments, given=None):
        """Runs another command on the replay; its output, or None if the replay is away."""
        server = ",".join(f"unix:{RUN}/{name}.sock" for name in self.shards)
        done = subprocess.run([self.reprise, *arguments, "--server", server], cwd=self.folder,
                              input=given, capture_output=True, text=True, timeout=PATIENCE)
        return done.stdout if done.returncode == 0 else None

    def until(self, what, check):
        """Waits until check() returns something true, which is returned."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            assert self.process.poll() is None, self.text()
            result = check()
            if result:
                return result
            time.sleep(0.2)
        raise AssertionError(f"no {what} within {PATIENCE} s:\n{self.text()}")

    def text(self):
        self.log.flush()
        return pathlib.Path(self.log.name).read_text(encoding="utf-8")[-4000:]

    def write(self):
        """Copies items, and notes the keys of the copies that are confirmed."""
        while not self.is_over:
            items = self.ask("sample", "replay", "--json", "--elements", "0", "--count", str(BATCH),
                             "--timeout", "2")
            done = items and self.ask("insert", "replay", "-", "--json", "--timeout", "10", given=items)
            with self.lock:
                self.batches += 1
                self.failed_batches += not done
                if done:
                    self.ledger.update(json.loads(done)["keys"])
            time.sleep(0.05)

    def tables(self):
        """The tables of all shards that can be reached; None if the replay is away."""
        text = self.ask("info", "--json", "--timeout", "2")
        if text is None:
            return None
        tables = json.loads(text)
        for t in tables:
            if t["table"] == "replay":
                before, now = self.inserts.get(t.get("shard", 0), 0), t["inserts"]
                assert now >= before, f"the replay has lost {before - now} items"
                self.inserts[t.get("shard", 0)] = now
        return tables

    def kept(self):
        """The keys of all items in the files of the replay. A server of each shard writes what its
        journal has to a checkpoint first."""
        keys = set()
        for name in self.shards:
            data, server = f"{RUN}/{name}", "unix:check.sock"
            process = subprocess.Popen(
                [self.reprise, "serve", "--listen", server, "--data", data, "--durability", "interval",
                 "--table", "job:fifo:1"], cwd=self.folder, stdout=self.log, stderr=self.log)
            try:
                end = time.monotonic() + PATIENCE
                while subprocess.run([self.reprise, "checkpoint", "--server", server, "--timeout", "600"],
                                     cwd=self.folder, capture_output=True, timeout=PATIENCE).returncode != 0:
                    assert process.poll() is None and time.monotonic() < end, self.text()
                    time.sleep(0.2)
            finally:
                process.terminate()
                process.wait(PATIENCE)
            done = subprocess.run([self.reprise, "data", "dump", data, "--table", "replay", "--json", "--quiet"],
                                  cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE)
            assert done.returncode == 0, done.stderr
            keys.update(int(key) for key in re.findall(r'"table":\s*"replay",\s*"key":\s*(\d+)', done.stdout))
        return keys

    def evaluation_after(self, when):
        """The best evaluation that was reported after a time."""
        text = self.ask("runs", "export", RUN, "--timeout", "2")
        if text is None:
            return None
        values = [float(row["value"]) for row in csv.DictReader(text.splitlines())
                  if row["name"] == "eval_return" and float(row["time"]) > when]
        return values and max(values) >= self.threshold

    def parts(self):
        found = children(self.process.pid)
        self.seen.update(found)
        return found

    def end(self):
        self.is_over = True
        for writer in self.writers:
            if writer.is_alive():
                writer.join()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE)


def kill_parts(reprise, folder, kills, seed, actors=3, shards=1, task="cartpole", threshold=None, say=lambda text: None):
    """The test; raises AssertionError. `threshold` is a return that is enough at the end. Returns the names of
    what was killed."""
    rng = random.Random(seed)
    program = Program(reprise, folder, actors, seed, shards, task, threshold)
    parts = actors + shards + 2
    killed = []
    try:
        program.until("parts", lambda: len(program.parts()) == parts)
        program.until("items", lambda: any(t["table"] == "replay" and t["items"] for t in program.tables() or []))
        for writer in program.writers:
            writer.start()
        for i in range(kills):
            time.sleep(rng.uniform(0.1, 0.6))
            victims = program.until("part", lambda: sorted(
                (name_of(line), pid) for pid, line in program.parts().items()))
            name, pid = rng.choice(victims)
            os.kill(pid, signal.SIGKILL)
            killed.append(name)
            say(f"{i + 1}: killed {killed[-1]}; {sum(program.inserts.values())} items, "
                f"{len(program.ledger)} in the ledger")
            program.tables()
        last = time.time()
        program.until("all parts", lambda: len(program.parts()) == parts)
        program.until("solution", lambda: program.evaluation_after(last))
        program.until("ledger", lambda: len(program.ledger) > 0)
    finally:
        program.end()
    assert program.process.returncode == 128 + signal.SIGINT, program.process.returncode
    left = [name_of(line) for pid, line in program.seen.items() if is_alive(pid)]
    assert left == [], left
    assert (folder / RUN / "policy.safetensors").exists()
    kept = program.kept()
    missing = program.ledger - kept
    assert not missing, f"{len(missing)} of {len(program.ledger)} confirmed items are missing"
    say(f"{len(program.ledger)} items of {program.batches - program.failed_batches} batches were confirmed, "
        f"{program.failed_batches} batches were not; the files have all of them, and {len(kept)} items in all")
    program.log.close()
    return killed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reprise", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--actors", type=int, default=3)
    parser.add_argument("--shards", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        killed = kill_parts(options.reprise.resolve(), pathlib.Path(folder), options.kills, options.seed,
                            options.actors, options.shards, say=print)
    print(f"{len(killed)} kills: solved, nothing confirmed lost, no process left")


if __name__ == "__main__":
    main()
