# SPDX-License-Identifier: Apache-2.0
"""Each limit of `--limit`: a request at the limit succeeds, a request one above it gets the status
of the limit, and the refusal is counted once under its name. (The limits on headers, calls and
abuse are in test_floods.py, those on time in test_slow.py.)"""

import struct

import pytest

import frames as f
import messages as m
from target import SANITIZER, TABLES

OURS = "/reprise.v1.Replay/"


def test_calls_of_all_connections_have_a_limit(attack):
    """A connection may have 16 calls even if another one has all that the limit allows."""
    target = attack(limits={"calls": 50})
    with target.peer() as greedy, target.peer() as modest:
        watches = [greedy.open(m.WATCH) for _ in range(50)]
        call = greedy.ask(m.INFO, b"")
        assert call.status == m.EXHAUSTED and "limit calls" in call.text, call
        assert target.limits_hit()["calls"] >= 1
        for _ in range(15):
            modest.open(m.WATCH)
        assert modest.ask(m.INFO, b"").status == m.OK
        for stream in watches:
            greedy.send(f.rst(stream))
        assert greedy.ask(m.INFO, b"").status == m.OK
        assert target.metrics()["streams_most"] >= 50


def padded(request, size):
    """Pads a request to `size` bytes with an unknown field."""
    for length in range(size - len(request), -1, -1):
        more = m.octets(99, b"\0" * length)
        if len(request) + len(more) == size:
            return request + more
    raise AssertionError("too small")


def chunk_of(size, key=1):
    """Returns a chunk of `size` bytes."""
    return padded(m.chunk(key), size)


def wide(columns, key=1):
    return m.item(key, chunk_key=1, columns=[m.column([m.piece(1)])] * columns)


def long(slices, key=1):
    return m.item(key, columns=[m.column([m.piece(1)] * slices)])


def spread(chunks):
    """Returns a request with an item of `chunks` chunks."""
    keys = range(1, chunks + 1)
    return m.insert([m.chunk(k) for k in keys],
                    [m.item(1, columns=[m.column([m.piece(k) for k in keys])])])


def huge():
    """Returns an item of 20 GB in 9 kB: 80 times the same 250 MiB of zeros, which zstd compresses
    to blocks that repeat one byte."""
    block = (128 << 10) << 3 | 1 << 1
    blocks = [block] * 1999 + [block | 1]
    frame = b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 250 << 20)
    frame += b"".join(b.to_bytes(3, "little") + b"\0" for b in blocks)
    chunk = m.chunk(1, [m.tensor((1, 250 << 20), frame)], more=m.number(1000, 2))
    return m.insert([chunk], [long(80)])


def of_no_bytes(rows):
    """Returns an item of `rows` rows without bytes, each of which counts as one byte."""
    chunk = m.chunk(1, [m.tensor((1 << 20, 0), b"")], rows=1)
    return m.insert([chunk], [m.item(1, columns=[m.column([m.piece(1, 0, rows)])])])


def tensors(sizes):
    return m.chunk(1, [m.tensor((1, n), m.snappy(b"x" * n)) for n in sizes])


def items(count):
    return m.insert([m.chunk(1)], [m.item(i, chunk_key=1) for i in range(count)])


def mutation(updates, deletes):
    return m.mutate("a", [(i, 1.0) for i in range(updates)], list(range(deletes)))


def kept(count):
    keys = list(range(1, count + 1))
    return m.insert([m.chunk(k) for k in keys], [m.item(1)], keys)


