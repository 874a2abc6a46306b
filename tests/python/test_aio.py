# SPDX-License-Identifier: Apache-2.0
"""reprise.aio: the client for asyncio."""

import asyncio
import pathlib
import re
import socket

import numpy as np
import pytest

import reprise
from reprise import aio, errors


def table(name, **options):
    return reprise.Table(
        name,
        reprise.selectors.Uniform(),
        reprise.selectors.Fifo(),
        1000,
        reprise.rate_limiters.MinSize(1),
        **options,
    )


@pytest.fixture(params=["process", "tcp", "child"])
def client(request):
    spec = {"x": reprise.TensorSpec([2], np.float32)}
    tables = [table("t"), table("s", signature=spec), reprise.Table.queue("q", 1)]
    where = "child" if request.param == "child" else "process"
    with reprise.Server(tables, where=where) as server:
        yield server.localhost_client(transport="tcp" if request.param == "tcp" else None)


def run(work, limit=60):
    return asyncio.run(asyncio.wait_for(work, limit))


def closed_address():
    """An address at which no server listens: its port is bound."""
    holder = socket.socket()
    holder.bind(("localhost", 0))
    holders.append(holder)
    return f"localhost:{holder.getsockname()[1]}"


holders = []  # sockets of closed_address()


def test_insert_and_sample(client):
    async def main():
        async with aio.AsyncClient(client) as a:
            await a.insert({"x": np.arange(3)}, {"t": 2.0})
            return [sample async for sample in a.sample("t", 5)]

    found = run(main())
    assert len(found) == 5
    assert isinstance(found[0][0], reprise.ReplaySample)
    assert found[0][0].data[0].tolist() == [0, 1, 2]
    assert found[4][0].info.priority == 2.0


def test_an_address_and_options(client):
    async def main():
        async with aio.AsyncClient(client.server_address, transport="tcp") as a:
            assert a.server_address == client.server_address
            return list(await a.server_info())

    assert run(main()) == ["t", "s", "q"]
    with pytest.raises(ValueError, match="transport"):
        aio.AsyncClient(client, transport="tcp")


def test_a_closed_client_says_so(client):
    async def main():
        async with aio.AsyncClient(client) as a:
            await a.insert(1, {"t": 1.0})
        with pytest.raises(RuntimeError, match="this AsyncClient is closed: make another"):
            await a.insert(1, {"t": 1.0})
        with pytest.raises(RuntimeError, match="this AsyncClient is closed: make another"):
            await a.server_info()

    run(main())


def test_samples_in_the_structure_of_the_signature(client):
    async def main():
        a = aio.AsyncClient(client)
        await a.insert({"x": np.ones(2, np.float32)}, {"s": 1.0})
        async for sample in a.sample(
            "s", emit_timesteps=False, unpack_as_table_signature=True
        ):
            return sample

    assert run(main()).data["x"].shape == (1, 2)


def test_many_samples(client):
    async def main():
        a = aio.AsyncClient(client)
        for i in range(10):
            await a.insert(i, {"t": 1.0})
        return {int(s[0].data[0]) async for s in a.sample("t", 1000)}

    assert run(main()) == set(range(10))


def test_errors_come_through(client):
    async def main():
        a = aio.AsyncClient(client)
        with pytest.raises(ValueError, match="priorities must contain at least one item"):
            await a.insert(1, {})
        with pytest.raises(ValueError, match="zz"):
            await a.insert(1, {"zz": 1.0})
        with pytest.raises(RuntimeError, match="zz"):
            await a.mutate_priorities("zz", {1: 1.0})
        with pytest.raises(RuntimeError, match="zz"):
            await a.reset("zz")
        with pytest.raises(RuntimeError, match="zz"):
            async for _ in a.sample("zz"):
                pass
        with pytest.raises(ValueError, match="num_samples must be >= 1, got 0"):
            async for _ in a.sample("t", 0):
                pass

    run(main())


def test_timeouts(client):
    async def main():
        a = aio.AsyncClient(client)
        with pytest.raises(errors.DeadlineExceededError):
            async for _ in a.sample("t", timeout=0.05):
                pass
        await a.insert(1, {"q": 1.0})
        with pytest.raises(errors.DeadlineExceededError):
            await a.insert(2, {"q": 1.0}, timeout=0.3)
        away = aio.AsyncClient("localhost:1")
        with pytest.raises(errors.DeadlineExceededError, match="timeout of 0.4s"):
            await away.server_info(0.4)
        with pytest.raises(errors.DeadlineExceededError):
            await away.update_priorities("t", [1], [1.0], timeout=0.3)

    run(main())


