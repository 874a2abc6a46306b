# SPDX-License-Identifier: Apache-2.0
"""Requests that can be parsed but are invalid: bad items, chunks, priorities, samples.

The sender gets a status, and the tables are not changed."""

import math
import struct

import pytest

import frames as f
import messages as m


def refuse(target, request, status, setup=()):
    """Sends the requests `setup`, which must be confirmed, then a request that must be refused.
    Returns the text of the status."""
    with target.peer() as peer:
        stream = peer.open(m.INSERT)
        for good in setup:
            peer.write(stream, good)
            peer.reply(stream)
        peer.write(stream, request)
        call = peer.result(stream)
    assert call.status == status, call
    assert not call.body
    assert call.text.isprintable() and 0 < len(call.text) <= 256
    return call.text


def item_of(*pieces, squeeze=False, **more):
    return m.item(1, columns=[m.column(list(pieces), squeeze)], **more)


def slice_bytes(offset=0, length=1, index=0, key=1):
    return m.number(1, key) + m.number(2, offset) + m.number(3, length) + m.number(4, index)


FOUR = [m.chunk(1, rows=4, columns=2), m.chunk(2, rows=4)]

BAD_ITEMS = {
    "nothing": (m.insert(), m.INVALID),
    "only chunks to keep": (m.insert(keep=[1]), m.INVALID),
    "an unknown table": (m.insert(FOUR, [m.item(1, "PAYLOAD")]), m.NOT_FOUND),
    "an empty table": (m.insert(FOUR, [m.item(1, "")]), m.NOT_FOUND),
    "a table's name with a zero": (m.insert(FOUR, [m.item(1, "a\0PAYLOAD")]), m.NOT_FOUND),
    "a table's name that is no text": (
        m.insert(FOUR, [m.item(1, b"\xff\xfePAYLOAD")]), m.NOT_FOUND),
    "a table's name of a MiB": (m.insert(FOUR, [m.item(1, "a" * (1 << 20))]), m.INVALID),
    "a chunk that was not sent": (m.insert(FOUR, [m.item(1, chunk_key=3)]), m.INTERNAL),
    "no trajectory": (
        m.insert(FOUR, [m.number(1, 1) + m.octets(2, "a") + m.double(5, 1)]), m.INVALID),
    "no columns": (m.insert(FOUR, [m.item(1, columns=[])]), m.INVALID),
    "a column of nothing": (m.insert(FOUR, [m.item(1, columns=[b""])]), m.INVALID),
    "an offset past the rows": (m.insert(FOUR, [item_of(slice_bytes(4))]), m.INVALID),
    "a length past the rows": (m.insert(FOUR, [item_of(slice_bytes(0, 5))]), m.INVALID),
    "an offset and a length past the rows": (
        m.insert(FOUR, [item_of(slice_bytes(3, 2))]), m.INVALID),
    "offset and length that overflow": (
        m.insert(FOUR, [item_of(slice_bytes(2**31 - 1, 2**31 - 1))]), m.INVALID),
    "a negative offset": (m.insert(FOUR, [item_of(slice_bytes(-1))]), m.INVALID),
    "a negative length": (m.insert(FOUR, [item_of(slice_bytes(0, -1))]), m.INVALID),
    "a length of 0": (m.insert(FOUR, [item_of(slice_bytes(0, 0))]), m.INVALID),
    "an index past the columns": (m.insert(FOUR, [item_of(slice_bytes(0, 1, 2))]), m.INVALID),
    "a negative index": (m.insert(FOUR, [item_of(slice_bytes(0, 1, -1))]), m.INVALID),
    "an offset past 32 bits": (m.insert(FOUR, [item_of(slice_bytes(1 << 32))]), m.INVALID),
    "two rows, squeezed": (
        m.insert(FOUR, [item_of(slice_bytes(0, 2), squeeze=True)]), m.INVALID),
    "slices of several shapes": (
        m.insert([m.chunk(1), m.chunk(2, row_bytes=8)],
                 [item_of(slice_bytes(), slice_bytes(key=2))]), m.INVALID),
}

