# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 without a library: frames, headers, and a peer that sends what no library would.

Headers are written as literals, and read with the static table of RFC 7541 only: the peer sets the
size of the dynamic table to 0. What is sent is not checked.
"""

import collections
import socket
import struct
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, \
    CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, HAS_PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20

NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR, SETTINGS_TIMEOUT, STREAM_CLOSED, \
    FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL, COMPRESSION_ERROR, CONNECT_ERROR, \
    ENHANCE_YOUR_CALM = range(12)

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_STREAMS, INITIAL_WINDOW, MAX_FRAME, MAX_HEADER_LIST = \
    range(1, 7)

SLOW = 1.0  # factor of all timeouts; conftest.py sets it for sanitizers


Frame = collections.namedtuple("Frame", "type flags stream payload")


def frame(kind, flags=0, stream=0, payload=b"", length=None):
    """Returns a frame. `length` is the length in its header, if that is to be wrong."""
    n = len(payload) if length is None else length
    return struct.pack(">IBI", n << 8 | kind, flags, stream) + payload


def settings(pairs=(), flags=0, stream=0):
    return frame(SETTINGS, flags, stream, b"".join(struct.pack(">HI", k, v) for k, v in pairs))


def ping(payload=b"\0" * 8, flags=0):
    return frame(PING, flags, 0, payload)


def rst(stream, code=CANCEL):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", code))


def window(stream, more):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", more))


def priority(stream, on=0, weight=15):
    return frame(PRIORITY, 0, stream, struct.pack(">IB", on, weight))


def data(stream, payload=b"", end=False):
    return frame(DATA, END_STREAM if end else 0, stream, payload)


def headers(stream, block, end=False, more=False):
    flags = (END_STREAM if end else 0) | (0 if more else END_HEADERS)
    return frame(HEADERS, flags, stream, block)


def continuation(stream, block, more=False):
    return frame(CONTINUATION, 0 if more else END_HEADERS, stream, block)


def message(payload, flag=0, length=None):
    """Returns a gRPC message. `length` is the length in its prefix, if that is to be wrong."""
    return struct.pack(">BI", flag, len(payload) if length is None else length) + payload


def hpack_int(value, bits, first=0):
    """Encodes a number with a prefix of `bits` bits. `first` has the bits before the prefix."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    out, value = [first | most], value - most
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + [value])


def literal(name, value, first=0x00):
    """Encodes a field. With `first` 0x40 it is added to the dynamic table, with 0x00 it is not."""
    name = name.encode() if isinstance(name, str) else name
    value = value.encode() if isinstance(value, str) else value
    return (bytes([first]) + hpack_int(len(name), 7) + name + hpack_int(len(value), 7) + value)


def fields(pairs):
    return b"".join(literal(k, v) for k, v in pairs)


def request_fields(path, /, **change):
    """Returns the headers of a gRPC call as pairs. `change` replaces some; None removes one. In
    `change`, names have `_` for `-`, and pseudo-headers have no colon."""
    pairs = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "localhost",
             "content-type": "application/grpc", "te": "trailers"}
    for name, value in change.items():
        name = name.replace("_", "-")
        pairs[f":{name}" if f":{name}" in pairs else name] = value
    return [(k, v) for k, v in pairs.items() if v is not None]


def request_block(path, more=(), /, **change):
    return fields(request_fields(path, **change) + list(more))


def read_int(block, at, bits):
    most = (1 << bits) - 1
    value = block[at] & most
    at += 1
    if value < most:
        return value, at
    shift = 0
    while True:
        value += (block[at] & 127) << shift
        shift += 7
        at += 1
        if block[at - 1] < 128:
            return value, at


# Lengths of the Huffman codes of printable characters and of 0. The code is canonical, and all
# other codes are longer.
LENGTHS = {
    5: "012aceiost", 6: " %-./3456789=A_bdfghlmnpru",
    7: ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz", 8: "&*,;XZ", 10: "!\"()?", 11: "'+|", 12: "#>",
    13: "\0$@[]~", 14: "^}", 15: "<`{", 19: "\\",
}


def huffman_codes():
    codes, code, before = {}, 0, 0
    for length, letters in LENGTHS.items():
        code <<= length - before
        before = length
        for letter in sorted(letters):
            codes[length, code] = ord(letter)
            code += 1
    return codes


CODES = huffman_codes()


