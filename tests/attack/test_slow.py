# SPDX-License-Identifier: Apache-2.0
"""Slow peers: in sending, at each stage, and in reading.

The server checks once a second which peers are too slow, so every limit below is exceeded by at
most two seconds. Many peers are slow at the same time, so that the tests are fast."""

import time

import frames as f
import messages as m
from target import SANITIZER

TIMES = {"handshake_ms": 500, "message_grace_ms": 1000, "stall_ms": 1500}
PINGS = {"ping_ms": 400, "ping_timeout_ms": 1000}
LATE = 2.5 * (2 if SANITIZER else 1)  # seconds after which a limit must have been enforced


def begun(target, path, octets=b"", **options):
    """Returns a peer with an open call. `octets` are sent after its headers, on stream 1."""
    peer = target.peer(**options)
    stream = peer.open(path)
    assert stream == 1
    peer.send(octets)
    return peer


def all_gone(peers, within):
    """Returns the peers that are not closed in time. They respond to pings meanwhile."""
    until = time.monotonic() + within * f.SLOW
    left = dict(peers)
    while left and time.monotonic() < until:
        for name, peer in list(left.items()):
            peer.take(0.01)
            if peer.closed:
                del left[name]
    return set(left)


def queued(target, least):
    """Waits until at least `least` bytes wait for slow readers, and returns their number. Samples
    may be drawn a moment after the request for them was read."""
    until = time.monotonic() + 5 * f.SLOW
    while True:
        held = target.metrics()["queued_bytes"]
        if held >= least or time.monotonic() > until:
            return held


class Dribble:
    """Sends bytes one at a time on several connections."""

    def __init__(self, what):
        self.left = {peer: bytearray(octets) for peer, octets in what.items()}

    def step(self):
        for peer, octets in self.left.items():
            if octets:
                peer.send(bytes(octets[:1]))
                del octets[:1]


def test_slow_senders_at_each_stage(attack):
    """Some stop, some send a byte now and then. All are closed, and counted by the stage in which
    they were late. They do not delay each other."""
    target = attack(limits=TIMES)
    message = f.message(m.one(1))
    block = f.request_block(m.INFO)
    handshake = {
        "nothing at all": target.peer(greet=False),
        "a byte of the preface": target.peer(greet=False),
        "three bytes of the preface": target.peer(greet=False),
        "half of the preface": target.peer(greet=False),
        "the preface, no settings": target.peer(greet=False),
        "half of the settings": target.peer(greet=False),
        "headers without end": target.peer(),
        "half a frame of headers": target.peer(),
        "half of a request line": target.peer(greet=False),
    }
    handshake["a byte of the preface"].send(b"P")
    handshake["three bytes of the preface"].send(b"PRI")
    handshake["half of the preface"].send(f.PREFACE[:12])
    handshake["the preface, no settings"].send(f.PREFACE)
    handshake["half of the settings"].send(f.PREFACE + f.settings([(1, 1)])[:12])
    rest = f.continuation(1, f.fields([("x", "v" * 99)]), more=True)
    handshake["headers without end"].send(f.headers(1, block, more=True) + rest[:9])
    handshake["half a frame of headers"].send(f.headers(1, block)[:40])
    handshake["half of a request line"].send(b"GET /he")
    pages = {"half of a request line": handshake.pop("half of a request line")}
    slow = {
        "a byte of a prefix": begun(target, m.INSERT, f.data(1, message[:1])),
        "a prefix": begun(target, m.INSERT, f.data(1, message[:5])),
        "half a message": begun(target, m.INSERT, f.data(1, message[:-1])),
        "half a frame of a message": begun(target, m.INSERT, f.data(1, message)[:30]),
        "half a request": begun(target, m.INFO, f.data(1, b"\0\0")),
    }
    dribble = Dribble({
        handshake["the preface, no settings"]: f.settings([(1, 1), (2, 0)]) * 10,
        handshake["headers without end"]: rest[9:],
        slow["half a frame of a message"]: f.data(1, message)[30:60],
    })
    peers = {**handshake, **slow}
    for peer in peers.values():
        peer.mute = True  # a response would be in the middle of what they have begun
    until = time.monotonic() + (1.0 + LATE) * f.SLOW
    left = set(peers)
    while left and time.monotonic() < until:
        dribble.step()
        left = all_gone({name: peers[name] for name in left}, 0.1 / f.SLOW)
    assert not left
    for peer in [*peers.values(), *pages.values()]:
        peer.close()
    assert target.limits_hit() == {"handshake": len(handshake), "slow_message": len(slow)}


