# SPDX-License-Identifier: Apache-2.0
"""The bytes of floods, as functions of the number of events."""

import frames as f
import messages as m


def resets(count, path, body=b"", end=False, **change):
    """Returns calls that are cancelled at once."""
    block = f.request_block(path, **change)
    return b"".join(f.headers(s, block, end) + body.replace(b"\xff\xff\xff\xff",
                                                            s.to_bytes(4, "big")) + f.rst(s)
                    for s in range(3, 3 + 2 * count, 2))


def on_streams(count, what, path=m.INSERT):
    """Returns `count` calls. `what` makes the bytes after the headers of each."""
    block = f.request_block(path)
    return b"".join(f.headers(s, block) + what(s) for s in range(3, 3 + 2 * count, 2))


def size_updates(count, unit):
    """Returns a call whose headers begin with `count` HPACK size updates more than are free."""
    return f.headers(3, unit * (count + BLOCK_TABLE_SIZES) + f.request_block(m.INSERT))


OVER = "a call that is over"  # floods with this in their name have such a call on stream 1

# Events that are free at first: window updates for a call and for its response, one reset of a
# call, parts of a message, and size updates in a block of headers.
CALL_WINDOWS, ANSWER_WINDOWS, FREE_RESETS, CALL_FRAGMENTS = 4, 16, 1, 2
BLOCK_TABLE_SIZES = 2

# For each flood, the function that makes its bytes, and the kind of abuse that it counts as. Stream
# 1 is an open insert stream, or OVER.
FLOODS = {
    "resets of streams": (lambda n: resets(n, m.INSERT), "client_reset"),
    "resets of calls that had their message": (
        lambda n: resets(n, m.INFO, f.frame(f.DATA, f.END_STREAM, 0xffffffff, f.message(b""))),
        "client_reset"),
    "resets of calls that have an hour left": (
        lambda n: resets(n, m.INSERT, grpc_timeout="1H"), "client_reset"),
    "resets of calls that were refused": (
        lambda n: resets(n, "/no/such/method"), "client_reset"),
    "pings": (lambda n: f.ping() * n, "ping"),
    "settings": (lambda n: f.settings() * n, "settings"),
    "settings that change windows": (
        lambda n: b"".join(f.settings([(f.INITIAL_WINDOW, 65535 + i)]) for i in range(n)),
        "settings"),
    "empty DATA": (lambda n: f.data(1) * n, "empty_frame"),
    "empty DATA with padding": (
        lambda n: f.frame(f.DATA, f.PADDED, 1, b"\x05" + b"\0" * 5) * n, "empty_frame"),
    "windows of the connection": (
        lambda n: f.window(0, 1) * (n + CALL_WINDOWS), "window_update"),
    "windows of a stream": (
        lambda n: f.window(1, 1) * (n + CALL_WINDOWS), "window_update"),
    "priorities": (lambda n: b"".join(f.priority(2 * i + 101) for i in range(n)), "priority"),
    "farewells": (lambda n: f.frame(f.GOAWAY, 0, 0, b"\0" * 8) * n, "unknown_frame"),
    "unknown frames": (lambda n: f.frame(0x42, 0, 1, b"PAYLOAD") * n, "unknown_frame"),
    "headers of a call that is over": (
        lambda n: f.headers(1, f.request_block(m.INFO)) * n, "bad_frame"),
    "DATA of a call that is over": (lambda n: f.data(1, b"PAYLOAD") * n, "late_frame"),
    "empty DATA of a call that is over": (lambda n: f.data(1) * n, "late_frame"),
    "ends of a call that is over": (lambda n: f.data(1, b"", end=True) * n, "late_frame"),
    "padding of a call that is over": (
        lambda n: f.frame(f.DATA, f.PADDED, 1, b"\x05" + b"\0" * 5) * n, "late_frame"),
    "resets of a call that is over": (lambda n: f.rst(1) * (n + FREE_RESETS), "late_frame"),
    "windows of a call that is over": (
        lambda n: f.window(1, 1) * (n + CALL_WINDOWS + ANSWER_WINDOWS), "window_update"),
    "priorities of a call that is over": (lambda n: f.priority(1) * n, "priority"),
    "answers to pings that were not sent": (lambda n: f.ping(flags=f.ACK) * n, "ping"),
    "single bytes of a message": (
        lambda n: f.data(1, f.message(b"", length=1 << 20)) + f.data(1, b"x") * (
            n + CALL_FRAGMENTS - 1),
        "fragment"),
    "size updates of the header table": (lambda n: size_updates(n, b"\x20"), "table_size"),
    "size updates of three bytes": (lambda n: size_updates(n, b"\x3f\xe1\x1f"), "table_size"),
}

# Six ways to make the server reset a call. Each may count as more than one event.
MADE_RESETS = {
    "a window past 2^31 - 1": lambda n: on_streams(n, lambda s: f.window(s, (1 << 31) - 1)),
    "a content-length that is wrong": lambda n: b"".join(
        f.headers(s, f.request_block(m.INSERT, [("content-length", "1")])) + f.data(s, b"PAYLOAD")
        for s in range(3, 3 + 2 * n, 2)),
    "headers that are malformed": lambda n: b"".join(
        f.headers(s, f.request_block(m.INSERT, [("X", "PAYLOAD")]))
        for s in range(3, 3 + 2 * n, 2)),
    "pseudo-headers in trailers": lambda n: on_streams(
        n, lambda s: f.headers(s, f.fields([(":path", "/")]), True)),
    "an end before its content-length": lambda n: b"".join(
        f.headers(s, f.request_block(m.INSERT, [("content-length", "9")]), True)
        for s in range(3, 3 + 2 * n, 2)),
    "trailers that do not end it": lambda n: on_streams(
        n, lambda s: f.headers(s, f.fields([("x", "y")]))),
}

ALL = {**{k: v[0] for k, v in FLOODS.items()}, **MADE_RESETS}


def bomb(references, first=0x40, long="value"):
    """Returns headers that add a field of 3,900 bytes to the HPACK table. Each further byte of the
    block refers to it."""
    field = ("x", "v" * 3900) if long == "value" else ("x" * 3900, "v")
    return f.request_block(m.INFO) + f.literal(*field, first) + b"\xbe" * references
