# SPDX-License-Identifier: Apache-2.0
"""Runs hostile clients, one after another. test_latency.py controls it.

    hostile.py SERVER_PORT DECOY_PORT

Reads words from its input: `server` and `decoy` select the target from now on, `rest` none. Each
kind of attack is one connection, about ten in a second, so that the client itself needs little
processor time. In addition some connections are only slow. The decoy gets the same bytes at the
same pace."""

import os
import select
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import floods  # noqa: E402
import frames as f  # noqa: E402
import messages as m  # noqa: E402

PAUSE = 0.1
LAZY = 10  # connections with an incomplete message, or without a reader


def attacks():
    """Yields the bytes of each attack, after the preface."""
    insert = f.headers(1, f.request_block(m.INSERT))
    for make in floods.ALL.values():
        yield insert + make(3000)
    yield insert + f.data(1, f.message(b"", length=(1 << 32) - 1))
    yield insert + f.data(1, f.message(b"\x0b" * 20000))
    yield insert + f.data(1, f.message(m.insert([m.chunk(1)], [m.item(1, "a", float("nan"))])))
    yield insert + f.data(1, f.message(m.one(1))[:-1])
    yield f.headers(1, floods.bomb(14000))
    yield f.headers(1, f.request_block(m.INFO), more=True) + f.continuation(1, b"", True) * 500
    yield f.headers(1, f.request_block(m.SAMPLE)) + f.data(1, f.message(m.sample("a", 1 << 30)))
    yield f.headers(1, f.request_block(m.SAMPLE)) + f.data(1, f.message(m.sample("empty")))
    yield f.frame(f.DATA, 0, 1, b"x" * 16384) * 10
    yield b"\xff" * 100000


def strike(port, octets):
    try:
        with f.Peer(port, windows=False, pairs=[(f.INITIAL_WINDOW, 0)]) as peer:
            peer.flood(octets, 0.2)
            peer.until(lambda: peer.closed or peer.goaway is not None or
                       any(call.over for call in peer.calls.values()), 0.02)
    except OSError:
        pass


def dawdle(port):
    """Opens connections with half a message, or with a sampler that reads nothing."""
    peers = []
    for i in range(LAZY if port else 0):
        try:
            peers.append(f.Peer(port, windows=False, pairs=[(f.INITIAL_WINDOW, 0)]))
            peers[-1].send(f.headers(1, f.request_block(m.INSERT if i % 2 else m.SAMPLE))
                           + f.data(1, f.message(m.one(1) if i % 2 else m.sample("a", 1000))[:-1]))
            if i % 2 == 0:
                peers[-1].send(f.data(1, m.sample("a", 1000)[-1:]))
        except OSError:
            pass
    return peers


def main():
    ports = dict(zip(("server", "decoy"), map(int, sys.argv[1:3])))
    os.nice(10)
    prepared = list(attacks())
    port, turn, lazy = None, 0, []
    print("ready", flush=True)
    while True:
        if select.select([sys.stdin], [], [], PAUSE if port else 60)[0]:
            word = sys.stdin.readline().strip()
            if not word:
                return
            port = ports.get(word)
            for peer in lazy:
                peer.close()
            lazy = dawdle(port)
        if port:
            strike(port, prepared[turn % len(prepared)])
            turn += 1


if __name__ == "__main__":
    main()
