# SPDX-License-Identifier: Apache-2.0
"""Messages that are read together are inserted together. Requests after an insert on the same
connection must find its items, and a refused message must not affect other messages."""

import math
import socket

import pytest

import frames as f
import messages as m
from target import IS_SHORT

EIGHT = ("a", "fifo", "lifo", "prioritized", "min_heap", "max_heap", "weighed_out", "empty")
NAN = math.nan


def frames_of(stream, *payloads, end=False):
    """Returns messages of a call in one DATA frame, to be sent with other frames."""
    return f.data(stream, b"".join(f.message(p) for p in payloads), end)


def keys_of(call):
    """Returns all keys that an insert stream has confirmed since the last call."""
    return [key for reply in call.messages() for key in m.confirmed(reply)]


def size(target, table="a"):
    return target.metrics()[f'table_size{{table="{table}"}}']


def reset(target, *tables):
    with target.peer() as peer:
        for table in tables:
            assert peer.ask(m.RESET, m.octets(1, table)).status == m.OK


@pytest.fixture
def changing(attack):
    """A target whose tables may change; they are reset after the test."""
    target = attack()
    target.may_change = True
    yield target
    reset(target, *EIGHT, "queue")


def confirm(peer, stream, keys):
    """Waits until exactly these keys are confirmed."""
    found = []
    call = peer.calls[stream]

    def there():
        found.extend(keys_of(call))
        return len(found) >= len(keys) or call.over

    peer.until(there)
    assert sorted(found) == sorted(keys)


def test_many_messages_in_one_read(changing):
    """Inserts into one table, and into eight in turn: all items are confirmed once each."""
    with changing.peer() as peer:
        stream = peer.open(m.INSERT)
        peer.send(b"".join(frames_of(stream, m.one(key)) for key in range(600)))
        confirm(peer, stream, range(600))
        assert size(changing) == 600
        peer.send(b"".join(frames_of(stream, m.one(1000 + i, EIGHT[i % 8])) for i in range(400)))
        confirm(peer, stream, range(1000, 1400))
        for table in EIGHT:
            assert size(changing, table) == (650 if table == "a" else 50)


def test_a_call_after_an_insert_sees_it(changing):
    """Sent at once: inserts, then a sample, an update, a deletion and an end."""
    with changing.peer() as peer:
        insert, sample, mutate, info = (peer.stream() for _ in range(4))
        peer.send(f.headers(insert, f.request_block(m.INSERT))
                  + frames_of(insert, m.one(1), m.one(2))
                  + f.headers(sample, f.request_block(m.SAMPLE))
                  + frames_of(sample, m.sample("a", 1, 0), end=True)
                  + frames_of(insert, m.one(3), m.one(4))
                  + f.headers(mutate, f.request_block(m.MUTATE))
                  + frames_of(mutate, m.mutate("a", [(3, 5.0)], [4]), end=True)
                  + frames_of(insert, m.one(5), end=True)
                  + f.headers(info, f.request_block(m.INFO)) + frames_of(info, b"", end=True))
        assert peer.result(sample).status == m.OK and peer.calls[sample].body
        assert peer.result(mutate).status == m.OK
        assert peer.result(insert).status == m.OK
        assert sorted(keys_of(peer.calls[insert])) == [1, 2, 3, 4, 5]
        assert peer.result(info).status == m.OK
    assert size(changing) == 4
    assert changing.metrics()['table_updates_total{table="a"}'] > 0


def test_a_page_after_an_insert_counts_it(changing):
    with changing.peer() as peer:
        insert, page = peer.stream(), peer.stream()
        peer.send(f.headers(insert, f.request_block(m.INSERT)) + frames_of(insert, m.one(1))
                  + f.headers(page, f.request_block("/metrics", method="GET", content_type=None,
                                                    te=None), True))
        assert b'table_size{table="a"} 1\n' in peer.result(page).body


def test_two_streams_in_turns(changing):
    with changing.peer() as peer:
        streams = [peer.open(m.INSERT) for _ in range(3)]
        peer.send(b"".join(frames_of(streams[i % 3], m.one(i)) for i in range(300)))
        for i, stream in enumerate(streams):
            confirm(peer, stream, range(i, 300, 3))
    assert size(changing) == 300