def unhuffman(data):
    out, bits, length = bytearray(), 0, 0
    for byte in data:
        for shift in range(7, -1, -1):
            bits, length = bits << 1 | byte >> shift & 1, length + 1
            if (length, bits) in CODES:
                out.append(CODES[length, bits])
                bits = length = 0
    assert length < 8 and bits == (1 << length) - 1, "padding"
    return bytes(out)


# The entries of the static table that a server may use.
STATIC = {**{8 + i: (":status", s) for i, s in
             enumerate(("200", "204", "206", "304", "400", "404", "500"))},
          53: ("retry-after", ""), 22: ("allow", ""), 24: ("cache-control", ""), 28: ("content-length", ""),
          31: ("content-type", ""), 33: ("date", ""), 54: ("server", ""),
          61: ("www-authenticate", "")}


def read_text(block, at):
    coded = block[at] & 0x80
    size, at = read_int(block, at, 7)
    text = block[at:at + size]
    return (unhuffman(text) if coded else text).decode(), at + size


def read_fields(block):
    """Returns the fields of a block."""
    found, at = {}, 0
    while at < len(block):
        first = block[at]
        if first & 0x80:
            index, at = read_int(block, at, 7)
            name, value = STATIC[index]
        elif first & 0xe0 == 0x20:  # size of the table
            _, at = read_int(block, at, 5)
            continue
        else:
            index, at = read_int(block, at, 6 if first & 0x40 else 4)
            if index:
                name = STATIC[index][0]
            else:
                name, at = read_text(block, at)
            value, at = read_text(block, at)
        found[name] = value
    return found


class Call:
    """The response on a stream."""

    def __init__(self):
        self.fields = {}
        self.body = bytearray()
        self.ended = False
        self.reset = None

    @property
    def status(self):
        """The gRPC status, or None."""
        text = self.fields.get("grpc-status")
        return None if text is None else int(text)

    @property
    def text(self):
        return self.fields.get("grpc-message", "")

    @property
    def over(self):
        return self.ended or self.reset is not None

    def messages(self):
        """Returns and removes the complete messages so far."""
        found = []
        while len(self.body) >= 5:
            size = int.from_bytes(self.body[1:5], "big")
            if len(self.body) < 5 + size:
                break
            found.append(bytes(self.body[5:5 + size]))
            del self.body[:5 + size]
        return found

    def __repr__(self):
        return f"<{self.fields} {len(self.body)} bytes, ended {self.ended}, reset {self.reset}>"


