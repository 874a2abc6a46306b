# SPDX-License-Identifier: Apache-2.0
"""Hostile reports to runs: over gRPC and over HTTP, in numbers and in sizes."""

import json
import math
import socket
import struct

import pytest

import frames as f
import messages as m
from target import IS_SHORT

LOG = "/reprise.v1.Runs/LogScalars"
READ = "/reprise.v1.Runs/ReadRuns"
MOST_SCALARS = 1024
MIB = 1 << 20


def scalar(name, step=0, value=0.5, time=0.0):
    return m.octets(2, m.octets(1, name) + m.number(2, step) + m.double(3, time)
                    + m.double(4, value))


def report(run, *parts):
    return m.octets(1, run) + b"".join(parts)


def get(target, path):
    return json.loads(target.page(path))


def post(target, path, body, confirm="a"):
    """Returns the status and the body of the response."""
    with socket.create_connection(("127.0.0.1", target.port), 10 * f.SLOW) as s:
        s.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                  f"x-reprise-confirm: {confirm}\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        try:
            s.sendall(body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it was refused before all of it was sent
        got = b""
        try:
            while part := s.recv(1 << 16):
                got += part
        except ConnectionResetError:
            pass
    head, _, body = got.partition(b"\r\n\r\n")
    return int(head.split()[1]) if head else 0, body


def runs_of(target):
    return get(target, "/v1/runs")


def test_values_and_steps_at_their_limits_are_kept(attack):
    target = attack(fresh=True)
    steps = [-(2**63), 2**63 - 1, 0]
    with target.peer() as peer:
        for step, value in zip(steps, [math.nan, math.inf, -5e-324]):
            call = peer.ask(LOG, report("a", scalar("x", step, value)))
            assert call.status == m.OK
    run = get(target, "/v1/runs/a")["series"]["x"]
    assert run["step"] == steps
    assert run["value"][:2] == [None, None]
    rows = target.page("/v1/runs/a.csv").splitlines()
    assert rows[1].endswith(",nan") and rows[2].endswith(",inf")


HOSTILE = {
    "a name of 1 MB": report("n" * 1_000_000, scalar("x")),
    "a scalar's name of 1 MB": report("a", scalar("n" * 1_000_000)),
    "an empty name": report("", scalar("x")),
    "an empty scalar's name": report("a", scalar("")),
    "a zero byte": report("a\0b", scalar("x")),
    "bytes that are not text": report(b"\xff\xfe", scalar("x")),
    "a time that is not a number": report("a", scalar("x", time=math.nan)),
    "a time before 1970": report("a", scalar("x", time=-1.0)),
    "too many scalars": report("a", *[scalar("x")] * (MOST_SCALARS + 1)),
    "too many actors": report("a", *[m.octets(3, m.octets(1, "w"))] * 257),
    "an actor's name of 1 MB": report("a", m.octets(3, m.octets(1, "n" * 1_000_000))),
    "too many states": report("a", m.octets(4, m.octets(1, "e") + m.number(2, 1)
                                            + m.octets(3, bytes(4 * 16385)))),
    "states of no numbers": report("a", m.octets(4, m.octets(1, "e") + m.octets(3, bytes(8)))),
    "more variables than numbers": report("a", m.octets(4, m.octets(1, "e") + m.number(2, 2**32 - 1)
                                                        + m.octets(3, bytes(8)))),
    "a broken scalar": report("a", m.octets(2, b"\x0a\xff")),
    "broken floats": report("a", m.octets(4, m.octets(3, bytes(5)))),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_reports_are_refused_and_leave_nothing(attack, name):
    target = attack()
    before = runs_of(target)["runs"]
    with target.peer() as peer:
        call = peer.ask(LOG, HOSTILE[name])
    assert call.status == m.INVALID and 0 < len(call.text) <= 256, call.text
    assert runs_of(target)["runs"] == before


def test_a_million_points_stay_within_the_bound(attack):
    """The points of a series are bounded by halving its resolution: the last one is always there.
    All reports but the last are the same bytes, since making them takes longer than reading them."""
    target = attack(fresh=True)
    same = report("a", *(scalar("x", i) for i in range(MOST_SCALARS)))
    count = (500_000 if IS_SHORT else 1_000_000) // MOST_SCALARS
    with target.peer() as peer:
        assert all(peer.ask(LOG, same).status == m.OK for _ in range(count))
        assert peer.ask(LOG, report("a", scalar("x", 2**63 - 1))).status == m.OK
    run = get(target, "/v1/runs/a")
    assert run["next"] == count * MOST_SCALARS + 1
    steps = run["series"]["x"]["step"]
    assert 1024 <= len(steps) <= 2049 and steps[0] == 0 and steps[-1] == 2**63 - 1
    assert set(steps[:-1]) == set(range(0, MOST_SCALARS, 256 if IS_SHORT else 512))  # others are not kept
    assert runs_of(target)["bytes"] < MIB


def test_many_runs_and_series_stay_within_run_bytes(attack):
    target = attack(fresh=True, limits={"run_bytes": MIB})
    count = 150 if IS_SHORT else 400  # about 20 have room
    with target.peer() as peer:
        scalars = [scalar(f"s{k}-" + "n" * 200) for k in range(200)]
        for i in range(count):
            call = peer.ask(LOG, report(f"run {i}", *scalars))
            assert call.status == m.OK
            assert dict(m.read(call.body[5:])).get(1, 0) >= 200 - 128  # they were dropped
    state = runs_of(target)
    assert 0 < state["bytes"] <= MIB and state["dropped_runs"] > count - 100
    assert state["runs"][-1]["name"] == f"run {count - 1}"  # the latest stays
    assert all(len(run["scalars"]) <= 128 for run in state["runs"])


def test_hostile_names_are_only_text(attack):
    target = attack(fresh=True)
    name = "</script><script>alert(1)</script>\"\\\x1b[31m\u202e"
    with target.peer() as peer:
        assert peer.ask(LOG, report(name, scalar(name + "\n"))).status == m.OK
    [run] = runs_of(target)["runs"]  # it is JSON
    assert run["name"] == name and run["scalars"] == [name + "\n"]


BODIES = {
    "not JSON": b"PAYLOAD",
    "deep": b"[" * 60000,
    "deep objects": b'{"a":' * 12000,
    "a long key": b'{"' + b"k" * 60000 + b'":1}',
    "a long name": b'{"scalars":[{"name":"' + b"n" * 60000 + b'"}]}',
    "a step of many digits": b'{"scalars":[{"name":"a","step":' + b"9" * 60000 + b"}]}",
    "a step over the limit": b'{"scalars":[{"name":"a","step":9223372036854775808}]}',
    "a value over the limit": b'{"scalars":[{"name":"a","value":1e400}]}',
    "NaN": b'{"scalars":[{"name":"a","value":NaN}]}',
    "too many scalars": b'{"scalars":[' + b",".join([b'{"name":"a"}'] * 1025) + b"]}",
    "too many states": b'{"episode":{"env":"e","states":[[' + b",".join([b"1"] * 16385) + b"]]}}",
    "states of different lengths": b'{"episode":{"env":"e","states":[[1],[1,2]]}}',
    "a lone surrogate": b'{"scalars":[{"name":"\\ud800"}]}',
    "bytes that are not text": b'{"scalars":[{"name":"\xff"}]}',
    "nothing": b"",
}


@pytest.mark.parametrize("name", BODIES)
def test_hostile_bodies_are_refused_and_leave_nothing(attack, name):
    target = attack()
    before = runs_of(target)["runs"]
    status, body = post(target, "/v1/runs/a", BODIES[name])
    assert status == 400 and "error" in json.loads(body)
    assert runs_of(target)["runs"] == before


def test_a_body_over_the_limit_is_refused(attack):
    target = attack()
    before = runs_of(target)["runs"]
    status, _ = post(target, "/v1/runs/a", b" " * (1 << 20))
    assert status in (0, 413)
    assert runs_of(target)["runs"] == before


def test_other_sites_cannot_report(attack):
    """A form of another site cannot set the header, and GET changes nothing."""
    target = attack()
    before = runs_of(target)["runs"]
    good = b'{"scalars":[{"name":"a"}]}'
    assert post(target, "/v1/runs/a", good, confirm="b")[0] == 400
    assert runs_of(target)["runs"] == before


def test_pages_of_a_run_are_read_to_their_end(attack):
    """A reader that asks for impossible pages gets the end, and one that asks for all gets all."""
    target = attack(fresh=True)
    with target.peer() as peer:
        for i in range(3):
            parts = [scalar(f"s{k % 5}", k) for k in range(1000)]
            assert peer.ask(LOG, report("a", *parts)).status == m.OK
        call = peer.ask(READ, m.octets(1, "a") + m.number(2, 1) + m.number(3, 2**64 - 1))
        assert call.status == m.OK and not dict(m.read(call.body[5:])).get(1)
        after, data, more = 0, b"", True
        while more:
            call = peer.ask(READ, m.octets(1, "a") + m.number(2, 1) + m.number(3, after))
            page = dict(m.read(call.body[5:]))
            data += page.get(1, b"")
            assert page[2] > after or not page.get(3)
            after, more = page[2], bool(page.get(3))
        assert data.count(b"\n") == 3001
        assert peer.ask(READ, m.octets(1, "a") + m.number(2, 9)).status == m.INVALID
        assert peer.ask(READ, m.octets(1, "none") + m.number(2, 1)).status == m.NOT_FOUND


def test_event_files_have_right_lengths(attack):
    target = attack(fresh=True)
    with target.peer() as peer:
        assert peer.ask(LOG, report("a", *[scalar("x", k) for k in range(100)])).status == m.OK
        call = peer.ask(READ, m.octets(1, "a") + m.number(2, 2))
    data, records = dict(m.read(call.body[5:]))[1], 0
    while data:
        size = struct.unpack_from("<Q", data)[0] + 16
        data, records = data[size:], records + 1
    assert records == 101
