# SPDX-License-Identifier: Apache-2.0
"""Connections: too many of them, invalid HTTP/1.1, invalid TLS, guessed tokens."""

import hashlib
import os
import resource
import select
import signal
import socket
import ssl
import struct
import subprocess
import time

import pytest

import frames as f
import messages as m
from target import SANITIZER, Server


def connect(target, octets=b"", receive=True):
    """Opens a plain socket, sends bytes, and returns all that it receives until the server closes.
    """
    with socket.create_connection(("127.0.0.1", target.port), 10 * f.SLOW) as s:
        try:
            s.sendall(octets)
        except OSError:
            pass
        got = b""
        while receive:
            try:
                part = s.recv(65536)
            except ConnectionResetError:
                break
            if not part:
                break
            got += part
        return got


NEW_PLACES = 64  # connections without an accepted call may have these besides `connections`


def test_connections_have_a_limit(attack):
    """The bystander has one connection; nine more have accepted calls, and a tenth gets none. It
    affects neither the others nor pages, and when one of them is closed, its call is accepted."""
    target = attack(limits={"connections": 10})
    peers = [target.peer() for _ in range(9)]
    assert all(p.ask(m.INFO, b"").status == m.OK for p in peers)
    extra = [target.peer() for _ in range(5)]
    calls = [e.ask(m.INFO, b"") for e in extra]
    assert all(c.status == m.UNAVAILABLE and "limit connections" in c.text for c in calls), calls
    with target.peer() as page:
        assert page.result(page.open("/metrics", end=True, method="GET")).fields[":status"] == "503"
    assert target.limits_hit() == {"connections": 6}
    assert all(p.ask(m.INFO, b"").status == m.OK for p in peers)
    peers.pop().close()
    assert any_in_time(lambda: extra[0].ask(m.INFO, b"").status == m.OK)
    assert extra[1].ask(m.INFO, b"").status == m.UNAVAILABLE
    for p in [*extra, *peers]:
        p.close()


def any_in_time(condition):
    """Returns whether the condition becomes true in time."""
    until = time.monotonic() + 120
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def test_connections_without_an_accepted_call_give_way(attack, tokens):
    """A client without a token opens more connections than there are places. The oldest are closed
    for the others; pages and calls with a token are answered, and their connections stay open."""
    # None is closed because it says nothing: the test would count too few.
    target = attack(limits={"connections": 10, "handshake_ms": 600000},
                    arguments=("--tokens", tokens), token="admin-token")
    with target.peer() as known:
        assert known.ask(m.INFO, b"", more=bearer("read-token")).status == m.OK
        idle = []
        for i in range(3 * NEW_PLACES):
            idle.append(target.peer(greet=i % 8 != 0))
            if i % 8 == 1:  # neither of these shows a role
                assert idle[-1].ask(m.HEALTH, b"").status == m.OK
            if i % 8 == 2:
                assert idle[-1].ask(m.INFO, b"").status == m.UNAUTHENTICATED
            if i % 8 == 3:
                idle[-1].open(m.WATCH)
        assert any_in_time(lambda: target.limits_hit().get("connections", 0) >=
                           2 * NEW_PLACES - 10), target.refused()  # all are accepted
        assert any_in_time(lambda: target.metrics()["connections"] <= 10 + NEW_PLACES)
        assert all(p.gone() for p in idle[:NEW_PLACES])
        assert all(p.goaway == f.ENHANCE_YOUR_CALM for p in idle[1:8])
        assert b"no accepted call" in idle[1].goaway_text
        assert not idle[-1].gone(0.05)
        peers = [target.peer() for _ in range(8)]
        for p in peers:
            assert p.ask(m.INFO, b"", more=bearer("write-token")).status == m.OK
        more = [target.peer() for _ in range(2 * NEW_PLACES)]
        # Each loop accepts connections by itself, so the oldest need not be those that were opened first.
        assert any_in_time(lambda: sum(p.gone(0.01) for p in more) >= NEW_PLACES - 1)
        for p in [known, *peers]:
            assert p.ask(m.INFO, b"", more=bearer("write-token")).status == m.OK
    for p in [*idle, *peers, *more]:
        p.close()