# Items before the invalid one stay in the table, as in Reverb.
BAD_ENDS = {
    "a bad item behind a good one": (
        m.insert(FOUR, [m.item(1), item_of(slice_bytes(9))]), m.INVALID),
    "keys to keep that were never sent": (m.insert(FOUR, [m.item(1)], [1, 77]), m.PRECONDITION),
    "a key to keep twice": (m.insert(FOUR, [m.item(1)], [1, 1]), m.PRECONDITION),
}


@pytest.mark.parametrize("name", BAD_ITEMS)
def test_invalid_items_are_refused(attack, name):
    target = attack()
    refuse(target, *BAD_ITEMS[name])
    assert set(target.limits_hit()) <= {"decode"}


@pytest.mark.parametrize("name", BAD_ENDS)
def test_items_before_an_invalid_one_are_inserted(attack, name):
    target = attack()
    target.may_change = True
    with target.peer() as peer:
        stream = peer.open(m.INSERT)
        peer.write(stream, BAD_ENDS[name][0])
        assert peer.result(stream).status == BAD_ENDS[name][1]
        assert target.metrics()['table_size{table="a"}'] == 1
        assert peer.ask(m.RESET, m.octets(1, "a")).status == m.OK
    assert target.limits_hit() == {"decode": 1}


def test_a_repeated_chunk_must_be_identical(attack):
    target = attack()
    target.may_change = True
    with target.peer() as peer:
        stream = peer.open(m.INSERT)
        for key in range(5):
            peer.write(stream, m.insert([m.chunk(1)], [m.item(key, chunk_key=1)], [1]))
            assert m.confirmed(peer.reply(stream)) == [key]
        other = peer.open(m.INSERT)  # keys of chunks belong to their stream
        peer.write(other, m.insert([m.chunk(1, row_bytes=8)], [m.item(9, chunk_key=1)]))
        assert m.confirmed(peer.reply(other)) == [9]
        peer.write(stream, m.insert([m.chunk(1, fill=b"x")], [m.item(6, chunk_key=1)]))
        call = peer.result(stream)
        assert call.status == m.INVALID and not call.body
        stream = peer.open(m.INSERT)
        peer.write(stream, m.insert([m.chunk(1), m.chunk(1, fill=b"x")], [m.item(7)]))
        assert peer.result(stream).status == m.INVALID
        stream = peer.open(m.INSERT)  # a chunk with two keys
        peer.write(stream, m.insert([m.chunk(1), m.chunk(3, more=m.number(1, 1))], [m.item(7)]))
        assert peer.result(stream).status == m.INVALID
    assert target.metrics()['table_size{table="a"}'] == 6
    with target.peer() as peer:
        assert peer.ask(m.RESET, m.octets(1, "a")).status == m.OK


OURS = "/reprise.v1.Replay/"


def entries(call):
    """Returns the keys of the items in a response of Sample or Peek."""
    return [dict(m.read(dict(m.read(dict(m.read(entry))[1]))[1]))[1]
            for field, entry in m.read(call.messages()[0]) if field == 2]


