# SPDX-License-Identifier: Apache-2.0
"""Rollouts for asyncio: `reprise.rollouts.Rollouts` with methods that are awaited.

>>> import asyncio
>>> import numpy as np
>>> import reprise
>>> from reprise import aio
>>> server = reprise.Server([reprise.Table.queue("queue", max_size=1)])

>>> async def main():
...     async with aio.AsyncClient(f"localhost:{server.port}") as client:
...         train = await client.rollouts("train", create=dict(group_size=1))
...         await train.put("prompt 1", 0, {"tokens": np.arange(3, dtype=np.int32)}, version=0)
...         async with await train.draw(groups=1) as batch:
...             return batch.ragged("tokens").values
>>> asyncio.run(main())
array([0, 1, 2], dtype=int32)
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Callable, Dict, Mapping, Optional, Protocol, Tuple, Type, TypeVar, Union

from reprise import errors
from reprise.rollouts import Batch, Drawn, PeekedGroup, Put, Rollouts

__all__ = ["AsyncBatch", "AsyncRollouts"]

_T = TypeVar("_T")


class Caller(Protocol):
    """Makes a call on a thread, again and again with short timeouts until one succeeds, the timeout has
    passed, or the task is cancelled, when it calls `stop`."""

    async def __call__(self, call: Callable[[float], _T], timeout: Optional[float],
                       stop: Optional[Callable[[], None]] = None) -> _T: ...


class AsyncBatch(Drawn):
    """`reprise.rollouts.Batch` for asyncio: as an asynchronous context manager, a batch is acknowledged at
    the end, and released if an exception is raised."""

    def __init__(self, rollouts: AsyncRollouts, batch: Batch) -> None:
        super().__init__(batch._draw)
        self._rollouts = rollouts

    async def ack(self, *, timeout: Optional[float] = None) -> None:
        """`Batch.ack`."""
        await self._rollouts.ack(self.lease, timeout=timeout)

    async def release(self, *, timeout: Optional[float] = None) -> None:
        """`Batch.release`."""
        await self._rollouts.release(self.lease, timeout=timeout)

    async def renew(self, ttl: float, *, timeout: Optional[float] = None) -> None:
        """`Batch.renew`."""
        await self._rollouts.renew(self.lease, ttl, timeout=timeout)

    async def __aenter__(self) -> AsyncBatch:
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], *_: Any) -> None:
        if kind is None:
            await self.ack()
            return
        try:
            await self.release(timeout=5.0)
        except (errors.ReverbError, errors.StatusError):
            pass  # the lease expires; the first exception matters more


def _release(batch: Batch) -> None:
    try:
        batch.release(timeout=5.0)
    except (errors.ReverbError, errors.StatusError):
        pass  # the lease expires


class _Drawing:
    """A draw whose task may be cancelled before, while or after a thread draws."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_cancelled = False
        self._batch: Optional[Batch] = None

    def keep(self, batch: Batch) -> Batch:
        """Takes what was drawn. Called on the thread."""
        with self._lock:
            self._batch = batch
            is_cancelled = self._is_cancelled
        if is_cancelled:
            _release(batch)
        return batch

    def cancel(self) -> None:
        """Nobody gets what is drawn. Called on the event loop."""
        with self._lock:
            self._is_cancelled = True
            batch = self._batch
        if batch is not None:
            asyncio.get_running_loop().run_in_executor(None, _release, batch)


