# SPDX-License-Identifier: Apache-2.0
"""Names and messages of others on a terminal, in the log and on the pages: whatever a server or a
client wrote, no control character and no change of direction arrives there (issue 20)."""

import json
import re
import socket
import struct
import threading
import urllib.request

import pytest
from conftest import answer, ask

# Sets the title, rings, erases the screen (twice: as C0 and as C1), turns the text around.
EVIL = "x\x1b]0;owned\x07\x1b[2J\x9b2J\u202egnp.exe\u2066\u200f\x7f"
SHOWN = "x\\x1b]0;owned\\x07\\x1b[2J\\u009b2J\\u202egnp.exe\\u2066\\u200f\\x7f"
HIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def expect_shown(text, part=SHOWN):
    found = HIDDEN.search(text)
    assert not found, repr(text[max(found.start() - 100, 0):found.end()])
    assert part in text, text[:1000]


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(
        ">I", stream) + payload


def field(name, value):
    """A header, not indexed and not compressed, of less than 127 bytes each."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def refusal(stream):
    said = "".join(f"%{byte:02X}" for byte in EVIL[:16].encode()).encode()
    block = field(b":status", b"200") + field(b"content-type", b"application/grpc") + field(
        b"grpc-status", b"3") + field(b"grpc-message", b"no: " + said)
    return frame(1, 5, stream, block)  # HEADERS with END_HEADERS and END_STREAM


def page_of_runs(stream, text):
    """A response of ReadRuns: the text is its field 1."""
    size = bytes([len(text) & 127 | 128, len(text) >> 7 & 127 | 128, len(text) >> 14])
    message = b"\x0a" + size + text
    body = b"\0" + struct.pack(">I", len(message)) + message
    block = field(b":status", b"200") + field(b"content-type", b"application/grpc")
    pieces = b"".join(frame(0, 0, stream, body[i:i + 16384]) for i in range(0, len(body), 16384))
    return frame(1, 4, stream, block) + pieces + frame(1, 5, stream, field(b"grpc-status", b"0"))


class Liar:
    """Speaks as much HTTP/2 as it needs to refuse every call with its own words, or to respond to each
    with a page of runs."""

    def __init__(self, runs=None):
        self.runs = runs
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                link, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.refuse_all, args=(link,), daemon=True).start()

    def refuse_all(self, link):
        with link, link.makefile("rb") as received:
            link.sendall(frame(4, 0, 0))
            received.read(24)  # the preface
            while head := received.read(9):
                payload = received.read(int.from_bytes(head[:3], "big"))
                kind, flags = head[3], head[4]
                stream = int.from_bytes(head[5:], "big")
                if kind == 4 and not flags & 1:
                    link.sendall(frame(4, 1, 0))
                if kind == 6 and not flags & 1:
                    link.sendall(frame(6, 1, 0, payload))
                if kind == 1:
                    link.sendall(refusal(stream) if self.runs is None else page_of_runs(stream, self.runs))

    def close(self):
        self.listener.close()


@pytest.fixture
def liar():
    server = Liar()
    yield server
    server.close()


@pytest.mark.parametrize("words", [["info"], ["info", "t"], ["sample", "t"], ["checkpoint"],
                                   ["tables", "drop", "t"], ["tables", "create", "t:uniform:10"],
                                   ["tables", "list"], ["top", "--count", "1"], ["clients"],
                                   ["watch", "t"]], ids=" ".join)
def test_messages_of_a_server_are_shown_escaped(liar, words):
    done = ask(liar, *words, "--timeout", "10")
    assert done.returncode != 0
    expect_shown(done.stdout + done.stderr, "no: x\\x1b]0;owned\\x07\\x1b[2")


RUN = b'{"name":"%s","last_seen":1,"points":1,"scalars":[%s]}'


@pytest.mark.parametrize("text, message", [
    (RUN % (b"x\x1b]0;owned\x07", b"") + b"\n", "is malformed"),
    (b'{"name":"x"}],\n', "is malformed"),
    (b"[]\n", "is malformed"),
    (RUN % (b"x", b""), "ends within a line"),
    (RUN % (b"x", b'"b",' * 300000 + b'"c"') + b"\n", "describes a run with more than 1 MiB"),
    (b"{}\n" * 4097, "has more than 4096 runs"),
], ids=["escape", "no value", "no object", "cut", "large", "many"])
def test_a_list_of_runs_is_not_passed_on(text, message):
    liar = Liar(text)
    for words in ([], ["--json"]):
        done = ask(liar, "runs", "list", *words, "--timeout", "20")
        assert (done.returncode, done.stdout) == (1, "")
        expect_shown(done.stderr, f"reprise runs: the server's list of runs {message}; is it a reprise server?")
    liar.close()


def test_a_list_of_runs_is_written_anew():
    liar = Liar(RUN % (rb"x\u001b]0;", '"\x9b\u202e"'.encode()) + b"\n" + RUN % (b"y", b"") + b"\n")
    done = ask(liar, "runs", "list", "--json", "--timeout", "20")
    expect_shown(done.stdout, "\\u001b]0;")
    assert [run["name"] for run in json.loads(done.stdout)] == ["x\x1b]0;", "y"]
    expect_shown(ask(liar, "runs", "list", "--timeout", "20").stdout, "x\\x1b]0;")
    liar.close()


@pytest.fixture
def server(serve):
    server = serve("--port", "0", "--table", "t:uniform:10")
    answer(server, "tables", "create", f"{EVIL}:uniform:10")
    return server


def page(server, path):
    with urllib.request.urlopen(f"http://localhost:{server.port}{path}", timeout=120) as got:
        return got.read().decode()


def test_names_of_tables_are_shown_escaped(server):
    expect_shown(answer(server, "info"))
    expect_shown(answer(server, "info", EVIL))
    expect_shown(answer(server, "top", "--count", "1"), "x\\x1b]0;")  # cut to fit
    expect_shown(answer(server, "watch", EVIL, "--count", "1"))
    expect_shown(answer(server, "tables", "pause", EVIL))
    expect_shown(answer(server, "tables", "alter", EVIL, "--min-size", "2"))
    done = ask(server, "tables", "alter", EVIL, "--samples-per-insert", "2")  # with a warning
    expect_shown(done.stderr)
    text = answer(server, "info", "--json")
    expect_shown(text, "\\u001b]0;owned\\u0007")
    assert EVIL in [table["table"] for table in json.loads(text)]


def test_names_in_errors_are_shown_escaped(server):
    for words in (["info", EVIL + "y"], ["sample", EVIL + "y", "--timeout", "5"],
                  ["tables", "drop", EVIL + "y"], ["tables", "create", f"{EVIL}:uniform:10"]):
        done = ask(server, *words)
        assert done.returncode != 0, words
        expect_shown(done.stderr, "x\\x1b]0;")


def test_names_on_the_pages_are_escaped(server):
    labels = page(server, "/metrics")
    expect_shown(labels, '{table="' + SHOWN.replace("\\", "\\\\") + '"}')
    info = page(server, "/v1/info")
    assert not HIDDEN.search(info)
    assert EVIL in [table["name"] for table in json.loads(info)["tables"]]
