# SPDX-License-Identifier: Apache-2.0
"""Repeatedly inserts an item, samples one and pauses, and does so once more before it rests.
target.Bystander controls it.

Without arguments, its input is a socket, on which target.Nursery sends the arguments of a bystander
and a socket for its orders: it forks one for each, which is faster than to start an interpreter."""

import json
import os
import select
import socket
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import frames  # noqa: E402
import messages  # noqa: E402


class Bystander:
    def __init__(self, port, token):
        more = [("authorization", f"Bearer {token}")] if token else []
        self.peer = frames.Peer(port)
        self.insert = self.peer.open(messages.INSERT, more=more)
        self.sample = self.peer.open(messages.SAMPLE, more=more)
        self.key = os.getpid() << 32
        self.forget()

    def forget(self):
        self.done, self.errors, self.ms = 0, [], []

    def step(self):
        """Inserts one item and waits for its confirmation; draws one sample."""
        self.key += 1
        begin = time.perf_counter()
        self.peer.write(self.insert, messages.one(self.key, "bystander", row_bytes=400))
        keys = messages.confirmed(self.peer.reply(self.insert))
        middle = time.perf_counter()
        self.peer.write(self.sample, messages.sample("bystander"))
        count = messages.samples(self.peer.reply(self.sample))
        end = time.perf_counter()
        assert keys == [self.key] and count == 1, f"{keys} for {self.key}, {count} samples"
        self.ms += [1e3 * (middle - begin), 1e3 * (end - middle)]
        self.done += 2

    def try_step(self):
        """Steps, and notes an error. Returns False if there were too many of them."""
        try:
            self.step()
        except (AssertionError, OSError, ValueError) as error:
            self.errors.append(str(error)[:300])
        return len(self.errors) <= 10

    def report(self):
        print(json.dumps({"done": self.done, "errors": self.errors, "ms": self.ms}), flush=True)
        self.forget()


def stand_by(port, slow, pause_ms, token):
    """Follows the orders of the input until it ends."""
    frames.SLOW = float(slow)
    bystander = Bystander(int(port), token)
    resting = True
    while True:
        pause = 5 if resting else float(pause_ms) / 1e3  # pings need a response within 20 s
        if select.select([sys.stdin], [], [], pause)[0]:
            word = sys.stdin.readline().strip()
            if not word:
                return
            if word == "rest" and not resting:
                bystander.try_step()
            resting = {"rest": True, "go": False}.get(word, resting)
            bystander.report()
        if resting:
            bystander.peer.take(0)  # pings of the server
        elif not bystander.try_step():
            resting = True


def fork(arguments, orders):
    """Forks a bystander whose input and output are the socket. Returns its number."""
    if child := os.fork():
        return child
    status = 1
    try:
        os.dup2(orders, 0)
        os.dup2(orders, 1)
        os.close(orders)
        stand_by(*arguments)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def main():
    if sys.argv[1:]:
        stand_by(*sys.argv[1:])
        return
    nursery, forked = socket.socket(fileno=os.dup(0)), []
    while True:
        message, [*sockets], _, _ = socket.recv_fds(nursery, 1 << 16, 1)
        if not message:
            break
        forked.append(fork(json.loads(message), sockets[0]))
        os.close(sockets[0])
    while forked:
        os.waitpid(forked.pop(), 0)


if __name__ == "__main__":
    main()
