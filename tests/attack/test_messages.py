# SPDX-License-Identifier: Apache-2.0
"""Invalid messages: in the framing of gRPC, and as protocol buffers."""

import random
import struct

import pytest

import frames as f
import messages as m

OURS = "/reprise.v1.Replay/"

# A valid message for each call that takes one. It changes only what its test allows.
GOOD = {
    m.INSERT: m.one(1),
    m.SAMPLE: m.sample("a", 1, 0),
    m.MUTATE: m.mutate("a", [(1, 1.0)]),
    m.RESET: m.octets(1, "a"),
    m.INFO: b"",
    m.CHECKPOINT: b"",
    m.INITIALIZE: m.number(1, 1) + m.octets(2, "a"),
    m.HEALTH: b"",
    OURS + "Peek": m.octets(1, "a") + m.number(2, 1),
    OURS + "Sample": m.octets(1, "a") + m.number(2, 1) + m.number(4, 0),
    OURS + "WhyBlocked": m.octets(1, "a"),
    OURS + "Clients": b"",
    OURS + "Status": m.octets(1, "a"),
    OURS + "Update": m.mutate("a", [(1, 1.0)]),
    OURS + "Delete": m.octets(1, "a") + m.number(2, 1),
    OURS + "AlterTable": m.octets(1, "a"),
    OURS + "PauseTable": m.octets(1, "no such table"),
    OURS + "DropTable": m.octets(1, "no such table"),
    "/reprise.v1.Runs/LogScalars": m.octets(1, "run") + m.octets(2, m.octets(1, "x")),
    "/reprise.v1.Runs/ReadRuns": m.octets(1, "run"),
    "/reprise.v1.Rollouts/ListRollouts": b"",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": m.octets(7, ""),
}
NAMES = {path: path.rpartition("/")[2] for path in GOOD}

HUGE = [(64 << 20) + 1, 1 << 30, (1 << 31) - 1, 1 << 31, (1 << 32) - 1]


@pytest.mark.parametrize("size", HUGE)
@pytest.mark.parametrize("path", [m.INSERT, m.SAMPLE, m.INFO, m.HEALTH], ids=NAMES.get)
def test_an_announced_size_over_the_limit_is_refused_unseen(attack, path, size):
    target = attack()
    with target.peer() as peer:
        stream = peer.open(path)
        peer.send(f.data(stream, f.message(b"", length=size)))
        call = peer.result(stream)
        assert call.status == m.EXHAUSTED
        assert "limit" in call.text and len(call.text) <= 256
    assert target.limits_hit() == {"message_bytes": 1}


def test_announced_sizes_take_no_memory(attack):
    """Only the prefixes of a thousand messages of 64 MiB are sent. A connection reserves room for
    one message."""
    target = attack(fresh=True)
    with target.peer() as peer:
        assert peer.echo()
        block = f.request_block(m.INSERT)
        prefix = f.message(b"", length=64 << 20)
        for i in range(1000):
            stream = peer.stream()
            peer.send(f.headers(stream, block) + f.data(stream, prefix))
        assert peer.echo()
        assert target.metrics()["queued_bytes"] <= (64 << 20) + 65536  # and of the bystander


def test_a_message_takes_memory_for_received_bytes_only(attack):
    target = attack(fresh=True)
    with target.peer() as peer:
        stream = peer.open(m.INSERT)
        assert peer.echo()
        peer.send(f.data(stream, f.message(b"", length=64 << 20)))
        peer.flood(f.data(stream, b"\0" * 16384) * 128)
        assert peer.echo()
        assert target.metrics()["queued_bytes"] <= (64 << 20) + 65536  # and of the bystander


@pytest.mark.parametrize("flag", [1, 2, 0x7f, 0x80, 0xff])
def test_messages_compressed_by_grpc_are_refused(attack, flag):
    target = attack()
    with target.peer() as peer:
        stream = peer.open(m.INSERT)
        peer.send(f.data(stream, f.message(m.one(1), flag)))
        assert peer.result(stream).status == m.UNIMPLEMENTED
    assert target.limits_hit() == {"compression": 1}