# A limit, its value in the test, a request at the limit, a request one above it, and its method.
EDGES = [
    ("message_bytes", 5000, padded(m.one(1), 5000), padded(m.one(1), 5001), m.INSERT),
    ("message_bytes", 5000, padded(m.mutate(), 5000), padded(m.mutate(), 5001), m.MUTATE),
    ("message_bytes", 5000, padded(b"", 5000), padded(b"", 5001), m.INFO),
    ("chunk_bytes", 1000, m.insert([chunk_of(1000)], [m.item(1)]),
     m.insert([chunk_of(1001)], [m.item(1)]), m.INSERT),
    ("tensor_bytes", 1000, m.insert([tensors([600, 400])], [m.item(1)]),
     m.insert([tensors([600, 401])], [m.item(1)]), m.INSERT),
    ("item_bytes", 1600, m.insert([m.chunk(1)], [long(100)]), m.insert([m.chunk(1)], [long(101)]),
     m.INSERT),
    ("item_bytes", 1600, m.insert([m.chunk(1)], [wide(100)]), m.insert([m.chunk(1)], [wide(101)]),
     m.INSERT),
    ("item_bytes", 1600, of_no_bytes(1600), of_no_bytes(1601), m.INSERT),
    ("chunks", 10, spread(10), spread(11), m.INSERT),
    ("columns", 10, m.insert([m.chunk(1)], [wide(10)]), m.insert([m.chunk(1)], [wide(11)]),
     m.INSERT),
    ("columns", 100, m.insert([m.chunk(1)], [wide(100)]), m.insert([m.chunk(1)], [wide(101)]),
     m.INSERT),
    ("slices", 10, m.insert([m.chunk(1)], [long(10)]), m.insert([m.chunk(1)], [long(11)]),
     m.INSERT),
    ("slices", 1000, m.insert([m.chunk(1)], [long(1000)]), m.insert([m.chunk(1)], [long(1001)]),
     m.INSERT),
    ("slices", 10, m.insert([m.chunk(1)], [long(6), long(4)]),
     m.insert([m.chunk(1)], [long(6), long(5)]), m.INSERT),
    ("items", 10, items(10), items(11), m.INSERT),
    ("keys", 10, mutation(6, 4), mutation(6, 5), m.MUTATE),
    ("keys", 10, mutation(10, 0), mutation(11, 0), m.MUTATE),
    ("keys", 10, mutation(0, 10), mutation(0, 11), m.MUTATE),
    ("keys", 10, kept(10), kept(11), m.INSERT),
    ("keys", 10, m.mutate("a", [(i, 1.0) for i in range(10)]),
     m.mutate("a", [(i, 1.0) for i in range(11)]), OURS + "Update"),
    ("keys", 10, m.octets(1, "a") + m.packed(2, range(10)),
     m.octets(1, "a") + m.packed(2, range(11)), OURS + "Delete"),
    ("keys", 10, m.octets(1, "a") + m.packed(2, range(10)),
     m.octets(1, "a") + m.packed(2, range(11)), OURS + "Peek"),
]


@pytest.mark.parametrize("edge", EDGES, ids=lambda e: f"{e[0]}={e[1]} {e[4].rpartition('/')[2]}")
def test_a_limit_allows_its_value_and_refuses_more(attack, edge):
    name, value, at, above, path = edge
    target = attack(limits={name: value})
    target.may_change = True
    with target.peer() as peer:
        call = peer.ask(path, at)
        assert call.status == m.OK, call
        assert not target.refused()
        before = target.table_state()
        call = peer.ask(path, above)
        assert call.status == m.EXHAUSTED, call
        assert call.text.isprintable() and 0 < len(call.text) <= 256
        if (name, path) != ("slices", m.INSERT):  # items before the invalid one stay
            assert target.table_state() == before
        assert target.limits_hit() == {name: 1}
        assert peer.ask(path, at).status == m.OK
        assert peer.ask(m.RESET, m.octets(1, "a")).status == m.OK


@pytest.mark.parametrize("limit", [None, 10])
def test_a_batch_without_repetition_is_drawn_under_one_lock_and_has_a_limit(attack, limit):
    target = attack(limits={"distinct_samples": limit} if limit else {})
    target.may_change = True
    most = limit or 4096

    def sample(count, is_distinct):
        request = m.octets(1, "a") + m.number(2, count) + m.number(4, 0) + m.number(5, is_distinct)
        return peer.ask(OURS + "Sample", request + m.number(3, 1))

    with target.peer() as peer:
        stream = peer.open(m.INSERT)
        peer.write(stream, m.one(1))
        assert m.confirmed(peer.reply(stream)) == [1]
        for count, is_distinct in ((most, True), (most + 1, False)):
            call = sample(count, is_distinct)
            assert call.status == m.OK, call
        assert not target.refused()
        before = target.table_state()
        call = sample(most + 1, True)
        assert call.status == m.EXHAUSTED and "distinct_samples" in call.text, call
        assert target.table_state() == before
        assert target.limits_hit() == {"distinct_samples": 1}
        assert peer.ask(m.RESET, m.octets(1, "a")).status == m.OK


