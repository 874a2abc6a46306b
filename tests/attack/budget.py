#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs random loads on servers with byte budgets, and compares their resident memory with the
formula in docs/operations.md. `make budget` runs it. It is not part of `make test`, since resident
memory depends on the machine.

    tests/attack/budget.py [--seconds N] [--seed N]      N seconds for each server
"""

import argparse
import random
import sys
import time

import frames as f
import messages as m
from target import Server

MIB = 1 << 20
DELETE = "/reprise.v1.Replay/Delete"
BUDGETS = [32, 64, 256, 1024]  # MiB
QUEUED, PINNED = 32, 32  # MiB
TABLES = {"a": "uniform:10000000", "b": "prioritized:10000000", "c": "min_heap:10000000",
          "d": "fifo:10000000,remover=uniform", "waits": "queue:2"}


def allowed(budget, connections):
    """Returns the bytes that docs/operations.md allows."""
    return (budget * 5 // 4 + (QUEUED + PINNED + 64) * MIB + connections * 64 * 1024
            + len(TABLES) * 256 * 1024)


class Load:
    """One connection with random requests."""

    def __init__(self, server, seed):
        self.server, self.random, self.key = server, random.Random(seed), seed << 40
        self.connect()

    def connect(self):
        self.peer = self.server.peer()
        self.peer.socket.settimeout(0.3)  # the server does not read from a stream that waits
        self.stream = self.peer.open(m.INSERT)

    def take_keys(self, count):
        self.key += count
        return range(self.key - count, self.key)

    def tiny(self, table, count=200, row_bytes=1):
        keys = self.take_keys(count)
        return m.insert([m.chunk(k, row_bytes=row_bytes, episode=k) for k in keys],
                        [m.item(k, table) for k in keys])

    def message(self, table):
        kind = self.random.randrange(12)
        if kind < 6:
            return self.tiny(table, row_bytes=self.random.choice([1, 1, 10, 100]))
        if kind < 9:
            return self.tiny(table, 1, self.random.randrange(1000, 2 * MIB))
        if kind == 9:  # slices
            [key] = self.take_keys(1)
            pieces = [m.piece(key)] * self.random.randrange(1, 20000)
            return m.insert([m.chunk(key)], [m.item(key, table, columns=[m.column(pieces)])])
        keys = self.take_keys(self.random.randrange(1, 500))
        item = m.item(keys[0], table, columns=[m.column([m.piece(k) for k in keys])])
        chunks = [m.chunk(k) for k in keys]
        return m.insert(chunks, [item] if kind == 10 else [])  # or chunks without an item

    def step(self, table):
        try:
            is_over = self.send(table)
        except OSError:
            is_over = True
        if is_over:
            self.peer.__exit__(None, None, None)
            self.connect()

    def send(self, table):
        dice = self.random.randrange(40)
        if dice == 0:  # a sampler that does not read
            stream = self.peer.open(m.SAMPLE)
            self.peer.write(stream, m.sample(table, 1000000))
        self.peer.write(self.stream, self.message("waits" if dice == 1 else table))
        self.peer.take(0)
        call = self.peer.calls[self.stream]
        call.messages()
        return call.over or self.peer.closed or dice == 2


def run(budget, policy, seconds, seed):
    server = Server(tables=TABLES, arguments=("--max-bytes", budget, "--policy", policy),
                    limits={"queued_bytes": QUEUED * MIB, "pinned_bytes": PINNED * MIB})
    loads = [Load(server, seed * 8 + i) for i in range(4)]
    for i in range(budget * 9 // 10 // (3 * MIB // 2)):  # so that large budgets are full, too
        loads[0].peer.write(loads[0].stream, loads[0].tiny("abcd"[i % 4], 1, 3 * MIB // 2))
        loads[0].peer.take(0)
    choose, steps, until = random.Random(seed), 0, time.monotonic() + seconds
    while time.monotonic() < until:
        # Most items go to one table for a while, then to the next.
        table = choose.choice("abcd") if choose.random() < 0.1 else "abcd"[steps // 200 % 4]
        choose.choice(loads).step(table)
        steps += 1
    metrics, peak = server.metrics(), server.peak_rss()
    wrong = server.stop()
    most = allowed(budget, len(loads))
    ok = peak <= most and not wrong and metrics["store_bytes"] <= budget
    print(f"{'ok' if ok else 'FAIL':4} max_bytes {budget // MIB:5} MiB, {policy:6}: resident "
          f"{peak // MIB} of {most // MIB} MiB allowed, store_bytes "
          f"{metrics['store_bytes'] / budget:.2f} of max_bytes {wrong}", flush=True)
    return ok


SIZES = [500, 1500, 2000, 16000, 110000, 900000]  # of chunks, used in turn
KEPT = 8  # one in this number of items is kept, with gaps in between


def fill(load, size, budget):
    """Inserts chunks of one size, 5/4 of what fits, until the server refuses or confirms no more.
    Returns the confirmed keys."""
    count, keys, sent, moved = max(1, 500000 // size), [], 0, time.monotonic()
    call = load.peer.calls[load.stream]
    while len(keys) < budget * 5 // 4 // (size + 700):
        if sent < len(keys) + 4 * count:
            load.peer.socket.settimeout(5)
            load.peer.write(load.stream, load.tiny("a", count, size))
            sent += count
        load.peer.until(lambda: len(call.body) > 4 or call.over, 0.05)
        new = [key for message in call.messages() for key in m.confirmed(message)]
        keys += new
        moved = time.monotonic() if new else moved
        if call.over or load.peer.closed or time.monotonic() > moved + 3:
            break
    load.peer.__exit__(None, None, None)
    load.connect()
    return keys


def gaps(budget, policy, seconds):
    """Fills the table, deletes most items, and fills it with items that are larger than the gaps.
    """
    server = Server(tables=TABLES, arguments=("--max-bytes", budget, "--policy", policy),
                    limits={"queued_bytes": QUEUED * MIB, "pinned_bytes": PINNED * MIB})
    load, peak, lost, until = Load(server, 1), 0, 0, time.monotonic() + seconds
    while time.monotonic() < until:
        for size in SIZES:
            dead = [key for key in fill(load, size, budget) if key % KEPT]
            lost = max(lost, server.metrics()["store_lost_bytes"])
            for i in range(0, len(dead), 10000):
                load.peer.ask(DELETE, m.octets(1, "a") + m.octets(2, b"".join(
                    m.varint(key) for key in dead[i:i + 10000])))
            peak = max(peak, server.peak_rss())
    with server.peer() as peer:  # a Reset makes lost memory usable again
        assert peer.ask(m.RESET, m.octets(1, "a")).status == m.OK
    room = len(fill(load, 16000, budget // 2)) * 16000
    wrong = server.stop()
    most = allowed(budget, 2)
    ok = peak <= most and not wrong and room > budget // 4
    print(f"{'ok' if ok else 'FAIL':4} gaps, max_bytes {budget // MIB:5} MiB, {policy:6}: resident "
          f"{peak // MIB} of {most // MIB} MiB allowed, {lost / MIB:.0f} MiB lost at most, "
          f"{room // MIB} MiB fit after a Reset {wrong}", flush=True)
    return ok


def prefixes(peer):
    """Sends only the prefixes, of five bytes each, of a thousand messages of 64 MiB."""
    prefix = f.message(b"", length=64 * MIB)
    for _ in range(1000):
        stream = peer.stream()
        peer.send(f.headers(stream, f.request_block(m.INSERT)) + f.data(stream, prefix))


def part(peer):
    """Sends 2 MiB of a message of 64 MiB."""
    stream = peer.open(m.INSERT)
    peer.send(f.data(stream, f.message(b"", length=64 * MIB)))
    peer.flood(f.data(stream, b"\0" * 16384) * 128)


def small_chunks(peer):
    """Sends chunks of a few bytes with many empty tensors, until the stream is refused."""
    stream, key, empty = peer.open(m.INSERT), 0, m.tensor((0,), b"")
    while not peer.calls[stream].over and key < 100000:
        peer.write(stream, m.insert([m.chunk(k, [empty] * 20) for k in range(key, key + 500)]))
        key += 500
        peer.take(0)


COSTS = [(prefixes, 10), (part, 6), (small_chunks, 24)]  # an attack, and the MiB that it may take


def cost(attack, most):
    server = Server(limits={"stream_pinned_bytes": "8MiB"})
    with server.peer() as peer:
        assert peer.echo()
        before = server.rss()
        attack(peer)
        peer.echo()
        grown = server.rss() - before
    wrong = server.stop()
    ok = grown <= most * MIB and not wrong
    print(f"{'ok' if ok else 'FAIL':4} {attack.__name__}: resident {grown / MIB:.1f} MiB more, "
          f"{most} allowed {wrong}", flush=True)
    return ok


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    results = [cost(*each) for each in COSTS]
    results += [run(budget * MIB, policy, options.seconds, options.seed)
               for budget in BUDGETS for policy in ("evict", "block", "reject")]
    results += [gaps(budget * MIB, policy, options.seconds)
                for budget in (64, 256) for policy in ("evict", "block", "reject")]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
