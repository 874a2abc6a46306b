# SPDX-License-Identifier: Apache-2.0
"""Ape-X in trouble: the network cut, parts away for long, a shard lost, no room on disk.

`make test-apex-trouble` runs it, some ten minutes; it waits most of the time. It needs root for network
namespaces and mounts, and skips what it may not do. AWAY is how many seconds a part is away (60).
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

import network
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPRISE = pathlib.Path(os.environ.get("REPRISE", ROOT / "build" / "release" / "src" / "cli" / "reprise"))
PATIENCE = int(os.environ.get("PATIENCE", 600))  # seconds for anything, on a busy machine
AWAY = float(os.environ.get("AWAY", 60))
CARTPOLE = ["--env", "cartpole", "--of", "2", "--keep-going"]


class Part:
    """A role as a process, whose lines are read all the time."""

    def __init__(self, command, folder):
        self.lines, self.read = [], threading.Condition()
        self.process = subprocess.Popen([str(c) for c in command], cwd=folder, text=True, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT)
        self.reader = threading.Thread(target=self.follow)
        self.reader.start()

    def follow(self):
        for line in self.process.stdout:
            with self.read:
                self.lines.append(line)
                self.read.notify_all()
        with self.read:
            self.lines.append(None)
            self.read.notify_all()

    def count(self):
        with self.read:
            return len(self.lines)

    def until(self, pattern, since=0):
        """Waits for a line that matches, from the line with number `since` on."""
        end = time.monotonic() + PATIENCE
        with self.read:
            while True:
                for line in self.lines[since:]:
                    if line is None:
                        raise AssertionError(f"ended without {pattern!r}: {self.lines}")
                    if re.search(pattern, line):
                        return line
                since = len(self.lines)
                assert self.read.wait(end - time.monotonic()), f"no {pattern!r} in {self.lines[-20:]}"

    def end(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(PATIENCE)
        self.reader.join()
        return status


class Program:
    """Roles of one program, by name."""

    def __init__(self, folder):
        self.folder, self.parts = folder, {}

    def start(self, name, *arguments, inside=()):
        role, _, index = name.partition(" ")
        more = ["--index", index] if index else []
        part = Part([*inside, REPRISE, "train", "apex-dqn", *CARTPOLE, "--role", role, *more, *arguments],
                    self.folder)
        self.parts[name] = part
        return part

    def end(self):
        statuses = {}
        for name in sorted(self.parts, key=lambda name: name.startswith("replay")):
            part = self.parts[name]
            if part.process.poll() is None:
                part.process.send_signal(signal.SIGCONT)
            statuses[name] = part.end()
        return statuses


@pytest.fixture
def program(tmp_path):
    made = Program(tmp_path)
    yield made
    made.end()


@pytest.fixture
def net():
    try:
        with network.Network() as made:
            yield made
    except network.NotAllowed as reason:
        pytest.skip(f"needs network namespaces, as root for example: {reason}")


def ask(address, *arguments, inside=(), given=None, seconds=5):
    done = subprocess.run([str(c) for c in (*inside, REPRISE, *arguments, "--server", address, "--timeout", seconds)],
                          input=given, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.stdout if done.returncode == 0 else None


def inserts(address, table="replay", inside=()):
    """The inserts of a table, -1 if it cannot be seen."""
    text = ask(address, "info", table, "--json", inside=inside)
    return json.loads(text)[0]["inserts"] if text else -1


def until(what, check):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        result = check()
        if result:
            return result
        time.sleep(0.1)
    raise AssertionError(f"no {what} within {PATIENCE} s")


def goes_on(address, inside=()):
    """Waits until actors have inserted, and the learner has published, more than now."""
    first = [until("table", lambda t=t: inserts(address, t, inside) + 1) for t in ("replay", "variables")]
    until("items", lambda: inserts(address, "replay", inside) > first[0] + 2000)
    until("updates", lambda: inserts(address, "variables", inside) > first[1] + 4)


class Ledger:
    """Writes items to a table from the other side, and notes the keys that are confirmed."""

    def __init__(self, address, inside=()):
        self.address, self.inside, self.keys, self.is_over = address, inside, [], False
        until("table", lambda: ask(address, "tables", "create", "ledger:queue:1000000", inside=inside) is not None)
        self.thread = threading.Thread(target=self.write)
        self.thread.start()

    def write(self):
        number = 0
        while not self.is_over:
            items = "".join(json.dumps({"data": {"number": number + i}}) + "\n" for i in range(8))
            done = ask(self.address, "insert", "ledger", "-", "--json", inside=self.inside, given=items, seconds=20)
            if done is not None:
                self.keys += json.loads(done)["keys"]
            number += 8
            time.sleep(0.05)

    def check(self, address, inside=()):
        """Every key that was confirmed must be in the table."""
        self.is_over = True
        self.thread.join()
        count = json.loads(ask(address, "info", "ledger", "--json", inside=inside))[0]["items"]
        text = ask(address, "sample", "ledger", "--json", "--count", count, inside=inside, seconds=60)
        held = {json.loads(line)["key"] for line in text.splitlines()}  # a queue: each of them once
        assert set(self.keys) <= held, f"{len(set(self.keys) - held)} of {len(self.keys)} are missing"
        return len(self.keys)


# 3 s: connections live on. AWAY: pings time out after 20 s, and connections are made anew.
@pytest.mark.parametrize("seconds", [3, AWAY])
def test_the_network_is_cut(program, net, seconds):
    left, right = net.inside("left"), net.inside("right")
    address = f"{network.LEFT}:8000"
    program.start("replay", "--serve", address, "--dir", "run", "--insecure", inside=left).until("look at")
    program.start("learner", "--replay", address, inside=left)
    actors = [program.start(f"actor {i}", "--replay", address, inside=right) for i in range(2)]
    evaluator = program.start("evaluator", "--replay", address, inside=right)
    evaluator.until("return")
    goes_on(address, left)
    ledger = Ledger(address, right)
    until("ledger", lambda: len(ledger.keys) > 100)

    since = [p.count() for p in (*actors, evaluator)]
    learner_line = program.parts["learner"].count()
    net.cut()
    began = time.monotonic()
    for part, line in zip((*actors, evaluator), since):
        said = part.until("for the replay: ", line)
        print(f"{time.monotonic() - began:5.1f} s: {said}", end="")
    program.parts["learner"].until("for the actors: ", learner_line)
    time.sleep(max(0, seconds - (time.monotonic() - began)))
    confirmed, before = len(ledger.keys), inserts(address, inside=left)
    net.mend()
    began = time.monotonic()
    until("items", lambda: inserts(address, inside=left) > before)
    print(f"the first items {time.monotonic() - began:.1f} s after the cut")
    goes_on(address, left)
    until("ledger", lambda: len(ledger.keys) > confirmed)
    print(f"{ledger.check(address, left)} confirmed items are all there")
    assert all(p.process.poll() is None for p in program.parts.values())


def start_all(program, *more):
    replay = program.start("replay", "--serve", "localhost:0", "--dir", "run", *more)
    address = re.search(r"localhost:\d+", replay.until("look at")).group()
    for name in ("learner", "evaluator", "actor 0", "actor 1"):
        program.start(name, "--replay", address)
    goes_on(address)
    return address


def test_the_learner_stands_still(program):
    address = start_all(program)
    learner = program.parts["learner"]
    learner.process.send_signal(signal.SIGSTOP)
    since = program.parts["actor 0"].count()
    program.parts["actor 0"].until(r"for the learner: \d+ items for \d+ samples", since)
    time.sleep(AWAY)
    before = inserts(address)
    time.sleep(2)
    assert inserts(address) == before  # the limiter holds the actors
    learner.process.send_signal(signal.SIGCONT)
    goes_on(address)
    assert all(p.process.poll() is None for p in program.parts.values())


def test_the_learner_is_away(program):
    address = start_all(program)
    program.parts["learner"].until(r"[1-9]\d{3,} updates")  # there is a snapshot
    until("snapshot", lambda: inserts(address, "snapshot") > 0)
    program.parts.pop("learner").end(signal.SIGKILL)
    since = program.parts["actor 1"].count()
    program.parts["actor 1"].until("for the learner: ", since)
    time.sleep(AWAY)
    learner = program.start("learner", "--replay", address)
    goes_on(address)
    updates = int(re.search(r"(\d+) updates", learner.until(r"\d+ updates")).group(1))
    assert updates >= 1000  # those of the snapshot
    assert all(p.process.poll() is None for p in program.parts.values())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_the_replay_is_away(program, number):
    address = start_all(program)
    ledger = Ledger(address)
    until("ledger", lambda: len(ledger.keys) > 100)
    parts = [program.parts[name] for name in ("learner", "evaluator", "actor 0", "actor 1")]
    since = [p.count() for p in parts]
    replay = program.parts["replay"]
    before = inserts(address)
    replay.process.send_signal(number)
    for part, line in zip(parts, since):
        part.until("for the replay: ", line)
    time.sleep(AWAY / 2)
    if number == signal.SIGKILL:
        replay.end()
        program.start("replay", "--serve", address, "--dir", "run").until("look at")
    else:
        replay.process.send_signal(signal.SIGCONT)
    assert until("replay", lambda: inserts(address) + 1) - 1 >= before
    goes_on(address)
    print(f"{ledger.check(address)} confirmed items are all there")
    assert all(p.process.poll() is None for p in program.parts.values())


def test_a_shard_is_lost_for_good(program, net):
    """The host of the second shard is gone: packets to it vanish."""
    left, right = net.inside("left"), net.inside("right")
    addresses = f"{network.LEFT}:8000", f"{network.RIGHT}:8000"
    program.start("replay 0", "--serve", addresses[0], "--dir", "run", "--insecure", inside=left).until("look at")
    program.start("replay 1", "--serve", addresses[1], "--dir", "run", "--insecure", inside=right).until("look at")
    for name in ("learner", "evaluator", "actor 0", "actor 1"):
        program.start(name, "--replay", ",".join(addresses), inside=left)
    for address in addresses:
        until("items", lambda a=address: inserts(a, inside=left) > 1000)
    goes_on(addresses[0], left)
    learner = program.parts["learner"]
    line = learner.count()

    net.cut()
    learner.until("1 shard away", line)
    began = time.monotonic()
    for _ in range(3):
        goes_on(addresses[0], left)
    print(f"three times 2000 items {time.monotonic() - began:.1f} s after the learner had noticed")
    net.mend()
    line = learner.count()
    learner.until("samples an item", line)  # the shard is back
    before = inserts(addresses[1], inside=left)
    until("items on the shard", lambda: inserts(addresses[1], inside=left) > before + 500)
    assert all(p.process.poll() is None for p in program.parts.values())


@contextlib.contextmanager
def small_disk(folder, size):
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"needs mounts, as root for example: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk):
    """Leaves no byte on a disk. Returns the file that takes them."""
    filler = disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 12))
    return filler


@pytest.mark.parametrize("how", [[], ["--processes"]])
def test_the_disk_of_the_policy_is_full(tmp_path, how):
    with small_disk(tmp_path / "disk", "32m") as disk:
        part = Part([REPRISE, "train", "apex-dqn", "--env", "catch", "--hidden", 256, "--actors", 2, "--keep-going",
                     "--serve", "localhost:0", "--dir", "disk/run", *how], tmp_path)
        address = re.search(r"localhost:\d+", part.until("look at")).group()
        until("parameters", lambda: inserts(address, "variables") > 2)
        fill(disk)
        time.sleep(2)  # the evaluator fetches them
        status = part.end(signal.SIGINT)
        said = [line for line in part.lines[:-1] if re.search(
            r"^reprise train: .*policy.safetensors.* cannot be written: No space left", line)]
        print("".join(said), end="")
        # A replay that removes old segments may make room for the policy.
        assert (status, len(said)) == (1, 1) or ((disk / "run" / "policy.safetensors").exists() and
                                                 (status, said) == (130, []))


def test_the_disk_of_the_replay_is_full(program, tmp_path):
    with small_disk(tmp_path / "run", "24m") as disk:
        address = start_all(program)
        filler = fill(disk)
        print(program.parts["replay"].until(r"run/replay: .*; training goes on"), end="")
        goes_on(address)
        filler.unlink()
        goes_on(address)
        assert all(p.process.poll() is None for p in program.parts.values())
        program.end()