def test_a_compressed_message_ends_a_sampler_that_waits(attack):
    """The sampler has requested 2^31 - 1 samples and waits. After the error it must end."""
    target = attack(tables={"a": "uniform:1000,min_size=2", "bystander": "uniform:1000"})
    target.may_change = True
    with target.peer() as peer:
        stream = peer.open(m.SAMPLE)
        peer.write(stream, m.sample("a", (1 << 31) - 1))
        peer.send(f.data(stream, f.message(b"", 1)))
        assert peer.result(stream).status == m.UNIMPLEMENTED
        insert = peer.open(m.INSERT)
        peer.write(insert, m.one(1))
        peer.reply(insert)
        peer.write(insert, m.one(2))
        peer.reply(insert)
        assert peer.ask(m.RESET, m.octets(1, "a")).status == m.OK
    assert target.metrics()['table_samples_total{table="a"}'] == 0


MESSAGE = f.message(m.one(1))


@pytest.mark.parametrize("how", ["half-close", "cancel", "disconnect", "hang up"])
def test_a_message_truncated_at_any_byte_is_refused(attack, how):
    """Before the last byte, nothing is inserted."""
    target = attack()
    peer = target.peer()
    for cut in range(1, len(MESSAGE)):
        stream = peer.open(m.INSERT)
        peer.send(f.data(stream, MESSAGE[:cut], end=how == "half-close"))
        if how == "half-close":
            call = peer.result(stream)
            assert call.status == m.INVALID and "within a message" in call.text
        elif how == "cancel":
            peer.send(f.rst(stream))
        else:
            peer.close(hard=how == "disconnect")
            peer = target.peer()
    if how == "cancel":
        assert peer.echo()
    peer.close()
    hit = {"framing": len(MESSAGE) - 1} if how == "half-close" else {}
    assert target.limits_hit() == hit


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_a_message_in_pieces_is_a_message(attack, size):
    target = attack()
    target.may_change = True
    with target.peer() as peer:
        stream = peer.open(m.INSERT)
        octets = f.message(m.one(1)) + f.message(m.one(2)) + f.message(m.one(3))
        peer.send(b"".join(f.data(stream, octets[i:i + size])
                           for i in range(0, len(octets), size)))
        keys = []
        while len(keys) < 3:
            peer.until(lambda: len(peer.calls[stream].body) >= 5)
            for reply in peer.calls[stream].messages():
                keys += m.confirmed(reply)
        assert sorted(keys) == [1, 2, 3]
    assert not target.limits_hit()


def test_unknown_paths_are_unimplemented(attack):
    target = attack()
    paths = ["/", "//", "/PAYLOAD", m.SERVICE, m.INSERT + "/", m.INSERT + "x",
             m.INSERT.lower(), "/a/../.." + m.RESET, m.SERVICE + "x/Reset", m.RESET + "?x",
             m.RESET + "%00", "/" + "PAYLOAD" * 40, "/" + "x" * 15000, "/reprise.v1./Peek",
             "/reprise.v1.x/y/Peek"]
    with target.peer() as peer:
        for path in paths:
            call = peer.ask(path, m.octets(1, "a"))
            assert call.status == m.UNIMPLEMENTED, path[:40]
    assert target.limits_hit() == {"unknown_method": len(paths)}


@pytest.mark.parametrize("change, http", [
    ({"method": "PUT"}, "404"), ({"method": "PAYLOAD"}, "404"), ({"content_type": None}, "415"),
    ({"content_type": "text/plain"}, "415"), ({"content_type": "application/grp"}, "415")])
def test_requests_that_are_not_grpc(attack, change, http):
    target = attack()
    with target.peer() as peer:
        call = peer.ask(m.INFO, b"", **change)
        assert call.fields[":status"] == http
        assert peer.ask(m.INFO, b"").status == m.OK


@pytest.mark.parametrize("text", ["", "1", "S", "-1S", "+1S", "1s", "123456789S", "1 S", "0x1S",
                                  "1S1S", "PAYLOAD", "99999999999999999999H"])
def test_invalid_timeouts_are_refused(attack, text):
    target = attack()
    with target.peer() as peer:
        call = peer.ask(m.INFO, b"", more=[("grpc-timeout", text)])
        assert call.status == (m.INVALID if text else m.OK)


@pytest.mark.parametrize("text", ["99999999H", "1n", "0S", "10m"])
def test_timeouts_at_their_ends(attack, text):
    target = attack()
    with target.peer() as peer:
        call = peer.ask(m.SAMPLE, m.sample("empty", 1, 20), more=[("grpc-timeout", text)])
        assert call.status == m.DEADLINE
        assert not call.body


def test_a_call_without_a_message(attack):
    target = attack()
    with target.peer() as peer:
        for path in GOOD:
            call = peer.result(peer.open(path, end=True))
            streams = (m.INSERT, m.SAMPLE, m.INITIALIZE)
            fine = path in streams or "Reflection" in path
            assert call.status == (m.OK if fine else m.INVALID), path


