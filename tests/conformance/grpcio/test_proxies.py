# SPDX-License-Identifier: Apache-2.0
"""Calls through nginx and HAProxy to two servers: results for a client, and use of both servers."""

import time

import grpc
import numpy as np
import pytest

import conftest
import harness
from messages import LARGE_S, Reverb, chunk, first_number, insertion, item, numbers, wish
from proxies import HaProxy, HaProxyTcp, Nginx, program

Code = grpc.StatusCode
TABLES = [harness.table("uniform"), *conftest.QUEUES]


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    made = [conftest.make({"tables": TABLES, "limits": conftest.LIMITS},
                          tmp_path_factory.mktemp(f"shard-{i}")).launch() for i in range(2)]
    with made[0], made[1]:
        yield [server.ready() for server in made]


@pytest.fixture(scope="module", params=[Nginx, HaProxy, HaProxyTcp], ids=lambda kind: kind.name)
def proxy(request, servers, tmp_path_factory):
    if program(request.param.name.split("-")[0]) is None:
        pytest.skip(f"{request.param.name} is not installed")
    with request.param(servers, tmp_path_factory.mktemp(request.param.name)) as made:
        yield made.start()


@pytest.fixture
def shards(servers):
    """Direct connections to the servers, without the proxy."""
    channels = [grpc.insecure_channel(f"127.0.0.1:{s.port}", conftest.UNLIMITED)
                for s in servers]
    made = [Reverb(channel) for channel in channels]
    for shard in made:
        shard.reset("uniform")
    yield made
    for channel in channels:
        channel.close()


def through(proxy):
    """Returns a channel with its own connection."""
    options = [*conftest.UNLIMITED, ("grpc.use_local_subchannel_pool", 1)]
    return grpc.insecure_channel(f"127.0.0.1:{proxy.port}", options)


@pytest.fixture
def reverb(proxy):
    with through(proxy) as channel:
        yield Reverb(channel)


def test_inserts_reach_both_servers(proxy, shards):
    """Calls are spread over both servers; a proxy for TCP spreads connections."""
    for i in range(4):
        with through(proxy) as channel:
            reverb = Reverb(channel)
            for k in range(5):
                reverb.insert("uniform", 10 * i + k)
    sizes = [shard.size("uniform") for shard in shards]
    assert sum(sizes) == 20
    assert min(sizes) > 0


def test_samples_come_from_both_servers(proxy, shards):
    keys = {shard.insert("uniform", i) for i, shard in enumerate(shards)}
    seen = set()
    for _ in range(8):
        with through(proxy) as channel:
            seen |= {s.key for s in Reverb(channel).sample("uniform", 3)}
    assert seen == keys


def test_a_stream_of_many_inserts(reverb, shards):
    sent = []
    with reverb.inserts() as stream:
        for first in range(500):
            data = numbers(20, first)
            made = item("uniform", data)
            sent.append(made.key)
            stream.send(insertion([data], [made]))
        stream.half_close()
        confirmed = [k for answer in stream.rest(30) for k in answer.keys]
        assert stream.status()[0] == Code.OK
    assert sorted(confirmed) == sorted(sent)
    assert sorted(shard.size("uniform") for shard in shards) == [0, 500]


def test_a_stream_of_many_samples(reverb, shards):
    for shard in shards:
        shard.insert("uniform", 1)
    with reverb.samples() as stream:
        stream.send(wish("uniform", 5000)).half_close()
        assert len(stream.remaining(30)) == 5000
        assert stream.status()[0] == Code.OK


def test_a_conversation_in_turns(reverb, shards):
    """Each request is sent after the response to the one before: the proxy must not delay messages.
    """
    with reverb.inserts() as stream:
        for first in range(20):
            data = numbers(1, first)
            stream.send(insertion([data], [item("uniform", data)]))
            stream.confirmed(1)


def test_a_stream_that_is_idle_for_a_while(reverb, shards):
    data = numbers()
    with reverb.inserts() as stream:
        stream.send(insertion([data], [item("uniform", data)], keep=[data]))
        stream.confirmed(1)
        time.sleep(3)
        stream.send(insertion(items=[item("uniform", data)]))
        stream.confirmed(1)


@pytest.mark.seconds(180)
def test_large_messages(reverb, shards):
    data = chunk(np.random.default_rng(7).integers(0, 256, (1, 10_000_000), np.uint8))
    with reverb.inserts() as stream:
        stream.send(insertion([data], [item("uniform", data)]))
        stream.confirmed(1, LARGE_S)
    [shard] = [s for s in shards if s.size("uniform")]
    assert shard.sample("uniform", seconds=LARGE_S)[0].chunks == [data]
    for other in shards:
        if other is not shard:
            with other.inserts() as stream:
                stream.send(insertion([data], [item("uniform", data)]))
                stream.confirmed(1, LARGE_S)
    assert reverb.sample("uniform", 3, seconds=LARGE_S)[2].chunks == [data]


def test_statuses_and_their_messages_pass_the_proxy(reverb, shards, refused):
    with refused(Code.NOT_FOUND, "Priority table nope was not found"):
        reverb.reset("nope")
    with reverb.samples() as stream:
        code, text = stream.send(wish("uniform", 1, timeout_ms=100)).status()
    assert code == Code.DEADLINE_EXCEEDED
    assert "Timeout exceeded" in text
    with reverb.inserts() as stream:
        assert stream.send(insertion()).status()[0] == Code.INVALID_ARGUMENT


def test_a_deadline(reverb, shards):
    start = time.monotonic()
    with reverb.samples(timeout=0.5) as stream:
        assert stream.send(wish("uniform")).status()[0] == Code.DEADLINE_EXCEEDED
    assert time.monotonic() - start < 5


def test_a_sampler_that_is_cancelled_takes_nothing(reverb, shards, queue):
    """The proxy forwards the cancellation to the server."""
    with reverb.samples() as stream:
        stream.send(wish(queue))
        assert stream.silent(0.3)
        stream.cancel()
    time.sleep(0.5)
    for i, shard in enumerate(shards):
        shard.insert(queue, i)
        assert first_number(shard.sample(queue, timeout_ms=5000)[0]) == i


def test_the_other_server_serves_when_one_goes(tmp_path):
    servers = [conftest.make({"tables": TABLES[:1]}, tmp_path / f"s{i}") for i in range(2)]
    for folder in ("s0", "s1", "proxy"):
        (tmp_path / folder).mkdir()
    with servers[0], servers[1], Nginx(servers, tmp_path / "proxy") as proxy:
        for server in servers:
            server.start()
        with through(proxy.start()) as channel:
            reverb = Reverb(channel)
            assert len({reverb.info().tables_state_id.low for _ in range(6)}) == 2
            servers[0].stop()
            assert len({reverb.info().tables_state_id.low for _ in range(6)}) == 1
