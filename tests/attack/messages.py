# SPDX-License-Identifier: Apache-2.0
"""Messages of Reverb, byte by byte: valid ones, and functions to make invalid ones."""

import struct

SERVICE = "/deepmind.reverb.ReverbService/"
INSERT, SAMPLE, MUTATE, RESET, INFO, CHECKPOINT, INITIALIZE = (
    SERVICE + name for name in ("InsertStream", "SampleStream", "MutatePriorities", "Reset",
                                "ServerInfo", "Checkpoint", "InitializeConnection"))
HEALTH = "/grpc.health.v1.Health/Check"
WATCH = "/grpc.health.v1.Health/Watch"

OK, CANCELLED, UNKNOWN, INVALID, DEADLINE, NOT_FOUND, ALREADY_EXISTS, DENIED, EXHAUSTED, \
    PRECONDITION, ABORTED, OUT_OF_RANGE, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS, \
    UNAUTHENTICATED = range(17)

UINT8, FLOAT, STRING = 4, 1, 7


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def octets(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def double(field, value):
    return varint(field << 3 | 1) + struct.pack("<d", value)


def packed(field, values):
    return octets(field, b"".join(varint(v) for v in values))


def read(data):
    """Yields (field, value) of each field of a message."""
    at = 0

    def get():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = get()
        if tag & 7 == 0:
            yield tag >> 3, get()
        elif tag & 7 == 1:
            yield tag >> 3, struct.unpack_from("<d", data, at)[0]
            at += 8
        else:
            size = get()
            yield tag >> 3, data[at:at + size]
            at += size


def snappy(data):
    """Returns a snappy block that is one literal."""
    n = len(data)
    if n == 0:
        return b"\0"
    if n <= 60:
        return varint(n) + bytes([n - 1 << 2]) + data
    size = (n - 1).bit_length() + 7 >> 3
    return varint(n) + bytes([59 + size << 2]) + (n - 1).to_bytes(size, "little") + data


def shape(*dims):
    return b"".join(octets(2, number(1, d) if d else b"") for d in dims)


def tensor(dims, content, dtype=UINT8):
    return number(1, dtype) + octets(2, shape(*dims)) + octets(4, content)


def chunk(key, tensors=None, rows=1, columns=1, row_bytes=16, fill=b"\xa5", episode=1, more=b"",
          last=None):
    """Returns a chunk of `columns` tensors of bytes, or of the given tensors."""
    if tensors is None:
        one = tensor((rows, row_bytes), snappy(fill * (rows * row_bytes)))
        tensors = [one] * columns
    end = rows - 1 if last is None else last
    sequence = number(1, episode) + (number(3, end) if end else b"")
    return (number(1, key) + octets(2, sequence)
            + octets(5, b"".join(octets(1, t) for t in tensors)) + number(6, len(tensors)) + more)


def piece(key, offset=0, length=1, index=0):
    """Returns a slice of a chunk."""
    return number(1, key) + number(2, offset) + number(3, length) + number(4, index)


def column(pieces, squeeze=False):
    return b"".join(octets(1, p) for p in pieces) + (number(2, 1) if squeeze else b"")


def item(key, table="a", priority=1.0, columns=None, chunk_key=None, times_sampled=0, more=b""):
    """Returns an item of one row of a chunk, or of the given columns."""
    if columns is None:
        columns = [column([piece(key if chunk_key is None else chunk_key)])]
    return (number(1, key) + octets(2, table) + double(5, priority)
            + (number(6, times_sampled) if times_sampled else b"")
            + octets(8, b"".join(octets(1, c) for c in columns)) + more)


def insert(chunks=(), items=(), keep=None, more=b""):
    """Returns a request of InsertStream."""
    return (b"".join(octets(1, c) for c in chunks) + b"".join(octets(2, i) for i in items)
            + (packed(3, keep) if keep else b"") + more)


def one(key, table="a", priority=1.0, row_bytes=16, keep=None):
    """Returns a request with a chunk and its item."""
    return insert([chunk(key, row_bytes=row_bytes)], [item(key, table, priority)], keep)


def confirmed(reply):
    """Returns the keys of a response of InsertStream."""
    keys = []
    for field, value in read(reply):
        assert field == 1
        at = 0
        while at < len(value):
            key = shift = 0
            while True:
                byte = value[at]
                at += 1
                key |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            keys.append(key)
    return keys


def sample(table="a", count=1, timeout_ms=None, more=b""):
    return (octets(1, table) + (number(2, count) if count else b"")
            + (octets(3, number(1, timeout_ms)) if timeout_ms is not None else b"") + more)


def update(key, priority):
    return number(1, key) + double(2, priority)


def mutate(table="a", updates=(), deletes=(), more=b""):
    return (octets(1, table) + b"".join(octets(2, update(k, p)) for k, p in updates)
            + (packed(3, deletes) if deletes else b"") + more)


def samples(reply):
    """Returns how many samples end in a response of SampleStream."""
    return sum(dict(read(entry)).get(3, 0) for _, entry in read(reply))