# The default limits, with requests above them that are cheap to send.
DEFAULTS = [
    ("item_bytes", huge(), m.INSERT),
    ("columns", m.insert([m.chunk(1)], [wide(4097)]), m.INSERT),
    ("slices", m.insert([m.chunk(1)], [long(1 << 20 | 1)]), m.INSERT),
    ("items", m.insert([m.chunk(1)], []) + m.octets(2, b"") * 262145, m.INSERT),
    ("keys", m.octets(1, "a") + m.octets(2, b"") * 262145, m.MUTATE),
    ("keys", m.mutate("a", [], [1] * 262145), m.MUTATE),
    ("keys", m.insert([m.chunk(1)], [m.item(1)]) + m.octets(3, b"\1" * 262145), m.INSERT),
    ("chunk_bytes", m.insert([chunk_of((32 << 20) + 1)], [m.item(1)]), m.INSERT),
]


@pytest.mark.parametrize("edge", DEFAULTS, ids=lambda e: f"{e[0]} {e[2].rpartition('/')[2]}")
def test_a_default_limit_is_enforced_cheaply(attack, edge):
    name, above, path = edge
    target = attack()
    with target.peer() as peer:
        cpu = target.cpu()
        call = peer.ask(path, above)
        assert call.status == m.EXHAUSTED, call
        assert SANITIZER or target.cpu() - cpu < 0.5
    assert target.limits_hit() == {name: 1}


def test_tensors_of_a_chunk_have_the_limit_of_columns(attack):
    target = attack(limits={"columns": 10})
    target.may_change = True
    with target.peer() as peer:
        assert peer.ask(m.INSERT, m.insert([m.chunk(1, columns=10)], [m.item(1)])).status == m.OK
        call = peer.ask(m.INSERT, m.insert([m.chunk(1, columns=11)], [m.item(1)]))
        assert call.status == m.EXHAUSTED
        assert peer.ask(m.RESET, m.octets(1, "a")).status == m.OK
    assert sum(target.limits_hit().values()) == 1


def sends(peer, stream, keys, size):
    """Sends chunks of that size to which no item refers. Returns True if the stream continues."""
    peer.write(stream, m.insert([chunk_of(size, k) for k in keys]))
    assert peer.echo()
    return not peer.calls[stream].over


def pinned(target, at_least):
    """Returns whether the server's `pinned_bytes` is about `at_least`."""
    return at_least <= target.metrics()["pinned_bytes"] < 1.5 * at_least + 4096


def test_chunks_without_items_in_a_stream(attack):
    """Ten chunks of 10,000 bytes, with their overhead, are within the limit; eleven are not."""
    target = attack(limits={"stream_pinned_bytes": 105000})
    with target.peer() as peer:
        stream = peer.open(m.INSERT)
        assert sends(peer, stream, range(10), 10000)
        assert peer.until(lambda: pinned(target, 100000))
        assert not target.limits_hit()
        assert not sends(peer, stream, [10], 10000)
        assert peer.calls[stream].status == m.EXHAUSTED
        assert target.limits_hit() == {"stream_pinned_bytes": 1}
        other = peer.open(m.INSERT)
        assert sends(peer, other, range(10), 10000)


def test_chunks_without_items_in_one_message(attack):
    target = attack(limits={"stream_pinned_bytes": 105000})
    with target.peer() as peer:
        stream = peer.open(m.INSERT)
        assert not sends(peer, stream, range(11), 10000)
        assert peer.calls[stream].status == m.EXHAUSTED
    assert target.limits_hit() == {"stream_pinned_bytes": 1}


def test_chunks_that_items_refer_to_are_free(attack):
    target = attack(limits={"stream_pinned_bytes": 105000})
    target.may_change = True
    with target.peer() as peer:
        stream = peer.open(m.INSERT)
        for k in range(30):
            peer.write(stream, m.insert([chunk_of(10000, k)], [m.item(k)], list(range(k + 1))))
            assert m.confirmed(peer.reply(stream)) == [k]
        assert peer.ask(m.RESET, m.octets(1, "a")).status == m.OK
    assert not target.limits_hit()


def test_chunks_whose_items_are_gone_are_not_free(attack):
    """A table of one item, and a stream that keeps all chunks that it has sent."""
    target = attack(limits={"stream_pinned_bytes": 105000},
                    tables={"a": "fifo:1", "bystander": "uniform:1000"})
    target.may_change = True
    with target.peer() as peer:
        stream = peer.open(m.INSERT)
        sent = 0
        for k in range(40):
            peer.write(stream, m.insert([chunk_of(10000, k)], [m.item(k)], list(range(k + 1))))
            if not peer.until(lambda: len(peer.calls[stream].body) > 5 or
                              peer.calls[stream].over) or peer.calls[stream].over:
                break
            peer.calls[stream].messages()
            sent += 1
        assert peer.calls[stream].status == m.EXHAUSTED, f"{sent} chunks are held"
        assert 8 <= sent <= 13
    assert target.limits_hit() == {"stream_pinned_bytes": 1}