def test_a_call_with_more_messages_than_one(attack):
    target = attack()
    with target.peer() as peer:
        stream = peer.open(m.INFO)
        peer.write(stream, *[b""] * 1000, end=True)
        call = peer.result(stream)
        assert call.status == m.OK and len(call.messages()) == 1


GROUP = bytes([99 << 3 & 0x7f | 0x80 | 3, 99 >> 4])
GROUP_END = bytes([99 << 3 & 0x7f | 0x80 | 4, 99 >> 4])
LONG = b"\x80" * 9

# Bytes that make any message invalid if they are at its end.
BAD_ENDS = {
    "a group": GROUP + GROUP_END,
    "a group that does not end": GROUP,
    "the end of no group": GROUP_END,
    "groups in groups": GROUP * 5000 + GROUP_END * 5000,
    "wire type 6": b"\x7e",
    "wire type 7": b"\x7f",
    "field 0": b"\x00\x01",
    "a field past 2^29": b"\xf8\xff\xff\xff\xff\x01\x00",
    "a tag that does not end": b"\xf8\xff",
    "a tag of eleven bytes": b"\xf8" + b"\x80" * 10 + b"\x00\x00",
    "a varint of eleven bytes": b"\x98\x06" + LONG + b"\x80\x00",
    "a varint past 64 bits": b"\x98\x06" + b"\xff" * 9 + b"\x02",
    "a varint that does not end": b"\x98\x06\xff",
    "a length past the end": b"\x9a\x06\x05abcd",
    "a length past the memory": b"\x9a\x06" + b"\xff" * 9 + b"\x01abcd",
    "a length past 32 bits": b"\x9a\x06\x80\x80\x80\x80\x10abcd",
    "a fixed number that is cut": b"\x99\x06\0\0\0",
    "a short fixed number that is cut": b"\x9d\x06\0",
}

# Unusual bytes that are allowed.
FINE_ENDS = {
    "an unknown number": m.number(99, 5),
    "an unknown text": m.octets(99, "PAYLOAD"),
    "a long way to say 0": b"\x98\x06" + LONG + b"\x00",
    "the largest number": b"\x98\x06" + b"\xff" * 9 + b"\x01",
    "an unknown fixed number": b"\x99\x06" + b"\xff" * 8,
    "the largest field": b"\xf8\xff\xff\xff\x0f\x00",
    "messages in messages": None,  # below
}


def nested(depth):
    """Returns bytes that look like `depth` nested messages."""
    out = b""
    for _ in range(depth):
        out = m.octets(99, out)
    return out


FINE_ENDS["messages in messages"] = nested(3000)


@pytest.mark.parametrize("path", GOOD, ids=NAMES.get)
def test_malformed_messages_are_refused(attack, path):
    target = attack()
    with target.peer() as peer:
        for name, end in BAD_ENDS.items():
            for octets in (GOOD[path] + end, end):
                call = peer.ask(path, octets)
                assert call.status == m.INVALID, f"{name}: {call}"
                assert m.confirmed(call.messages()[0] if call.body else b"") == []
                assert call.text.isprintable() and len(call.text) <= 256
    hit = target.limits_hit()
    assert set(hit) <= {"decode"}


@pytest.mark.parametrize("name", FINE_ENDS)
def test_unknown_fields_are_skipped(attack, name):
    target = attack()
    target.may_change = True
    with target.peer() as peer:
        for path in GOOD:
            if path not in (m.CHECKPOINT, m.RESET) and "Table" not in path:
                call = peer.ask(path, GOOD[path] + FINE_ENDS[name])
                assert call.status == m.OK, f"{path}: {call}"
        assert peer.ask(m.RESET, GOOD[m.RESET] + FINE_ENDS[name]).status == m.OK