def test_without_tokens_connections_without_a_call_give_way(attack):
    target = attack(limits={"connections": 10})
    with target.peer() as known:
        assert known.ask(m.INFO, b"").status == m.OK
        idle = [target.peer() for _ in range(3 * NEW_PLACES)]
        with target.peer() as peer:
            assert peer.ask(m.INFO, b"").status == m.OK
            assert any_in_time(lambda: target.metrics()["connections"] <= 10 + NEW_PLACES)
            assert known.ask(m.INFO, b"").status == m.OK
    assert idle[0].gone()
    for p in idle:
        p.close()


def test_calls_without_credentials_are_few_for_a_connection(attack, tokens):
    """Each takes memory until it ends. After an accepted call, the limit is `streams`."""
    target = attack(limits={"connections": 10}, arguments=("--tokens", tokens),
                    token="admin-token")
    with target.peer() as peer:
        watches = [peer.open(m.WATCH) for _ in range(8)]
        call = peer.ask(m.HEALTH, b"")
        assert call.status == m.EXHAUSTED and "8 calls are open" in call.text, call
        assert target.limits_hit() == {"streams": 1}
        peer.send(f.rst(watches[0]))
        assert peer.ask(m.HEALTH, b"").status == m.OK
        assert peer.ask(m.INFO, b"", more=bearer("read-token")).status == m.OK
        for _ in range(20):
            peer.open(m.WATCH)
        assert peer.ask(m.HEALTH, b"").status == m.OK


def test_unfinished_tls_handshakes_give_way(certificate):
    """Connections that send nothing, or a part of a ClientHello, and connections that complete the
    handshake and make no call, keep neither calls nor pages out."""
    hello = client_hello()
    with TlsServer(certificate, connections=10) as server, server.secret_peer() as known:
        assert known.ask(m.INFO, b"").status == m.OK
        idle = []
        for i in range(2 * NEW_PLACES):
            idle.append(socket.create_connection(("127.0.0.1", server.port), 10 * f.SLOW))
            idle[-1].sendall(hello[:(0, 5, len(hello) - 1, len(hello))[i % 4]])
        context = tls_context(certificate)
        for _ in range(2):
            with server.secret_peer() as peer:
                assert peer.ask(m.INFO, b"").status == m.OK
            assert any_in_time(lambda: server.metrics()["connections"] <= 10 + NEW_PLACES)
            assert server.refusals()["connections"] > 0
            assert known.ask(m.INFO, b"").status == m.OK
            idle += [server.peer(tls=context) for _ in range(NEW_PLACES // 2)]
        for s in idle:
            s.close()


def test_a_flood_of_connections(attack):
    """Two thousand connections at once, each closed again, leave nothing behind."""
    target = attack()
    for _ in range(10):
        sockets = [socket.create_connection(("127.0.0.1", target.port)) for _ in range(200)]
        for i, s in enumerate(sockets):
            if i % 3 == 0:
                s.sendall(f.PREFACE + f.settings())
            if i % 5 == 0:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
    with target.peer() as peer:
        assert peer.ask(m.INFO, b"").status == m.OK


def test_connections_are_closed_before_descriptors_run_out(attack):
    """With 128 descriptors in all, connections are closed while some descriptors are left."""

    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))

    target = attack(before=few)
    peers = [target.peer(greet=False) for _ in range(200)]

    def count_gone():
        for p in peers:
            p.take(0)
        return sum(p.closed for p in peers)

    assert any_in_time(lambda: count_gone() >= 20)
    time.sleep(0.1 * f.SLOW)  # more may follow
    gone = count_gone()
    assert 20 <= gone < 200
    with target.peer() as peer:
        assert peer.ask(m.INFO, b"").status == m.OK
    for p in peers:
        p.close()
    assert any_in_time(lambda: target.descriptors() <= target.descriptors_before)
    hit = target.limits_hit()
    assert set(hit) == {"descriptors"} and hit["descriptors"] >= gone, hit
    with target.peer() as peer:
        assert peer.ask(m.INFO, b"").status == m.OK


GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
GARBAGE = {
    "no request": b"PAYLOAD\r\n\r\n",
    "zeros": b"\0" * 4096,
    "ones": b"\xff" * 4096,
    "line feeds": b"\n" * 4096,
    "no version": b"GET /\r\n\r\n",
    "another version": b"GET / HTTP/9.9\r\n\r\n",
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "a long path": b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "a long header": GET + b"X: " + b"y" * 100000 + b"\r\n\r\n",
    "many headers": GET + b"X: y\r\n" * 20000 + b"\r\n",
    "a header that is none": GET + b"PAYLOAD\r\n\r\n",
    "a folded header": GET + b"X: y\r\n z\r\n\r\n",
    "a zero in a header": GET + b"X: a\0b\r\n\r\n",
    "two lengths": GET + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "a length past 64 bits": GET + b"Content-Length: 99999999999999999999999\r\n\r\n",
    "a negative length": GET + b"Content-Length: -1\r\n\r\n",
    "a length and chunks": GET + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks that are none": GET + b"Transfer-Encoding: chunked\r\n\r\nPAYLOAD\r\n",
    "a chunk past 64 bits": GET + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    "a post": b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 9999,
    "a connect": b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
    "an upgrade": GET + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                  b"HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
    "a path upwards": b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
    "a path with escapes": b"GET /%2e%2e/%00PAYLOAD%n%s HTTP/1.1\r\nHost: x\r\n\r\n",
    "a hello of TLS": bytes.fromhex("16030100c8010000c40303") + b"\x5a" * 190,
    "a hundred requests at once": GET + b"\r\n" + (GET + b"\r\n") * 99,
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_instead_of_a_request(attack, name):
    target = attack(limits={"handshake_ms": 1000})
    with socket.create_connection(("127.0.0.1", target.port), 10 * f.SLOW) as s:
        try:
            s.sendall(GARBAGE[name])
            s.shutdown(1)
        except OSError:
            pass
        s.settimeout(10 * f.SLOW)
        got = b""
        try:
            while part := s.recv(65536):
                got += part
        except ConnectionResetError:
            pass
    assert b"PAYLOAD" not in got and b"root:" not in got
    assert not got or got.startswith((b"HTTP/1.1 ", b"HTTP/1.0 ")), got[:40]
    assert target.page("/healthz").startswith("serving")


def test_pages_have_a_limit_of_their_own(attack):
    """There are 256 connections at once. A further one closes the oldest, so that no client can block
    the pages for others."""
    target = attack()
    lazy = []
    for _ in range(300):
        s = socket.create_connection(("127.0.0.1", target.port))
        s.sendall(b"GET /he")
        lazy.append(s)
        if len(lazy) % 20 == 0:
            assert target.page("/healthz").startswith("serving")
    assert target.page("/healthz").startswith("serving")
    cut = 0
    for s in lazy:
        s.settimeout(0.01)
        try:
            cut += s.recv(10) == b""
        except ConnectionResetError:
            cut += 1
        except TimeoutError:
            pass
        s.close()
    assert 44 <= cut <= 80
    assert set(target.limits_hit()) == {"page_connections"}


def status_under(target, host, path):
    with socket.create_connection(("127.0.0.1", target.port), 10 * f.SLOW) as s:
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        return int(s.makefile("rb").readline().split()[1])


def test_pages_are_refused_under_the_name_of_another_site(attack):
    """DNS rebinding: the name of a web site resolves to this machine, and a browser of a visitor
    requests a page."""
    target = attack()
    for path in ("/metrics", "/v1/info"):
        assert status_under(target, f"evil.example:{target.port}", path) == 421
        for host in ("localhost", f"127.0.0.1:{target.port}", "[::1]", "replay", "a.localhost"):
            assert status_under(target, host, path) == 200
    assert target.limits_hit() == {"page_host": 2}
    named = attack(arguments=("--page-hosts", "a.example,replay.example.com"))
    assert status_under(named, "replay.example.com", "/metrics") == 200


HOSTS = {
    "a name behind a user": "a@localhost",
    "a user of a name without a dot": "evil@replay",
    "a fragment": "evil.example#.localhost",
    "a path": "evil.example/.localhost",
    "a query": "evil.example?.localhost",
    "a backslash": "evil.example\\.localhost",
    "a blank": "evil.example .localhost",
    "a percent sign": "evil%2eexample",
    "a comma": "localhost,evil",
    "an empty label": "a..localhost",
    "a port that is none": "localhost:80@evil.example",
    "a port of letters": "localhost:http",
    "a port that is too large": "localhost:65536",
    "bytes behind an address": "[::1]evil.example",
    "a port of an address that is none": "[::1]:evil",
    "a line more": "localhost\r\nHost: evil.example",
    "a line more, first": "evil.example\r\nhost: localhost",
    "the same line again": "localhost\r\nHOST: localhost",
}


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_an_invalid_host_header_is_refused(attack, host):
    target = attack()
    assert status_under(target, host, "/metrics") in (400, 421)
    assert status_under(target, "localhost", "/metrics") == 200


def test_slow_pages(attack):
    """A client that begins a request must complete it within handshake_ms."""
    target = attack(limits={"handshake_ms": 1000})
    sockets = [socket.create_connection(("127.0.0.1", target.port)) for _ in range(5)]
    texts = [b"", b"G", b"GET /healthz HTTP/1.1\r\nHost: x\r\n", GET + b"X: ", b"GET /healthz"]
    for s, text in zip(sockets, texts):
        s.sendall(text)
    until = time.monotonic() + (15 if SANITIZER else 6)
    left = list(sockets)
    while left and time.monotonic() < until:
        for s in list(left):
            s.settimeout(0.02)
            try:
                if not s.recv(4096):
                    left.remove(s)
            except TimeoutError:
                pass
            except ConnectionResetError:
                left.remove(s)
    for s in sockets:
        s.close()
    assert not left


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost", "-days", "2", "-keyout", folder / "key.pem",
                    "-out", folder / "cert.pem"], check=True, capture_output=True)
    return folder