def test_idle_and_waiting_peers_are_kept(attack):
    """Connections without calls, calls without messages, samplers and writers that wait for their
    tables, and messages that make progress are never closed."""
    target = attack(limits={**TIMES, **PINGS})
    target.may_change = True
    filler = begun(target, m.INSERT)
    for key in (1, 2):
        filler.write(1, m.one(key, "queue"))
        filler.reply(1)
    quiet = {
        "nothing to say": target.peer(),
        "a call without a message": begun(target, m.INSERT),
        "a sampler that waits": begun(target, m.SAMPLE, f.data(1, f.message(m.sample("empty")))),
        "a writer that waits": begun(target, m.INSERT,
                                     f.data(1, f.message(m.one(3, "queue")))),
        "a watcher": begun(target, m.WATCH, f.data(1, f.message(b""), end=True)),
        "a writer whose next message is held up": begun(
            target, m.SAMPLE, f.data(1, f.message(m.sample("empty")) * 2
                                     + f.message(m.sample("empty"))[:7])),
    }
    moving = begun(target, m.INSERT)
    whole = f.message(m.one(9, row_bytes=400000))
    sent = 0
    until = time.monotonic() + (3.0 if not SANITIZER else 6.0)
    while time.monotonic() < until:
        moving.send(f.data(1, whole[sent:sent + 400]))
        sent += 400
        for peer in [*quiet.values(), moving, filler]:
            peer.take(0.005)
    assert [name for name, peer in quiet.items() if peer.closed] == []
    assert not moving.closed and sent < len(whole)
    assert not target.limits_hit()
    for peer in [*quiet.values(), moving, filler]:
        peer.close()
    with target.peer() as peer:
        for table in ("queue", "a"):
            assert peer.ask(m.RESET, m.octets(1, table)).status == m.OK


def test_peers_that_answer_no_ping_are_closed(attack):
    """Peers that do not respond to pings."""
    target = attack(limits={**TIMES, **PINGS})
    peers = {"idle": target.peer(), "waiting": begun(
        target, m.SAMPLE, f.data(1, f.message(m.sample("empty"))))}
    for peer in peers.values():
        peer.pongs = False
    assert not all_gone(peers, 1.7 + LATE)
    assert target.limits_hit() == {"ping_timeout": 2}


def large_items(target, count, row_bytes=60000):
    """Fills table a."""
    with target.peer() as peer:
        stream = peer.open(m.INSERT)
        for key in range(count):
            peer.write(stream, m.one(key, row_bytes=row_bytes))
            assert m.confirmed(peer.reply(stream)) == [key]


def empty_table(target):
    with target.peer() as peer:
        assert peer.ask(m.RESET, m.octets(1, "a")).status == m.OK


def reader(target, **options):
    """Returns a peer that requests more samples than it will read."""
    peer = target.peer(windows=False, **options)
    stream = peer.open(m.SAMPLE)
    peer.write(stream, m.sample("a", 1000000))
    return peer


