# SPDX-License-Identifier: Apache-2.0
"""Properties of all calls: methods, deadlines, cancellation, compression, metadata, sizes."""

import threading
import time

import grpc
import numpy as np
import pytest

import conftest
import harness
from messages import LARGE_S, Reverb, chunk, insertion, item, wish
from stubs import rpc

Code = grpc.StatusCode
METHOD = "/deepmind.reverb.ReverbService/"
MEGABYTE = 1_000_000


def raw_unary(channel, path):
    return channel.unary_unary(path, lambda b: b, lambda b: b)


@pytest.mark.parametrize("path", [
    METHOD + "Nothing", "/deepmind.reverb.Nobody/ServerInfo", "/x/y",
    "/deepmind.reverb.ReverbService/serverinfo"])
def test_a_method_that_does_not_exist_is_unimplemented(channel, refused, path):
    with refused(Code.UNIMPLEMENTED):
        raw_unary(channel, path)(b"", timeout=120)


@pytest.mark.parametrize("method", ["ServerInfo", "Reset", "MutatePriorities", "Checkpoint"])
@pytest.mark.parametrize("junk", [b"\x0a\x05a", b"\xff", b"\x0b"])
def test_bytes_that_are_no_message_are_refused(channel, refused, method, junk):
    with refused(Code.INVALID_ARGUMENT):
        raw_unary(channel, METHOD + method)(junk, timeout=120)


def test_a_unary_call_with_two_messages_is_refused_or_ignores_the_second(channel):
    call = channel.stream_unary(METHOD + "ServerInfo", lambda b: b, lambda b: b)
    try:
        call(iter([b"", b""]), timeout=120)
    except grpc.RpcError as error:
        assert error.code() in (Code.INVALID_ARGUMENT, Code.INTERNAL, Code.UNIMPLEMENTED)


def test_a_unary_call_without_a_message_is_refused(channel, refused):
    call = channel.stream_unary(METHOD + "Reset", lambda b: b, lambda b: b)
    with refused(Code.INVALID_ARGUMENT):
        call(iter([]), timeout=120)


@pytest.mark.parametrize("timeout", ["1n", "99999999n", "50m", "0S"])
def test_the_server_keeps_deadlines_by_itself(channel, refused, timeout):
    """The deadline is only in the header; the client does not enforce it."""
    call = channel.stream_stream(METHOD + "SampleStream", rpc.SampleStreamRequest
                                 .SerializeToString, rpc.SampleStreamResponse.FromString)
    start = time.monotonic()
    with refused(Code.DEADLINE_EXCEEDED):
        list(call(iter([wish("queue-0", 1)]), metadata=[("grpc-timeout", timeout)]))
    assert time.monotonic() - start < 5


def test_a_unary_call_may_be_cancelled(reverb):
    call = reverb.stub.ServerInfo.future(rpc.ServerInfoRequest(), timeout=120)
    call.cancel()
    assert call.cancelled() or call.code() == Code.OK
    assert reverb.info().table_info


def test_streams_opened_and_cancelled_by_the_hundred(reverb, fresh):
    """More calls than any real client makes, but less than an attack."""
    table = fresh("uniform")
    for _ in range(200 if harness.IS_SHORT else 500):
        reverb.stub.SampleStream(iter([]), timeout=120).cancel()
    reverb.insert(table)
    assert len(reverb.sample(table)) == 1


def test_calls_of_many_threads_on_one_channel(reverb):
    wrong = []

    def ask():
        for _ in range(20):
            try:
                reverb.info("uniform")
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert wrong == []


def test_compressed_messages_are_refused_by_name(channel, server, refused):
    """The server accepts only the encoding identity, and says so."""
    with grpc.insecure_channel(server.address, compression=grpc.Compression.Gzip) as made:
        big = rpc.ResetRequest(table="u" * 10_000)
        with refused(Code.UNIMPLEMENTED):
            made.unary_unary(METHOD + "Reset", rpc.ResetRequest.SerializeToString,
                             rpc.ResetResponse.FromString)(big, timeout=120)


def test_metadata_is_accepted(reverb):
    reverb.stub.ServerInfo(rpc.ServerInfoRequest(), timeout=120, metadata=[
        ("x-text", "v" * 7000), ("x-bytes-bin", bytes(range(256)))])


def test_a_response_has_no_status_in_its_initial_metadata(channel):
    call = raw_unary(channel, METHOD + "ServerInfo").with_call
    _, finished = call(b"", timeout=120)
    assert finished.code() == Code.OK
    names = dict(finished.initial_metadata())
    assert "grpc-status" not in names


def test_a_status_message_is_percent_encoded(reverb, refused):
    """The text of a status is percent-encoded on the wire."""
    name = "ta%20ble \u00e4\n"
    with refused(Code.NOT_FOUND, "ta%20ble"):
        reverb.reset(name)


def test_a_long_name_is_shortened_in_the_error(reverb):
    with pytest.raises(grpc.RpcError) as failure:
        reverb.reset("x" * 100_000)
    assert failure.value.code() == Code.INVALID_ARGUMENT
    assert len(failure.value.details()) < 1000


