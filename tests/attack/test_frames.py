# SPDX-License-Identifier: Apache-2.0
"""Frames of every type that HTTP/2 forbids, with an innocent call on the same connection.

A connection error ends the connection with GOAWAY and the code of RFC 9113, and is counted as
`protocol`. A stream error resets that stream, and the innocent call continues."""

import struct

import pytest

import frames as f
import messages as m

INNOCENT = 1  # an insert stream; the next one that may be opened is 3
CALL = m.INFO

# Connection errors: name, the bytes that are sent, the codes that are allowed.
FATAL = {
    "DATA on stream 0": (f.data(0, b"x"), f.PROTOCOL_ERROR),
    "DATA on a stream that is not open": (f.data(101, b"x"), f.PROTOCOL_ERROR),
    "DATA with more padding than payload": (
        f.frame(f.DATA, f.PADDED, INNOCENT, b"\x05abc"), f.PROTOCOL_ERROR),
    "DATA that says it is padded and is empty": (
        f.frame(f.DATA, f.PADDED, INNOCENT), f.FRAME_SIZE_ERROR, f.PROTOCOL_ERROR),
    "DATA longer than we take": (
        f.frame(f.DATA, 0, INNOCENT, b"", (1 << 20) + 1), f.FRAME_SIZE_ERROR),
    "DATA after the end of its stream": (
        f.headers(3, f.request_block(m.INSERT), True) + f.data(3, b"x"), f.STREAM_CLOSED),
    "HEADERS after the end of their stream": (
        f.headers(3, f.request_block(m.INSERT), True) + f.headers(3, b"", True),
        f.STREAM_CLOSED),
    "HEADERS on stream 0": (f.headers(0, f.request_block(CALL)), f.PROTOCOL_ERROR),
    "HEADERS on an even stream": (f.headers(2, f.request_block(CALL)), f.PROTOCOL_ERROR),
    "HEADERS that depend on themselves": (
        f.frame(f.HEADERS, f.END_HEADERS | f.HAS_PRIORITY, 3,
                struct.pack(">IB", 3, 1) + f.request_block(CALL)), f.PROTOCOL_ERROR),
    "HEADERS with more padding than payload": (
        f.frame(f.HEADERS, f.END_HEADERS | f.PADDED, 3, b"\xff" + f.request_block(CALL)[:50]),
        f.PROTOCOL_ERROR, f.FRAME_SIZE_ERROR),
    "HEADERS too short for their priority": (
        f.frame(f.HEADERS, f.END_HEADERS | f.HAS_PRIORITY, 3, b"\0\0"),
        f.FRAME_SIZE_ERROR, f.PROTOCOL_ERROR),
    "HEADERS with field 0 of the table": (f.headers(3, b"\x80"), f.COMPRESSION_ERROR),
    "HEADERS with a field past the table": (f.headers(3, b"\xff\x80\x01"), f.COMPRESSION_ERROR),
    "HEADERS with a number that does not end": (
        f.headers(3, b"\xff" + b"\xff" * 12), f.COMPRESSION_ERROR),
    "HEADERS with a name longer than the block": (
        f.headers(3, b"\x00\x7f\xff\x01abc"), f.COMPRESSION_ERROR),
    "HEADERS with a table larger than allowed": (
        f.headers(3, f.hpack_int(1 << 20, 5, 0x20) + f.request_block(CALL)),
        f.COMPRESSION_ERROR),
    "HEADERS with padding that is no padding of Huffman's code": (
        f.headers(3, b"\x00\x81\x00\x01a"), f.COMPRESSION_ERROR),
    "HEADERS with the end of Huffman's code as a letter": (
        f.headers(3, b"\x00\x84\xff\xff\xff\xfc\x01a"), f.COMPRESSION_ERROR),
    "HEADERS that are cut by another frame": (
        f.headers(3, f.request_block(CALL), more=True) + f.ping(), f.PROTOCOL_ERROR),
    "HEADERS that go on in another stream": (
        f.headers(3, f.request_block(CALL), more=True) + f.continuation(5, b""),
        f.PROTOCOL_ERROR),
    "an unknown frame within HEADERS": (
        f.headers(3, f.request_block(CALL), more=True) + f.frame(0xfa, 0, 3, b"x"),
        f.PROTOCOL_ERROR),
    "PRIORITY of 4 bytes": (f.frame(f.PRIORITY, 0, 3, b"\0" * 4), f.FRAME_SIZE_ERROR),
    "PRIORITY on stream 0": (f.priority(0, 1), f.PROTOCOL_ERROR),
    "PRIORITY that depends on itself": (f.priority(3, 3), f.PROTOCOL_ERROR),
    "RST_STREAM of 3 bytes": (f.frame(f.RST_STREAM, 0, INNOCENT, b"\0" * 3),
                              f.FRAME_SIZE_ERROR),
    "RST_STREAM on stream 0": (f.rst(0), f.PROTOCOL_ERROR),
    "RST_STREAM on a stream that is not open": (f.rst(101), f.PROTOCOL_ERROR),
    "SETTINGS of 5 bytes": (f.frame(f.SETTINGS, 0, 0, b"\0" * 5), f.FRAME_SIZE_ERROR),
    "SETTINGS on a stream": (f.settings(stream=1), f.PROTOCOL_ERROR),
    "SETTINGS that acknowledge and say something": (
        f.frame(f.SETTINGS, f.ACK, 0, b"\0" * 6), f.FRAME_SIZE_ERROR),
    "SETTINGS that acknowledge nothing": (
        f.settings(flags=f.ACK) * 3, f.PROTOCOL_ERROR),
    "SETTINGS that push perhaps": (f.settings([(f.ENABLE_PUSH, 2)]), f.PROTOCOL_ERROR),
    "SETTINGS of a window over 2^31 - 1": (
        f.settings([(f.INITIAL_WINDOW, 1 << 31)]), f.FLOW_CONTROL_ERROR),
    "SETTINGS of frames below 16 KiB": (f.settings([(f.MAX_FRAME, 16383)]), f.PROTOCOL_ERROR),
    "SETTINGS of frames over 16 MiB": (f.settings([(f.MAX_FRAME, 1 << 24)]), f.PROTOCOL_ERROR),
    "SETTINGS of 33 entries": (
        f.settings([(0x100 + i, 1) for i in range(33)]), f.ENHANCE_YOUR_CALM, f.PROTOCOL_ERROR,
        f.FRAME_SIZE_ERROR),
    "PUSH_PROMISE from a client": (
        f.frame(f.PUSH_PROMISE, f.END_HEADERS, INNOCENT, struct.pack(">I", 2) + b"\x82"),
        f.PROTOCOL_ERROR),
    "PING of 7 bytes": (f.frame(f.PING, 0, 0, b"\0" * 7), f.FRAME_SIZE_ERROR),
    "PING on a stream": (f.frame(f.PING, 0, INNOCENT, b"\0" * 8), f.PROTOCOL_ERROR),
    "GOAWAY of 7 bytes": (f.frame(f.GOAWAY, 0, 0, b"\0" * 7), f.FRAME_SIZE_ERROR),
    "GOAWAY on a stream": (f.frame(f.GOAWAY, 0, INNOCENT, b"\0" * 8), f.PROTOCOL_ERROR),
    "WINDOW_UPDATE of 3 bytes": (f.frame(f.WINDOW_UPDATE, 0, 0, b"\0" * 3), f.FRAME_SIZE_ERROR),
    "WINDOW_UPDATE of the connection by 0": (f.window(0, 0), f.PROTOCOL_ERROR),
    "WINDOW_UPDATE of a stream by 0": (f.window(INNOCENT, 0), f.PROTOCOL_ERROR),
    "WINDOW_UPDATE of the connection past 2^31 - 1": (
        f.window(0, (1 << 31) - 1), f.FLOW_CONTROL_ERROR),
    "WINDOW_UPDATE of a stream that is not open": (f.window(101, 1), f.PROTOCOL_ERROR),
    "CONTINUATION of nothing": (f.continuation(3, b"\x82"), f.PROTOCOL_ERROR),
}

