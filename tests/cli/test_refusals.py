# SPDX-License-Identifier: Apache-2.0
"""Servers and proxies that refuse the items or the samples of a command."""

import hashlib
import socket
import struct
import threading

import pytest
from conftest import answer, ask

DATA, HEADERS = 0, 1
END_STREAM, END_HEADERS = 0x1, 0x4
ITEMS = '{"data": [1]}\n' * 3


def literal(name, value):
    """A header field of HTTP/2 that is not added to the table."""
    return b"".join([b"\0", bytes([len(name)]), name, bytes([len(value)]), value])


# Status 200, and DEADLINE_EXCEEDED with a text as servers have for samples that did not come.
REFUSAL = (b"\x88" + literal(b"content-type", b"application/grpc") + literal(b"grpc-status", b"4")
           + literal(b"grpc-message", b"Rate Limiter timeout: none came in time: by the proxy"))


class Proxy:
    """Passes frames between clients and a server, but ends each call of several messages with
    DEADLINE_EXCEEDED."""

    def __init__(self, port):
        self.server = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.server))
            refused, lock = set(), threading.Lock()
            for pair in ((client, server, client), (server, client, None)):
                threading.Thread(target=self.relay, args=(*pair, refused, lock), daemon=True).start()

    def relay(self, source, target, refuse_at, refused, lock):
        """Passes on what `source` sends. Refuses calls if `refuse_at` is the client's socket."""
        stream = source.makefile("rb")
        try:
            if refuse_at:
                target.sendall(stream.read(24))  # the preface
            while len(head := stream.read(9)) == 9:
                size, flags, call = int.from_bytes(head[:3], "big"), head[4], int.from_bytes(
                    head[5:], "big")
                frame = head + stream.read(size)
                if refuse_at and head[3] == DATA and not flags & END_STREAM and call not in refused:
                    refused.add(call)
                    with lock:
                        refuse_at.sendall(struct.pack(
                            ">IBI", len(REFUSAL) << 8 | HEADERS, END_STREAM | END_HEADERS, call)
                            + REFUSAL)
                if call in refused:
                    continue
                if refuse_at:
                    target.sendall(frame)
                else:
                    with lock:
                        target.sendall(frame)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


@pytest.fixture
def server(serve):
    return serve("--port", "0", "--table", "replay:uniform:100")


@pytest.fixture
def proxy(server):
    proxy = Proxy(server.port)
    yield proxy
    proxy.listener.close()


def test_items_refused_with_a_deadline_are_an_error(server, proxy):
    """`insert` took the refusal for the end of a slice of its wait, and succeeded (issue 26)."""
    done = ask(proxy, "insert", "replay", "-", input=ITEMS)
    assert (done.returncode, done.stdout) == (1, ""), done
    assert "reprise insert: 0 items are inserted: 3 items were refused" in done.stderr
    assert "by the proxy" in done.stderr


def test_samples_refused_with_a_deadline_end_the_command(server, proxy):
    """`sample` repeated the call, and a line about it, without end (issue 26)."""
    answer(server, "insert", "replay", "-", input=ITEMS)
    done = ask(proxy, "sample", "replay", "--timeout", "4")
    assert (done.returncode, done.stdout) == (1, ""), done
    assert done.stderr.count("\n") == 1 and "by the proxy" in done.stderr


def test_items_that_a_role_may_not_insert_are_not_counted(serve, tmp_path):
    """The error said that they are inserted (issue 26)."""
    secret = "s3cret-s3cret-s3cret"
    tokens = tmp_path / "tokens"
    tokens.write_text(f"read me sha256:{hashlib.sha256(secret.encode()).hexdigest()}\n")
    tokens.chmod(0o600)
    server = serve("--port", "0", "--table", "replay:uniform:100", "--tokens", str(tokens))
    done = ask(server, "insert", "replay", "-", "--token", secret, input=ITEMS)
    assert (done.returncode, done.stdout) == (1, ""), done
    assert "reprise insert: 0 items are inserted: 3 items were refused" in done.stderr
