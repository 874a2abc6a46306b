# SPDX-License-Identifier: Apache-2.0
"""Repeats a recorded conversation of dm-reverb 0.14's client and server with our server.

The client's messages are sent byte for byte, in the recorded order. Every response must be
equivalent to the recorded one. If a response is random (a uniform sampler), it must be a possible
one.
"""

import collections
import pathlib

import grpc
import pytest

import conftest
import harness
from messages import Stream, wish
from stubs import rpc

RECORDING = (pathlib.Path(harness.ROOT) / "tests" / "data" / "wire" / "dm-reverb-0.14.txt")
SERVICE = "/deepmind.reverb.ReverbService/"
UNARY = {"ServerInfo", "MutatePriorities", "Reset", "Checkpoint"}
TABLES = [
    harness.table("u"),
    harness.table("p", sampler=("prioritized", 0.6), max_times_sampled=3),
    harness.table("sig", sampler="fifo",
                  signature={"a": "float32[?,2]", "b": {"tuple": ["int64[?]"]}}),
    harness.table("q", sampler="fifo", max_size=10, max_times_sampled=1, limiter=("queue", 10)),
    harness.table("slow", limiter=("ratio", 2.0, 10, 5.0)),
]
CHANCE = {"u", "slow"}  # tables whose sampler is random

Line = collections.namedtuple("Line", "call side method message event")


def lines():
    for text in RECORDING.read_text().splitlines():
        if text.startswith("#"):
            continue
        call, side, method, rest = text.split(" ", 3)
        event = rest[1:] if rest.startswith("!") else None
        message = None if event else b"" if rest == "-" else bytes.fromhex(rest)
        yield Line(int(call), side, method, message, event)


def same_item(found, recorded):
    """Compares items, except for the time of insertion, which the server sets."""
    found.ClearField("inserted_at")
    recorded.ClearField("inserted_at")
    return found == recorded


class Replay:
    """Sends the recorded requests, and compares the responses with the recorded ones."""

    def __init__(self, channel):
        self.channel = channel
        self.streams, self.answers, self.keys = {}, {}, collections.Counter()
        self.items, self.chunks = {}, {}
        self.compared = collections.Counter()

    def client(self, line):
        if line.method in UNARY:
            call = self.channel.unary_unary(SERVICE + line.method)
            self.answers[line.call] = call.future(line.message, timeout=120)
        elif line.event == "open":
            self.streams[line.call] = Stream(
                self.channel.stream_stream(SERVICE + line.method), timeout=120)
        elif line.event == "half-close":
            self.streams[line.call].half_close()
        elif line.event == "cancel":
            self.streams[line.call].cancel()
        else:
            if line.method == "InsertStream":
                self.remember(rpc.InsertStreamRequest.FromString(line.message))
            self.streams[line.call].send(line.message)

    def remember(self, request):
        for chunk in request.chunks:
            self.chunks.setdefault(chunk.chunk_key, chunk)
        for item in request.items:
            self.items.setdefault(item.key, item)

    def server(self, line):
        self.compared[line.method] += 1
        if line.event is not None:
            self.status(line)
        else:
            getattr(self, line.method)(line)

    def status(self, line):
        _, code, *text = line.event.split(" ", 2)
        if line.method in UNARY:
            found = self.answers[line.call].code(), self.answers[line.call].details()
        else:
            found = self.streams[line.call].status()
        assert found[0] == grpc.StatusCode[code], f"call {line.call}: {found}"
        if text:
            assert text[0] in found[1]

    def InsertStream(self, line):
        """Keys may be confirmed in another order and in other groups."""
        wanted = rpc.InsertStreamResponse.FromString(line.message).keys
        missing = collections.Counter((line.call, key) for key in wanted)
        self.keys.subtract(missing)
        while any(self.keys[entry] < 0 for entry in missing):
            answer = self.streams[line.call].receive()
            assert answer is not None, f"call {line.call} ended without {list(wanted)}"
            for key in rpc.InsertStreamResponse.FromString(answer).keys:
                self.keys[(line.call, key)] += 1

    def SampleStream(self, line):
        """One sample for each request, as this client requests them."""
        recorded = rpc.SampleStreamResponse.FromString(line.message)
        found = rpc.SampleStreamResponse.FromString(self.streams[line.call].receive())
        assert len(found.entries) == len(recorded.entries) == 1
        [now], [then] = found.entries, recorded.entries
        assert now.end_of_sequence
        table = now.info.item.table
        assert table == then.info.item.table
        assert now.info.table_size == then.info.table_size
        assert now.info.probability == pytest.approx(then.info.probability)
        sent = self.items[now.info.item.key]
        assert now.info.item.flat_trajectory == sent.flat_trajectory
        keys = []
        for column in sent.flat_trajectory.columns:
            keys += [s.chunk_key for s in column.chunk_slices if s.chunk_key not in keys]
        assert list(now.data) == [self.chunks[key] for key in keys]
        if table not in CHANCE:
            assert same_item(now.info.item, then.info.item)
            assert list(now.data) == list(then.data)

    def InitializeConnection(self, line):
        answer = self.streams[line.call].receive()
        assert answer == line.message == b""

    def ServerInfo(self, line):
        recorded = rpc.ServerInfoResponse.FromString(line.message)
        found = rpc.ServerInfoResponse.FromString(self.answers[line.call].result(120))
        assert {t.name for t in found.table_info} == {t.name for t in recorded.table_info}
        now = {t.name: t for t in found.table_info}
        for then in recorded.table_info:
            for table in (now[then.name], then):
                table.ClearField("table_worker_time")
                if then.name in CHANCE:
                    table.ClearField("num_unique_samples")
                strip_names(table.signature)
            assert now[then.name] == then

    def MutatePriorities(self, line):
        assert self.answers[line.call].result(120) == line.message

    Reset = MutatePriorities


def strip_names(value):
    """Removes the names of specs, which TensorFlow generates."""
    kind = value.WhichOneof("kind")
    if kind == "tensor_spec_value":
        value.tensor_spec_value.name = ""
    elif kind in ("list_value", "tuple_value"):
        for inner in getattr(value, kind).values:
            strip_names(inner)
    elif kind == "dict_value":
        for inner in value.dict_value.fields.values():
            strip_names(inner)


def test_a_recorded_conversation_gets_the_recorded_responses(tmp_path):
    with conftest.make({"tables": TABLES}, tmp_path) as server:
        with grpc.insecure_channel(server.start().address) as channel:
            replay = Replay(channel)
            for line in lines():
                getattr(replay, line.side)(line)
            assert replay.compared["SampleStream"] > 10
            assert replay.compared["InsertStream"] > 15
            assert replay.compared["ServerInfo"] == 3
            for stream in replay.streams.values():
                stream.cancel()


def test_recorded_requests_equal_those_of_the_tests():
    """Checks that wish() makes the same request as a real client."""
    recorded = [line.message for line in lines() if line.method == "SampleStream"
                and line.side == "client" and line.message]
    assert wish("u", 1, -1).SerializeToString() in recorded