@pytest.mark.parametrize("table", ["fifo", "prioritized"])
def test_an_undecodable_item_does_not_affect_other_items(attack, table):
    """Chunks are not decompressed when they are inserted. With `cut_rows`, a chunk that cannot be
    decoded is sent as it is."""
    target = attack()
    target.may_change = True
    keys = list(range(1, 17))
    with target.peer() as peer:
        stream = peer.open(m.INSERT)
        for key in keys:
            bad = m.tensor((10, 100), m.varint(1000) + b"\xff" * 500)
            chunk = m.chunk(key, [bad], rows=10) if key == 11 else m.chunk(key, rows=10,
                                                                         row_bytes=100)
            item = m.item(key, table, 1000.0 if key == 11 else 1.0,
                          [m.column([m.piece(key, offset=9)])])
            peer.write(stream, m.insert([chunk], [item]))
            assert m.confirmed(peer.reply(stream)) == [key]
        distinct = m.octets(1, table) + m.number(2, 16) + m.number(4, 0) + m.number(5, 1)
        peek = m.octets(1, table) + m.packed(2, keys) + m.number(3, 1)
        for cut in (b"", m.number(7, 1)):
            call = peer.ask(OURS + "Sample", distinct + cut)
            assert call.status == m.OK, call
            assert sorted(entries(call)) == keys
        for cut in (b"", m.number(4, 1)):
            call = peer.ask(OURS + "Peek", peek + cut)
            assert call.status == m.OK, call
            assert entries(call) == keys
        assert peer.ask(m.RESET, m.octets(1, table)).status == m.OK


def read_rows(call):
    """Returns the bytes of the rows of each item in a response, by the item's key. Each item has
    one slice."""
    message = list(m.read(call.messages()[0]))
    chunks, rows = {}, {}
    for field, data in message:
        if field == 1:
            fields = dict(m.read(data))
            assert fields[1] not in chunks
            chunks[fields[1]] = dict(m.read(dict(m.read(fields[5]))[1]))[4]
    for field, data in message:
        if field == 2:
            item = dict(m.read(dict(m.read(dict(m.read(data))[1]))[1]))
            piece = dict(m.read(dict(m.read(dict(m.read(item[8]))[1]))[1]))
            rows[item[1]] = chunks[piece[1]][-16:]
    return rows


def test_chunks_of_several_writers_under_one_key(attack):
    """Keys of chunks belong to their stream. A writer cannot fail the calls of others by using
    their keys."""
    target = attack()
    target.may_change = True
    with target.peer() as peer:
        for key in range(1, 9):
            stream = peer.open(m.INSERT)
            chunk = m.chunk(1 if key < 8 else 2, fill=bytes([64 + min(key, 6)]))  # 6 and 7 equal
            peer.write(stream, m.insert([chunk], [m.item(key, "fifo",
                                                         chunk_key=1 if key < 8 else 2)]))
            assert m.confirmed(peer.reply(stream)) == [key]
        sample = m.octets(1, "fifo") + m.number(2, 8) + m.number(4, 0) + m.number(5, 1)
        peek = m.octets(1, "fifo") + m.packed(2, range(1, 9)) + m.number(3, 1)
        for path, request in ((OURS + "Sample", sample), (OURS + "Sample", sample + m.number(7, 1)),
                              (OURS + "Peek", peek), (OURS + "Peek", peek + m.number(4, 1))):
            call = peer.ask(path, request)
            assert call.status == m.OK, call
            assert read_rows(call) == {key: bytes([64 + min(key, 6)]) * 16 for key in range(1, 9)}
        assert peer.ask(m.RESET, m.octets(1, "fifo")).status == m.OK


def test_an_item_again_is_an_update(attack):
    target = attack()
    target.may_change = True
    with target.peer() as peer:
        stream = peer.open(m.INSERT)
        for i in range(10):
            peer.write(stream, m.insert([m.chunk(100 + i)], [m.item(1, chunk_key=100 + i)]))
            assert m.confirmed(peer.reply(stream)) == [1]
        assert target.metrics()['table_size{table="a"}'] == 1
        assert peer.ask(m.RESET, m.octets(1, "a")).status == m.OK


def test_keys_at_their_ends(attack):
    target = attack()
    target.may_change = True
    with target.peer() as peer:
        stream = peer.open(m.INSERT)
        for key in (0, 1, 2**63 - 1, 2**63, 2**64 - 1):
            peer.write(stream, m.one(key))
            assert m.confirmed(peer.reply(stream)) == [key]
        assert peer.ask(m.RESET, m.octets(1, "a")).status == m.OK


