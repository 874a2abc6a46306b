# SPDX-License-Identifier: Apache-2.0
"""Hostile calls on rollouts: sizes, numbers, kinds, and clients that vanish while they wait."""

import time

import pytest

import frames as f
import messages as m

CREATE = "/reprise.v1.Rollouts/CreateRollouts"
DROP = "/reprise.v1.Rollouts/DropRollouts"
LIST = "/reprise.v1.Rollouts/ListRollouts"
APPLY = "/reprise.v1.Rollouts/ApplyRollouts"
PEEK = "/reprise.v1.Rollouts/PeekRollouts"
CURSOR = "/reprise.v1.Rollouts/ReadCursor"
RESERVE, PUT, DRAW, EXPIRE, SET_CURSOR = 1, 3, 6, 10, 11
SECOND = 10**9
MOST = 2**64 - 1  # as -1


def options(group_size=1, max_staleness=MOST, max_groups=100, max_bytes=1 << 20, more=b""):
    return (m.number(1, group_size) + m.number(2, max_staleness) + m.number(6, max_groups)
            + m.number(7, max_bytes) + more)


def create(name="r", value=None):
    return m.octets(1, name) + m.octets(2, options() if value is None else value)


def apply(kind, *fields, name="r", timeout_ms=0):
    return (m.octets(1, name) + m.octets(2, m.number(1, kind) + b"".join(fields))
            + m.number(3, timeout_ms))


def column(name="x", dtype=4, dims=(1,), data=b"a"):
    return m.octets(8, m.octets(1, name) + m.number(2, dtype)
                    + b"".join(m.number(3, d) for d in dims) + m.octets(4, data))


GROUP = m.octets(4, "g")

HOSTILE = {
    "no options": (CREATE, m.octets(1, "new")),
    "an empty name": (CREATE, create("")),
    "a name of 1 MB": (CREATE, create("n" * 1_000_000)),
    "a zero byte": (CREATE, create("a\0b")),
    "no items": (CREATE, create("new", options(group_size=0))),
    "a group of 2^32 items": (CREATE, create("new", options(group_size=2**32 + 1))),
    "2^63 groups": (CREATE, create("new", options(max_groups=2**63))),
    "no bytes": (CREATE, create("new", options(max_bytes=0))),
    "a staleness of -2": (CREATE, create("new", options(max_staleness=MOST - 1))),
    "17 consumers": (CREATE, create("new", options(more=b"".join(
        m.octets(10, m.octets(1, f"c{i}")) for i in range(17))))),
    "a consumer of 10,000 columns": (CREATE, create("new", options(more=m.octets(
        10, m.octets(2, "x") * 10_000)))),
    "an unknown order": (CREATE, create("new", options(more=m.number(9, 77)))),
    "no operation": (APPLY, m.octets(1, "r")),
    "an unknown kind": (APPLY, apply(99)),
    "a negative kind": (APPLY, apply(MOST)),
    "an expiry": (APPLY, apply(EXPIRE)),
    "a negative ttl": (APPLY, apply(RESERVE, GROUP, m.number(3, MOST))),
    "a group of 1 MB": (APPLY, apply(RESERVE, m.octets(4, "g" * 1_000_000), m.number(3, 1))),
    "an index of 2^40": (APPLY, apply(PUT, GROUP, m.number(5, 2**40), column())),
    "a negative version": (APPLY, apply(PUT, GROUP, m.number(6, MOST), column())),
    "1,000 columns": (APPLY, apply(PUT, GROUP, *[column(f"x{i}") for i in range(1000)])),
    "a column twice": (APPLY, apply(PUT, GROUP, column(), column())),
    "text": (APPLY, apply(PUT, GROUP, column(dtype=7))),
    "an unknown dtype": (APPLY, apply(PUT, GROUP, column(dtype=2**40))),
    "a negative dimension": (APPLY, apply(PUT, GROUP, column(dims=(MOST,)))),
    "dimensions that overflow": (APPLY, apply(PUT, GROUP, column(dims=(2**32, 2**32), data=b""))),
    "nine dimensions": (APPLY, apply(PUT, GROUP, column(dims=(1,) * 9))),
    "too few bytes": (APPLY, apply(PUT, GROUP, column(dims=(2,)))),
    "2^32 groups of a draw": (APPLY, apply(DRAW, m.number(12, 2**32 - 1), m.number(3, 1))),
    "a cursor of 1 MB": (APPLY, apply(SET_CURSOR, m.octets(17, "c"), m.octets(18, bytes(1 << 20)))),
    "a broken operation": (APPLY, m.octets(1, "r") + m.octets(2, b"\x0a\xff")),
    "a broken name": (PEEK, m.octets(1, b"\xff\xfe")),
    "a broken request": (CURSOR, b"\x0a\xff"),
}