def tls_context(certificate, alpn=("h2",)):
    context = ssl.create_default_context(cafile=certificate / "cert.pem")
    context.set_alpn_protocols(list(alpn))
    return context


class TlsServer(Server):
    """A server with TLS on its only port."""

    def __init__(self, certificate, loops=0, **limits):
        self.certificate = certificate
        super().__init__(arguments=("--tls-cert", certificate / "cert.pem", "--tls-key",
                                    certificate / "key.pem", "--loops", loops), limits=limits)

    def page(self, path):
        raw = socket.create_connection(("127.0.0.1", self.port), 10 * f.SLOW)
        context = tls_context(self.certificate, ("http/1.1",))
        with context.wrap_socket(raw, server_hostname="localhost") as s:
            s.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            got = b""
            while part := s.recv(65536):
                got += part
        head, _, body = got.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        return body.decode()

    def secret_peer(self):
        return self.peer(tls=tls_context(self.certificate))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        wrong = self.stop()
        assert not wrong, wrong


def test_tls_handshakes_of_addresses_take_turns(certificate):
    """One address has 200 hellos at the server before two others send theirs. In each turn the
    server accepts 64 connections and makes two steps, so few of the 200 are answered before theirs.
    With a chance of 1 in 256 an address shares the queue of the first, so the better of two counts.
    """
    hello = client_hello()
    with TlsServer(certificate, loops=1) as server, select.epoll() as ready:
        server.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, server.process.pid, os.WSTOPPED | os.WNOWAIT)
        sockets = []
        for source in ["127.0.0.1"] * 200 + ["127.0.0.2", "127.0.0.3"]:
            sockets.append(socket.create_connection(("127.0.0.1", server.port), 60 * f.SLOW,
                                                    (source, 0)))
            sockets[-1].sendall(hello)
            ready.register(sockets[-1], select.EPOLLIN)
        server.process.send_signal(signal.SIGCONT)
        assert all(s.recv(1, socket.MSG_PEEK) for s in sockets)
        # The kernel has listed the sockets in the order in which their first bytes have arrived.
        order = [fd for fd, _ in ready.poll(0, 2 * len(sockets))]
        assert len(order) == len(sockets)
        assert min(order.index(s.fileno()) for s in sockets[-2:]) < 60
        for s in sockets:
            s.close()


