# SPDX-License-Identifier: Apache-2.0
"""Peers that leave: half-close, cancel, disconnect and hang up, at each stage of each call.

What they have begun is discarded; what was confirmed stays."""

import time

import pytest

import frames as f
import messages as m

WAYS = ("half-close", "cancel", "goaway", "disconnect", "hang up", "half of the socket")


def leave(peer, stream, how):
    """Leaves. Returns True if a response may still arrive."""
    if how == "half-close":
        peer.send(f.data(stream, end=True))
    elif how == "cancel":
        peer.send(f.rst(stream))
    elif how == "goaway":
        peer.send(f.frame(f.GOAWAY, 0, 0, b"\0" * 8))
        peer.socket.shutdown(1)
    elif how == "half of the socket":
        peer.socket.shutdown(1)
    else:
        peer.close(hard=how == "disconnect")
    return how == "half-close"


# The stages: what has been sent when the peer leaves, and the status that a half-close gets then.
# Each function sends on an open stream.
def nothing(peer, stream):
    pass


def a_prefix(peer, stream):
    peer.send(f.data(stream, f.message(b"", length=1000)))


def half_a_message(peer, stream):
    peer.send(f.data(stream, f.message(m.one(1))[:40]))


def half_a_frame(peer, stream):
    peer.send(f.data(stream, f.message(m.one(1)))[:40])


def chunks(peer, stream):
    peer.write(stream, m.insert([m.chunk(k, row_bytes=1000) for k in range(50)]))


def an_item(peer, stream):
    peer.write(stream, m.one(1))
    peer.reply(stream)


def an_item_unread(peer, stream):
    peer.write(stream, m.one(1))


def items_that_wait(peer, stream):
    """The table takes two items, and the others wait."""
    peer.write(stream, *[m.one(k, "queue") for k in range(1, 6)])
    peer.until(lambda: len(peer.calls[stream].body) >= 2)


def a_sampler_that_waits(peer, stream):
    peer.write(stream, m.sample("empty", 100))


def a_sampler_with_a_timeout(peer, stream):
    peer.write(stream, m.sample("empty", 100, 600000))


def samplers_that_queue(peer, stream):
    peer.write(stream, *[m.sample("empty", 100)] * 20)


def samples(peer, stream):
    peer.write(stream, m.sample("full", 10))
    peer.until(lambda: peer.calls[stream].body)


def samples_on_their_way(peer, stream):
    peer.write(stream, m.sample("full", 1000000))


STAGES = {
    "insert, nothing": (m.INSERT, nothing, m.OK),
    "insert, a prefix": (m.INSERT, a_prefix, m.INVALID),
    "insert, half a message": (m.INSERT, half_a_message, m.INVALID),
    "insert, half a frame": (m.INSERT, half_a_frame, None),
    "insert, chunks": (m.INSERT, chunks, m.OK),
    "insert, an item": (m.INSERT, an_item, m.OK),
    "insert, an item unread": (m.INSERT, an_item_unread, m.OK),
    "insert, items that wait": (m.INSERT, items_that_wait, None),
    "sample, nothing": (m.SAMPLE, nothing, m.OK),
    "sample, a prefix": (m.SAMPLE, a_prefix, m.INVALID),
    "sample, waiting": (m.SAMPLE, a_sampler_that_waits, None),
    "sample, waiting for a while": (m.SAMPLE, a_sampler_with_a_timeout, None),
    "sample, a queue of requests": (m.SAMPLE, samplers_that_queue, None),
    "sample, samples": (m.SAMPLE, samples, m.OK),
    "sample, samples on their way": (m.SAMPLE, samples_on_their_way, None),
    "unary, nothing": (m.INFO, nothing, m.INVALID),
    "unary, a prefix": (m.MUTATE, a_prefix, m.INVALID),
    "initialize, nothing": (m.INITIALIZE, nothing, m.OK),
    "watch, nothing": (m.WATCH, nothing, m.INVALID),
    "ours, nothing": ("/reprise.v1.Replay/Sample", nothing, m.INVALID),
    "ours, waiting": ("/reprise.v1.Replay/Sample", lambda p, s: p.write(
        s, m.octets(1, "empty") + m.number(2, 5)), None),
    "reflection, nothing": ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                            nothing, m.OK),
}
TABLES = {"a": "uniform:1000", "empty": "uniform:1000,min_size=1000", "queue": "queue:2",
          "full": "uniform:1000", "bystander": "uniform:1000"}


def fill(target):
    """Inserts the items of the table "full"."""
    with target.peer() as peer:
        stream = peer.open(m.INSERT)
        for key in range(20):
            peer.write(stream, m.one(key, "full", row_bytes=20000))
            peer.reply(stream)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("how", WAYS)
