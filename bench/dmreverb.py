# SPDX-License-Identifier: Apache-2.0
"""Compares the Python package with dm-reverb: the same calls, each to its own server.

dm-reverb needs particular versions of TensorFlow and NumPy. So each side is a process with its own
interpreter, and has a server in another process. The sides take turns in short rounds. The best
round of each counts; the median is printed beside it.

    make bench BENCH=dmreverb
    python3 bench/dmreverb.py --quick insert roundtrip
"""

import argparse
import importlib
import json
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time

import environment

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "python"  # a folder in it for each interpreter
PEER = "dm-reverb"
FLOATS = 100  # an item of 400 B
BATCH = 256
FRAMES = 4
TABLES = {"small": 500_000, "frames": 20_000, "40kB": 2_500, "400kB": 250}

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", "GRPC_VERBOSITY": "ERROR"}
# dm-reverb's datasets lock a mutex that they never initialise, and hang unless its memory is zero.
# These variables make malloc() return zeroed memory. That takes time, so only the process that runs
# datasets has them.
PERTURB = {"MALLOC_PERTURB_": "255", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
DATASETS = ("dataset", "atari")


def serve(reverb):
    """Runs a server in this process until the input ends."""
    tables = [reverb.Table(name=name, sampler=reverb.selectors.Uniform(),
                           remover=reverb.selectors.Fifo(), max_size=size,
                           rate_limiter=reverb.rate_limiters.MinSize(1))
              for name, size in TABLES.items()]
    server = reverb.Server(tables)
    say(server.port)
    sys.stdin.read()
    os._exit(0)  # dm-reverb takes long to stop


def say(answer):
    print(json.dumps(answer), file=OUT, flush=True)


class Side:
    """The operations that are measured, with one implementation."""

    def __init__(self, reverb, address):
        import numpy

        self.np, self.reverb, self.address = numpy, reverb, address
        self.iterators = {}

    def inserter(self, seconds, counts, index, table, floats):
        value = self.np.random.default_rng(index).random(floats, dtype=self.np.float32)
        count, end = 0, time.monotonic() + seconds
        with self.reverb.Client(self.address).trajectory_writer(num_keep_alive_refs=1) as writer:
            while time.monotonic() < end:
                for _ in range(64):
                    writer.append([value])
                    writer.create_item(table, 1.0, [writer.history[0][-1:]])
                    count += 1
                writer.flush(256)
            writer.flush()
        counts[index] = count

    def insert(self, seconds, writers=1, table="small", floats=FLOATS):
        """Returns items a second that are created one by one."""
        counts, began = [0] * writers, time.monotonic()
        threads = [threading.Thread(target=self.inserter,
                                    args=(seconds, counts, i, table, floats))
                   for i in range(writers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(counts) / (time.monotonic() - began)

    def insert_2(self, seconds):
        return self.insert(seconds, writers=2)

    def insert_40kb(self, seconds, writers=1):
        return self.insert(seconds, writers, "40kB", 100 * FLOATS)

    def insert_40kb_2(self, seconds):
        return self.insert_40kb(seconds, writers=2)

    def insert_400kb(self, seconds, writers=1):
        return self.insert(seconds, writers, "400kB", 1000 * FLOATS)

    def insert_400kb_2(self, seconds):
        return self.insert_400kb(seconds, writers=2)

    def sample(self, seconds):
        """Returns samples a second of Client.sample() with its default arguments."""
        client = self.reverb.Client(self.address)
        count, began = 0, time.monotonic()
        while time.monotonic() < began + seconds:
            for item in client.sample("small", num_samples=BATCH):
                assert item[0].data[0].nbytes == 4 * FLOATS
                count += 1
        return count / (time.monotonic() - began)

    def batches(self, table, dtype, shape):
        """Returns an endless dataset of batches: a Dataset, or a TrajectoryDataset of dm-reverb."""
        if hasattr(self.reverb, "Dataset"):
            dataset = self.reverb.Dataset(self.reverb.Client(self.address), table, BATCH)
            return ((batch.info.keys, batch.data[0]) for batch in dataset)
        import tensorflow

        dataset = self.reverb.TrajectoryDataset(
            server_address=self.address, table=table, dtypes=[tensorflow.as_dtype(dtype)],
            shapes=[tensorflow.TensorShape(shape)], max_in_flight_samples_per_worker=2 * BATCH)
        batches = dataset.batch(BATCH).prefetch(tensorflow.data.AUTOTUNE)
        return ((batch.info.key, batch.data[0]) for batch in batches)

    def read(self, seconds, table, dtype, shape):
        if table not in self.iterators:
            self.iterators[table] = self.batches(table, dtype, shape)
        began = time.monotonic()
        while time.monotonic() < began + seconds / 2:  # batches that were prefetched do not count
            next(self.iterators[table])
        count, began = 0, time.monotonic()
        while time.monotonic() < began + seconds:
            _, data = next(self.iterators[table])
            assert tuple(data.shape) == (BATCH, *shape)
            count += BATCH
        return count / (time.monotonic() - began)

    def dataset(self, seconds):
        """Returns samples a second in stacked batches."""
        return self.read(seconds, "small", "float32", (1, FLOATS))

    def scene(self):
        """Yields frames without end, like those of bench/decode.c: rows of bricks and some stars,
        over which sprites move."""
        rng = self.np.random.default_rng(0)
        background = self.np.full((84, 84), rng.integers(60), self.np.uint8)
        for y in range(14, 38, 6):
            for x in range(0, 84, 7):
                background[y:y + 6, x:x + 7] = grey = rng.integers(90, 200)
                background[y + 1:y + 5, x:x + 6] = grey // 2
        background[rng.integers(40, 84, 60), rng.integers(0, 84, 60)] = rng.integers(60, 255, 60)
        sprites = [rng.integers(100, 255, rng.integers(2, 12, 2), self.np.uint8) for _ in range(6)]
        place, speed = rng.uniform(12, 60, (6, 2)), rng.integers(-3, 4, (6, 2))
        while True:
            frame = background.copy()
            for i, sprite in enumerate(sprites):
                y, x = (int(p) for p in place[i])
                frame[y:y + sprite.shape[0], x:x + sprite.shape[1]] = sprite
            yield frame
            place = (place + speed) % 72

    def fill_frames(self):
        """Writes overlapping items, which are stacks of frames."""
        frames = self.scene()
        with self.reverb.Client(self.address).trajectory_writer(FRAMES) as writer:
            for i in range(TABLES["frames"]):
                writer.append([next(frames)])
                if i >= FRAMES:
                    writer.create_item("frames", 1.0, [writer.history[0][-FRAMES:]])
                if i % 64 == 0:
                    writer.flush(256)

    def atari(self, seconds):
        if "frames" not in self.iterators:
            self.fill_frames()
        return self.read(seconds, "frames", "uint8", (FRAMES, 84, 84))

    def roundtrip(self, seconds):
        """Returns the seconds from appending a step to the confirmation of its item."""
        value = self.np.random.default_rng(0).random(FLOATS, dtype=self.np.float32)
        times, end = [], time.monotonic() + seconds
        with self.reverb.Client(self.address).trajectory_writer(num_keep_alive_refs=1) as writer:
            while time.monotonic() < end:
                began = time.perf_counter()
                writer.append([value])
                writer.create_item("small", 1.0, [writer.history[0][-1:]])
                writer.flush()
                times.append(time.perf_counter() - began)
        return sorted(times)[len(times) // 2]

    def mutate(self, seconds):
        """Returns the seconds of one mutate_priorities() with 256 keys."""
        client = self.reverb.Client(self.address)
        updates = {}
        while len(updates) < BATCH:
            updates.update({item[0].info.key: 0.5 for item in client.sample("small", BATCH)})
        updates = dict(list(updates.items())[:BATCH])
        times, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.perf_counter()
            client.mutate_priorities("small", updates=updates)
            times.append(time.perf_counter() - began)
        return sorted(times)[len(times) // 2]


def work(reverb, address):
    """Runs the operation in each line of the input, until the input ends."""
    side = Side(reverb, address)
    for line in sys.stdin:
        name, seconds = json.loads(line)
        say(getattr(side, name)(seconds))
    os._exit(0)


class Process:
    """A process of one side. It gets requests on its input and writes responses."""

    def __init__(self, python, site, *words, variables=None):
        variables = {**(QUIET if "reverb" in words else {}), **(variables or {})}
        if site:
            variables["PYTHONPATH"] = str(site)
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [str(python), __file__, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=None if os.environ.get("BENCH_STDERR") else self.errors, text=True,
            env={**os.environ, **variables})

    def hear(self):
        line = self.process.stdout.readline()
        if not line:
            self.fail()
        return json.loads(line)

    def fail(self):
        """Ends the program: this process has ended early. Shows the end of its error output."""
        status = self.process.wait()
        self.errors.seek(0)
        said = self.errors.read().splitlines()[-20:]
        sys.exit("\n".join([f"{' '.join(map(str, self.process.args))}: ended with status {status}",
                            *said]))

    def ask(self, *words):
        try:
            self.process.stdin.write(json.dumps(words) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.fail()
        return self.hear()

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def scaled(value, unit):
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1, "")):
        if value >= size:
            return f"{value / size:.3g} {letter}{unit}"
    return f"{value * 1e6:.3g} u{unit}"


# Each comparison: its name, the method, whether more is better, and the ratio that we aim at.
WORKS = [
    ("insert", "insert", True, 8), ("insert.2", "insert_2", True, 8),
    ("insert.40kB", "insert_40kb", True, 3), ("insert.40kB.2", "insert_40kb_2", True, 1),
    ("insert.400kB", "insert_400kb", True, 3), ("insert.400kB.2", "insert_400kb_2", True, 1),
    ("sample", "sample", True, 10), ("dataset", "dataset", True, 8),
    ("roundtrip", "roundtrip", False, 2),
    ("mutate", "mutate", False, 4), ("atari", "atari", True, 4),
]


def median(values):
    values = sorted(values)
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def compare(sides, chosen, rounds, seconds):
    """Compares the sides. `sides` maps a name to a function that returns the process for an
    operation."""
    for side in sides.values():
        side("insert").ask("insert", 0.5)  # so that there are items to sample
    for name, method, more, target in WORKS:
        if chosen and name not in chosen:
            continue
        found = {who: [] for who in sides}
        for _ in range(rounds):
            for who, side in sides.items():
                found[who].append(side(method).ask(method, seconds))
        ours, theirs = ((max if more else min)(found[who]) for who in ("ours", PEER))
        unit = "/s" if more else "s"
        print(f"ratio dmreverb.{name} {ours / theirs if more else theirs / ours:.2f} "
              f"(ours {scaled(ours, unit)} vs {PEER} {scaled(theirs, unit)}), target {target}",
              flush=True)
        ours, theirs = (median(found[who]) for who in ("ours", PEER))
        print(f"# medians: {ours / theirs if more else theirs / ours:.2f} "
              f"(ours {scaled(ours, unit)} vs {PEER} {scaled(theirs, unit)})", flush=True)


def interpreters():
    """Returns the Python interpreter of each side, and the folder of its package. Ours is the
    interpreter of this process, for which the package is built. If REPRISE_PYTHON is set, it is
    that interpreter, in which the package is installed."""
    theirs = environment.interpreter("reverb", __file__)
    ours = os.environ.get("REPRISE_PYTHON")
    # A build folder belongs to the interpreter that it was configured with.
    tag = f"bench-{sysconfig.get_config_var('SOABI')}"
    site = None if ours else environment.build_package(sys.executable, BUILD / tag)
    return {PEER: ("reverb", theirs, None), "ours": ("reprise", ours or sys.executable, site)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("works", nargs="*", help=", ".join(w[0] for w in WORKS))
    options = parser.parse_args()
    print(f"# our package and dm-reverb{' (quick)' if options.quick else ''}", flush=True)
    servers, workers, sides = [], [], {}
    for who, (module, python, site) in interpreters().items():
        servers.append(Process(python, site, "--serve", module))
        words = ("--work", module, f"localhost:{servers[-1].hear()}")
        plain = reader = Process(python, site, *words)
        if who == PEER:
            reader = Process(python, site, *words, variables=PERTURB)
        workers += {plain, reader}
        sides[who] = lambda work, plain=plain, reader=reader: (
            reader if work in DATASETS else plain)
    try:
        compare(sides, options.works, 3 if options.quick else 6, 0.5 if options.quick else 1.5)
    finally:
        for process in [*workers, *servers]:
            process.stop()


if __name__ == "__main__":
    if sys.argv[1:2] in (["--serve"], ["--work"]):
        OUT = os.fdopen(os.dup(1), "w")  # dm-reverb prints on file 1, too
        os.dup2(2, 1)
        module = importlib.import_module(sys.argv[2])
        serve(module) if sys.argv[1] == "--serve" else work(module, sys.argv[3])
    else:
        main()
