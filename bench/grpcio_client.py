# SPDX-License-Identifier: Apache-2.0
"""Compares what a client on Python's grpcio gets from our server and from an echo server on grpcio.

The echo server parses nothing. On InsertStream it sends back each message that it receives; on
SampleStream it sends a prepared response repeatedly. Messages are bytes on both sides, so that no
protobuf code is measured.
"""

import argparse
import os
import pathlib
import queue
import random
import statistics
import struct
import subprocess
import sys
import time
from concurrent import futures

import environment

ROOT = pathlib.Path(__file__).resolve().parents[1]
SERVER = ROOT / "build" / "release" / "bench" / "bench_server"
SERVICE = "deepmind.reverb.ReverbService"
PEER = "grpcio echo"
FLOATS = 100
RESPONSE_SAMPLES = 64  # samples in a response of the echo server
AHEAD = 64             # the number of unconfirmed inserts
UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def part(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def double(field, value):
    return varint(field << 3 | 1) + struct.pack("<d", value)


def chunk(key, payload):
    size = len(payload)
    literal = varint(size) + bytes([61 << 2]) + struct.pack("<H", size - 1) + payload
    shape = part(2, number(1, 1)) + part(2, number(1, size // 4))
    tensor = number(1, 1) + part(2, shape) + part(4, literal)
    return (number(1, key) + part(2, number(1, 7)) + part(5, part(1, tensor)) + number(6, 1)
            + number(7, size))


def item(key):
    slice_of_it = number(1, key) + number(3, 1)
    column = part(1, slice_of_it) + number(2, 1)
    return number(1, key) + part(2, b"t0") + double(5, 1.0) + part(8, part(1, column))


def insert_request(key, payload):
    return part(1, chunk(key, payload)) + part(2, item(key))


def sample_response(payload):
    entry = (part(1, part(1, item(1)) + double(2, 1e-6) + number(3, 1000000))
             + part(2, chunk(1, payload)) + number(3, 1))
    return part(1, entry) * RESPONSE_SAMPLES


def sample_request(samples):
    return part(1, b"t0") + number(2, samples)


def read_varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
        shift += 7


def count_entries(response):
    """Returns the number of samples in a response. Each is one entry and names its table once."""
    return response.count(part(2, b"t0"))


def count_keys(response):
    """Returns the number of keys in a response to inserts. The echo of a request counts as one."""
    if response[0] != 0x0A or len(response) > FLOATS * 4:
        return 1
    size, at = read_varint(response, 1)
    return sum(1 for byte in response[at:at + size] if byte < 0x80)


def payload_of(floats):
    values = random.Random(1)
    return struct.pack(f"<{floats}f", *(values.random() for _ in range(floats)))


def serve_echo():
    """Runs the echo server until the input ends."""
    import grpc

    response = sample_response(payload_of(FLOATS))

    def echo(requests, _):
        yield from requests

    def samples(requests, _):
        for request in requests:
            wanted, _ = read_varint(request, request.index(b"t0") + 3)
            for _ in range(wanted // RESPONSE_SAMPLES):
                yield response

    handlers = {"InsertStream": grpc.stream_stream_rpc_method_handler(echo),
                "SampleStream": grpc.stream_stream_rpc_method_handler(samples)}
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8), options=UNLIMITED)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    sys.stdin.read()
    os._exit(0)


class Server:
    def __init__(self, name, command):
        import grpc

        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        line = self.process.stdout.readline()
        if not line.strip():
            sys.exit(f"{name}: the server did not start")
        self.channel = grpc.insecure_channel(f"127.0.0.1:{int(line)}", options=UNLIMITED)

    def call(self, method, requests):
        return self.channel.stream_stream(f"/{SERVICE}/{method}")(iter(requests))

    def stop(self):
        self.channel.close()
        self.process.stdin.close()
        self.process.wait()


class Requests:
    """A queue of the requests for a stream. None ends the stream."""

    def __init__(self):
        self.waiting = queue.SimpleQueue()

    def put(self, request):
        self.waiting.put(request)

    def __iter__(self):
        return iter(self.waiting.get, None)


KEYS = iter(range(1 << 32, 1 << 62))


def insert(server, seconds):
    """Returns inserts a second: one in each request, with AHEAD of them unconfirmed."""
    requests, payload = Requests(), payload_of(FLOATS)
    answers = server.call("InsertStream", requests)
    began, sent, confirmed = time.monotonic(), 0, 0
    while time.monotonic() < began + seconds:
        while sent - confirmed < AHEAD:
            requests.put(insert_request(next(KEYS), payload))
            sent += 1
        confirmed += count_keys(next(answers))
    while confirmed < sent:
        confirmed += count_keys(next(answers))
    took = time.monotonic() - began
    requests.put(None)
    assert confirmed == sent and not list(answers)
    return confirmed / took


def sample(server, seconds):
    """Returns samples a second, which are requested early enough that the server is never idle."""
    requests, wanted = Requests(), 64 * RESPONSE_SAMPLES
    answers = server.call("SampleStream", requests)
    began, asked, got = time.monotonic(), 0, 0
    while time.monotonic() < began + seconds:
        while asked - got < 2 * wanted:
            requests.put(sample_request(wanted))
            asked += wanted
        got += count_entries(next(answers))
    took, count = time.monotonic() - began, got
    while got < asked:
        got += count_entries(next(answers))
    requests.put(None)
    assert got == asked and not list(answers)
    return count / took


def roundtrip(server, seconds):
    """Returns the inverse of the median time from an insert to its response."""
    requests, payload, times = Requests(), payload_of(FLOATS), []
    answers = server.call("InsertStream", requests)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        request = insert_request(next(KEYS), payload)
        began = time.perf_counter()
        requests.put(request)
        next(answers)
        times.append(time.perf_counter() - began)
    requests.put(None)
    assert not list(answers)
    return 1 / sorted(times)[len(times) // 2]


def scaled(value):
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {letter}/s"
    return f"{value:.3g} /s"


def ratio(name, value, ours, theirs):
    print(f"ratio {name} {value:.2f} (ours {scaled(ours)} vs {PEER} {scaled(theirs)})",
          flush=True)


def measure(work, servers, turns, seconds):
    """Returns the median of the ratios of all turns, and the medians of both sides. Ratios are
    taken within a turn, since the speed of a shared machine changes from second to second."""
    rates = {server.name: [] for server in servers}
    for turn in range(turns):
        for server in servers if turn % 2 == 0 else reversed(servers):
            rates[server.name].append(work(server, seconds))
    ours, theirs = rates["ours"], rates[PEER]
    return (statistics.median(a / b for a, b in zip(ours, theirs)), statistics.median(ours),
            statistics.median(theirs))


def compare(quick):
    print(f"# Python's grpcio on our server and on its own{' (quick)' if quick else ''}")
    servers = [Server(PEER, [sys.executable, __file__, "--echo"]),
               Server("ours", [str(SERVER), "serve", "1", "500000"])]
    for server in servers:
        insert(server, 0.3)
    measured = []
    for name, work in (("insert", insert), ("sample", sample), ("roundtrip", roundtrip)):
        measured.append(measure(work, servers, *((5, 0.4) if quick else (15, 0.5))))
        ratio(f"server.grpcio.{name}", *measured[-1])
    ratio("server.grpcio", *min(measured))
    for server in servers:
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--echo", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.echo:
        serve_echo()
    elif options.inside:
        compare(options.quick)
    else:
        environment.run_inside("grpc", __file__, ["--quick"] * options.quick,
                               dict(os.environ))


if __name__ == "__main__":
    main()
