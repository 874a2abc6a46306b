# SPDX-License-Identifier: Apache-2.0
"""The same message in other bytes."""


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def take_varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """(number, bytes with their tag, contents of a length-delimited one or None), in order."""
    at = 0
    while at < len(data):
        start = at
        tag, at = take_varint(data, at)
        inner = None
        if tag & 7 == 0:
            _, at = take_varint(data, at)
        elif tag & 7 == 2:
            size, at = take_varint(data, at)
            inner = data[at:at + size]
            at += size
        else:
            at += {1: 8, 5: 4}[tag & 7]
        yield tag >> 3, data[start:at], inner


def unpacked(number, inner):
    """Numbers one by one instead of packed."""
    at, out = 0, []
    while at < len(inner):
        value, at = take_varint(inner, at)
        out.append(varint(number << 3) + varint(value))
    return out


UNKNOWN = [varint(2000 << 3) + varint(7), varint(2001 << 3 | 1) + bytes(8),
           varint(2002 << 3 | 2) + varint(3) + b"abc", varint(2003 << 3 | 5) + bytes(4)]


def rearranged(rng, data, packed=()):
    """Other bytes that mean the same: fields in another order, numbers of the fields `packed` now
    and then one by one, fields that nobody knows in between. Of fields with one number the order
    stays."""
    groups = {}
    for number, whole, inner in fields(data):
        pieces = [whole]
        if number in packed and inner is not None and rng.random() < 0.5:
            pieces = unpacked(number, inner)
        groups.setdefault(number, []).extend(pieces)
    groups = [g for g in groups.values() if g] + [[rng.choice(UNKNOWN)] for _ in range(rng.randrange(3))]
    out = b""
    while groups:
        group = rng.choice(groups)
        out += group.pop(0)
        groups = [g for g in groups if g]
    return out


def damaged(rng, data):
    """The message with a few bytes changed, taken out or put in."""
    data = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data) + 1)
        how = rng.randrange(3)
        if how == 0 and at < len(data):
            data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        elif how == 1:
            del data[at:at + rng.randrange(1, 4)]
        else:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 4)))
    return bytes(data)