@pytest.mark.parametrize("end", ["reset", "hang up", "half close", "garbage", "go away"])
def test_messages_before_the_end_of_a_stream_are_inserted(changing, end):
    """The items are inserted, however the stream ends in the same bytes."""
    with changing.peer() as peer:
        stream = peer.open(m.INSERT)
        octets = b"".join(frames_of(stream, m.one(key)) for key in range(20))
        last = {"reset": f.rst(stream), "hang up": b"", "half close": f.data(stream, b"", True),
                "garbage": frames_of(stream, b"\xff" * 20),
                "go away": f.frame(f.GOAWAY, 0, 0, b"\0" * 8)}[end]
        peer.send(octets + last)
        if end == "half close":
            assert peer.result(stream).status == m.OK
            assert sorted(keys_of(peer.calls[stream])) == list(range(20))
        elif end == "garbage":
            assert peer.result(stream).status == m.INVALID
        elif end == "hang up":  # close() would reset it after a response, and bytes would be lost
            peer.socket.shutdown(socket.SHUT_WR)
        with changing.peer() as other:
            other.until(lambda: size(changing) == 20)
    assert size(changing) == 20


BAD = {
    "a priority that is none": (m.insert([m.chunk(90)], [m.item(90, "a", NAN)]), m.INVALID),
    "no such table": (m.insert([m.chunk(90)], [m.item(90, "nowhere")]), m.NOT_FOUND),
    "no such chunk": (m.insert([m.chunk(90)], [m.item(90, chunk_key=91)]), m.INTERNAL),
    "no such rows": (m.insert([m.chunk(90)], [m.item(90, columns=[m.column([m.piece(90, 7)])])]),
                     m.INVALID),
    "nothing at all": (b"", m.INVALID),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("before", [1, 30, 256, 300])
def test_messages_before_a_bad_one_are_inserted(changing, name, before):
    bad, status = BAD[name]
    with changing.peer() as peer:
        stream = peer.open(m.INSERT)
        peer.send(b"".join(frames_of(stream, m.one(100 + i)) for i in range(before))
                  + frames_of(stream, bad) + frames_of(stream, m.one(99)))
        call = peer.result(stream)
        assert call.status == status, call
    assert size(changing) == before


def test_a_refused_message_behind_one_that_waits(changing):
    """The refusal ends the stream, so the waiting insert is withdrawn."""
    with changing.peer() as peer:
        stream = peer.open(m.INSERT)
        peer.send(b"".join(frames_of(stream, m.one(i, "queue")) for i in range(4))
                  + frames_of(stream, m.one(9, "queue", NAN)))
        call = peer.result(stream)
        assert call.status == m.INVALID and "key 9" in call.text, call
    assert size(changing, "queue") == 2
    assert changing.metrics()['table_waiting_inserts{table="queue"}'] == 0


TORN = {
    "over the end of a batch": [
        *(m.one(i) for i in range(250)),
        m.insert([m.chunk(300)], [m.item(300 + i, "a", NAN if i == 9 else 1.0, chunk_key=300)
                                  for i in range(10)])],
    "over the end of two batches together": [
        *(m.one(i, "fifo" if i % 2 else "a") for i in range(250)),
        m.insert([m.chunk(300)], [m.item(300 + i, "fifo" if i % 2 else "a", NAN if i == 8 else 1.0,
                                         chunk_key=300) for i in range(10)])],
    "over a ninth table": [
        *(m.one(i, table) for i, table in enumerate(EIGHT)),
        m.insert([m.chunk(300)], [m.item(300, chunk_key=300),
                                  m.item(301, "queue", chunk_key=300),
                                  m.item(302, "a", NAN, chunk_key=300)])],
}


@pytest.mark.parametrize("name", TORN)
def test_a_refused_message_is_refused_whole(changing, name):
    """A table takes all items of a message, up to 256, or none."""
    messages = TORN[name]
    with changing.peer() as peer:
        stream = peer.open(m.INSERT)
        peer.send(b"".join(frames_of(stream, message) for message in messages))
        assert peer.result(stream).status == m.INVALID
    assert size(changing) == {"over the end of a batch": 250, "over a ninth table": 1,
                              "over the end of two batches together": 125}[name]


@pytest.mark.parametrize("last", ["queue", "a"])
def test_a_full_table_pauses_its_stream(changing, last):
    """Messages into a table that is full and into one that is not, in either order: the stream is
    paused, and continues when the table has space. Each item is inserted once."""
    first = "a" if last == "queue" else "queue"
    runs, each = 2 if IS_SHORT else 20, 100
    with changing.peer() as peer:
        stream = peer.open(m.INSERT)
        for run in range(runs):
            peer.send(b"".join(frames_of(stream, m.one(run * each + i, last if i % 2 else first))
                               for i in range(each)))
            peer.until(lambda: False, 0.01)
        assert size(changing) <= each  # only those that were read at once
        for _ in range(runs * each // 4):
            call = peer.ask(m.SAMPLE, m.sample("queue", 2, 5000))
            assert call.status == m.OK and sum(map(m.samples, call.messages())) == 2
        confirm(peer, stream, range(runs * each))
    assert size(changing, "queue") == 0
    assert size(changing) == runs * each // 2
