# SPDX-License-Identifier: Apache-2.0
"""What a hostile connection costs others: the p99 of a bystander's inserts and samples, with the
server under attack, against the same with a decoy under the same attack.

The attacker takes processor time of its own, which is no fault of the server's: so when it is
quiet for the server, the attacker sends the same bytes at the same pace to a decoy. The two kinds
of phases alternate, and short ones, so that whatever else the machine does falls on both alike.
Each attacked phase is compared with the quiet ones before and behind it, and the median of those
ratios is what counts: one phase in which something else woke up does not. The noise floor is the
same figure made of quiet phases alone. Where it is allowed, the server and the bystander go before
other processes. A run passes with a ratio of at most 1.25 times the floor;
the machine may spoil two runs of three, a server that is slow under attack fails all of them."""

import statistics
import time

import pytest

import messages as m
from target import SANITIZER, Bystander, Helper, Server, hurry

PAIRS, PHASE, RUNS = 14, 0.3, 3


def p99(report):
    """None: there were too few to tell."""
    assert not report["errors"], report["errors"]
    ms = sorted(report["ms"])
    return ms[int(len(ms) * 0.99)] if len(ms) > 20 else None


def phases(bystander, hostile):
    """The p99 of each quiet phase, and of each attacked one between two of them."""
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
    """The ratio and the noise floor."""
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