OTHER = f.request_fields(CALL)


def changed(*more, **change):
    return f.headers(3, f.request_block(CALL, more, **change), True)


# Stream errors on stream 3: name, the bytes that are sent, the code; None: a response, no error.
FOR_THE_STREAM = {
    "no method": (changed(method=None), f.PROTOCOL_ERROR),
    "no path": (changed(path=None), f.PROTOCOL_ERROR),
    "no scheme": (changed(scheme=None), f.PROTOCOL_ERROR),
    "an empty path": (changed(path=""), f.PROTOCOL_ERROR),
    "two paths": (changed((":path", "/x")), f.PROTOCOL_ERROR),
    "a pseudo-header behind others": (
        f.headers(3, f.fields([*OTHER[4:], *OTHER[:4]]), True), f.PROTOCOL_ERROR),
    "an unknown pseudo-header": (changed((":fast", "1")), f.PROTOCOL_ERROR),
    "a header of answers": (changed((":status", "200")), f.PROTOCOL_ERROR),
    "a name in capitals": (changed(("X-Upper", "1")), f.PROTOCOL_ERROR),
    "an empty name": (changed(("", "1")), f.PROTOCOL_ERROR),
    "a name with a space": (changed(("a b", "1")), f.PROTOCOL_ERROR),
    "a value with a line feed": (changed(("x-v", "a\r\nb: c")), f.PROTOCOL_ERROR),
    "a value with a zero": (changed(("x-v", "a\0b")), f.PROTOCOL_ERROR),
    "a connection header": (changed(("connection", "close")), f.PROTOCOL_ERROR),
    "a transfer-encoding": (changed(("transfer-encoding", "chunked")), f.PROTOCOL_ERROR),
    "a te of something else": (changed(te="gzip"), f.PROTOCOL_ERROR),
    "a content-length that is too small": (
        f.headers(3, f.request_block(CALL, [("content-length", "2")]))
        + f.data(3, f.message(b"")), f.PROTOCOL_ERROR),
    "a content-length that is too large": (
        f.headers(3, f.request_block(CALL, [("content-length", "100")]))
        + f.data(3, b"\0\0", end=True), f.PROTOCOL_ERROR),
    "a content-length that is no number": (
        changed(("content-length", "-1")), f.PROTOCOL_ERROR),
    "trailers that do not end it": (
        f.headers(3, f.request_block(m.INSERT)) + f.headers(3, f.fields([("x", "y")])),
        f.PROTOCOL_ERROR),
    "trailers with a pseudo-header": (
        f.headers(3, f.request_block(m.INSERT)) + f.headers(3, f.fields([(":path", "/")]), True),
        f.PROTOCOL_ERROR),
    "its window opened past 2^31 - 1": (
        f.headers(3, f.request_block(m.INSERT)) + f.window(3, (1 << 31) - 1),
        f.FLOW_CONTROL_ERROR),
    "padding": (
        f.headers(3, f.request_block(CALL)) + f.frame(f.DATA, f.PADDED | f.END_STREAM, 3, b"\x03"
                                                      + f.message(b"") + b"\0\0\0"), None),
    "a header with priority": (
        f.frame(f.HEADERS, f.END_HEADERS | f.HAS_PRIORITY, 3,
                struct.pack(">IB", 1 << 31 | 1, 255) + f.request_block(CALL))
        + f.data(3, f.message(b""), end=True), None),
    "trailers": (
        f.headers(3, f.request_block(CALL)) + f.data(3, f.message(b""))
        + f.headers(3, f.fields([("x", "y")]), True), None),
    "a frame of an unknown type": (
        f.frame(0x77, 0xff, 3, b"PAYLOAD") + f.headers(3, f.request_block(CALL))
        + f.frame(0x77, 0xff, 3, b"PAYLOAD") + f.data(3, f.message(b""), end=True), None),
    "a window in the reserved bit": (
        f.headers(3, f.request_block(CALL)) + f.window(1 << 31 | 3, 1 << 31 | 5)
        + f.data(3, f.message(b""), end=True), None),
}