def counts(target):
    """Returns the metrics of rollouts."""
    return [line for line in target.page("/metrics").splitlines()
            if line.startswith("reprise_rollouts")]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_calls_are_refused_and_leave_nothing(attack, name):
    target = attack()
    path, message = HOSTILE[name]
    with target.peer() as peer:
        assert peer.ask(CREATE, create()).status in (m.OK, 6)
        before = counts(target)
        call = peer.ask(path, message)
    assert call.status == m.INVALID and 0 < len(call.text) <= 256, (call.status, call.text)
    assert counts(target) == before


def test_calls_that_wait_give_their_place_back(attack):
    """A thousand draws wait, and their client vanishes. Another client draws the group."""
    target = attack(fresh=True)
    draw = apply(DRAW, m.number(12, 1), m.number(3, 10**12), timeout_ms=60000)
    with target.peer() as peer:
        assert peer.ask(CREATE, create()).status == m.OK
    for _ in range(10):
        with target.peer() as peer:
            for _ in range(100):
                peer.write(peer.open(APPLY), draw)
            peer.ask(LIST, b"")
    # The server learns that the clients are gone one after the other. Until then it may give the
    # group to one of them, and that draw holds it for its lease.
    until = time.monotonic() + 120
    while "reprise_rollouts_waiting_calls 0" not in counts(target):
        assert time.monotonic() < until, counts(target)
        time.sleep(0.02)
    with target.peer() as peer:
        assert peer.ask(APPLY, apply(PUT, GROUP, column())).status == m.OK
        call = peer.ask(APPLY, apply(DRAW, m.number(12, 1), m.number(3, 10**12), timeout_ms=20000))
        assert call.status == m.OK and b"g" in call.body


def test_a_draw_ends_before_its_response_is_too_large(attack):
    """Groups of 40 kB, and responses of 100 kB: two groups fit. No group is lost."""
    target = attack(limits={"message_bytes": 100_000})
    with target.peer() as peer:
        def draw(groups, least):
            return peer.ask(APPLY, apply(DRAW, m.number(12, groups), m.number(13, least),
                                         m.number(3, 3600 * SECOND), name="fit"))

        assert peer.ask(CREATE, create("fit")).status == m.OK
        for i in range(3):
            put = apply(PUT, m.octets(4, f"group{i}"), column(dims=(40_000,), data=bytes(40_000)),
                        name="fit")
            assert peer.ask(APPLY, put).status == m.OK
        call = draw(3, 3)
        assert call.status == 8 and "message_bytes" in call.text, (call.status, call.text)
        call = draw(3, 1)
        assert call.status == m.OK
        assert [f"group{i}".encode() in call.body for i in range(3)] == [True, True, False]
        call = draw(3, 1)
        assert call.status == m.OK
        assert [f"group{i}".encode() in call.body for i in range(3)] == [False, False, True]
        assert draw(3, 1).status == 4
        assert peer.ask(DROP, m.octets(1, "fit")).status == m.OK


def test_responses_without_room_have_a_bound(attack):
    """Twelve draws of 900 kB on a connection that reads nothing: two responses are queued, three wait for
    room, and the other draws are refused. Their groups are drawn again, as are those of the
    connection once it has ended."""
    target = attack(fresh=True, limits={"connection_queued_bytes": "1MiB", "message_bytes": "1MiB",
                                        "connection_pinned_bytes": "3MiB"})
    size, count = 900_000, 12
    draw = apply(DRAW, m.number(12, 1), m.number(3, 3600 * SECOND))

    def pinned():
        return target.metrics()["pinned_bytes"]

    with target.peer() as peer:
        assert peer.ask(CREATE, create(value=options(max_bytes=1 << 25))).status == m.OK
        for i in range(count):
            put = apply(PUT, m.octets(4, f"group{i}"), column(dims=(size,), data=bytes(size)))
            assert peer.ask(APPLY, put).status == m.OK
    with target.peer(windows=False, pairs=[(f.INITIAL_WINDOW, 0)]) as silent:
        streams = [silent.open(APPLY) for _ in range(count)]
        for stream in streams:
            silent.write(stream, draw, end=True)
        refused = [s for s in streams[5:] if silent.result(s).status == 8]
        assert len(refused) == count - 5
        assert not any(silent.calls[s].over for s in streams[:5])
        assert 3 * size <= pinned() <= 3 << 20
    with target.peer() as peer:
        for _ in range(count):
            call = peer.ask(APPLY, apply(DRAW, m.number(12, 1), m.number(3, 3600 * SECOND),
                                         timeout_ms=60000))
            assert call.status == m.OK and len(call.body) > size
    assert pinned() == 0
