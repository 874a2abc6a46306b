# SPDX-License-Identifier: Apache-2.0
"""reprise.aio_rollouts: rollouts for asyncio."""

import asyncio

import numpy as np
import pytest

import reprise
from reprise import aio, errors


@pytest.fixture(params=["process", "tcp", "child"])
def client(request):
    where = "child" if request.param == "child" else "process"
    with reprise.Server([reprise.Table.queue("queue", 1)], where=where) as server:
        yield server.localhost_client(transport="tcp" if request.param == "tcp" else None)


def run(work, limit=120):
    return asyncio.run(asyncio.wait_for(work, limit))


async def put(train, group, version=0):
    for index in range(2):
        tokens = np.arange(3 + index, dtype=np.int32)
        last = await train.put(group, index, {"tokens": tokens}, version=version)
    return last


    return found


def test_every_call(client):
    async def main():
        async with aio.AsyncClient(client) as a:
            train = await a.rollouts("train", create=dict(group_size=2, max_staleness=3))
            assert repr(train) == "AsyncRollouts('train')"
            assert (await train.reserve("g", ttl=60)).fate == "reserved"
            assert (await put(train, "g")).fate == "complete"
            assert (await train.update("g", 1, {"reward": np.float32(2)})).fate == "complete"
            async with await train.draw(1, ttl=60) as batch:
                await batch.renew(90)
                assert [group.name for group in batch] == ["g"] and len(batch) == 1
                assert batch.ragged("tokens").values.tolist() == [0, 1, 2, 0, 1, 2, 3]
                assert batch[0].items[1]["reward"] == 2
            assert await train.peek("g") == ("acknowledged", None)
            await train.reserve("h")
            assert (await train.abort("h")).fate == "aborted"
            assert await train.advance(7) == 0
            await train.configure(order="lifo")
            await train.set_cursor("prompts", b"12")
            assert await train.cursor("prompts") == b"12" and await train.cursor("other") is None
            info = await train.info()
            assert (info["version"], info["options"]["order"]) == (7, "lifo")
            await train.drop()
            assert reprise.rollouts.names(client) == []

    run(main())


def test_an_exception_releases_a_batch(client):
    async def main():
        train = await aio.AsyncClient(client).rollouts("train", create=dict(group_size=2))
        await put(train, "g")
        with pytest.raises(KeyError):
            async with await train.draw(1):
                raise KeyError("x")
        batch = await train.draw(1)
        await batch.release()
        batch = await train.draw(1)
        await batch.ack()
        await train.drop()

    run(main())


def test_a_wait_does_not_block_the_loop(client):
    async def main():
        train = await aio.AsyncClient(client).rollouts("train", create=dict(group_size=2))
        drawing = asyncio.create_task(train.draw(2))
        await put(train, "a")
        with pytest.raises(errors.DeadlineExceededError, match="ready"):
            await train.draw(2, timeout=0.4)
        await put(train, "b")
        assert sorted(group.name for group in await drawing) == ["a", "b"]
        await train.drop()

    run(main())


def test_a_cancelled_draw_leases_nothing(client):
    async def main():
        train = await aio.AsyncClient(client).rollouts("train", create=dict(group_size=2))
        drawing = asyncio.create_task(train.draw(1, ttl=3600))
        await asyncio.sleep(0)  # it begins
        drawing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await drawing
        await put(train, "g")  # the cancelled draw may get it, and releases it
        assert [group.name for group in await train.draw(1, ttl=3600)] == ["g"]
        await train.drop()

    run(main())


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 20])
def test_a_draw_that_is_cancelled_at_any_moment_leases_nothing(client, steps):
    async def main():
        train = await aio.AsyncClient(client).rollouts("train", create=dict(group_size=2))
        await put(train, "g")
        drawing = asyncio.create_task(train.draw(1, ttl=3600))
        for _ in range(steps):
            await asyncio.sleep(0)
        if drawing.cancel():
            with pytest.raises(asyncio.CancelledError):
                await drawing
        else:
            await (await drawing).release()
        assert [group.name for group in await train.draw(1, ttl=3600)] == ["g"]
        await train.drop()

    run(main())


def test_a_batch_whose_task_is_cancelled_after_the_draw_is_released(client):
    async def main():
        a = aio.AsyncClient(client)
        train = await a.rollouts("train", create=dict(group_size=2))
        await put(train, "g")
        loop, drawing = asyncio.get_running_loop(), None
        finished = asyncio.Event()
        draw = train.rollouts.draw

        def slow(*arguments, **options):
            batch = draw(*arguments, **options)
            loop.call_soon_threadsafe(finished.set)
            return batch

        train.rollouts.draw = slow
        drawing = asyncio.create_task(train.draw(1, ttl=3600))
        await finished.wait()
        drawing.cancel()
        try:
            await (await drawing).release()
        except asyncio.CancelledError:
            pass
        train.rollouts.draw = draw
        assert [group.name for group in await train.draw(1, ttl=3600)] == ["g"]
        await train.drop()

    run(main())
