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


class Liar:
    """Speaks as much HTTP/2 as it needs to refuse every call with its own words."""

    def __init__(self):
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
                    link.sendall(refusal(stream))

    def close(self):
        self.listener.close()


@pytest.fixture
def liar():
    server = Liar()
    yield server
    server.close()


@pytest.mark.parametrize("words", [["info"], ["info", "t"], ["sample", "t"], ["checkpoint"],
                                   ["tables", "drop", "t"], ["tables", "create", "t:uniform:10"],
                                   ["tables", "list"], ["top", "--count", "1"]], ids=" ".join)
def test_messages_of_a_server_are_shown_escaped(liar, words):
    done = ask(liar, *words, "--timeout", "10")
    assert done.returncode != 0
    expect_shown(done.stdout + done.stderr, "no: x\\x1b]0;owned\\x07\\x1b[2")


@pytest.fixture
def server(serve):
    server = serve("--port", "0", "--table", "t:uniform:10")
    answer(server, "tables", "create", f"{EVIL}:uniform:10")
    return server


def page(server, path):
    with urllib.request.urlopen(f"http://localhost:{server.port}{path}", timeout=20) as got:
        return got.read().decode()


def test_names_of_tables_are_shown_escaped(server):
    expect_shown(answer(server, "info"))
    expect_shown(answer(server, "info", EVIL))
    expect_shown(answer(server, "top", "--count", "1"), "x\\x1b]0;")  # cut to fit
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