def test_stalled_readers_are_closed(attack):
    """Readers whose stream window is 0 from the start, whose connection window is used up, or whose
    receive buffer is full; two of them send data and respond to pings meanwhile. The number of
    samples drawn for them is bounded, and so are the bytes that wait."""
    target = attack(limits={**TIMES, "ping_ms": 400, "ping_timeout_ms": 20000})
    target.may_change = True
    large_items(target, 20)
    before = target.metrics()['table_samples_total{table="a"}']
    peers = {
        "stream": reader(target, pairs=[(f.INITIAL_WINDOW, 0)]),
        "connection": reader(target, pairs=[(f.INITIAL_WINDOW, (1 << 31) - 1)]),
        "socket": reader(target, receive_bytes=4096, pairs=[(f.INITIAL_WINDOW, (1 << 31) - 1)]),
    }
    peers["socket"].send(f.window(0, (1 << 31) - 65536))
    start = time.monotonic()
    left = {"stream", "connection"}
    most = 0
    while left and time.monotonic() < start + (1.5 + LATE) * f.SLOW:
        for name in left:
            peers[name].send(f.ping())
        left = all_gone({name: peers[name] for name in left}, 0.2 / f.SLOW)
        most = max(most, target.metrics()["queued_bytes"])
    assert not left
    while target.limits_hit() != {"stall": 3} and time.monotonic() < start + 2 * LATE * f.SLOW:
        time.sleep(0.05)
    assert target.limits_hit() == {"stall": 3}
    taken = target.metrics()['table_samples_total{table="a"}'] - before
    assert taken < 3 * 100, f"{taken} samples of 60 kB"
    assert most < 3 * (4 << 20), f"{most} bytes waited"
    for peer in peers.values():
        peer.close()
    empty_table(target)


def test_a_hundred_stalled_readers_are_closed(attack):
    """Each may have 2 MiB and a batch; other clients are not affected. Data in the table is sent
    without a copy, so that it takes no memory."""
    target = attack()
    target.may_change = True
    large_items(target, 50)
    peers = [reader(target, pairs=[(f.INITIAL_WINDOW, 0)]) for _ in range(100)]
    for peer in peers:
        assert peer.echo()
    assert target.metrics()["queued_bytes"] < 100 * (4 << 20)
    with target.peer() as peer:
        assert peer.ask(m.SAMPLE, m.sample("a", 10)).status == m.OK
    for peer in peers:
        peer.close()
    empty_table(target)
    assert not target.limits_hit()


def test_all_calls_of_a_connection_share_its_queue(attack):
    target = attack(limits={"stream_queued_bytes": "1MiB", "connection_queued_bytes": "3MiB"})
    target.may_change = True
    large_items(target, 20)
    with target.peer(windows=False, pairs=[(f.INITIAL_WINDOW, 0)]) as peer:
        for _ in range(20):
            stream = peer.open(m.SAMPLE)
            peer.write(stream, m.sample("a", 100000))
        assert peer.echo()
        held = queued(target, 2 << 20)
        assert 2 << 20 <= held < 6 << 20, held
        # Calls that have received nothing so far receive it when there is room again.
        peer.windows = True
        peer.send(f.settings([(f.INITIAL_WINDOW, 1 << 20)]))
        assert peer.until(lambda: all(peer.calls[s].body for s in range(1, 41, 2)))
    empty_table(target)
    assert not target.limits_hit()


def test_unread_confirmations_pause_the_writer(attack):
    """If a writer does not read its confirmations, the server stops reading from it."""
    target = attack(limits={"stream_queued_bytes": 2000})
    target.may_change = True
    with target.peer(windows=False, pairs=[(f.INITIAL_WINDOW, 0)]) as peer:
        stream = peer.open(m.INSERT)
        for first in range(0, 3000, 10):
            peer.send(b"".join(f.data(stream, f.message(m.one(k))) for k in
                               range(first, first + 10)))
            if first % 300 == 0:
                assert peer.echo()
        size = target.metrics()['table_inserts_total{table="a"}']
        peer.windows = True
        peer.send(f.settings([(f.INITIAL_WINDOW, 1 << 20)]))
        keys = []

        def all_there():
            for reply in peer.calls[stream].messages():
                keys.extend(m.confirmed(reply))
            return len(keys) == 3000

        assert peer.until(all_there), f"{len(keys)} keys"
        assert sorted(keys) == list(range(3000))
        assert size < 3000
    empty_table(target)


