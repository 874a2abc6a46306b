# SPDX-License-Identifier: Apache-2.0
"""Clients that make random calls, each on its own connection; test_load.py starts it.

    mixed_load.py PORT SEED CALLS CONNECTIONS [deaf]

Each connection makes CALLS calls: the first of a kind of its own, the others at random. Prints the
numbers of calls as JSON. With `deaf`, the end of the server is not an error."""

import json
import os
import random
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import frames as f  # noqa: E402
import messages as m  # noqa: E402

OURS = "/reprise.v1.Replay/"
TABLES = ("a", "prioritized", "fifo", "max_heap", "queue")


class Gone(Exception):
    """The connection has ended, as expected."""


class Client:
    """Makes one call at a time, on one connection at a time."""

    def __init__(self, port, seed):
        self.port, self.rng = port, random.Random(seed)
        self.done, self.wrong = {}, []
        self.key = seed << 32
        self.peer = self.writer = None

    def connect(self):
        self.peer = f.Peer(self.port)
        self.writer = None

    def ask(self, path, *payloads, allowed=(m.OK,), **options):
        call = self.peer.ask(path, *payloads, timeout=120, **options)
        if call.status not in allowed:
            raise AssertionError(f"{path}: {call}")
        return call

    def insert(self):
        """Inserts some items on a stream that stays open. An item may refer to the chunk before."""
        if self.writer is None or self.peer.calls[self.writer].over:
            self.writer, self.kept = self.peer.open(m.INSERT), None
        count = self.rng.randrange(1, 10)
        keys = list(range(self.key + 1, self.key + 1 + count))
        self.key += count
        chunks = [m.chunk(k, rows=4, row_bytes=self.rng.choice((4, 100, 5000))) for k in keys]
        table = self.rng.choice(TABLES[:-1])
        items = [m.item(k, table, self.rng.random(), [m.column([m.piece(k, 1, 2)])])
                 for k in keys]
        if self.kept:
            items[0] = m.item(keys[0], table, 1.0, [m.column([m.piece(self.kept, 0, 1)])])
        self.kept = keys[-1]
        self.peer.write(self.writer, m.insert(chunks, items, [self.kept]))
        left = set(keys)
        call = self.peer.calls[self.writer]
        while left:
            if not self.peer.until(lambda: len(call.body) > 4 or call.over, 20) or call.over:
                raise AssertionError(f"insert: {call}, {self.peer.goaway}")
            for reply in call.messages():
                left -= set(m.confirmed(reply))

    def insert_into_a_queue(self):
        """The insert may have to wait for the table; then it is cancelled."""
        self.key += 1
        stream = self.peer.open(m.INSERT)
        self.peer.write(stream, m.one(self.key, "queue"))
        self.peer.until(lambda: self.peer.calls[stream].body, 0.05)
        self.peer.send(f.rst(stream))

    def sample(self):
        table = self.rng.choice(TABLES)
        self.ask(m.SAMPLE, m.sample(table, self.rng.choice((1, 10, 300)), 20),
                 allowed=(m.OK, m.DEADLINE))

    def sample_and_cancel(self):
        stream = self.peer.open(m.SAMPLE)
        self.peer.write(stream, m.sample(self.rng.choice(TABLES), 100000))
        self.peer.until(lambda: self.peer.calls[stream].body, 0.02)
        self.peer.send(f.rst(stream))

    def own_sample(self):
        octets = m.octets(1, self.rng.choice(TABLES)) + m.number(2, 20) + m.number(4, 5)
        if self.rng.random() < 0.5:
            octets += m.number(5, 1) + m.double(6, 0.5) + m.number(7, 1)
        self.ask(OURS + "Sample", octets, allowed=(m.OK, m.DEADLINE))

    def mutate(self):
        keys = [self.key - self.rng.randrange(50) for _ in range(10)]
        self.ask(m.MUTATE, m.mutate(self.rng.choice(TABLES), [(k, 0.5) for k in keys[:7]],
                                    keys[7:]))

    def peek(self):
        octets = m.octets(1, self.rng.choice(TABLES)) + m.packed(2, [self.key, self.key - 1])
        self.ask(OURS + "Peek", octets + m.number(3, self.rng.randrange(2)))

    def reset(self):
        self.ask(m.RESET, m.octets(1, self.rng.choice(TABLES)))

    def info(self):
        self.ask(self.rng.choice((m.INFO, m.HEALTH)), b"")
        self.ask(OURS + "WhyBlocked", b"")
        self.ask(OURS + "Status", b"")

    def page(self):
        path = self.rng.choice(("/metrics", "/v1/info", "/healthz"))
        stream = self.peer.open(path, end=True, method="GET", content_type=None, te=None)
        assert self.peer.result(stream, 20).fields[":status"] == "200"

    def tables(self):
        name = f"t{self.rng.randrange(4)}"
        self.ask(OURS + "CreateTable", m.octets(1, m.octets(1, name) + m.number(4, 10)),
                 allowed=(m.OK, m.ALREADY_EXISTS))
        self.key += 1
        stream = self.peer.open(m.INSERT)
        self.peer.write(stream, m.one(self.key, name), end=True)
        self.peer.result(stream, 20)
        self.ask(m.SAMPLE, m.sample(name, 3, 5), allowed=(m.OK, m.DEADLINE, m.NOT_FOUND,
                                                           m.CANCELLED, m.UNAVAILABLE))
        self.ask(OURS + "DropTable", m.octets(1, name), allowed=(m.OK, m.NOT_FOUND))

    def pause(self):
        octets = m.octets(1, "fifo") + m.number(2, self.rng.randrange(3))
        self.ask(OURS + "PauseTable", octets)
        self.ask(OURS + "ResumeTable", octets)

    def bad(self):
        self.ask(self.rng.choice((m.INSERT, m.SAMPLE, m.MUTATE)), b"\x0b\x0c",
                 allowed=(m.INVALID,))

    def wait_and_leave(self):
        stream = self.peer.open(m.SAMPLE, more=[("grpc-timeout", "3m")])
        self.peer.write(stream, m.sample("empty", 1))
        assert self.peer.result(stream, 20).status == m.DEADLINE

    def disconnect(self):
        """Disconnects in the middle of calls."""
        for path, octets in ((m.INSERT, m.one(self.key, "queue")), (m.SAMPLE, m.sample("empty")),
                             (m.INSERT, m.one(self.key, "a"))):
            stream = self.peer.open(path)
            self.peer.send(f.data(stream, f.message(octets))[:self.rng.choice((9, 40, 1000))])
        self.peer.close(hard=self.rng.random() < 0.5)
        raise Gone

    def run(self, calls, first, deaf):
        what = [self.insert] * 30 + [self.sample] * 20 + [self.mutate] * 10 + [
            self.own_sample] * 8 + [self.peek] * 4 + [self.insert_into_a_queue] * 6 + [
            self.sample_and_cancel] * 8 + [self.info] * 3 + [self.page] * 2 + [self.tables] * 2 + [
            self.bad] * 4 + [self.wait_and_leave] * 3 + [self.disconnect] * 3 + [self.reset] + [
            self.pause]
        kinds = list(dict.fromkeys(what))
        for i in range(calls):
            act = kinds[first % len(kinds)] if i == 0 else self.rng.choice(what)
            try:
                if self.peer is None:
                    self.connect()
                act()
                self.done[act.__name__] = self.done.get(act.__name__, 0) + 1
            except Gone:
                self.peer = None
                self.done["disconnect"] = self.done.get("disconnect", 0) + 1
            except (AssertionError, OSError) as error:
                if deaf:
                    return
                self.wrong.append(f"{act.__name__}: {error!r}"[:400])
                self.peer = None
                if len(self.wrong) > 3:
                    return


def main():
    port, seed, calls, connections = map(int, sys.argv[1:5])
    deaf = "deaf" in sys.argv[5:]
    f.SLOW = 3.0
    clients = [Client(port, seed * 1000 + i) for i in range(1, connections + 1)]
    threads = [threading.Thread(target=c.run, args=(calls, seed * connections + i, deaf))
               for i, c in enumerate(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done = {}
    for client in clients:
        for name, count in client.done.items():
            done[name] = done.get(name, 0) + count
    print(json.dumps({"done": done, "wrong": [w for c in clients for w in c.wrong]}))


if __name__ == "__main__":
    main()
