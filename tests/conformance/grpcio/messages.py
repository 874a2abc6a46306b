# SPDX-License-Identifier: Apache-2.0
"""Makes chunks, items and requests without a library. Streams that a test uses step by step."""

import itertools
import queue
import threading
import time

import grpc
import numpy as np

from stubs import rpc, schema, types

WAIT_S = 120.0
LARGE_S = 60.0  # timeout for many megabytes, on a machine that is busy with other tests
_keys = itertools.count(1)

DTYPES = {
    "float32": types.DT_FLOAT, "float64": types.DT_DOUBLE, "int32": types.DT_INT32,
    "uint8": types.DT_UINT8, "int64": types.DT_INT64, "bool": types.DT_BOOL,
}


def new_key():
    """Returns a key that no other item or chunk of this run has."""
    return next(_keys) * 0x9E3779B97F4A7C15 % 2**64


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def stored(data):
    """Returns a snappy block that is one literal, which can be written without a library."""
    if not data:
        return b"\x00"
    length = len(data) - 1
    if length < 60:
        tag = bytes([length << 2])
    else:
        count = (length.bit_length() + 7) // 8
        tag = bytes([(59 + count) << 2]) + length.to_bytes(count, "little")
    return varint(len(data)) + tag + data


def read_varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def decoded(made):
    """Returns the bytes of a tensor, decoded from its snappy block."""
    data = made.tensor_content
    size, at = read_varint(data, 0)
    out = bytearray()
    while at < len(data):
        tag, length = data[at] & 3, data[at] >> 2
        at += 1
        if tag == 0:
            if length >= 60:
                count = length - 59
                length = int.from_bytes(data[at:at + count], "little")
                at += count
            out += data[at:at + length + 1]
            at += length + 1
            continue
        if tag == 1:
            offset, length = (length >> 3) << 8 | data[at], (length & 7) + 4
            at += 1
        else:
            count = 2 if tag == 2 else 4
            offset, length = int.from_bytes(data[at:at + count], "little"), length + 1
            at += count
        for _ in range(length):
            out.append(out[-offset])
    assert len(out) == size
    return bytes(out)


def chunk(*columns, key=None, episode=7, start=0):
    """Returns a chunk of the given arrays, whose first dimension counts rows."""
    rows = len(columns[0])
    made = schema.ChunkData(chunk_key=new_key() if key is None else key,
                            data_tensors_len=len(columns),
                            data_uncompressed_size=sum(c.nbytes for c in columns))
    made.sequence_range.episode_id = episode
    made.sequence_range.start = start
    made.sequence_range.end = start + rows - 1
    for column in columns:
        made_tensor = made.data.tensors.add(dtype=DTYPES[column.dtype.name])
        for size in column.shape:
            made_tensor.tensor_shape.dim.add(size=size)
        made_tensor.tensor_content = stored(column.tobytes())
    return made


def numbers(count=3, first=0, **options):
    """Returns a chunk of one column of int64: first, first + 1, ..."""
    return chunk(np.arange(first, first + count, dtype=np.int64), **options)


def item(table, *columns, key=None, priority=1.0, squeeze=False):
    """Returns an item. A column is a list of (chunk, offset, length) or (chunk, offset, length,
    index). A chunk alone is a column of all its rows."""
    made = schema.PrioritizedItem(key=new_key() if key is None else key, table=table,
                                  priority=priority)
    for column in columns:
        added = made.flat_trajectory.columns.add(squeeze=squeeze)
        if isinstance(column, schema.ChunkData):
            span = column.sequence_range
            column = [(column, 0, span.end - span.start + 1)]
        for source, offset, length, *index in column:
            added.chunk_slices.add(chunk_key=source.chunk_key, offset=offset, length=length,
                                   index=index[0] if index else 0)
    return made


def insertion(chunks=(), items=(), keep=()):
    return rpc.InsertStreamRequest(chunks=chunks, items=items,
                                   keep_chunk_keys=[getattr(k, "chunk_key", k) for k in keep])


def wish(table, count=1, timeout_ms=None):
    """Returns a request for samples. Without a timeout the field is absent, which means for
    ever."""
    request = rpc.SampleStreamRequest(table=table, num_samples=count)
    if timeout_ms is not None:
        request.rate_limiter_timeout.SetInParent()
        request.rate_limiter_timeout.milliseconds = timeout_ms
    return request