NAN, INF = math.nan, math.inf
WEIGHED = ("prioritized", "weighed_out")
OTHERS = ("a", "fifo", "lifo", "min_heap", "max_heap")
MINUS_NAN = struct.unpack("<d", b"\x01\0\0\0\0\0\xf8\xff")[0]


@pytest.mark.parametrize("table", WEIGHED + OTHERS)
@pytest.mark.parametrize("value", [NAN, MINUS_NAN, INF, -INF, -1.0, -5e-324, 1.7e308, 1e200],
                         ids=str)
def test_bad_priorities(attack, table, value):
    """No table accepts NaN. If priorities are weights, the table accepts no negative priority, and
    none whose power is infinite. All priorities of a request are refused, in inserts and updates of
    Reverb and in our own calls."""
    target = attack()
    bad = value != value or (table in WEIGHED and not 0 <= value < (
        1e160 if table == "prioritized" else 1e309))
    target.may_change = True
    with target.peer() as peer:
        stream = peer.open(m.INSERT)
        peer.write(stream, m.insert([m.chunk(1), m.chunk(2)],
                                    [m.item(1, table), m.item(2, table, 2.0)]))
        assert m.confirmed(peer.reply(stream)) == [1, 2]
        peer.write(stream, m.insert([m.chunk(3)], [m.item(3, table), m.item(4, table, value,
                                                                           chunk_key=3)]))
        if bad:
            call = peer.result(stream)
            assert call.status == m.INVALID and not call.body, call
        else:
            assert m.confirmed(peer.reply(stream)) == [3, 4]
        path, status = "/reprise.v1.Replay/Update", m.INVALID if bad else m.OK
        before = target.table_state()
        for updates in ([(1, value)], [(1, 5.0), (2, value)], [(1, value), (2, 5.0), (99, 1.0)]):
            assert peer.ask(m.MUTATE, m.mutate(table, updates, [2])).status == status
            assert peer.ask(path, m.mutate(table, updates)).status == status
            if bad:
                assert target.table_state() == before
        assert target.metrics()[f'table_size{{table="{table}"}}'] == (2 if bad else 3)
        for _ in range(20):
            assert peer.ask(m.SAMPLE, m.sample(table, 3, 0)).status == m.OK
        assert peer.ask(m.RESET, m.octets(1, table)).status == m.OK


def test_weights_whose_sum_overflows_are_refused(attack):
    """One such weight is accepted; two would make the total infinite and every draw meaningless."""
    target = attack()
    target.may_change = True
    with target.peer() as peer:
        stream = peer.open(m.INSERT)
        for key in range(1, 40):
            peer.write(stream, m.one(key, "weighed_out", 1.7e308))
            if peer.until(lambda: len(peer.calls[stream].body) > 5 or peer.calls[stream].over):
                peer.calls[stream].messages()
            if peer.calls[stream].over:
                assert peer.calls[stream].status == m.INVALID
                stream = peer.open(m.INSERT)
        call = peer.ask(m.SAMPLE, m.sample("weighed_out", 100, 0))
        assert call.status == m.OK
        for key in range(100, 1200):  # now the remover selects by weight
            peer.write(stream, m.one(key, "weighed_out", 1.0))
        assert peer.until(lambda: target.metrics()['table_size{table="weighed_out"}'] == 1000)
        assert peer.ask(m.RESET, m.octets(1, "weighed_out")).status == m.OK


def claim(n):
    """Returns a snappy block that claims `n` bytes and has five."""
    return m.varint(n) + b"\x10hello"


def zstd(n):
    """Returns a zstd frame that claims `n` bytes and is empty."""
    return b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", n) + b"\x01\0\0"


def with_tensor(dims, content, dtype=m.UINT8, more=b""):
    return m.chunk(1, [m.tensor(dims, content, dtype)], more=more)