def test_partial_messages_do_not_hold_the_budget_forever(attack):
    """Peers fill the budget with halves of messages, and then do nothing or send a byte now and
    then. These peers are closed one after another. The message of a writer that waits for room is
    then read, although it has waited for longer than a message may take."""
    target = attack(limits={**TIMES, "queued_bytes": "1MiB"})
    target.may_change = True
    peers = []
    for _ in range(4):
        peer = begun(target, m.INSERT)
        assert peer.echo()
        peer.send(f.data(1, f.message(b"", length=700 << 10)))
        peer.flood(f.data(1, b"\0" * 16384) * 30, 0.2)
        peers.append(peer)
    writer = begun(target, m.INSERT)
    assert writer.echo()
    whole = f.message(m.one(1, row_bytes=500000))
    for at in range(0, len(whole), 16384):
        writer.send(f.data(1, whole[at:at + 16384]))
    with target.peer() as other:
        assert other.ask(m.INFO, b"").status == m.OK
    assert m.confirmed(writer.reply(1)) == [1]
    hit = target.limits_hit()
    for peer in [writer, *peers]:
        peer.close()
    assert set(hit) <= {"queued_bytes", "slow_message"} and 1 <= sum(hit.values()) <= 4, hit
    empty_table(target)


def test_headers_do_not_hide_a_stalled_message(attack):
    """Blocks of headers that are incomplete most of the time, after half of a message."""
    target = attack(limits={**TIMES, "handshake_ms": 60000})
    peer = begun(target, m.INSERT, f.data(1, f.message(b"", length=100000)))
    peer.mute = True
    block, stream = f.request_block(m.WATCH), 3
    until = time.monotonic() + 10 * LATE * f.SLOW
    while not peer.closed and time.monotonic() < until:
        peer.send(f.headers(stream, block[:10], more=True))
        peer.take(0.4)
        peer.send(f.continuation(stream, block[10:]) + f.rst(stream))
        stream += 2
    assert peer.closed
    peer.close()
    assert target.limits_hit() == {"slow_message": 1}


def test_a_message_that_never_fits_is_refused_at_once(attack):
    target = attack(limits={"queued_bytes": "1MiB"})
    with begun(target, m.INSERT, f.data(1, f.message(b"", length=2 << 20))) as peer:
        assert peer.until(lambda: peer.calls[1].over)
        assert peer.calls[1].status == m.EXHAUSTED
        for word in ("2097152", "524288", "queued_bytes"):
            assert word in peer.calls[1].text
    assert target.limits_hit() == {"queued_bytes": 1}


def test_unread_pages_are_bounded_by_the_connection_queue(attack):
    """Requests of a few bytes for pages of many KiB: as many at once as calls are allowed, and none
    is read. The queue of the connection may exceed its limit by the size of one message."""
    target = attack(limits={"connection_queued_bytes": "1MiB", "message_bytes": "1MiB"})
    with target.peer(windows=False, pairs=[(f.INITIAL_WINDOW, 0)]) as peer:
        for _ in range(1000):
            peer.open("/metrics", end=True, method="GET", content_type=None, te=None)
        assert peer.until(lambda: all(":status" in peer.calls[s].fields for s in range(1, 2001, 2)),
                          60)
        held = target.metrics()["queued_bytes"]
        assert 1 << 20 <= held < 3 << 20, held
        refused = sum(call.fields.get(":status") == "503" for call in peer.calls.values())
        assert refused > 500
        assert target.limits_hit() == {"connection_queued_bytes": refused}
        peer.windows = True
        peer.send(f.settings([(f.INITIAL_WINDOW, 1 << 20)]))
        assert peer.until(lambda: all(peer.calls[s].over for s in range(1, 2001, 2)))
        assert peer.ask(m.INFO, b"").status == m.OK
