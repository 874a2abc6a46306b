# SPDX-License-Identifier: Apache-2.0
"""Requests for pages and changes over HTTP/1.1 and HTTP/2: hostile names, long paths, bodies that are
too large or never end, missing confirmations, wrong roles, and many readers at once."""

import hashlib
import json
import selectors
import socket
import urllib.parse

import frames as f
import messages as m
import pytest

OURS = "/reprise.v1.Replay/"
BODY_BYTES = 64 << 10
HOSTILE = "</script><script>alert(1)</script>\"'\\\n\x1b[2J%2F../..\u202e"


def quote(name):
    return urllib.parse.quote(name, safe="")


def read_response(s):
    """Reads one response with a Content-Length. Returns its status, its headers in lower case and
    its body."""
    got = b""
    while b"\r\n\r\n" not in got:
        part = s.recv(1 << 16)
        if not part:
            return None, {}, got
        got += part
    head, _, body = got.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    fields = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines[1:])}
    while len(body) < int(fields.get("content-length", 0)):
        part = s.recv(1 << 16)
        if not part:
            break
        body += part
    return int(lines[0].split()[1]), fields, body


def connect(target):
    s = socket.create_connection(("127.0.0.1", target.port), 30 * f.SLOW)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def ask1(target, method, path, body=None, **fields):
    """Makes a request over HTTP/1.1."""
    lines = [f"{method} {path} HTTP/1.1", "Host: x"]
    lines += [f"{k.replace('_', '-')}: {v}" for k, v in fields.items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    with connect(target) as s:
        s.sendall("\r\n".join(lines + ["", ""]).encode() + (body or b""))
        return read_response(s)


def ask2(target, method, path, body=None, **fields):
    """Makes a request over HTTP/2."""
    more = [(k.replace("_", "-"), v) for k, v in fields.items()]
    if body is not None:
        more.append(("content-length", str(len(body))))
    with target.peer() as peer:
        stream = peer.open(path, end=body is None, more=more, method=method, te=None,
                           content_type="application/json")
        if body is not None:
            peer.until(lambda: any(x.type == f.SETTINGS for x in peer.frames))
            parts = range(0, len(body) or 1, 16384)
            peer.send(b"".join(f.data(stream, body[at:at + 16384], at + 16384 >= len(body))
                               for at in parts))
        call = peer.result(stream)
        return int(call.fields.get(":status", 0)), call.fields, bytes(call.body)


ASKS = pytest.mark.parametrize("ask", [ask1, ask2], ids=["http1", "http2"])


def create(target, name):
    with target.peer() as peer:
        call = peer.ask(OURS + "CreateTable", m.octets(1, m.octets(1, name) + m.number(4, 10)))
        assert call.status in (m.OK, m.ALREADY_EXISTS), call.text
    target.may_change = True


@ASKS
def test_hostile_names_are_data(attack, ask):
    """The name leads to the table, is JSON, and no response can be taken for HTML."""
    target = attack()
    create(target, HOSTILE)
    status, fields, body = ask(target, "GET", f"/v1/tables/{quote(HOSTILE)}")
    page = json.loads(body)
    assert status == 200 and page["name"] == HOSTILE and page["path"].endswith(quote(HOSTILE))
    info = json.loads(ask(target, "GET", "/v1/info")[2])
    assert HOSTILE in [table["name"] for table in info["tables"]]
    status, fields, body = ask(target, "POST", f"/v1/tables/{quote(HOSTILE)}/pause", b"",
                               x_reprise_confirm=quote(HOSTILE))
    assert status == 200 and HOSTILE in json.loads(body)["done"]
    assert fields["content-type"] == "application/json"
    assert fields["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in fields["content-security-policy"]
    assert not [name for name in fields if name.startswith("access-control")]
    page = json.loads(ask(target, "GET", f"/v1/tables/{quote(HOSTILE)}")[2])
    assert page["inserts_paused"] and page["samples_paused"]


@ASKS
@pytest.mark.parametrize("name", [
    "%", "%4", "%zz", "a%00b", "", "A" * 256, "%41" * 256, "A" * 3000])
def test_malformed_names_are_refused(attack, ask, name):
    target = attack()
    for path in (f"/v1/tables/{name}", f"/v1/tables/{name}/items/1"):
        status, _, body = ask(target, "GET", path)
        assert status in (400, 404, 414) and len(body) < 1000
    status, _, body = ask(target, "POST", f"/v1/tables/{name}/reset", b"", x_reprise_confirm="a")
    assert status in (400, 404, 414) and len(body) < 1000


def test_a_name_of_a_megabyte_ends_the_request(attack):
    target = attack()
    with connect(target) as s:
        try:
            s.sendall(b"GET /v1/tables/" + b"A" * (1 << 20) + b" HTTP/1.1\r\nHost: x\r\n\r\n")
            status = read_response(s)[0]
        except OSError:  # it was closed while the name was being sent
            status = None
        assert status in (None, 414, 431)
    with target.peer() as peer:
        stream = peer.stream()
        block = f.request_block("/v1/tables/" + "A" * (1 << 20), method="GET")
        peer.flood(f.headers(stream, block[:16384], True, True) + b"".join(
            f.continuation(stream, block[at:at + 16384], at + 16384 < len(block))
            for at in range(16384, len(block), 16384)))
        assert peer.until(lambda: peer.closed or peer.goaway is not None
                          or peer.calls[stream].over)
    assert target.page("/healthz") == "serving\n"


@ASKS
def test_a_change_needs_post_and_a_confirmation(attack, ask):
    target = attack()
    for verb in ("pause", "resume", "reset", "alter"):
        status, fields, _ = ask(target, "GET", f"/v1/tables/a/{verb}", x_reprise_confirm="a")
        assert status == 405 and fields["allow"] == "POST"
        for confirm in ({}, {"x_reprise_confirm": "b"}, {"x_reprise_confirm": ""}):
            status, _, body = ask(target, "POST", f"/v1/tables/a/{verb}", b"{}", **confirm)
            assert status == 400 and "x-reprise-confirm" in json.loads(body)["error"]
    assert ask(target, "GET", "/v1/checkpoint")[0] == 405
    assert ask(target, "POST", "/v1/checkpoint", b"")[0] == 400
    assert ask(target, "POST", "/v1/info", b"")[0] == 405
    assert ask(target, "POST", "/v1/none", b"")[0] == 404
    info = json.loads(target.page("/v1/info"))
    table, = [t for t in info["tables"] if t["name"] == "a"]
    assert not table["inserts_paused"] and not table["samples_paused"]


@ASKS
def test_large_and_malformed_bodies_are_refused(attack, ask):
    target = attack()
    for body, expected in ((b"{" * 1000, 400), (b"[" * BODY_BYTES, 400), (b"\0" * 10, 400),
                           (b'{"max_size":1e999}', 400), (b" " * BODY_BYTES, 400),
                           (b'{"max_sise":1}', 400), (b'{"max_size":0}', 400),
                           (b" " * (BODY_BYTES + 1), 413), (b" " * (8 * BODY_BYTES), 413)):
        try:
            status, _, answer = ask(target, "POST", "/v1/tables/a/alter", body,
                                    x_reprise_confirm="a")
        except OSError:  # over HTTP/1.1, the response may be lost with the rest of the body
            status, answer = None, b""
        assert status in (expected, None if expected == 413 else expected)
        assert not answer or "error" in json.loads(answer)


def test_a_body_that_never_ends_is_cut(attack):
    """Over HTTP/1.1 in chunks, and over HTTP/2 without a length."""
    target = attack()
    with connect(target) as s:
        s.sendall(b"POST /v1/tables/a/alter HTTP/1.1\r\nHost: x\r\nx-reprise-confirm: a\r\n"
                  b"Transfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(1000):
                s.sendall(b"1000\r\n" + b" " * 4096 + b"\r\n")
            cut = read_response(s)[0] is None
        except OSError:
            cut = True
        assert cut
    with target.peer() as peer:
        stream = peer.open("/v1/tables/a/alter", more=[("x-reprise-confirm", "a")],
                           content_type="application/json")
        call = peer.result(stream)
        assert call.fields[":status"] == "411"


@pytest.mark.parametrize("length, body", [("5", b"{}"), ("2", b"{}   "), ("0", b"{}"), ("x", b"{}")])
def test_a_body_of_another_length_ends_the_request(attack, length, body):
    """Over HTTP/2 a body must have the announced length."""
    target = attack()
    with target.peer() as peer:
        stream = peer.open("/v1/tables/a/resume", content_type="application/json",
                           more=[("x-reprise-confirm", "a"), ("content-length", length)])
        peer.send(f.data(stream, body, True))
        call = peer.result(stream)
        assert call.reset is not None or call.fields[":status"] in ("200", "411")
        assert call.fields.get(":status") != "200" or length == "0"
    assert ask2(target, "POST", "/v1/tables/a/resume", b"{}", x_reprise_confirm="a")[0] == 200


def test_bodies_that_do_not_arrive_keep_nobody_out(attack):
    """More requests begin a body than may at once; one that is complete is still handled after they
    have gone."""
    target = attack()
    readers = [connect(target) for _ in range(40)]
    for s in readers:
        s.sendall(b"POST /v1/tables/a/resume HTTP/1.1\r\nHost: x\r\nx-reprise-confirm: a\r\n"
                  b"Content-Length: 10\r\n\r\n{")
    assert target.page("/healthz") == "serving\n"
    for s in readers:
        s.close()
    status = None
    for _ in range(1000):
        status, _, _ = ask1(target, "POST", "/v1/tables/a/resume", b"{}", x_reprise_confirm="a")
        if status == 200:
            break
    assert status == 200


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokens") / "tokens"
    path.write_text("".join(
        f"{role} {role} sha256:{hashlib.sha256(f'{role}-token'.encode()).hexdigest()}\n"
        for role in ("read", "write", "admin")))
    path.chmod(0o600)
    return path


@ASKS
def test_each_role_has_its_requests(attack, tokens, ask):
    target = attack(arguments=("--tokens", tokens), token="admin-token")
    change = ("POST", "/v1/tables/a/resume", b"{}")
    for path in ("/v1/info", "/v1/info?after=0", "/v1/clients", "/v1/tables/a",
                 "/v1/tables/a/items/1", "/metrics"):
        assert ask(target, "GET", path)[0] == 401
        assert ask(target, "GET", path, authorization="Bearer read-token")[0] in (200, 404)
    assert ask(target, *change, x_reprise_confirm="a")[0] == 401
    for token, status in (("read-token", 403), ("write-token", 403), ("admin-token", 200)):
        assert ask(target, *change, x_reprise_confirm="a",
                   authorization=f"Bearer {token}")[0] == status
    assert ask(target, "GET", f"/v1/tables/{quote(HOSTILE)}?token=admin-token")[0] == 401


def test_two_tokens_in_one_request_are_refused(attack, tokens):
    """Over both protocols, and in calls: which of them counts is not defined."""
    target = attack(arguments=("--tokens", tokens), token="admin-token")
    twice = [("authorization", "Bearer read-token"), ("authorization", "Bearer admin-token")]
    for values in (twice, twice[::-1], [("authorization", ""), twice[1]]):
        with target.peer() as peer:
            stream = peer.open("/metrics", end=True, more=values, method="GET", te=None)
            assert peer.result(stream).fields[":status"] == "400"
        with target.peer() as peer:
            call = peer.ask(m.RESET, m.octets(1, "a"), more=values)
            assert call.status == m.INVALID
        with connect(target) as s:
            lines = "".join(f"{k}: {v}\r\n" for k, v in values)
            s.sendall(f"GET /metrics HTTP/1.1\r\nHost: x\r\n{lines}\r\n".encode())
            assert read_response(s)[0] == 400


def test_slow_bodies_keep_no_change_out(attack, tokens):
    """A client of the role write begins many bodies and sends nothing more."""
    target = attack(arguments=("--tokens", tokens), token="admin-token")
    slow = [connect(target) for _ in range(100)]
    for s in slow:
        s.sendall(b"POST /v1/runs/a HTTP/1.1\r\nHost: x\r\nx-reprise-confirm: a\r\n"
                  b"Authorization: Bearer write-token\r\nContent-Length: 60000\r\n\r\n{")
    for _ in range(3):
        assert ask1(target, "POST", "/v1/tables/a/resume", b"{}", x_reprise_confirm="a",
                    authorization="Bearer admin-token")[0] == 200
    for s in slow:
        s.close()


def test_strangers_do_not_close_connections_that_wait(attack, tokens):
    """Clients without a token begin more requests than there may be connections."""
    target = attack(arguments=("--tokens", tokens), token="admin-token")
    with connect(target) as reader:
        for _ in range(2):  # the first page comes at once, the second waits for its second
            reader.sendall(b"GET /v1/info?after=99999999 HTTP/1.1\r\nHost: x\r\n"
                           b"Authorization: Bearer read-token\r\n\r\n")
            strangers = [connect(target) for _ in range(400)]
            for s in strangers:
                s.sendall(b"GET /healthz HTTP/1.1\r\n")
            assert read_response(reader)[0] == 200
            for s in strangers:
                s.close()


def test_waiting_readers_keep_no_other_page_out(attack):
    """Three connections wait for the next live page with more requests than may wait."""
    target = attack()
    peers = [target.peer() for _ in range(3)]
    for peer in peers:
        for _ in range(500):
            peer.open("/v1/info?after=99999999", end=True, method="GET", te=None)
    for _ in range(5):
        assert ask1(target, "GET", "/metrics")[0] == 200
        assert ask2(target, "GET", "/v1/clients")[0] == 200
    for peer in peers:
        peer.close()


def test_live_pages_are_made_once_for_all_readers(attack):
    """A hundred readers ask for the next page three times each. Each page is made once, and all get
    the same bytes: readers of one page may be spread over two, if they came while it was made."""
    target = attack(fresh=True)
    readers, rounds = [connect(target) for _ in range(100)], 3
    request = b"GET /v1/info?after=%d HTTP/1.1\r\nHost: x\r\n\r\n"
    first = json.loads(target.page("/v1/info"))["page"]
    got, waits = {}, selectors.DefaultSelector()
    for s in readers:
        waits.register(s, selectors.EVENT_READ, rounds)
        s.sendall(request % first)
    while waits.get_map():
        for key, _ in waits.select(30 * f.SLOW):
            status, _, body = read_response(key.fileobj)
            page = json.loads(body)
            assert status == 200 and got.setdefault(page["page"], body) == body
            if key.data == 1:
                waits.unregister(key.fileobj)
            else:
                waits.modify(key.fileobj, selectors.EVENT_READ, key.data - 1)
                key.fileobj.sendall(request % page["page"])
    for s in readers:
        s.close()
    made = json.loads(target.page("/v1/info"))["page"] - first - 1
    assert rounds <= made <= 2 * rounds and len(got) == made
    times = [json.loads(body)["server"]["uptime_seconds"] for _, body in sorted(got.items())]
    assert all(later - earlier >= 0.99 for earlier, later in zip(times, times[1:]))
    assert not target.limits_hit()


@ASKS
def test_clients_name_who_waits(attack, ask):
    target = attack()
    with target.peer() as peer:
        stream = peer.open(m.SAMPLE)
        peer.write(stream, m.sample("empty"))
        address = "%s:%d" % peer.socket.getsockname()
        calls = []
        for _ in range(1000):  # until the call waits
            calls = json.loads(ask(target, "GET", "/v1/tables/empty")[2])["waiting"]["calls"]
            if calls:
                break
        assert [call["client"] for call in calls] == [address]
        clients = json.loads(ask(target, "GET", "/v1/clients")[2])["clients"]
        mine, = [c for c in clients if c["address"] == address]
        assert mine["waits_for"] == "to sample 'empty'" and mine["calls"] == 1
        assert mine["protocol"] == "HTTP/2" and mine["bytes_in"] > 0