MIB = 1 << 20

BAD_CHUNKS = {
    "an empty chunk": (b"", m.INVALID),
    "a chunk without tensors": (m.chunk(1, []), m.INVALID),
    "fewer tensors than it says": (
        m.number(1, 1) + m.octets(5, m.octets(1, m.tensor((1, 1), m.snappy(b"x"))))
        + m.number(6, 2), m.INVALID),
    "steps that run backwards": (
        m.number(1, 1) + m.octets(2, m.number(2, 5) + m.number(3, 4))
        + m.octets(5, m.octets(1, m.tensor((1, 1), m.snappy(b"x")))), m.INVALID),
    "an unknown codec": (m.chunk(1, more=m.number(1000, 9)), m.INVALID),
    "a codec past 32 bits": (m.chunk(1, more=m.number(1000, 1 << 40)), m.INVALID),
    "an unknown dtype": (with_tensor((1, 1), m.snappy(b"x"), 99), m.INVALID),
    "a resource": (with_tensor((1, 1), m.snappy(b"x"), 20), m.INVALID),
    "a variant": (with_tensor((1, 1), m.snappy(b"x"), 21), m.INVALID),
    "no dtype": (m.chunk(1, [m.octets(2, m.shape(1)) + m.octets(4, m.snappy(b"x"))]), m.INVALID),
    "no shape": (m.chunk(1, [m.number(1, 4) + m.octets(4, m.snappy(b"x"))]), m.INVALID),
    "a scalar": (with_tensor((), m.snappy(b"x")), m.INVALID),
    "an unknown rank": (
        m.chunk(1, [m.number(1, 4) + m.octets(2, m.shape(1) + m.number(3, 1))
                    + m.octets(4, m.snappy(b"x"))]), m.INVALID),
    "nine dimensions": (with_tensor((1,) * 9, m.snappy(b"x")), m.EXHAUSTED),
    "a thousand dimensions": (with_tensor((1,) * 1000, m.snappy(b"x")), m.EXHAUSTED),
    "a negative dimension": (with_tensor((1, -1), m.snappy(b"x")), m.INVALID),
    "dimensions that overflow": (with_tensor((1, 2**62, 4), m.snappy(b"x")), m.INVALID),
    "dimensions of 2^63 - 1": (with_tensor((2**63 - 1,), m.snappy(b"x")), m.EXHAUSTED),
    "no content": (with_tensor((1, 4), b""), m.INVALID),
    "typed values": (
        m.chunk(1, [m.number(1, 1) + m.octets(2, m.shape(1)) + m.octets(5, b"\0" * 4)]),
        m.INVALID),
    "less content than its shape": (with_tensor((1, 9), m.snappy(b"x" * 8)), m.INVALID),
    "more content than its shape": (with_tensor((1, 7), m.snappy(b"x" * 8)), m.INVALID),
    "a claim over the limit": (with_tensor((1, 257 * MIB), claim(257 * MIB)), m.EXHAUSTED),
    "a claim over 4 GiB": (with_tensor((1, 5 << 30), claim(5 << 30)), m.EXHAUSTED),
    "a claim that so few bytes cannot keep": (with_tensor((1, MIB), claim(MIB)), m.INVALID),
    "a claim that does not end": (with_tensor((1, 4), b"\xff" * 12), m.INVALID),
    "zstd over the limit": (
        with_tensor((1, 257 * MIB), zstd(257 * MIB), more=m.number(1000, 2)), m.EXHAUSTED),
    "zstd that claims another size": (
        with_tensor((1, 5), zstd(6), more=m.number(1000, 2)), m.INVALID),
    "zstd that is none": (with_tensor((1, 5), b"PAYLOAD", more=m.number(1000, 2)), m.INVALID),
    "lz4 that so few bytes cannot keep": (
        with_tensor((1, 200 * MIB), claim(200 * MIB), more=m.number(1000, 3)), m.INVALID),
    "strings fewer than its shape": (with_tensor((3,), b"\x01\x01ab", m.STRING), m.INVALID),
    "strings longer than their content": (with_tensor((1,), b"\x7fab", m.STRING), m.INVALID),
    "strings with lengths that overflow": (
        with_tensor((2,), (b"\xff" * 9 + b"\x01") * 2, m.STRING), m.INVALID),
    "one string that stands for many": (
        m.chunk(1, [m.number(1, m.STRING) + m.octets(2, m.shape(MIB)) + m.octets(8, b"x" * 300)]),
        m.EXHAUSTED),
    "more strings than memory": (with_tensor((1 << 40,), b"\0", m.STRING), m.EXHAUSTED),
}