def innocent(peer):
    """Opens the innocent call."""
    assert peer.open(m.INSERT) == INNOCENT
    assert peer.echo()


def goes_on(peer):
    """Checks that the innocent call still works, and new ones do."""
    peer.next_stream = 1001
    peer.write(INNOCENT, m.one(7))
    return (m.confirmed(peer.reply(INNOCENT)) == [7]
            and peer.ask(m.RESET, m.octets(1, "a")).status == m.OK)


@pytest.mark.parametrize("name", FATAL)
def test_connection_errors_end_the_connection(attack, name):
    target = attack()
    octets, *codes = FATAL[name]
    with target.peer() as peer:
        innocent(peer)
        peer.send(octets)
        assert peer.gone()
        assert peer.goaway in codes
    assert target.limits_hit() in ({"protocol": 1}, {"abuse": 1}), target.refused()


@pytest.mark.parametrize("name", FOR_THE_STREAM)
def test_stream_errors_reset_only_their_stream(attack, name):
    target = attack()
    target.may_change = True
    octets, code = FOR_THE_STREAM[name]
    with target.peer() as peer:
        innocent(peer)
        peer.send(octets)
        call = peer.result(3)
        if code is None:
            assert call.status == m.OK
        else:
            assert call.reset == code
            assert any(k in target.refused() for k in ("abuse:bad_frame", "abuse:server_reset"))
        assert goes_on(peer)


