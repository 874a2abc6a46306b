# SPDX-License-Identifier: Apache-2.0
"""`reprise rollouts`."""

import json
import socket
import time

from conftest import SECONDS, answer, ask

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"  # and empty settings


def field(number, value):
    """A field of a message: a number below 128, or bytes shorter than 128."""
    if isinstance(value, int):
        return bytes((number << 3, value))
    return bytes((number << 3 | 2, len(value))) + value


def literal(name, value):
    """A header without compression."""
    return b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value


def has_ended(octets):
    """True if the frames have the trailers of the call."""
    while len(octets) >= 9:
        size, kind, flags = int.from_bytes(octets[:3], "big"), octets[3], octets[4]
        if (kind, flags & 1) == (1, 1):
            return True
        octets = octets[9 + size:]
    return False


def begin(server, method, message):
    """Begins a call of gRPC. Returns its connection."""
    s = socket.create_connection(("localhost", server.port), 10)
    head = b"".join(literal(*pair) for pair in [
        (b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"x"),
        (b":path", b"/reprise.v1.Rollouts/" + method), (b"content-type", b"application/grpc"),
        (b"te", b"trailers")])
    body = b"\0" + len(message).to_bytes(4, "big") + message
    s.sendall(PREFACE + len(head).to_bytes(3, "big") + b"\1\4\0\0\0\1" + head
              + len(body).to_bytes(3, "big") + b"\0\1\0\0\0\1" + body)
    return s


def call(server, method, message):
    """Makes a call of gRPC."""
    with begin(server, method, message) as s:
        got = b""
        while not has_ended(got) and (part := s.recv(1 << 16)):
            got += part


def create(server, name):
    consumer = field(1, b"trainer") + field(2, b"reward")
    options = (field(1, 4) + field(2, 3) + field(6, 9) + field(7, 100) + field(10, consumer))
    call(server, b"CreateRollouts", field(1, name) + field(2, options))


def test_a_server_without_rollouts_says_so(serve):
    server = serve("--port", "0")
    assert answer(server, "rollouts").startswith("no rollouts")
    assert answer(server, "rollouts", "--json") == "[]\n"
    done = ask(server, "rollouts", "none")
    assert done.returncode == 1 and "there are no rollouts 'none'" in done.stderr


def test_rollouts_are_listed_and_described(serve):
    server = serve("--port", "0")
    create(server, b"train")
    create(server, b"second\x1b")
    lines = answer(server, "rollouts").splitlines()
    assert lines[0].split() == ["rollouts", "version", "reserved", "partial", "complete", "leased",
                                "stale", "evicted", "bytes"]
    assert lines[1].startswith("second\\x1b ") and lines[2].split()[:3] == ["train", "0", "0"]
    lines = answer(server, "rollouts", "train").splitlines()
    assert lines[-2].split()[:2] == ["consumer", "waiting"] and lines[-1].startswith("trainer ")
    second, first = json.loads(answer(server, "rollouts", "--json"))
    assert (second["name"], first["name"]) == ("second\x1b", "train")
    assert (first["group_size"], first["max_staleness"], first["max_groups"]) == (4, 3, 9)
    assert [each["name"] for each in first["consumers"]] == ["trainer"]


def test_a_draw_that_waits_is_listed(serve):
    """`reprise why` says who waits for rollouts, and why; also with their name."""
    server = serve("--port", "0")
    create(server, b"train")
    assert answer(server, "why", "train") == "no call waits on train\n"
    draw = field(1, 6) + field(3, 99) + field(11, b"trainer") + field(12, 2) + field(13, 2)
    minute = b"\x18\xe0\xd4\x03"  # timeout_ms: 60,000
    with begin(server, b"ApplyRollouts", field(1, b"train") + field(2, draw) + minute):
        until = time.monotonic() + SECONDS
        while answer(server, "why").startswith("no call") and time.monotonic() < until:
            pass
        for name in (["train"], []):
            (call,) = json.loads(answer(server, "why", "--json", *name))["waiting"]
            assert (call["table"], call["side"], call["wanted"]) == ("train", "sample", 8)
            assert call["why"].startswith("rollouts 'train': 0 groups are ready for consumer 'trainer', the draw needs 2")
        first, second = answer(server, "why").splitlines()
        assert first.startswith("train  1 sample  rollouts 'train': 0 groups are ready") and " for " in second
        top = answer(server, "top", "--count", 1)
        assert "rollouts 'train': 0 groups are ready" in top
    done = ask(server, "why", "nothing")
    assert done.returncode == 1 and "no table 'nothing'" in done.stderr


def test_rollouts_are_not_taken_for_a_table(serve):
    server = serve("--port", "0", "--table", "replay:uniform:100")
    create(server, b"train")
    for command in (["info", "train"], ["sample", "train"], ["tables", "drop", "train"]):
        got = ask(server, *command)
        assert got.returncode == 1, got
        assert "no table 'train': these are rollouts, which reprise rollouts shows\n" in got.stderr
    got = ask(server, "why", "trian")
    assert got.returncode == 1 and got.stderr == "reprise why: no table 'trian', did you mean the rollouts 'train'?\n"
    got = ask(server, "why", "replai")
    assert got.stderr == "reprise why: no table 'replai', did you mean 'replay'?\n"
    assert answer(server, "why", "train") == "no call waits on train\n"