@pytest.mark.parametrize("name", BAD_CHUNKS)
def test_invalid_chunks_are_refused(attack, name):
    target = attack()
    octets, status = BAD_CHUNKS[name]
    refuse(target, m.insert([octets], [m.item(1)]), status)
    assert sum(target.limits_hit().values()) == 1, target.refused()


@pytest.mark.parametrize("count", [0, -1, -2, 2**31, 2**63 - 1, -2**63])
def test_invalid_sample_counts_are_refused(attack, count):
    target = attack()
    with target.peer() as peer:
        assert peer.ask(m.SAMPLE, m.sample("a", count)).status == m.INVALID
        assert peer.ask(m.SAMPLE, m.sample("a", count, 0)).status == m.INVALID
    assert target.limits_hit() == {"decode": 2}


def test_the_largest_count_of_samples(attack):
    """A request for 2^31 - 1 samples is allowed: they are sent until the caller cancels."""
    target = attack()
    target.may_change = True
    with target.peer() as peer:
        insert = peer.open(m.INSERT)
        peer.write(insert, m.one(1))
        peer.reply(insert)
        stream = peer.open(m.SAMPLE)
        peer.write(stream, m.sample("a", 2**31 - 1))
        assert peer.until(lambda: len(peer.calls[stream].body) > 1 << 20)
        peer.send(f.rst(stream))
        assert peer.ask(m.RESET, m.octets(1, "a")).status == m.OK


@pytest.mark.parametrize("timeout, status", [
    (0, m.DEADLINE), (1, m.DEADLINE), (-1, None), (-2**63, None), (2**63 - 1, None),
    (2**62, None)])
def test_timeouts_of_samples(attack, timeout, status):
    """A timeout that is too long means for ever, and so does a negative one, as in Reverb."""
    target = attack()
    with target.peer() as peer:
        stream = peer.open(m.SAMPLE)
        peer.write(stream, m.sample("empty", 1, timeout))
        if status is None:
            assert peer.echo()
            assert not peer.calls[stream].over
            peer.send(f.rst(stream))
        else:
            assert peer.result(stream).status == status


@pytest.mark.parametrize("table, status", [
    ("PAYLOAD", m.NOT_FOUND), ("", m.NOT_FOUND), ("x" * 255, m.NOT_FOUND),
    ("x" * 256, m.INVALID), (b"\xff\xff", m.INVALID), (b"a\0PAYLOAD", m.INVALID),
    (b"\xc0\x80", m.INVALID), (b"\xed\xa0\x80", m.INVALID)])
def test_unknown_tables_are_refused(attack, table, status):
    target = attack()
    with target.peer() as peer:
        for path, octets in {
                m.SAMPLE: m.sample(table, 1), m.MUTATE: m.mutate(table, [(1, 1.0)]),
                m.RESET: m.octets(1, table),
                "/reprise.v1.Replay/Peek": m.octets(1, table) + m.number(2, 1),
                "/reprise.v1.Replay/Sample": m.octets(1, table) + m.number(2, 1)}.items():
            call = peer.ask(path, octets)
            assert call.status == status, path
            assert call.text.isprintable() and len(call.text) <= 256