def test_chunks_of_silent_streams_whose_items_are_gone(attack):
    """A table of one item, and streams that keep one chunk each and send nothing after that."""
    target = attack(limits={"pinned_bytes": "1MiB"},
                    tables={"a": "fifo:1", "bystander": "uniform:1000"})
    target.may_change = True
    with target.peer() as peer:
        streams = []
        for k in range(60):
            streams.append(peer.open(m.INSERT))
            peer.write(streams[-1], m.insert([chunk_of(100000, k)], [m.item(k)], [k]))
            assert m.confirmed(peer.reply(streams[-1])) == [k]
            assert peer.until(lambda: target.metrics()["pinned_bytes"] <= 1 << 20)
        assert peer.until(lambda: sum(peer.calls[s].over for s in streams) >= 60 - 11)
        ended = [peer.calls[s] for s in streams if peer.calls[s].over]
        assert all(call.status == m.EXHAUSTED for call in ended)
        assert target.limits_hit() == {"pinned_bytes": len(ended)}


def test_chunks_of_inserts_that_wait_count(attack):
    """Chunks that arrive before their items, in small messages. The table takes two items."""
    target = attack()
    with target.peer() as peer:
        streams = [peer.open(m.INSERT) for _ in range(12)]
        for k, stream in enumerate(streams):
            peer.write(stream, m.insert([chunk_of(100000, k)]))
            peer.write(stream, m.insert([], [m.item(k, "queue")]))
            assert peer.echo()
        assert peer.until(lambda: pinned(target, 1000000))
        for stream in streams:
            peer.send(f.rst(stream))
        assert peer.until(lambda: target.metrics()["pinned_bytes"] == 0)
        assert peer.ask(m.RESET, m.octets(1, "queue")).status == m.OK
    target.may_change = True


def test_chunks_without_items_on_a_connection(attack):
    target = attack(limits={"stream_pinned_bytes": 105000, "connection_pinned_bytes": 210000})
    with target.peer() as peer:
        streams = [peer.open(m.INSERT) for _ in range(3)]
        assert sends(peer, streams[0], range(10), 10000)
        assert sends(peer, streams[1], range(10), 10000)
        assert not target.limits_hit()
        assert not sends(peer, streams[2], [0], 10000)
        assert peer.calls[streams[2]].status == m.EXHAUSTED
        assert target.limits_hit() == {"connection_pinned_bytes": 1}
        peer.send(f.rst(streams[0]))
        stream = peer.open(m.INSERT)
        assert sends(peer, stream, [0], 10000)


def test_chunks_without_items_on_all_connections(attack):
    """Two connections hold three quarters of the limit, the most that they may. A third gets no
    more than the smallest share, 64 KiB."""
    target = attack(limits={"pinned_bytes": 280000})
    with target.peer() as one, target.peer() as two, target.peer() as three:
        streams = [peer.open(m.INSERT) for peer in (one, two, three)]
        assert sends(one, streams[0], range(10), 10000)
        assert sends(two, streams[1], range(10), 10000)
        assert sends(three, streams[2], range(6), 10000)
        assert not target.limits_hit()
        assert not sends(three, streams[2], [6], 10000)
        assert three.calls[streams[2]].status == m.EXHAUSTED
        assert "pinned_bytes" in three.calls[streams[2]].text
        assert target.limits_hit() == {"pinned_bytes": 1}
        one.send(f.rst(streams[0]))
        assert three.until(lambda: target.metrics()["pinned_bytes"] < 110000)
        assert sends(three, three.open(m.INSERT), range(7), 10000)


def test_slices_of_inserts_that_wait_count(attack):
    """Items of many slices, for a table that takes no more: the memory that they take counts, not
    the bytes that were sent."""
    target = attack(limits={"pinned_bytes": "4MiB"})
    slices, sent = 20000, []
    with target.peer() as peer:
        for key in range(20):
            sent.append(peer.open(m.INSERT))
            item = m.item(key, "queue", columns=[m.column([m.piece(1)] * slices)])
            peer.write(sent[-1], m.insert([m.chunk(1)], [item]))
            assert peer.echo()
        refused = [peer.calls[s] for s in sent if peer.calls[s].over and peer.calls[s].status]
        assert refused and all(call.status == m.EXHAUSTED for call in refused)
        assert set(target.limits_hit()) == {"pinned_bytes"}
        assert target.metrics()["pinned_bytes"] < (4 << 20) + 30 * slices
        for stream in sent:
            if not peer.calls[stream].over:
                peer.send(f.rst(stream))
        assert peer.ask(m.RESET, m.octets(1, "queue")).status == m.OK
    target.may_change = True