def test_the_event_loop_runs_while_a_call_waits(client):
    async def main():
        a = aio.AsyncClient(client)
        ticks = 0

        async def first():
            async for sample in a.sample("t"):
                return sample

        task = asyncio.ensure_future(first())
        while ticks < 20:
            await asyncio.sleep(0.005)
            ticks += 1
        assert not task.done()
        await a.insert(3, {"t": 1.0})
        return await task

    assert run(main())[0].data[0] == 3


def test_many_calls_wait_at_once(client):
    async def main():
        a = aio.AsyncClient(client)

        async def first():
            async for sample in a.sample("t"):
                return int(sample[0].data[0])

        tasks = [asyncio.ensure_future(first()) for _ in range(50)]
        await asyncio.sleep(0)
        await a.insert(3, {"t": 1.0})
        return await asyncio.gather(*tasks)

    assert run(main()) == [3] * 50


@pytest.mark.parametrize("what", ["sample", "insert", "info"])
def test_waits_can_be_cancelled(client, what):
    async def main():
        a = aio.AsyncClient(client)
        await a.insert(0, {"q": 1.0})

        async def sample():
            async for _ in a.sample("t"):
                pass

        task = asyncio.ensure_future(
            {
                "sample": sample,
                "insert": lambda: a.insert(1, {"q": 1.0}),
                "info": aio.AsyncClient("localhost:1").server_info,
            }[what]()
        )
        waits_at = {"sample": "t", "insert": "q"}.get(what)
        while waits_at and not await a.why(waits_at):
            await asyncio.sleep(0.001)
        await asyncio.sleep(0)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        if what == "sample":  # it no longer waits at the table
            while any(call.side == "sample" for call in await a.why("t")):
                await asyncio.sleep(0.01)

    run(main())


def test_wait_for(client):
    async def main():
        a = aio.AsyncClient(client)

        async def sample():
            async for found in a.sample("t"):
                return found

        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(sample(), 0.1)
        await a.insert(1, {"t": 1.0})
        return await asyncio.wait_for(sample(), 20)

    assert run(main())[0].data[0] == 1


def test_priorities(client):
    async def main():
        a = aio.AsyncClient(client)
        await a.insert(1, {"t": 1.0})
        key = [s async for s in a.sample("t")][0][0].info.key
        await a.update_priorities("t", np.array([key], np.uint64), [4.0])
        four = [s async for s in a.sample("t")][0][0].info.priority
        await a.mutate_priorities("t", {key: 5.0})
        five = [s async for s in a.sample("t")][0][0].info.priority
        await a.mutate_priorities("t", deletes=[key])
        left = (await a.server_info())["t"].current_size
        await a.insert(1, {"t": 1.0})
        await a.reset("t")
        return four, five, left, (await a.server_info(20))["t"].current_size

    assert run(main()) == (4.0, 5.0, 0, 0)


def test_batches(client):
    async def main():
        a = aio.AsyncClient(client)
        for i in range(4):
            await a.insert({"x": np.full(2, i, np.float32)}, {"s": 1.0})
        return [b async for b in a.batches("s", 8, max_samples=24)]

    found = run(main())
    assert len(found) == 3
    assert found[0]["x"].shape == (8, 1, 2)


def test_batches_of_a_server_that_is_away_end_with_the_timeout():
    async def main(**options):
        async with aio.AsyncClient(closed_address()) as a:
            async for _ in a.batches("t", 2, **options):
                pass

    for options in ({"rate_limiter_timeout": 0.1}, {"timeout": 0.1}):
        with pytest.raises(errors.DeadlineExceededError):
            run(main(**options))


def test_batches_can_be_cancelled(client):
    async def main():
        a = aio.AsyncClient(client)

        async def first():
            async for batch in a.batches("t", 8):
                return batch

        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(first(), 0.2)

    run(main())


def test_a_generator_closed_early_leaves_no_waiting_call(client):
    async def main():
        a = aio.AsyncClient(client)
        for i in range(10):
            await a.insert(i, {"t": 1.0})
        generator = a.sample("t", 100)
        async for _ in generator:
            break
        await generator.aclose()
        return await a.why("t")

    assert run(main()) == []


@pytest.mark.parametrize("name, text", [
    ("sampler", r"AsyncClient has no 'sampler': write batches\(\)"),
    ("trajectory_writer", r"no 'trajectory_writer': write client\.client\.trajectory_writer"),
    ("colour", "AsyncClient has no 'colour'$"),
    ("_pools", "AsyncClient has no '_pools'$"),
])
def test_what_only_the_client_has(name, text):
    client = aio.AsyncClient("localhost:1")
    with pytest.raises(AttributeError, match=text):
        getattr(client, name)
    assert not hasattr(client, "colour")


def test_the_guide_lists_the_calls_of_the_async_client():
    page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"
    section = page.read_text().split("## asyncio")[1].split("```")[0]
    calls = {name for name in vars(aio.AsyncClient) if not name.startswith("_")}
    assert calls - {"close", "server_address"} <= set(re.findall(r"`(\w+)`", section))
