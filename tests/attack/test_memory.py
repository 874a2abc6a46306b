# SPDX-License-Identifier: Apache-2.0
"""More data than memory, and names of tables that try to break out of their context."""

import json
import resource
import time

import pytest

import frames as f
import messages as m
from target import MARK, SANITIZER

MIB = 1 << 20
BUDGET = 8 * MIB


def offer(target, peer, stream, count, row_bytes=100000):
    """Sends `count` items of that size. Stops when the stream is over, or no more are confirmed."""
    for key in range(count):
        peer.write(stream, m.one(key, row_bytes=row_bytes))
        if not peer.until(lambda: len(peer.calls[stream].body) > 4 or peer.calls[stream].over, 1):
            return "waits"
        if peer.calls[stream].over:
            return peer.calls[stream].status
        peer.calls[stream].messages()
    return "all in"


@pytest.mark.parametrize("policy, end", [("evict", "all in"), ("block", "waits"),
                                         ("reject", m.EXHAUSTED)])
def test_chunks_have_a_budget(attack, policy, end):
    """Inserts four times as much as fits. Depending on the policy, the oldest items are evicted, or
    the writer waits, or it gets a status. The bystander's table shares the budget, so it could
    continue in the first case only; here it rests."""
    target = attack(arguments=("--max-bytes", BUDGET, "--policy", policy), busy=False)
    target.may_change = True
    with target.peer() as peer:
        stream = peer.open(m.INSERT)
        assert offer(target, peer, stream, 4 * BUDGET // 100000) == end
        assert target.metrics()["store_bytes"] <= BUDGET
        assert peer.ask(m.SAMPLE, m.sample("a", 10, 0)).status == m.OK
        assert peer.ask(m.RESET, m.octets(1, "a")).status == m.OK
        if policy == "block":  # once there is room, the waiting item is inserted
            assert m.confirmed(peer.reply(stream))
            peer.send(f.rst(stream))
            assert peer.ask(m.RESET, m.octets(1, "a")).status == m.OK
    assert set(target.limits_hit()) <= {"memory"}


def test_items_drawn_by_waiting_samples_are_accounted(attack):
    """Calls that wait for more items than there will ever be, on a table that gives each item once,
    and that do not read. Items that they have drawn are in no table. Every item that was inserted
    must be in a table, or be counted as queued, or be in flight within a window."""
    queued, size, count = 16 * MIB, 100000, 500
    target = attack(limits={"queued_bytes": queued}, busy=False,
                    arguments=("--max-bytes", BUDGET, "--policy", "block",
                               "--table", "once:queue:10000"))
    target.may_change = True
    target.may_grow = BUDGET + 2 * queued
    with target.peer(windows=False) as reader, target.peer() as peer:
        for _ in range(4):
            reader.write(reader.open("/reprise.v1.Replay/Sample"),
                         m.octets(1, "once") + m.number(2, 10000), end=True)
        for _ in range(4):
            reader.write(reader.open(m.SAMPLE), m.sample("once", 10000))
        assert peer.echo() and reader.echo()
        stream, let_in = peer.open(m.INSERT), 0
        for key in range(count):
            peer.write(stream, m.one(key, "once", row_bytes=size))
            if not peer.until(lambda: len(peer.calls[stream].body) > 4, 2):
                break
            peer.calls[stream].messages()
            let_in += 1
        metrics = target.metrics()
        assert let_in < count, "it had all of them"
        assert metrics["store_bytes"] <= BUDGET
        assert metrics["queued_bytes"] <= queued + 2 * MIB
        assert let_in * size <= metrics["store_bytes"] + metrics["queued_bytes"] + MIB
    with target.peer() as peer:
        assert peer.ask(m.RESET, m.octets(1, "once")).status == m.OK


@pytest.mark.skipif(SANITIZER is not None, reason="a sanitizer has an address space of its own")
def test_failed_allocations_end_calls_and_not_the_server(attack):
    """With an address space of 700 MiB and halves of messages of 40 MiB, some calls get a status.
    The server continues, and their memory is freed."""

    def cramped():
        resource.setrlimit(resource.RLIMIT_AS, (700 * MIB, 700 * MIB))

    target = attack(fresh=True, before=cramped, arguments=("--loops", "2"))
    part = b"\0" * 16384
    with target.peer() as peer:
        assert peer.echo()
        streams = [peer.open(m.INSERT) for _ in range(24)]
        for stream in streams:
            peer.send(f.data(stream, f.message(b"", length=40 * MIB)))
            peer.flood(b"".join(f.data(stream, part) for _ in range(128)), 5)  # 2 MiB
            for _ in range(18):
                peer.take(0)
                if peer.calls[stream].over:
                    break
                peer.flood(b"".join(f.data(stream, part) for _ in range(128)), 5)
            if peer.closed:
                break
        peer.until(lambda: False, 0.3)
        over = [peer.calls[s] for s in streams if peer.calls[s].over]
        assert peer.closed or over, "it had all of it"
        assert all(call.status in (m.EXHAUSTED, None) for call in over)
    until = time.monotonic() + 10
    while target.metrics()["queued_bytes"] > 65536 and time.monotonic() < until:
        time.sleep(0.05)


NAMES = ['x"} 1\nevil 2\n', "x\\", "x\"", "\x1b[31mred", "x\u2028y", "{table=\"a\"}", " ", "\U0001f600",
         "%s%n%x", "x" * 1024, "../../etc/passwd", "</script>", f"\n{MARK}=1"]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_table_names_cannot_inject_into_outputs(attack, name):
    """A table may have any name; metrics, JSON, logs and statuses must show it as a name only."""
    target = attack()
    before = set(target.metrics())
    with target.peer() as peer:
        ours = "/reprise.v1.Replay/"
        call = peer.ask(ours + "CreateTable", m.octets(1, m.octets(1, name) + m.number(4, 5)))
        assert call.status in (m.OK, m.INVALID), call
        if call.status == m.OK:
            new = set(target.metrics()) - before
            assert new and all(n.startswith(("table_", "limit")) for n in new), new
            assert "evil" not in {n.split("{")[0] for n in target.metrics()}
            tables = json.loads(target.page("/v1/info"))["tables"]
            assert name in [table["name"] for table in tables]
            assert peer.ask(ours + "DropTable", m.octets(1, name)).status == m.OK
        for path in (m.SAMPLE, m.RESET):
            call = peer.ask(path, m.octets(1, name) + (m.number(2, 1) if path == m.SAMPLE else b""))
            assert call.status in (m.NOT_FOUND, m.INVALID)
            assert call.text.isprintable() and len(call.text) <= 400


def test_initialize_connection_reveals_no_address(attack):
    """The call that returns a pointer in Reverb, with the correct process id."""
    target = attack()
    with target.peer() as peer:
        for pid in (target.process.pid, 0, -1, 2**63 - 1):
            for table in ("a", "PAYLOAD", ""):
                stream = peer.open(m.INITIALIZE)
                peer.write(stream, m.number(1, pid) + m.octets(2, table))
                assert peer.reply(stream) == b""
                peer.send(f.rst(stream))
