# SPDX-License-Identifier: Apache-2.0
"""32 connections make random calls, in addition to a bystander. There must be no errors, and no
reports of a sanitizer. RP_ATTACK_CALLS is the number of calls on each."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import messages as m
from target import IS_SHORT, SANITIZER, TABLES, Server, start

CALLS = int(os.environ.get("RP_ATTACK_CALLS",
                           "250" if SANITIZER == "thread" else "8" if IS_SHORT else "40"))
PROCESSES, CONNECTIONS = 4, 8


def start_load(server, calls, *more):
    words = [sys.executable, "-S", pathlib.Path(__file__).with_name("mixed_load.py"), server.port]
    return [start([*words, seed, calls, CONNECTIONS, *more], stdout=subprocess.PIPE, text=True)
            for seed in range(1, PROCESSES + 1)]


def end_load(processes):
    """Returns the numbers of calls and the errors of all processes."""
    done, wrong = {}, []
    for process in processes:
        output, _ = process.communicate(timeout=600)
        assert process.returncode == 0
        report = json.loads(output)
        wrong += report["wrong"]
        for name, count in report["done"].items():
            done[name] = done.get(name, 0) + count
    return done, wrong


def test_mixed_load(attack):
    target = attack(fresh=True)
    target.may_change = True
    processes = start_load(target, CALLS)
    while any(p.poll() is None for p in processes):
        time.sleep(0.3)
        target.process.send_signal(signal.SIGHUP)  # reload
        assert target.alive()
    done, wrong = end_load(processes)
    assert not wrong, "\n".join(wrong[:20])
    assert len(done) == 15 and sum(done.values()) == CALLS * PROCESSES * CONNECTIONS, done
    with target.peer() as peer:
        for table in TABLES:
            if table != "bystander":
                assert peer.ask(m.RESET, m.octets(1, table)).status == m.OK
    print(f"{sum(done.values())} operations: {done}")


def test_shutdown_under_load_is_orderly():
    """SIGTERM under load: the server drains, ends the calls that do not end, and exits with 0."""
    server = Server(arguments=("--drain-seconds", "1"))
    processes = start_load(server, 1000, "deaf")
    until = time.monotonic() + 120
    while server.metrics()["connections"] < PROCESSES * CONNECTIONS / 2:
        assert time.monotonic() < until, server.said()
        time.sleep(0.1)
    time.sleep(0.3 if IS_SHORT else 0.7)
    wrong = server.stop()
    end_load(processes)
    assert not wrong, wrong