def test_invalid_tls_handshakes_are_closed_and_counted(certificate):
    """Plain HTTP/2, HTTP/1.1, garbage, alerts and truncated hellos are closed and counted; slow
    ones are closed in time."""
    hello = client_hello()
    cases = {
        "plain HTTP/2": f.PREFACE + f.settings(), "plain HTTP/1.1": GET + b"\r\n",
        "garbage": b"PAYLOAD" * 1000, "zeros": b"\0" * 1000,
        "an alert": bytes.fromhex("15030300020228"),
        "a record that is too long": b"\x16\x03\x01\xff\xff" + b"x" * 1000,
        "an old version": bytes([hello[0], 3, 0]) + hello[3:9] + b"\x03\x00" + hello[11:],
        "a hello with damage": hello[:40] + b"\xff" * 60 + hello[100:],
        "data before the handshake": b"\x17\x03\x03\x00\x05hello",
    }
    with TlsServer(certificate, handshake_ms=700) as server:
        before = server.refusals()
        descriptors = server.descriptors()
        for octets in cases.values():
            connect(server, octets)
        for cut in range(0, len(hello), max(1, len(hello) // 40)):
            with socket.create_connection(("127.0.0.1", server.port)) as s:
                s.sendall(hello[:cut])
        slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(4)]
        for s, size in zip(slow, (0, 1, 5, len(hello) - 1)):
            s.sendall(hello[:size])
        with server.secret_peer() as peer:  # a bystander
            for s in slow:
                s.settimeout(10 * f.SLOW)
                assert closes(s)
                s.close()
            assert peer.ask(m.INFO, b"").status == m.OK
        until = time.monotonic() + 5 * f.SLOW
        while server.descriptors() > descriptors and time.monotonic() < until:
            time.sleep(0.01)
        assert server.descriptors() <= descriptors
        hit = {k: v - before[k] for k, v in server.refusals().items() if v != before[k]}
        assert hit["tls"] >= len(cases) and hit["handshake"] == len(slow), hit


def test_long_client_hello_is_refused_with_its_reason(certificate):
    """The length in the first nine bytes is enough."""
    with TlsServer(certificate) as server:
        before = server.refusals()["tls"]
        with socket.create_connection(("127.0.0.1", server.port), 10 * f.SLOW) as s:
            s.sendall(bytes.fromhex("16030140000100ffff"))
            assert closes(s)
        assert server.refusals()["tls"] == before + 1
        assert 'reason=tls' in server.said()
        assert 'note="the ClientHello has more than 16 KiB"' in server.said()


def closes(s):
    try:
        while s.recv(4096):
            pass
    except ConnectionResetError:
        pass
    return True


def client_hello():
    """The first bytes of a TLS client."""
    context = ssl.create_default_context()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def test_floods_under_tls(certificate):
    """The same as without TLS: a flood of pings, a header bomb, an incomplete message."""
    with TlsServer(certificate) as server:
        with server.secret_peer() as peer:
            peer.flood(f.ping() * 20000)
            assert peer.gone() and peer.goaway in (f.ENHANCE_YOUR_CALM, None)
        for cut in (1, 5, 9, 20, 60):
            with server.secret_peer() as peer:
                stream = peer.open(m.INSERT)
                peer.send(f.data(stream, f.message(m.one(1)))[:cut])
        with server.secret_peer() as peer:
            assert peer.ask(m.INFO, b"").status == m.OK
        assert server.refusals()["abuse"] == 1


@pytest.fixture(scope="session")
def tokens(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokens") / "tokens"
    lines = [f"{role} {role}-name sha256:{hashlib.sha256(f'{role}-token'.encode()).hexdigest()}\n"
             for role in ("read", "write", "admin")]
    path.write_text("".join(lines))
    path.chmod(0o600)
    return path


def bearer(token):
    return [("authorization", f"Bearer {token}")]


def test_guessing_tokens_is_rate_limited(tokens):
    """After ten wrong tokens in a row, the address is refused for a while, even with a correct
    token. Open calls continue."""
    server = Server(arguments=("--tokens", tokens), token="admin-token")
    server.source = "127.0.0.2"  # pages are requested from another address
    refusals = lambda: {k: v for k, v in server.refusals().items() if v and ":" not in k}
    with server.peer() as known, server.peer() as peer:
        assert known.ask(m.INFO, b"", more=bearer("read-token")).status == m.OK
        for i in range(10):
            call = peer.ask(m.INFO, b"", more=bearer(f"PAYLOAD{i}"))
            assert call.status == m.UNAUTHENTICATED and "PAYLOAD" not in call.text
        assert refusals() == {"unauthenticated": 10}
        cpu = server.cpu()
        for i in range(300):
            call = peer.ask(m.INFO, b"", more=bearer(f"PAYLOAD{i}"))
            assert call.status == m.UNAUTHENTICATED
        assert SANITIZER or server.cpu() - cpu < 0.2
        call = peer.ask(m.INFO, b"", more=bearer("admin-token"))
        assert call.status == m.UNAUTHENTICATED and "try again" in call.text
        assert known.ask(m.INFO, b"", more=bearer("read-token")).status == m.OK
        hit = refusals()
        assert hit["auth_brake"] >= 295 and sum(hit.values()) == 311, hit
    wrong = server.stop()
    assert not wrong, wrong


def test_accepted_tokens_stay_exempt_from_the_brake_after_a_reload(tokens):
    """A connection that uses two tokens in turn is not refused for the guesses of another one of
    its address, before a reload or after it. Another connection is."""
    server = Server(arguments=("--tokens", tokens), token="admin-token")
    server.source = "127.0.0.2"  # pages are requested from another address
    with server.peer() as known, server.peer() as other:
        for role in ("read", "write"):
            assert known.ask(m.INFO, b"", more=bearer(f"{role}-token")).status == m.OK
        for _ in range(2):
            for i in range(20):
                call = other.ask(m.INFO, b"", more=bearer(f"PAYLOAD{i}"))
                assert call.status == m.UNAUTHENTICATED
            for role in ("read", "write", "read"):
                assert known.ask(m.INFO, b"", more=bearer(f"{role}-token")).status == m.OK
            call = other.ask(m.INFO, b"", more=bearer("read-token"))
            assert call.status == m.UNAUTHENTICATED and "try again" in call.text
            server.process.send_signal(signal.SIGHUP)
            until = time.monotonic() + 10 * f.SLOW
            while "event=reloaded" not in server.said() and time.monotonic() < until:
                time.sleep(0.005)
            assert "event=reloaded" in server.said(), server.said()
    wrong = server.stop()
    assert not wrong, wrong


@pytest.mark.parametrize("value", [
    "", "Bearer", "Bearer ", "bearer read-token", "Basic cmVhZC10b2tlbg==", "Bearer  read-token",
    "Bearer read-token ", "Bearer read-token\t", "Bearer " + "x" * 2000, "Bearer \x80\xff",
    "Bearer read-token,Bearer admin-token"], ids=range(11))
def test_malformed_tokens_are_refused(attack, tokens, value):
    target = attack(arguments=("--tokens", tokens), token="admin-token")
    with target.peer() as peer:
        call = peer.ask(m.RESET, m.octets(1, "a"), more=[("authorization", value)])
        assert call.status in (m.UNAUTHENTICATED, m.DENIED) or call.reset, call


def test_each_role_is_limited_to_its_methods(attack, tokens):
    target = attack(arguments=("--tokens", tokens), token="admin-token")
    with target.peer() as peer:
        for path in (m.INSERT, m.SAMPLE, m.MUTATE, m.RESET, m.INFO, m.CHECKPOINT,
                     "/reprise.v1.Replay/CreateTable", "/reprise.v1.Replay/Delete"):
            stream = peer.open(path)
            assert peer.result(stream).status == m.UNAUTHENTICATED, path
        for path in (m.INSERT, m.MUTATE, m.RESET):
            stream = peer.open(path, more=bearer("read-token"))
            assert peer.result(stream).status == m.DENIED, path
        stream = peer.open(m.RESET, more=bearer("write-token"))
        assert peer.result(stream).status == m.DENIED
    hit = target.limits_hit()
    assert hit == {"unauthenticated": 8, "denied": 4}