class Stream:
    """A call with streams in both directions. Reads have a timeout; a failure is a status."""

    def __init__(self, method, **options):
        self._out = queue.Queue()
        self._in = queue.Queue()
        self.call = method(iter(self._out.get, None), **options)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            for message in self.call:
                self._in.put(message)
        except grpc.RpcError:
            pass
        self._in.put(None)

    def send(self, *messages):
        for message in messages:
            self._out.put(message)
        return self

    def half_close(self):
        self._out.put(None)
        return self

    def cancel(self):
        self.call.cancel()

    def receive(self, seconds=WAIT_S):
        """Returns the next message, or None at the end of the stream."""
        try:
            message = self._in.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError(f"no message within {seconds} s") from None
        if message is None:
            self._in.put(None)  # for the next call
        return message

    def silent(self, seconds):
        """Returns True if no message arrives within `seconds`."""
        try:
            self._in.put(self._in.get(timeout=seconds))
        except queue.Empty:
            return True
        return False

    def rest(self, seconds=WAIT_S):
        """Returns all messages up to the end of the stream."""
        messages, end = [], time.monotonic() + seconds
        while (message := self.receive(max(0.0, end - time.monotonic()))) is not None:
            messages.append(message)
        return messages

    def status(self, seconds=WAIT_S):
        """Returns (code, text) of the end of the stream. Discards earlier messages."""
        self.rest(seconds)
        self._out.put(None)  # lets the thread that sends end
        return self.call.code(), self.call.details()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._out.put(None)
        self.call.cancel()


class Inserts(Stream):
    """An InsertStream."""

    def confirmed(self, count, seconds=WAIT_S):
        """Returns the next `count` confirmed keys, in no particular order."""
        keys, end = [], time.monotonic() + seconds
        while len(keys) < count:
            message = self.receive(max(0.0, end - time.monotonic()))
            assert message is not None, (
                f"ended after {len(keys)} of {count} keys: {self.call.code()}: "
                f"{self.call.details()}")
            keys += message.keys
        assert len(keys) == count
        return sorted(keys)


class Sample:
    """One sample, assembled from its entries."""

    def __init__(self):
        self.info, self.chunks, self.entries = None, [], 0

    @property
    def key(self):
        return self.info.item.key


class Samples(Stream):
    """A SampleStream. Checks the structure of the responses."""

    def __init__(self, method, **options):
        super().__init__(method, **options)
        self._open = None
        self._ready = []

    def _take(self, response):
        assert response.entries, "a response without an entry"
        for entry in response.entries:
            assert entry.data, "an entry without a chunk"
            assert entry.HasField("info") == (self._open is None)
            if self._open is None:
                self._open = Sample()
                self._open.info = entry.info
            self._open.chunks += entry.data
            self._open.entries += 1
            if entry.end_of_sequence:
                self._ready.append(self._open)
                self._open = None

    def samples(self, count=1, seconds=WAIT_S):
        """Returns the next `count` samples."""
        end = time.monotonic() + seconds
        while len(self._ready) < count:
            response = self.receive(max(0.0, end - time.monotonic()))
            assert response is not None, (
                f"ended after {len(self._ready)} of {count} samples: {self.call.code()}: "
                f"{self.call.details()}")
            self._take(response)
        taken, self._ready = self._ready[:count], self._ready[count:]
        return taken

    def remaining(self, seconds=WAIT_S):
        """Returns all samples up to the end of the stream."""
        for response in self.rest(seconds):
            self._take(response)
        assert self._open is None, "the stream ended within a sample"
        taken, self._ready = self._ready, []
        return taken


class Reverb:
    """deepmind.reverb.ReverbService on one channel."""

    def __init__(self, channel, **options):
        from stubs import service

        self.channel = channel
        self.stub = service.ReverbServiceStub(channel)
        self.options = {"timeout": 120.0, **options}

    def inserts(self, **options):
        return Inserts(self.stub.InsertStream, **{**self.options, **options})

    def samples(self, **options):
        return Samples(self.stub.SampleStream, **{**self.options, **options})

    def insert(self, table, first=0, count=1, **options):
        """Inserts one item of `count` rows of int64 and returns its key."""
        data = numbers(count, first)
        made = item(table, data, **options)
        with self.inserts() as stream:
            stream.send(insertion([data], [made]))
            assert stream.confirmed(1) == [made.key]
        return made.key

    def sample(self, table, count=1, seconds=WAIT_S, **options):
        with self.samples() as stream:
            stream.send(wish(table, count, **options))
            return stream.samples(count, seconds)

    def info(self, table=None):
        answer = self.stub.ServerInfo(rpc.ServerInfoRequest(), timeout=WAIT_S)
        if table is None:
            return answer
        [found] = [t for t in answer.table_info if t.name == table]
        return found

    def size(self, table):
        return self.info(table).current_size

    def reset(self, table):
        self.stub.Reset(rpc.ResetRequest(table=table), timeout=WAIT_S)

    def mutate(self, table, updates=None, deletes=()):
        request = rpc.MutatePrioritiesRequest(table=table, delete_keys=deletes)
        for key, priority in (updates or {}).items():
            request.updates.add(key=key, priority=priority)
        self.stub.MutatePriorities(request, timeout=WAIT_S)


def first_number(sample):
    """Returns the first int64 of the first chunk of a sample."""
    content = decoded(sample.chunks[0].data.tensors[0])
    return int.from_bytes(content[:8], "little", signed=True)
