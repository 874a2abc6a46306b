#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills parts of `reprise train apex-dqn --processes` at random while it trains.

In the end the task has to be solved, no item that was confirmed may be missing, the replay may never
have counted backwards, and no process may be left. `make test-apex-kills` runs it with 100 kills.
"""

import argparse
import csv
import json
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import threading
import time

THRESHOLD = 475  # of CartPole
PATIENCE = 600  # seconds for anything, on a busy machine
RUN = "run"
SERVER = f"unix:{RUN}/replay.sock"


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
    """The command under test, with a ledger: a table of its own that a thread writes to."""

    def __init__(self, reprise, folder, actors, seed):
        self.reprise, self.folder = str(reprise), folder
        self.log = open(folder / "log.txt", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [self.reprise, "train", "apex-dqn", "--env", "cartpole", "--actors", str(actors),
             "--seed", str(seed), "--processes", "--keep-going", "--dir", RUN],
            cwd=folder, stdout=self.log, stderr=self.log)
        self.seen, self.confirmed, self.inserts = {}, 0, 0
        self.is_over = False
        self.writer = threading.Thread(target=self.write)

    def ask(self, *arguments, given=None):
        """Runs another command on the replay; its output, or None if the replay is away."""
        done = subprocess.run([self.reprise, *arguments, "--server", SERVER], cwd=self.folder,
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
        """Writes numbered items one by one, and counts those that are confirmed."""
        while not self.is_over:
            item = json.dumps({"data": {"number": self.confirmed}}) + "\n"
            if self.ask("insert", "ledger", "-", "--timeout", "2", given=item) is not None:
                self.confirmed += 1
            time.sleep(0.1)

    def tables(self):
        """The tables by name; None if the replay is away."""
        text = self.ask("info", "--json", "--timeout", "2")
        if text is None:
            return None
        tables = {t["table"]: t for t in json.loads(text)}
        if "replay" in tables:
            now = tables["replay"]["inserts"]
            assert now >= self.inserts, f"the replay has lost {self.inserts - now} items"
            self.inserts = now
        return tables

    def evaluation_after(self, when):
        """The best evaluation that was reported after a time."""
        text = self.ask("runs", "export", RUN, "--timeout", "2")
        if text is None:
            return None
        values = [float(row["value"]) for row in csv.DictReader(text.splitlines())
                  if row["name"] == "eval_return" and float(row["time"]) > when]
        return values and max(values) >= THRESHOLD

    def parts(self):
        found = children(self.process.pid)
        self.seen.update(found)
        return found

    def end(self):
        self.is_over = True
        if self.writer.is_alive():
            self.writer.join()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE)
        self.log.close()


def kill_parts(reprise, folder, kills, seed, actors=3, say=lambda text: None):
    """The test; raises AssertionError. Returns the names of what was killed."""
    rng = random.Random(seed)
    program = Program(reprise, folder, actors, seed)
    killed = []
    try:
        program.until("parts", lambda: len(program.parts()) == actors + 3)
        program.until("replay", lambda: program.tables() is not None)
        assert program.until("ledger", lambda: program.ask(
            "tables", "create", "ledger:fifo:1000000") is not None)
        program.writer.start()
        for i in range(kills):
            time.sleep(rng.uniform(0.1, 0.6))
            victims = program.until("part", lambda: sorted(
                (name_of(line), pid) for pid, line in program.parts().items()))
            name, pid = rng.choice(victims)
            os.kill(pid, signal.SIGKILL)
            killed.append(name)
            say(f"{i + 1}: killed {killed[-1]}; {program.inserts} items, "
                f"{program.confirmed} in the ledger")
            program.tables()
        last = time.time()
        program.until("all parts", lambda: len(program.parts()) == actors + 3)
        program.until("solution", lambda: program.evaluation_after(last))
        program.is_over = True
        program.writer.join()
        ledger = program.until("replay", program.tables)["ledger"]["items"]
        assert ledger >= program.confirmed, f"{ledger} of {program.confirmed} items are left"
    finally:
        program.end()
    assert program.process.returncode == 128 + signal.SIGINT, program.process.returncode
    left = [name_of(line) for pid, line in program.seen.items() if is_alive(pid)]
    assert left == [], left
    return killed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reprise", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--actors", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        killed = kill_parts(options.reprise.resolve(), pathlib.Path(folder), options.kills, options.seed,
                            options.actors, say=print)
    print(f"{len(killed)} kills: solved, nothing confirmed lost, no process left")


if __name__ == "__main__":
    main()