class AsyncRollouts:
    """`Rollouts` with methods that are awaited. `AsyncClient.rollouts` makes this object.

    When a task is cancelled, it continues at once. A call of it that has begun may still take effect, with
    one exception: groups that a cancelled draw has leased are released.
    """

    def __init__(self, rollouts: Rollouts, call: Caller) -> None:
        self.rollouts = rollouts
        self._call = call

    @property
    def name(self) -> str:
        return self.rollouts.name

    def __repr__(self) -> str:
        return f"AsyncRollouts({self.name!r})"

    async def create(self, *, exist_ok: bool = False, timeout: Optional[float] = 30.0,
                     **options: Any) -> AsyncRollouts:
        """`Rollouts.create`."""
        create = self.rollouts.create
        await self._call(lambda left: create(exist_ok=exist_ok, timeout=left, **options), timeout)
        return self

    async def drop(self, *, timeout: Optional[float] = 30.0) -> None:
        """`Rollouts.drop`."""
        await self._call(lambda left: self.rollouts.drop(timeout=left), timeout)

    async def configure(self, *, timeout: Optional[float] = 30.0, **options: Any) -> None:
        """`Rollouts.configure`."""
        configure = self.rollouts.configure
        await self._call(lambda left: configure(timeout=left, **options), timeout)

    async def info(self, *, timeout: Optional[float] = 30.0) -> Dict[str, Any]:
        """`Rollouts.info`."""
        return await self._call(lambda left: self.rollouts.info(timeout=left), timeout)

    async def reserve(self, group: str, *, ttl: float = 600.0, timeout: Optional[float] = None) -> Put:
        """`Rollouts.reserve`."""
        reserve = self.rollouts.reserve
        return await self._call(lambda left: reserve(group, ttl=ttl, timeout=left), timeout)

    async def abort(self, group: str, *, timeout: Optional[float] = None) -> Put:
        """`Rollouts.abort`."""
        return await self._call(lambda left: self.rollouts.abort(group, timeout=left), timeout)

    async def put(self, group: str, index: int, columns: Mapping[str, Any], *,
                  version: Union[int, Tuple[int, int]], timeout: Optional[float] = None) -> Put:
        """`Rollouts.put`. The arrays must not change until the call has ended."""
        put = self.rollouts.put
        return await self._call(
            lambda left: put(group, index, columns, version=version, timeout=left), timeout)

    async def update(self, group: str, index: int, columns: Mapping[str, Any], *, replace: bool = False,
                     timeout: Optional[float] = None) -> Put:
        """`Rollouts.update`. The arrays must not change until the call has ended."""
        update = self.rollouts.update
        return await self._call(
            lambda left: update(group, index, columns, replace=replace, timeout=left), timeout)

    async def advance(self, version: int, *, timeout: Optional[float] = None) -> int:
        """`Rollouts.advance`."""
        return await self._call(lambda left: self.rollouts.advance(version, timeout=left), timeout)

    async def draw(self, groups: Optional[int] = None, *, tokens: Optional[int] = None,
                   column: str = "tokens", min_groups: Optional[int] = None, consumer: str = "",
                   ttl: float = 600.0, timeout: Optional[float] = None) -> AsyncBatch:
        """`Rollouts.draw`."""
        drawing = _Drawing()
        draw = self.rollouts.draw

        def work(left: float) -> Batch:
            return drawing.keep(draw(groups, tokens=tokens, column=column, min_groups=min_groups,
                                     consumer=consumer, ttl=ttl, timeout=left))

        return AsyncBatch(self, await self._call(work, timeout, drawing.cancel))

    async def ack(self, lease: int, *, timeout: Optional[float] = None) -> None:
        """`Rollouts.ack`."""
        await self._call(lambda left: self.rollouts.ack(lease, timeout=left), timeout)

    async def release(self, lease: int, *, timeout: Optional[float] = None) -> None:
        """`Rollouts.release`."""
        await self._call(lambda left: self.rollouts.release(lease, timeout=left), timeout)

    async def renew(self, lease: int, ttl: float, *, timeout: Optional[float] = None) -> None:
        """`Rollouts.renew`."""
        await self._call(lambda left: self.rollouts.renew(lease, ttl, timeout=left), timeout)

    async def peek(self, group: str, *, timeout: Optional[float] = 30.0) -> Tuple[str, Optional[PeekedGroup]]:
        """`Rollouts.peek`."""
        return await self._call(lambda left: self.rollouts.peek(group, timeout=left), timeout)

    async def set_cursor(self, name: str, data: bytes, *, timeout: Optional[float] = None) -> None:
        """`Rollouts.set_cursor`."""
        await self._call(lambda left: self.rollouts.set_cursor(name, data, timeout=left), timeout)

    async def cursor(self, name: str, *, timeout: Optional[float] = 30.0) -> Optional[bytes]:
        """`Rollouts.cursor`."""
        return await self._call(lambda left: self.rollouts.cursor(name, timeout=left), timeout)