def test_many_small_chunks_are_charged_their_memory(attack):
    """Chunks of a few bytes, with as many empty tensors as fit. The limit is on the memory that
    they take, not on their bytes on the wire."""
    target = attack(fresh=True, limits={"stream_pinned_bytes": "8MiB"})
    empty = m.tensor((0,), b"")
    with target.peer() as peer:
        assert peer.echo()
        stream = peer.open(m.INSERT)
        key, sent, most = 0, 0, 0
        while not peer.calls[stream].over and sent < 16 << 20:
            request = m.insert([m.chunk(k, [empty] * 20) for k in range(key, key + 500)])
            key, sent = key + 500, sent + len(request)
            peer.write(stream, request)
            peer.take(0)
            most = max(most, target.metrics()["pinned_bytes"])
        peer.until(lambda: peer.calls[stream].over, 2)
        assert peer.calls[stream].status == m.EXHAUSTED
        # The limit is exceeded by at most one message.
        assert sent < most <= 10 << 20, f"{most} bytes held, {sent} sent"
    assert target.limits_hit() == {"stream_pinned_bytes": 1}


def test_tables_have_a_limit(attack):
    count = len(TABLES)
    target = attack(limits={"tables": count + 1})

    def create(peer, name):
        return peer.ask(OURS + "CreateTable",
                        m.octets(1, m.octets(1, name) + m.number(4, 10))).status

    with target.peer() as peer:
        assert create(peer, "one") == m.OK
        assert not target.refused()
        assert create(peer, "two") == m.EXHAUSTED
        assert target.limits_hit() == {"tables": 1}
        assert peer.ask(OURS + "DropTable", m.octets(1, "one")).status == m.OK
        assert create(peer, "two") == m.OK
        assert peer.ask(OURS + "DropTable", m.octets(1, "two")).status == m.OK


def test_messages_over_the_queue_budget_wait_in_their_sockets(attack):
    """Four peers send halves of large messages, with a budget of 2 MiB. None of them is refused:
    one has room for its message, one has the turn, and the bytes of the others stay in their
    sockets.
    """
    target = attack(limits={"queued_bytes": "2MiB", "message_grace_ms": 60000})
    with target.peer() as a, target.peer() as b, target.peer() as c, target.peer() as d:
        peers = [a, b, c, d]
        for peer in peers:
            stream = peer.open(m.INSERT)
            assert peer.echo()
            peer.send(f.data(stream, f.message(b"", length=1 << 20)))
            peer.flood(f.data(stream, b"\0" * 16384) * 40, 0.3)
        held = target.metrics()["queued_bytes"]
        assert 1 << 20 <= held <= (2 << 20) + 4 * 12288, held
        with target.peer() as other:
            assert other.ask(m.INFO, b"").status == m.OK
        assert not target.limits_hit()


def test_a_paused_stream_holds_its_window_and_no_more(attack):
    """Each frame ends one message and begins the next, so that one message is always incomplete.
    The stream waits for a full table, and its window is 4 MiB."""
    target = attack()
    with target.peer() as peer:
        stream = peer.open(m.SAMPLE)
        peer.write(stream, m.sample("empty"))
        assert peer.echo()
        one = f.message(b"\0" * 16000)
        peer.send(f.data(stream, one[:100]))
        opened, sent = 4 << 20, 105
        turned = f.data(stream, one[100:] + one[:100])
        while sent < 12 << 20 and not peer.calls[stream].over:
            peer.take(0.001)
            opened = (4 << 20) + sum(int.from_bytes(x.payload, "big") for x in peer.frames
                                     if x.type == f.WINDOW_UPDATE and x.stream == stream)
            if sent + len(one) > opened:
                peer.take(0.05)
                if not any(x.type == f.WINDOW_UPDATE and x.stream == stream
                           for x in peer.frames[-20:]) or sent + len(one) > opened:
                    break
            peer.send(turned)
            sent += len(one)
        assert sent < 6 << 20, f"{sent} bytes were let in"
