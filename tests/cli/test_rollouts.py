# SPDX-License-Identifier: Apache-2.0
"""`reprise rollouts`."""

import json
import socket

from conftest import answer, ask

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


def call(server, method, message):
    """Makes a call of gRPC."""
    head = b"".join(literal(*pair) for pair in [
        (b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"x"),
        (b":path", b"/reprise.v1.Rollouts/" + method), (b"content-type", b"application/grpc"),
        (b"te", b"trailers")])
    body = b"\0" + len(message).to_bytes(4, "big") + message
    with socket.create_connection(("localhost", server.port), 10) as s:
        s.sendall(PREFACE + len(head).to_bytes(3, "big") + b"\1\4\0\0\0\1" + head
                  + len(body).to_bytes(3, "big") + b"\0\1\0\0\0\1" + body)
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
