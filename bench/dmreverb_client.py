# SPDX-License-Identifier: Apache-2.0
"""Compares what DeepMind's own client gets from our server and from its own.

One process runs the client: unmodified dm-reverb in a scratch environment. The two servers are
other processes. They take turns, and alternate in which is first. A ratio is the median of the
ratios of all turns, since the speed of a shared machine changes from one second to the next, and
the speed of the client's threads varies with either server.
"""

import argparse
import contextlib
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import threading
import time

import environment

ROOT = pathlib.Path(__file__).resolve().parents[1]
SERVER = ROOT / "build" / "release" / "bench" / "bench_server"
PEER = "dm-reverb"
SMALL, LARGE = 400, 400_000
TABLE = "t0"
WORKS = ["insert", "insert.2", "roundtrip", "sample", "dataset", "insert.400kB", "sample.400kB",
         "dataset.400kB"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def serve_theirs(port, sizes):
    """Runs dm-reverb's server in this process until its input ends."""
    import reverb

    tables = [reverb.Table(name=f"t{i}", sampler=reverb.selectors.Uniform(),
                           remover=reverb.selectors.Fifo(), max_size=size,
                           rate_limiter=reverb.rate_limiters.MinSize(1))
              for i, size in enumerate(sizes)]
    server = reverb.Server(tables, port=port)
    print(server.port, flush=True)
    sys.stdin.read()
    os._exit(0)  # dm-reverb takes long to stop


class Server:
    """A server process: its address, and how much processor time it has used."""

    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        line = self.process.stdout.readline()
        if not line.strip():
            sys.exit(f"{name}: the server did not start")
        self.address = f"127.0.0.1:{int(line)}"
        self.clock = (~self.process.pid << 3) | 2  # the process's clock, as the kernel numbers it

    def cpu(self):
        return time.clock_gettime(self.clock)

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


@contextlib.contextmanager
def both(size):
    """Starts both servers, with one table for `size` items."""
    servers = [
        Server(PEER, [sys.executable, __file__, "--serve", str(free_port()), str(size)]),
        Server("ours", [str(SERVER), "serve", "1", str(size)]),
    ]
    try:
        yield servers
    finally:
        for server in servers:
            server.stop()


def inserter(address, payload_bytes, seconds, counts, index):
    """Inserts for a while through one writer. Stores the number of confirmed items in `counts`."""
    import numpy
    import reverb

    value = numpy.random.default_rng(index).random(payload_bytes // 4, dtype=numpy.float32)
    ahead = 256 if payload_bytes < LARGE else 8
    count, end = 0, time.monotonic() + seconds
    with reverb.Client(address).trajectory_writer(num_keep_alive_refs=1) as writer:
        while time.monotonic() < end:
            for _ in range(64 if payload_bytes < LARGE else 4):
                writer.append([value])
                writer.create_item(TABLE, 1.0, [writer.history[0][-1:]])
                count += 1
            writer.flush(ahead)
        writer.flush()
    counts[index] = count


def insert(server, seconds, payload_bytes=SMALL, writers=1):
    counts = [0] * writers
    threads = [threading.Thread(target=inserter,
                                args=(server.address, payload_bytes, seconds, counts, i))
               for i in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts)


def sample(server, seconds, payload_bytes=SMALL):
    """Measures Client.sample() with its default arguments."""
    import reverb

    client = reverb.Client(server.address)
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        for item in client.sample(TABLE, num_samples=256 if payload_bytes < LARGE else 16):
            assert item[0].data[0].nbytes == payload_bytes
            count += 1
    return count


class Datasets:
    """A TrajectoryDataset for each server, made once."""

    def __init__(self):
        self.iterators = {}

    def __call__(self, server, seconds, payload_bytes=SMALL, batch=256):
        import tensorflow
        import reverb

        key = server.address, payload_bytes
        if key not in self.iterators:
            dataset = reverb.TrajectoryDataset(
                server_address=server.address, table=TABLE, dtypes=[tensorflow.float32],
                shapes=[tensorflow.TensorShape([1, payload_bytes // 4])],
                max_in_flight_samples_per_worker=2 * batch)
            self.iterators[key] = iter(dataset.batch(batch))
            next(self.iterators[key])
        count, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            data = next(self.iterators[key]).data[0]
            assert data.shape == (batch, 1, payload_bytes // 4)
            count += batch
        return count


def roundtrips(server, seconds):
    """Returns the seconds of each insert with its flush."""
    import numpy
    import reverb

    value = numpy.random.default_rng(0).random(SMALL // 4, dtype=numpy.float32)
    times, end = [], time.monotonic() + seconds
    with reverb.Client(server.address).trajectory_writer(num_keep_alive_refs=1) as writer:
        while time.monotonic() < end:
            began = time.perf_counter()
            writer.append([value])
            writer.create_item(TABLE, 1.0, [writer.history[0][-1:]])
            writer.flush()
            times.append(time.perf_counter() - began)
    return times


def scaled(value, unit):
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {letter}{unit}"
    return f"{value:.3g} {unit}"


def ratio(name, value, ours, theirs):
    """Prints a ratio, and the values of both sides."""
    print(f"ratio dmreverb-client.{name} {value:.2f} (ours {ours} vs {PEER} {theirs})", flush=True)


def show(name, above, below, ours, theirs, text):
    """Prints the median of the turns' ratios, with the medians of both sides, and returns it."""
    value = statistics.median(a / b for a, b in zip(above, below))
    ratio(name, value, text(statistics.median(ours)), text(statistics.median(theirs)))
    return value


class Comparison:
    """Runs work on both servers in turn, and compares the results of each turn."""

    def __init__(self, turns, seconds, chosen):
        self.turns, self.seconds, self.chosen = turns, seconds, chosen
        self.cpu_ratios = []

    def measure(self, name, servers, work):
        """Returns the results of work(server) in each turn: a list of theirs and one of ours. None
        if the comparison was not chosen."""
        if self.chosen and name not in self.chosen:
            return None
        results = {server.name: [] for server in servers}
        for turn in range(self.turns):
            for server in servers if turn % 2 == 0 else reversed(servers):
                results[server.name].append(work(server))
        return results[PEER], results["ours"]

    def rates(self, name, servers, work, payload_bytes=0, **more):
        if payload_bytes:
            more["payload_bytes"] = payload_bytes

        def rate_and_cpu(server):
            cpu, began = server.cpu(), time.monotonic()
            count = work(server, self.seconds, **more)
            return count / (time.monotonic() - began), (server.cpu() - cpu) / count * 1e6

        measured = self.measure(name, servers, rate_and_cpu)
        if measured is None:
            return
        (their_rates, their_cpus), (our_rates, our_cpus) = (zip(*side) for side in measured)
        scale, unit = (payload_bytes, "B/s") if payload_bytes else (1, "/s")
        show(name, our_rates, their_rates, our_rates, their_rates,
             lambda rate: scaled(rate * scale, unit))
        cpu = show(f"cpu.{name}", their_cpus, our_cpus, our_cpus, their_cpus,
                   lambda us: f"{us:.2f} us")
        self.cpu_ratios.append((cpu, statistics.median(our_cpus), statistics.median(their_cpus)))

    def latencies(self, name, servers):
        def percentiles(server):
            times = sorted(roundtrips(server, self.seconds))
            return times[len(times) // 2], times[len(times) * 99 // 100]

        measured = self.measure(name, servers, percentiles)
        if measured is None:
            return
        for what, theirs, ours in zip((name, f"{name}.p99"), *(zip(*side) for side in measured)):
            show(what, theirs, ours, ours, theirs, lambda seconds: f"{seconds * 1e6:.0f} us")


def silence():
    """Discards file 2, on which the client and its server log much. sys.stderr still works."""
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), 2)


def compare(quick, chosen):
    silence()
    print(f"# dm-reverb's client on our server and on its own{' (quick)' if quick else ''}")
    comparison = Comparison(turns=5 if quick else 21, seconds=0.4 if quick else 0.5,
                            chosen=chosen)
    datasets = Datasets()
    with both(size=500_000) as servers:
        for server in servers:
            insert(server, 0.5)
        comparison.rates("insert", servers, insert)
        comparison.rates("insert.2", servers, insert, writers=2)
        comparison.latencies("roundtrip", servers)
        comparison.rates("sample", servers, sample)
        comparison.rates("dataset", servers, datasets)
        print("threads: " + ", ".join(f"{s.name} {s.threads()}" for s in servers))
    if not chosen:
        smallest = min(comparison.cpu_ratios)
        ratio("cpu", smallest[0], f"{smallest[1]:.2f} us", f"{smallest[2]:.2f} us")
    with both(size=500) as servers:
        for server in servers:
            insert(server, 0.5, LARGE)
        comparison.rates("insert.400kB", servers, insert, LARGE)
        comparison.rates("sample.400kB", servers, sample, LARGE)
        comparison.rates("dataset.400kB", servers, datasets, LARGE, batch=16)
    sys.stdout.flush()
    os._exit(0)  # stopping dm-reverb's threads may hang


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("works", nargs="*", metavar="WORK", help="only these: " + ", ".join(WORKS))
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--serve", nargs="+", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = set(options.works) - set(WORKS)
    if unknown:
        parser.error(f"no such work: {', '.join(unknown)}")
    if options.serve:
        serve_theirs(options.serve[0], options.serve[1:])
    elif options.inside:
        compare(options.quick, options.works)
    else:
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1",
                 "GRPC_VERBOSITY": "ERROR"}
        environment.run_inside("reverb", __file__, [*["--quick"] * options.quick, *options.works],
                               {**os.environ, **quiet})


if __name__ == "__main__":
    main()