@pytest.mark.parametrize("count", [0, -1, 2**31, 2**63 - 1, 2**20])
def test_a_large_sample_count_allocates_only_for_existing_items(attack, count):
    target = attack()
    with target.peer() as peer:
        call = peer.ask("/reprise.v1.Replay/Sample",
                        m.octets(1, "a") + m.number(2, count) + m.number(4, 0))
        assert call.status in (m.INVALID, m.EXHAUSTED, m.DEADLINE)


@pytest.mark.parametrize("options", [
    b"", m.octets(1, "x" * 1025) + m.number(4, 1), m.octets(1, "t") + m.number(4, 0),
    m.octets(1, "t") + m.number(4, -1), m.octets(1, "t") + m.number(4, 2**63 - 1),
    m.octets(1, "t") + m.number(4, 1) + m.number(6, -1),
    m.octets(1, "a") + m.number(4, 10),
    m.octets(1, "t") + m.number(4, 10) + m.octets(2, m.octets(3, m.double(1, NAN))),
    m.octets(1, "t") + m.number(4, 10) + m.octets(8, m.double(1, NAN)),
    m.octets(1, "t") + m.number(4, 10) + m.octets(8, m.double(1, 0.0)),
    m.octets(1, "t") + m.number(4, 10) + m.octets(8, m.double(3, 2) + m.double(4, 1)),
    m.octets(1, "t\n\"PAYLOAD\"") + m.number(4, 0)], ids=range(12))
def test_invalid_tables_are_refused(attack, options):
    target = attack()
    with target.peer() as peer:
        call = peer.ask("/reprise.v1.Replay/CreateTable", m.octets(1, options))
        assert call.status in (m.INVALID, m.ALREADY_EXISTS), call
        assert call.text.isprintable()


def test_a_signature_nested_without_end(attack):
    """Deeply nested lists are read without recursion, and refused."""
    target = attack()
    with target.peer() as peer:
        for depth in (40, 1000, 5000):
            octets = m.octets(33, m.octets(1, "x"))
            for _ in range(depth):
                octets = m.octets(51, m.octets(1, octets))
            call = peer.ask("/reprise.v1.Replay/CreateTable",
                            m.octets(1, m.octets(1, "t") + m.number(4, 10) + m.octets(9, octets)))
            assert call.status in (m.INVALID, m.EXHAUSTED), call


def test_signatures_have_a_limit_for_all_tables(attack):
    """Signatures with paths of a mebibyte: a few tables are created, then one is refused until
    another is dropped."""
    target = attack(fresh=True)
    leaf = m.octets(33, m.octets(1, "x") + m.number(3, 1))
    octets = m.octets(53, b"".join(
        m.octets(1, m.octets(1, f"{i:04}" + "k" * 1000) + m.octets(2, leaf)) for i in range(800)))
    with target.peer() as peer:
        made = []
        for i in range(40):
            call = peer.ask("/reprise.v1.Replay/CreateTable", m.octets(
                1, m.octets(1, f"s{i}") + m.number(4, 10) + m.octets(9, octets)))
            if call.status != m.OK:
                break
            made.append(f"s{i}")
        assert call.status == m.EXHAUSTED and "signatures" in call.text, call
        assert 5 < len(made) <= 16
        for name in made:
            assert peer.ask("/reprise.v1.Replay/DropTable", m.octets(1, name)).status == m.OK
    assert target.limits_hit() == {"tables": 1}


def test_a_table_of_the_largest_size_takes_no_memory(attack):
    target = attack()
    with target.peer() as peer:
        call = peer.ask("/reprise.v1.Replay/CreateTable",
                        m.octets(1, m.octets(1, "large") + m.number(4, 1 << 30)))
        assert call.status == m.OK
        assert peer.ask("/reprise.v1.Replay/DropTable", m.octets(1, "large")).status == m.OK
