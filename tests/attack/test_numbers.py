# SPDX-License-Identifier: Apache-2.0
"""Numbers at the limits of float64 and int64, in every call that takes a number. Each call gets a
response, the server continues to serve others, and the attacked table can still be used."""

import math

import pytest

import messages as m
from target import IS_SHORT

OURS = "/reprise.v1.Replay/"
DBL_MAX = 1.7976931348623157e308
EXTREMES = [0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e-300, 1e-12, 0.1, 1.0, -1.0, 1e9,
            1e12, 2.0**53, 2.0**63, 1e30, -1e30, 1e300, DBL_MAX, -DBL_MAX, math.inf, -math.inf,
            math.nan]
COUNTS = [0, 1, -1, (1 << 31) - 1, 1 << 31, 1 << 53, (1 << 63) - 1, 1 << 63]


def limiter(ratio, least, low, high):
    return m.double(1, ratio) + m.number(2, least) + m.double(3, low) + m.double(4, high)


def create(name, limits=b"", sampler=b"", remover=b"", size=10):
    return m.octets(1, m.octets(1, name) + (m.octets(2, sampler) if sampler else b"")
                    + (m.octets(3, remover) if remover else b"") + m.number(4, size)
                    + (m.octets(8, limits) if limits else b""))


def exponent(value):
    return m.octets(3, m.double(1, value))


def replace(peer, message, name="x"):
    """Creates a table, after dropping one of that name. Returns the call."""
    peer.ask(OURS + "DropTable", m.octets(1, name))
    return peer.ask(OURS + "CreateTable", message)


def answered(call):
    assert call.status in (m.OK, m.INVALID, m.EXHAUSTED), (call.status, call.text)
    assert len(call.text) <= 256
    return call


def test_a_limiter_whose_sums_round_away_is_refused_at_once(attack):
    """Such a call once made the loop of the server spin for ever (issue 20)."""
    target = attack()
    hangs = limiter(1e30, 1, -1e30, 1e30)
    with target.peer() as peer:
        for call in (peer.ask(OURS + "AlterTable", m.octets(1, "a") + m.octets(5, hangs)),
                     peer.ask(OURS + "CreateTable", create("x", hangs))):
            assert call.status == m.INVALID
            assert "samples_per_insert must be in 1e-12 .. 1e+09, got 1e+30" in call.text
        assert peer.echo()
    assert target.page("/healthz")


@pytest.mark.parametrize("ratio", EXTREMES)
def test_limiters_of_any_numbers_are_decided(attack, ratio):
    target = attack()
    target.may_change = True
    with target.peer() as peer:
        for i, low in enumerate(EXTREMES):
            # In a short run, a third of the pairs for each ratio; each pair for a third of them.
            first = (i + EXTREMES.index(ratio)) % 3 if IS_SHORT else 0
            for high in EXTREMES[first::3 if IS_SHORT else 1]:
                limits = limiter(ratio, 1, low, high)
                answered(peer.ask(OURS + "AlterTable", m.octets(1, "a") + m.octets(5, limits)
                                  + m.number(6, 1)))
        for least in COUNTS:
            answered(replace(peer, create("x", limiter(ratio, least, -DBL_MAX, DBL_MAX))))
        peer.ask(OURS + "DropTable", m.octets(1, "x"))
        back = m.octets(5, limiter(1.0, 1, -DBL_MAX, DBL_MAX))
        assert peer.ask(OURS + "AlterTable", m.octets(1, "a") + back).status == m.OK
    assert target.page("/metrics") and target.page("/v1/info")


@pytest.mark.parametrize("power", EXTREMES)
def test_priorities_of_any_size_never_harm_a_table(attack, power):
    """Exponents and priorities: the table responds, and draws the item that was inserted last."""
    target = attack()
    target.may_change = True
    with target.peer() as peer:
        accepted = answered(replace(peer, create("x", sampler=exponent(power), size=100)))
        assert (accepted.status == m.OK) == (abs(power) <= 100)
        if accepted.status != m.OK:
            return
        for key, priority in enumerate(EXTREMES, 1):
            insert = peer.open(m.INSERT)
            peer.write(insert, m.one(key, "x", priority))
            peer.write(insert, m.one(100 + key, "x", 1.0))
            peer.ask(m.MUTATE, m.mutate("x", [(100 + key, priority)]))
            peer.ask(OURS + "Update", m.mutate("x", [(100 + key, priority)]))
            for beta in (0.0, 1.0, DBL_MAX, math.inf, math.nan):
                answered(peer.ask(OURS + "Sample", m.octets(1, "x") + m.number(2, 3)
                                  + m.number(4, 0) + m.double(6, beta)))
        insert = peer.open(m.INSERT)
        peer.write(insert, m.one(999, "x", 1.0))
        assert m.confirmed(peer.reply(insert)) == [999]
        assert peer.ask(m.SAMPLE, m.sample("x")).status == m.OK
        assert target.page("/metrics") and target.page("/v1/info")
        assert peer.ask(OURS + "DropTable", m.octets(1, "x")).status == m.OK