def test_connections_come_and_go(server):
    for _ in range(50):
        with grpc.insecure_channel(server.address) as channel:
            assert Reverb(channel).info().table_info


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_both_families_of_loopback_are_served(server, host):
    with grpc.insecure_channel(f"{host}:{server.port}") as channel:
        assert Reverb(channel).info().table_info


def test_keepalive_pings_are_answered(server):
    with grpc.insecure_channel(server.address, [
            ("grpc.keepalive_time_ms", 1000), ("grpc.keepalive_timeout_ms", 1000),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.keepalive_permit_without_calls", 1)]) as channel:
        reverb = Reverb(channel)
        with reverb.samples() as stream:
            stream.send(wish("queue-1", 1))
            assert stream.silent(2.5)
            reverb.insert("queue-1", 1)
            assert len(stream.samples()) == 1


@pytest.mark.seconds(180)
@pytest.mark.parametrize("size", [20 * MEGABYTE, (70 if harness.IS_SHORT else 100) * MEGABYTE])
def test_large_messages_both_ways(reverb, fresh, size):
    """This server has a higher limit; a later test uses the default."""
    table = fresh("fifo")
    data = chunk(np.random.default_rng(5).integers(0, 256, (1, size), np.uint8))
    with reverb.inserts() as stream:
        stream.send(insertion([data], [item(table, data)]))
        stream.confirmed(1, LARGE_S)
    [sample] = reverb.sample(table, seconds=LARGE_S)
    assert sample.chunks[0].SerializeToString() == data.SerializeToString()
    reverb.reset(table)


@pytest.mark.seconds(180)
def test_a_large_message_of_many_chunks(reverb, fresh):
    table = fresh("fifo")
    noise = np.random.default_rng(6)
    chunks = [chunk(noise.integers(0, 256, (1, MEGABYTE), np.uint8), start=i)
              for i in range(40)]
    with reverb.inserts() as stream:
        stream.send(insertion(chunks, [item(table, [(c, 0, 1) for c in chunks])]))
        stream.confirmed(1, LARGE_S)
    [sample] = reverb.sample(table, seconds=LARGE_S)
    assert sample.chunks == chunks
    reverb.reset(table)


@pytest.fixture(scope="module")
def plain_server(tmp_path_factory):
    """A server with the default limits."""
    made = harness.Reprise({"tables": [harness.table("fifo", sampler="fifo")]},
                           tmp_path_factory.mktemp("plain"))
    with made:
        yield made.start()


@pytest.mark.seconds(180)
def test_a_message_over_the_limit_is_refused(plain_server):
    """The limits are 64 MiB for a message and 32 MiB for a chunk; tests both sides of each."""
    with grpc.insecure_channel(plain_server.address, conftest.UNLIMITED) as channel:
        reverb = Reverb(channel)
        for size, fine in ((31 * 2**20, True), (33 * 2**20, False), (65 * 2**20, False)):
            data = chunk(np.zeros((1, size), np.uint8))
            with reverb.inserts() as stream:
                stream.send(insertion([data], [item("fifo", data)]))
                if fine:
                    stream.confirmed(1, LARGE_S)
                else:
                    assert stream.status(LARGE_S)[0] == Code.RESOURCE_EXHAUSTED
        halves = [chunk(np.zeros((1, 30 * 2**20), np.uint8)) for _ in range(2)]
        with reverb.inserts() as stream:
            stream.send(insertion(halves, [item("fifo", *halves)]))
            stream.confirmed(1, LARGE_S)
        assert reverb.size("fifo") == 2


def test_a_drained_server_ends_streams_as_unavailable(tmp_path):
    """After SIGTERM, waiting calls end with UNAVAILABLE, so that clients try another server, and
    the exit status is 0."""
    server = harness.Reprise({"tables": [harness.table("fifo", sampler="fifo")],
                              "drain_seconds": 0}, tmp_path)
    with server, grpc.insecure_channel(server.start().address) as channel:
        reverb = Reverb(channel)
        with reverb.samples() as stream:
            stream.send(wish("fifo"))
            assert stream.silent(0.2)
            start = time.monotonic()
            assert server.stop() == 0
            assert time.monotonic() - start < 10
            assert stream.status()[0] in (Code.UNAVAILABLE, Code.CANCELLED)


def test_a_client_reconnects_to_a_restarted_server(tmp_path):
    server = harness.Reprise({"tables": [harness.table("fifo", sampler="fifo")]}, tmp_path)
    with server, grpc.insecure_channel(server.start().address, [
            ("grpc.initial_reconnect_backoff_ms", 50),
            ("grpc.max_reconnect_backoff_ms", 100)]) as channel:
        reverb = Reverb(channel)
        before = reverb.info().tables_state_id
        server.restart()
        answer = reverb.stub.ServerInfo(rpc.ServerInfoRequest(), timeout=120,
                                        wait_for_ready=True)
        assert answer.tables_state_id != before
        reverb.insert("fifo", 1)
