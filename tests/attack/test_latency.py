# SPDX-License-Identifier: Apache-2.0
"""Measures what a hostile connection costs others: the p99 of a bystander's inserts and samples
while the server is attacked, compared with the p99 while a decoy is attacked in the same way.

The attacker needs processor time itself, which is not the fault of the server. So in quiet phases
the attacker sends the same bytes at the same pace to a decoy. Quiet and attacked phases alternate
and are short, so that other load on the machine affects both equally. Each attacked phase is
compared with the quiet phases before and after it. The median of these ratios counts, so that a
single disturbed phase does not. The noise floor is the same figure for quiet phases only. If it is
allowed, the server and the bystander have a higher priority than other processes. A run passes if
the ratio is at most 1.25 times the floor. One of three runs has to pass: the machine may spoil two
of them, but a server that is slow under attack fails all."""

import statistics
import time

import pytest

import messages as m
from target import SANITIZER, Bystander, Helper, Server, hurry

PAIRS, PHASE, RUNS = 14, 0.3, 3


def p99(report):
    """Returns the p99 in milliseconds, or None if there were too few calls."""
    assert not report["errors"], report["errors"]
    ms = sorted(report["ms"])
    return ms[int(len(ms) * 0.99)] if len(ms) > 20 else None


def phases(bystander, hostile):
    """Returns the p99 of each quiet phase, and of each attacked phase between two of them."""
    quiet, attacked = [], []
    hostile.tell("decoy")
    bystander.order("go")
    time.sleep(PHASE)
    bystander.order("report")
    for turn in range(2 * PAIRS + 1):
        hostile.tell("server" if turn % 2 else "decoy")
        time.sleep(PHASE)
        (attacked if turn % 2 else quiet).append(p99(bystander.order("report")))
    hostile.tell("rest")
    bystander.order("rest")
    return quiet, attacked


def compare(quiet, attacked):
    """Returns the ratio and the noise floor."""
    ratio = statistics.median(a / (b + c) * 2 for a, b, c in zip(attacked, quiet, quiet[1:]))
    spread = [max(b / c, c / b) for b, c in zip(quiet, quiet[1:])]
    return ratio, max(1.0, statistics.median(spread) ** 0.5)


@pytest.mark.skipif(SANITIZER is not None, reason="times of a sanitized build say nothing")
def test_an_attack_costs_others_a_quarter_of_p99_at_most():
    server = Server(before=hurry)
    with server.peer() as peer:
        stream = peer.open(m.INSERT)
        peer.write(stream, m.one(1, row_bytes=60000))
        peer.reply(stream)
    bystander = Bystander(server, pause_ms=0.3, before=hurry)
    decoy = Helper("decoy.py")
    hostile = Helper("hostile.py", server.port, decoy.hear())
    hostile.hear()
    seen, ratio, floor = [], float("inf"), 1
    for _ in range(RUNS):
        quiet, attacked = phases(bystander, hostile)
        if None in quiet + attacked:
            seen.append("a phase with hardly an answer")
            continue
        ratio, floor = compare(quiet, attacked)
        seen.append(f"p99 {statistics.median(quiet):.3f} ms quiet, "
                    f"{statistics.median(attacked):.3f} ms attacked: {ratio:.2f} times, "
                    f"noise {floor:.2f}")
        if ratio <= 1.25 * floor:
            break
    for helper in (hostile, decoy):
        helper.stop()
    refused = sum(v for k, v in server.refusals().items() if not k.startswith("abuse:"))
    bystander.stop()
    wrong = server.stop()
    print("\n".join(seen))
    assert not wrong, wrong
    assert refused > PAIRS, "nobody was attacked"
    assert ratio <= 1.25 * floor, "\n".join(seen)