def test_the_first_frame_must_be_settings(attack):
    target = attack()
    with target.peer(greet=False) as peer:
        peer.send(f.PREFACE + f.ping())
        assert peer.gone()
        assert peer.goaway == f.PROTOCOL_ERROR


def test_headers_below_the_last_stream_are_counted_and_ignored(attack):
    target = attack()
    target.may_change = True
    with target.peer() as peer:
        innocent(peer)
        peer.send(f.headers(9, f.request_block(CALL)) + f.data(9, f.message(b""), end=True))
        assert peer.result(9).status == m.OK
        peer.send(f.headers(5, f.request_block(CALL)) + f.headers(9, f.request_block(CALL)))
        assert goes_on(peer)
    assert target.refused()["abuse:bad_frame"] == 2


def test_data_past_the_window_of_a_stream_resets_it(attack):
    """The stream waits for a full table. Its window is 4 MiB, and the server does not read."""
    target = attack(fresh=True)
    target.may_change = True
    with target.peer() as peer:
        innocent(peer)
        stream = peer.open(m.SAMPLE)
        peer.write(stream, m.sample("empty"))
        assert peer.echo()
        flow = b"".join(f.data(stream, f.message(b"\0" * 16000)) for _ in range(300))
        peer.flood(flow)
        assert peer.result(stream).reset == f.FLOW_CONTROL_ERROR
        assert goes_on(peer)


@pytest.mark.parametrize("cut", range(1, len(f.PREFACE)))
def test_a_truncated_preface_closes_the_connection(attack, cut):
    target = attack(limits={"handshake_ms": 300})
    with target.peer(greet=False) as peer:
        peer.send(f.PREFACE[:cut])
        peer.socket.shutdown(1)
        assert peer.gone()


WRONG_PREFACES = {
    "other letters": b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
    "another version": b"PRI * HTTP/1.1\r\n\r\nSM\r\n\r\n",
    "another end": b"PRI PAYLOAD\r\n\r\n",
    "zeros": b"PRI " + b"\0" * 4096,
    "a wrong last byte": f.PREFACE[:-1] + b"x" + f.settings(),
    "twice": f.PREFACE * 2,
    "then HTTP/1.1": f.PREFACE + b"GET / HTTP/1.1\r\n\r\n",
    "then ones": f.PREFACE + b"\xff" * 4096,
}


@pytest.mark.parametrize("name", WRONG_PREFACES)
def test_a_wrong_preface_is_refused(attack, name):
    target = attack()
    with target.peer(greet=False) as peer:
        peer.send(WRONG_PREFACES[name])
        assert peer.gone()
    assert target.limits_hit() == {"protocol": 1}