# The parts of a request of InsertStream: functions that make a request with given bytes in that
# part.
PLACES = {
    "the chunk": lambda x: m.insert([m.chunk(1, more=x)], [m.item(1)]),
    "the data of a chunk": lambda x: m.insert(
        [m.number(1, 1) + m.octets(5, m.octets(1, m.tensor((1, 1), m.snappy(b"x"))) + x)],
        [m.item(1)]),
    "the range of a chunk": lambda x: m.insert(
        [m.number(1, 1) + m.octets(2, x) + m.octets(5, m.octets(1, m.tensor((1, 1),
                                                                           m.snappy(b"x"))))],
        [m.item(1)]),
    "a tensor": lambda x: m.insert(
        [m.chunk(1, [m.tensor((1, 1), m.snappy(b"x")) + x])], [m.item(1)]),
    "a shape": lambda x: m.insert(
        [m.chunk(1, [m.number(1, m.UINT8) + m.octets(2, m.shape(1, 1) + x)
                     + m.octets(4, m.snappy(b"x"))])], [m.item(1)]),
    "a dimension": lambda x: m.insert(
        [m.chunk(1, [m.number(1, m.UINT8) + m.octets(2, m.octets(2, m.number(1, 1) + x))
                     + m.octets(4, m.snappy(b"x"))])], [m.item(1)]),
    "the item": lambda x: m.insert([m.chunk(1)], [m.item(1, more=x)]),
    "a trajectory": lambda x: m.insert(
        [m.chunk(1)], [m.number(1, 1) + m.octets(2, "a") + m.double(5, 1.0)
                       + m.octets(8, m.octets(1, m.column([m.piece(1)])) + x)]),
    "a column": lambda x: m.insert([m.chunk(1)], [m.item(1, columns=[m.column([m.piece(1)])
                                                                     + x])]),
    "a slice": lambda x: m.insert(
        [m.chunk(1)], [m.item(1, columns=[m.column([m.piece(1) + x])])]),
}


@pytest.mark.parametrize("place", PLACES)
def test_malformed_parts_are_refused(attack, place):
    target = attack()
    with target.peer() as peer:
        for name, end in BAD_ENDS.items():
            stream = peer.open(m.INSERT)
            peer.write(stream, PLACES[place](end))
            call = peer.result(stream)
            assert call.status == m.INVALID, f"{name}: {call}"
            assert not call.body
    assert target.limits_hit() == {"decode": len(BAD_ENDS)}


@pytest.mark.parametrize("place", PLACES)
def test_unknown_fields_of_parts_are_skipped(attack, place):
    target = attack()
    target.may_change = True
    with target.peer() as peer:
        for name, end in FINE_ENDS.items():
            stream = peer.open(m.INSERT)
            peer.write(stream, PLACES[place](end))
            assert m.confirmed(peer.reply(stream)) == [1], name
        assert peer.ask(m.RESET, m.octets(1, "a")).status == m.OK


def mutant(octets, rng):
    """Returns the octets with a few of them changed, removed, duplicated or moved."""
    out = bytearray(octets)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(out) + 1)
        kind = rng.randrange(5)
        if kind == 0 and at < len(out):
            out[at] = rng.choice((0, 1, 0x7f, 0x80, 0xff, rng.randrange(256)))
        elif kind == 1:
            del out[at:at + rng.randrange(1, 9)]
        elif kind == 2:
            out[at:at] = out[at:at + rng.randrange(1, 40)]
        elif kind == 3:
            out[at:at] = rng.choice((b"\xff" * 9 + b"\x01", b"\x80" * 9, GROUP, b"\x7a\xff\x7f",
                                     struct.pack("<d", float("nan"))))
        elif at < len(out):
            out[at] ^= 1 << rng.randrange(8)
    return bytes(out)


@pytest.mark.parametrize("path", [p for p in GOOD if "Table" not in p], ids=NAMES.get)
def test_messages_with_random_damage_get_a_response(attack, path):
    """A few hundred of each, from a fixed seed, many at a time."""
    target = attack(fresh=False, tables={"a": "prioritized:1000", "bystander": "uniform:1000"})
    target.may_change = True
    rng = random.Random(NAMES[path])
    good = {m.INSERT: m.insert(
        [m.chunk(1, rows=4, columns=2), m.chunk(2, rows=4)],
        [m.item(1, columns=[m.column([m.piece(1, 1, 2), m.piece(2, 0, 3)]),
                            m.column([m.piece(1, 2, 1, 1)], True)]),
         m.item(2, "a", 0.5)], [1])}.get(path, GOOD[path] or m.number(1, 1))
    with target.peer() as peer:
        for _ in range(3):
            streams = []
            for _ in range(100):
                streams.append(peer.open(path, more=[("grpc-timeout", "200m")]))
                peer.write(streams[-1], mutant(good, rng), mutant(good, rng), end=True)
            for stream in streams:
                call = peer.result(stream)
                assert call.status is not None and call.status != m.UNKNOWN, call
                assert call.text.isprintable() and len(call.text) <= 400, call
        assert peer.ask(m.RESET, m.octets(1, "a")).status == m.OK
