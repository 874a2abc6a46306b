# SPDX-License-Identifier: Apache-2.0
"""Measures how long a checkpoint delays inserts, with the same load on dm-reverb's server and ours.

Each side has a server process with 200,000 items of 400 B, and dm-reverb's client in another
process. One writer inserts without a pause, one item at a time, and waits until it is confirmed.
Meanwhile a checkpoint is requested three times. The longest insert during a checkpoint counts. The
two sides take turns.

    make bench BENCH=durable
    python3 bench/durable_pause.py --quick
"""

import argparse
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import dmreverb
import environment

ROOT = pathlib.Path(__file__).resolve().parents[1]
COMMAND = ROOT / "build" / "release" / "src" / "cli" / "reprise"
PEER = dmreverb.PEER
ITEMS, FLOATS = 200_000, 100


def serve(reverb, folder):
    """Runs dm-reverb's server until the input ends."""
    table = reverb.Table(name="t", sampler=reverb.selectors.Uniform(),
                         remover=reverb.selectors.Fifo(), max_size=ITEMS,
                         rate_limiter=reverb.rate_limiters.MinSize(1))
    checkpointer = reverb.platform.checkpointers_lib.DefaultCheckpointer(path=folder)
    server = reverb.Server([table], checkpointer=checkpointer)
    say(server.port)
    sys.stdin.read()
    os._exit(0)


def say(answer):
    print(json.dumps(answer), file=OUT, flush=True)


class Side:
    def __init__(self, reverb, address):
        import numpy

        self.np, self.client = numpy, reverb.Client(address)
        self.value = numpy.random.default_rng(1).random(FLOATS, dtype=numpy.float32)
        self.stop, self.times = threading.Event(), []

    def fill(self, count):
        with self.client.trajectory_writer(num_keep_alive_refs=1) as writer:
            for i in range(count):
                self.value[0] = i
                writer.append([self.value])
                writer.create_item("t", 1.0, [writer.history[0][-1:]])
                if i % 64 == 0:
                    writer.flush(512)
            writer.flush()
        return count

    def insert(self):
        with self.client.trajectory_writer(num_keep_alive_refs=1) as writer:
            while not self.stop.is_set():
                began = time.perf_counter()
                writer.append([self.value])
                writer.create_item("t", 1.0, [writer.history[0][-1:]])
                writer.flush()
                self.times.append((began, time.perf_counter()))

    def pause(self, seconds):
        """Returns the longest insert during a checkpoint, the time of that checkpoint, and the
        longest insert without one."""
        self.stop.clear()
        self.times = []
        thread = threading.Thread(target=self.insert)
        thread.start()
        time.sleep(seconds)
        began = time.perf_counter()
        self.client.checkpoint()
        ended = time.perf_counter()
        time.sleep(0.2)
        self.stop.set()
        thread.join()
        within = [b - a for a, b in self.times if b > began and a < ended]
        without = [b - a for a, b in self.times if b <= began]
        return max(within), ended - began, max(without), len(within) / (ended - began), \
            len(without) / seconds


def work(reverb, address):
    side = Side(reverb, address)
    for line in sys.stdin:
        name, argument = json.loads(line)
        say(getattr(side, name)(argument))
    os._exit(0)


class Ours:
    """`reprise serve` with a data directory."""

    def __init__(self, folder):
        self.process = subprocess.Popen(
            [COMMAND, "serve", "--listen=127.0.0.1:0", f"--data={folder}/data",
             "--checkpoint-every=0", f"--table=t:uniform:{ITEMS}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in self.process.stdout:
            if "event=serving" in line:
                self.port = int(line.split("127.0.0.1:")[1].split()[0].strip('",'))
                break
        else:
            sys.exit("reprise serve did not start")
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def stop(self):
        self.process.kill()
        self.process.wait()


class Process(dmreverb.Process):
    def __init__(self, python, site, *words):
        dmreverb.__file__, kept = __file__, dmreverb.__file__
        super().__init__(python, site, *words)
        dmreverb.__file__ = kept


def compare(python, rounds, items):
    folder = tempfile.mkdtemp(prefix="bench-durable-", dir=ROOT / "build")
    started, found = [], {PEER: [], "ours": []}
    try:
        sides = {}
        for who in found:
            if who == "ours":
                server = Ours(folder)
                port = server.port
            else:
                server = Process(python, None, "--serve", "reverb", folder)
                port = server.hear()
            sides[who] = Process(python, None, "--work", "reverb", f"127.0.0.1:{port}")
            started += [server, sides[who]]
            sides[who].ask("fill", items)
        for _ in range(rounds):
            for who, side in sides.items():
                found[who].append(side.ask("pause", 1.0))
    finally:
        for process in started:
            process.stop()
        shutil.rmtree(folder, ignore_errors=True)
    for who, rows in found.items():
        for row in rows:
            print("# {}: an insert of {:.1f} ms in a checkpoint of {:.0f} ms; without one "
                  "{:.1f} ms; {:.0f} inserts/s within, {:.0f} without".format(
                      who, row[0] * 1e3, row[1] * 1e3, row[2] * 1e3, row[3], row[4]), flush=True)
    ours, theirs = (dmreverb.median([row[0] for row in found[who]]) for who in ("ours", PEER))
    print(f"ratio durable.pause {theirs / ours:.2f} (ours {ours * 1e3:.2f} ms vs {PEER} "
          f"{theirs * 1e3:.1f} ms), target 30", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    print(f"# what a checkpoint holds up{' (quick)' if options.quick else ''}", flush=True)
    python = environment.interpreter("reverb", __file__)  # or ends the program
    compare(python, 1 if options.quick else 3, ITEMS // 10 if options.quick else ITEMS)


if __name__ == "__main__":
    if sys.argv[1:2] in (["--serve"], ["--work"]):
        OUT = os.fdopen(os.dup(1), "w")  # dm-reverb prints on file 1, too
        os.dup2(2, 1)
        module = importlib.import_module(sys.argv[2])
        serve(module, sys.argv[3]) if sys.argv[1] == "--serve" else work(module, sys.argv[3])
    else:
        main()