def test_a_peer_may_disconnect_at_any_stage(attack, stage, how):
    path, begin, status = STAGES[stage]
    target = attack(tables=TABLES)
    if not target.metrics()['table_size{table="full"}']:
        fill(target)
        target.begin()
    target.may_change = True
    peer = target.peer(windows="on their way" not in stage)
    stream = peer.open(path)
    begin(peer, stream)
    if how == "hang up" or stage.endswith("unread"):
        time.sleep(0.002)  # so that the server has read the request in some cases only
    answers = leave(peer, stream, how)
    if answers and status is not None:
        assert peer.result(stream).status == status
    elif how in ("goaway", "half of the socket"):
        assert peer.gone()
    elif how == "cancel" and "half a frame" not in stage:
        assert peer.echo()  # the connection is open
    peer.close()
    waits = lambda: sum(v for k, v in target.metrics().items() if k.startswith("table_waiting"))
    until = time.monotonic() + 5 * f.SLOW
    while waits() and time.monotonic() < until:
        time.sleep(0.005)
    assert not waits(), "something of it still waits"
    if stage == "insert, an item":
        assert target.metrics()['table_size{table="a"}'] == 1, "what was confirmed stays"
    with target.peer() as peer:
        for table in ("a", "queue"):
            assert peer.ask(m.RESET, m.octets(1, table)).status == m.OK


def test_waiting_items_are_dropped_with_their_stream(attack):
    """Two items are inserted, three wait. The stream is cancelled and the table reset: none of the
    three is inserted after that."""
    target = attack(tables=TABLES)
    target.may_change = True
    with target.peer() as peer:
        stream = peer.open(m.INSERT)
        items_that_wait(peer, stream)
        assert target.metrics()['table_waiting_inserts{table="queue"}'] >= 1
        peer.send(f.rst(stream))
        assert peer.echo()
        call = peer.ask(m.SAMPLE, m.sample("queue", 2, 0))
        assert call.status == m.OK
        assert target.metrics()['table_size{table="queue"}'] == 0
        assert peer.ask(m.SAMPLE, m.sample("queue", 1, 10)).status == m.DEADLINE
        assert peer.ask(m.RESET, m.octets(1, "queue")).status == m.OK


def test_a_half_close_waits_for_waiting_items(attack):
    target = attack(tables=TABLES)
    target.may_change = True
    with target.peer() as peer:
        stream = peer.open(m.INSERT)
        items_that_wait(peer, stream)
        peer.send(f.data(stream, end=True))
        assert peer.echo()
        assert not peer.calls[stream].over
        assert peer.ask(m.SAMPLE, m.sample("queue", 5, 5000)).status == m.OK
        call = peer.result(stream)
        assert call.status == m.OK
        keys = [k for reply in call.messages() for k in m.confirmed(reply)]
        assert sorted(keys) == [1, 2, 3, 4, 5]
        assert peer.ask(m.RESET, m.octets(1, "queue")).status == m.OK


def test_dropping_a_table_ends_its_waiting_samples(attack):
    target = attack(tables=TABLES)
    create = m.octets(1, m.octets(1, "short") + m.number(4, 10) + m.octets(8, m.number(2, 5)))
    with target.peer() as peer, target.peer() as other:
        assert peer.ask("/reprise.v1.Replay/CreateTable", create).status == m.OK
        streams = [other.open(m.SAMPLE) for _ in range(5)]
        for stream in streams:
            other.write(stream, m.sample("short", 3))
        assert other.echo()
        assert peer.ask("/reprise.v1.Replay/DropTable", m.octets(1, "short")).status == m.OK
        for stream in streams:
            assert other.result(stream).status not in (None, m.OK)


@pytest.mark.parametrize("how", ["cancel", "disconnect"])
def test_repeated_disconnects_leak_nothing(attack, how):
    """Leaves five hundred times, at varying moments of an insert and a sample."""
    target = attack(tables=TABLES)
    target.may_change = True
    message = f.data(1, f.message(m.one(1, "queue"))) + f.data(1, f.message(m.one(2, "queue")))
    octets = (f.headers(1, f.request_block(m.INSERT)) + message
              + f.headers(3, f.request_block(m.SAMPLE))
              + f.data(3, f.message(m.sample("queue", 3))))
    for turn in range(200):
        peer = target.peer()
        peer.send(octets[:turn * 7 % len(octets)])
        if how == "cancel" and turn * 7 % len(octets) > 60:
            peer.take(0)
        peer.close(hard=how == "disconnect")
    until = time.monotonic() + 5 * f.SLOW
    while time.monotonic() < until and any(
            v for k, v in target.metrics().items() if k.startswith("table_waiting")):
        time.sleep(0.01)
    with target.peer() as peer:
        assert peer.ask(m.RESET, m.octets(1, "queue")).status == m.OK
