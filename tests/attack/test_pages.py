# SPDX-License-Identifier: Apache-2.0
"""Pages about tables whose names are as long as possible on a page, and clients that read pages
slowly or request many."""

import socket

import frames as f
import messages as m
from target import IS_SHORT, TABLES

OURS = "/reprise.v1.Replay/"
LONG = 300  # tables
READERS = 20 if IS_SHORT else 40  # that do not read


def most_bytes():
    """Returns the most bytes that a page about all tables may have."""
    return (1 << 20) + (LONG + len(TABLES)) * (16 << 10)


def crowded(attack):
    """Returns a target with many tables whose names are control characters."""
    target = attack(arguments=("--loops", "1"), limits={"stall_ms": 600000, "queued_bytes": "1GiB",
                                                         "connection_queued_bytes": "1GiB"})
    with target.peer() as peer:
        for i in range(LONG):
            name = "\1" * 248 + f"{i:07d}"
            call = peer.ask(OURS + "CreateTable",
                            m.octets(1, m.octets(1, name) + m.number(4, 10)))
            assert call.status in (m.OK, m.ALREADY_EXISTS), call.text
    target.may_change = True
    return target


def ask(target, path):
    """Returns a socket that has requested a page over HTTP/1.1, with a small receive buffer."""
    s = socket.socket()
    s.settimeout(60 * f.SLOW)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(("127.0.0.1", target.port))
    s.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return s


def test_pages_are_bounded_and_count_omitted_tables(attack):
    target = crowded(attack)
    for path in ("/metrics", "/v1/info"):
        assert len(target.page(path).encode()) <= most_bytes()
    metrics = target.metrics()
    assert 0 < metrics["page_tables_left_out"] < LONG
    assert metrics["tables"] == LONG + len(TABLES)
    assert metrics['table_size{table="bystander"}'] > 0


def test_many_pages_at_once_over_http2_are_all_there(attack):
    """No page is refused because others were requested at the same time, and no page is made on the
    loop that the bystander uses."""
    target = crowded(attack)
    with target.peer(pairs=[(f.INITIAL_WINDOW, 1 << 24)]) as peer:
        peer.send(f.window(0, 1 << 30))
        streams = [peer.open("/metrics", end=True, method="GET") for _ in range(8 if IS_SHORT else 20)]
        calls = [peer.result(s, 60 * f.SLOW) for s in streams]
    assert {call.fields[":status"] for call in calls} == {"200"}
    assert not target.limits_hit()


def test_slow_readers_of_pages_do_not_delay_others(attack):
    """Many clients that do not read hold a few pages, the connections of the oldest are closed,
    and /healthz is always served. When the server is stopped, the test checks that it ends in
    time."""
    target = crowded(attack)
    readers = []
    for _ in range(READERS):
        readers.append(ask(target, "/metrics"))
        assert readers[-1].recv(1)  # the page was made
        assert target.page("/healthz") == "serving\n"
    assert target.limits_hit()["page_connections"] >= READERS - 10
    for s in readers:
        s.close()