class Peer:
    """A connection. It acknowledges settings and pings and updates windows as a client should,
    unless an option says otherwise. The test does everything else."""

    def __init__(self, port, greet=True, pairs=(), receive_bytes=None, windows=True, tls=None,
                 connect_timeout=120):
        self.socket = socket.socket()
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(connect_timeout * SLOW)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.windows = windows  # whether windows are updated
        self.pongs = True
        self.mute = False  # sends no responses at all
        self.received = bytearray()
        self.calls = collections.defaultdict(Call)
        self.next_stream = 1
        self.goaway = None  # the code of a GOAWAY
        self.goaway_text = b""
        self.closed = False  # the server has closed the connection
        self.was_reset = False
        self.frames = []  # all frames except DATA
        if greet:
            self.send(PREFACE + settings([(HEADER_TABLE_SIZE, 0), *pairs]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self, hard=False):
        if hard:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def send(self, octets, timeout=120):
        """Sends bytes. False once the server has closed the connection."""
        self.socket.settimeout(timeout * SLOW)
        try:
            self.socket.sendall(octets)
        except TimeoutError:
            raise
        except OSError:
            return False
        return True

    def flood(self, octets, seconds=10):
        """Sends until the server closes the connection, all bytes are sent, or the time is over.
        Returns the number of bytes sent."""
        self.socket.settimeout(0.02)
        sent, until, view = 0, time.monotonic() + seconds * SLOW, memoryview(octets)
        while sent < len(view) and time.monotonic() < until:
            try:
                sent += self.socket.send(view[sent:sent + (1 << 18)])
            except (TimeoutError, BlockingIOError):
                continue
            except OSError:
                break
        return sent

    def stream(self):
        self.next_stream += 2
        return self.next_stream - 2

    def open(self, path, /, end=False, more=(), **change):
        """Begins a call. Returns its stream."""
        stream = self.stream()
        self.send(headers(stream, request_block(path, more, **change), end))
        return stream

    def write(self, stream, *payloads, end=False):
        """Sends messages, each in frames of at most 16 KiB."""
        octets = b"".join(message(p) for p in payloads)
        if len(octets) > 60000:  # the window is larger once the server's settings have arrived
            self.until(lambda: any(f.type == SETTINGS for f in self.frames))
        out = []
        for at in range(0, len(octets) or 1, 16384):
            part = octets[at:at + 16384]
            out.append(data(stream, part, end and at + 16384 >= len(octets)))
        return self.send(b"".join(out))

    def take(self, timeout):
        """Reads once. False if nothing arrives in time, or the connection is closed."""
        if self.closed:
            return False
        self.socket.settimeout(max(timeout, 0.0005))
        try:
            octets = self.socket.recv(1 << 18)
        except (TimeoutError, BlockingIOError):
            return False
        except ConnectionResetError:
            octets, self.was_reset = b"", True
        except OSError:
            octets = b""
        if not octets:
            self.closed = True
            return False
        self.received += octets
        self.split()
        return True

    def split(self):
        at = 0
        while len(self.received) - at >= 9:
            size = int.from_bytes(self.received[at:at + 3], "big")
            if len(self.received) - at < 9 + size:
                break
            kind, flags = self.received[at + 3], self.received[at + 4]
            stream = int.from_bytes(self.received[at + 5:at + 9], "big")
            payload = bytes(self.received[at + 9:at + 9 + size])
            at += 9 + size
            self.understand(Frame(kind, flags, stream, payload))
        del self.received[:at]

    def understand(self, f):
        if f.type == DATA:
            self.calls[f.stream].body += f.payload
            if self.windows and f.payload:
                self.send(window(0, len(f.payload)) + window(f.stream, len(f.payload)))
        else:
            self.frames.append(f)
        if f.type == HEADERS:
            self.calls[f.stream].fields.update(read_fields(f.payload))
        elif f.type == RST_STREAM:
            self.calls[f.stream].reset = int.from_bytes(f.payload, "big")
        elif f.type == SETTINGS and not f.flags & ACK and not self.mute:
            self.send(settings(flags=ACK))
        elif f.type == PING and not f.flags & ACK and self.pongs and not self.mute:
            self.send(ping(f.payload, ACK))
        elif f.type == GOAWAY:
            self.goaway = int.from_bytes(f.payload[4:8], "big")
            self.goaway_text = f.payload[8:]
        if f.type in (DATA, HEADERS) and f.flags & END_STREAM:
            self.calls[f.stream].ended = True

    def until(self, condition, timeout=120):
        """Reads until the condition is true. Returns whether it is."""
        end = time.monotonic() + timeout * SLOW
        while not condition():
            left = end - time.monotonic()
            if left <= 0 or self.closed:
                break
            self.take(min(left, 0.05))
        return bool(condition())

    def result(self, stream, timeout=120):
        """Waits until the call is over, and returns it."""
        call = self.calls[stream]
        if not self.until(lambda: call.over, timeout):
            raise AssertionError(f"no end of stream {stream}: {call}, goaway {self.goaway}, "
                                 f"closed {self.closed}")
        return call

    def ask(self, path, /, *payloads, more=(), timeout=120, **change):
        """Makes a whole call: sends its messages and its end, and returns the call when it is over.
        """
        stream = self.open(path, more=more, **change)
        self.write(stream, *payloads, end=True)
        return self.result(stream, timeout)

    def reply(self, stream, timeout=120):
        """Returns the next message of a call that is not over."""
        call = self.calls[stream]
        found = []

        def there():
            found.extend(call.messages())
            return found or call.over

        self.until(there, timeout)
        assert found, f"no message on stream {stream}: {call}, goaway {self.goaway}"
        assert len(found) == 1, "more messages than expected"
        return found[0]

    def echo(self, timeout=120):
        """Sends a ping and waits for its acknowledgement: then the server has read all earlier
        bytes. False if the connection ends first."""
        payload = struct.pack(">d", time.monotonic())
        self.send(ping(payload))
        answer = lambda: any(f.type == PING and f.flags & ACK and f.payload == payload
                             for f in self.frames)
        return self.until(answer, timeout)

    def gone(self, timeout=120):
        """Returns whether the server closes the connection in time."""
        return self.until(lambda: self.closed, timeout)
