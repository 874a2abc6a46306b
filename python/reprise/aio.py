# SPDX-License-Identifier: Apache-2.0
"""The client for asyncio: nothing here blocks the event loop, and every wait can be cancelled.

>>> import asyncio
>>> import numpy as np
>>> import reprise
>>> from reprise import aio
>>> server = reprise.Server([reprise.Table.queue("queue", max_size=10)])

>>> async def main():
...     async with aio.AsyncClient(f"localhost:{server.port}") as client:
...         await client.insert({"obs": np.arange(3.0)}, {"queue": 1.0})
...         async for (step,) in client.sample("queue"):
...             return step.data
>>> asyncio.run(main())
[array([0., 1., 2.])]

Calls that wait run on threads of the client, without the GIL. When a task is cancelled, or its
`timeout` (in seconds) has passed, the task continues at once. Its thread ends within half a second.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from typing import (
    TYPE_CHECKING,
    Any,
    AsyncGenerator,
    Callable,
    Dict,
    List,
    Mapping,
    Optional,
    Sequence,
    Union,
    overload,
)

from reprise import _core, _log, errors, reverb_types
from reprise._check import check_seconds, milliseconds, whole_number
from reprise.aio_rollouts import AsyncRollouts
from reprise.batch import Batch
from reprise.client import _SAMPLES_AHEAD, Client
from reprise.replay_sample import ReplaySample, SampleInfo
from reprise.rollouts import RolloutOptions, Rollouts

if TYPE_CHECKING:
    from typing_extensions import Literal, Unpack

    from reprise.dataset import DatasetOptions
    from reprise.table import Waiting

__all__ = ["AsyncClient"]

_SLICE_S = 0.25
_THREADS = 256  # at most; they are made when they are needed


class AsyncClient:
    """`reprise.Client` with methods that are awaited.

    Args:
      client: a `Client`, or the address of a server.
      options: the options of `Client`, if `client` is an address.
    """

    def __init__(self, client: Union[Client, str], **options: Any) -> None:
        if isinstance(client, Client) and options:
            raise ValueError(f"a client has its options already, got {sorted(options)}")
        self.client = client if isinstance(client, Client) else Client(client, **options)
        self._pool = concurrent.futures.ThreadPoolExecutor(_THREADS, "reprise-aio")
        self._is_closed = False

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: Any) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        """Raises AttributeError, which says what to write for a method that only `Client` has."""
        advice = ""
        if name == "sampler":
            advice = ": write batches(), for `async for`"
        elif not name.startswith("_") and hasattr(Client, name):
            advice = f": write client.client.{name}, on a thread if it waits (asyncio.to_thread)"
        raise AttributeError(f"AsyncClient has no {name!r}{advice}")

    def close(self) -> None:
        """Releases the threads. Calls in progress end by themselves; later ones raise RuntimeError."""
        self._is_closed = True
        self._pool.shutdown(wait=False)

    @property
    def server_address(self) -> str:
        """The address or addresses that were passed to the client."""
        return self.client.server_address

    async def _run(self, work: Callable[..., Any], stop: Callable[[], None]) -> Any:
        """Runs `work` on a thread. Calls `stop` if the task is cancelled."""
        if self._is_closed:
            raise RuntimeError("this AsyncClient is closed: make another, or call it inside `async with`")
        future = asyncio.get_running_loop().run_in_executor(self._pool, work)
        try:
            return await future
        except asyncio.CancelledError:
            stop()
            raise

    async def _call(
        self,
        call: Callable[[float], Any],
        timeout: Optional[float],
        stop: Optional[Callable[[], None]] = None,
    ) -> Any:
        """Makes a call that may be repeated, with timeouts of `_SLICE_S` until one succeeds. Calls `stop`
        if the task is cancelled."""
        check_seconds("timeout", timeout)
        stopped = threading.Event()
        until = None if timeout is None else time.monotonic() + timeout
        patience = _log.Patience()

        def work() -> Any:
            while True:
                left = _SLICE_S if until is None else until - time.monotonic()
                try:
                    return call(max(0.001, patience.slice(min(_SLICE_S, left))))
                except errors.DeadlineExceededError as e:
                    if stopped.is_set() or (until is not None and time.monotonic() >= until):
                        raise
                    patience.check(e.__cause__ or e)

        def end() -> None:
            stopped.set()
            if stop is not None:
                stop()

        return await self._run(work, end)

    async def insert(
        self, data: Any, priorities: Mapping[str, float], *, timeout: Optional[float] = None
    ) -> None:
        """`Client.insert`. The arrays must not change until the call has ended.

        If the task is cancelled, the item may still be inserted.
        """
        if not priorities:
            raise ValueError("priorities must contain at least one item")
        check_seconds("timeout", timeout)
        stopped = threading.Event()
        until = None if timeout is None else time.monotonic() + timeout

        def go_on() -> bool:
            return not stopped.is_set() and (until is None or time.monotonic() < until)

        slice_s = _SLICE_S if timeout is None else min(_SLICE_S, timeout)
        insert = self.client._insert
        patience = _log.Patience()
        await self._run(lambda: insert(data, priorities, slice_s, go_on, patience), stopped.set)

    @overload
    def sample(
        self,
        table: str,
        num_samples: int = 1,
        *,
        emit_timesteps: Literal[True] = True,
        unpack_as_table_signature: bool = False,
        timeout: Optional[float] = None,
    ) -> AsyncGenerator[List[ReplaySample], None]: ...

    @overload
    def sample(
        self,
        table: str,
        num_samples: int = 1,
        *,
        emit_timesteps: Literal[False],
        unpack_as_table_signature: bool = False,
        timeout: Optional[float] = None,
    ) -> AsyncGenerator[ReplaySample, None]: ...

    @overload
    def sample(
        self,
        table: str,
        num_samples: int = 1,
        *,
        emit_timesteps: bool = True,
        unpack_as_table_signature: bool = False,
        timeout: Optional[float] = None,
    ) -> AsyncGenerator[Union[List[ReplaySample], ReplaySample], None]: ...

    async def sample(
        self,
        table: str,
        num_samples: int = 1,
        *,
        emit_timesteps: bool = True,
        unpack_as_table_signature: bool = False,
        timeout: Optional[float] = None,
    ) -> AsyncGenerator[Any, None]:
        """`Client.sample`, for `async for`. `timeout` is for each sample."""
        whole_number("num_samples", num_samples, 1)
        timeout_ms = milliseconds("timeout", timeout)
        structure = None
        if unpack_as_table_signature:
            look_up = self.client._get_signature_for_table
            signature = await self._call(lambda left: look_up(table, left), timeout)
            structure = None if signature is None else _core.Structure(signature)
        make = _core.Client.replay_samples
        ask = 1
        while num_samples > 0:
            ask = num_samples if ask >= _SAMPLES_AHEAD or ask > num_samples else ask
            sampler = _core.Sampler(
                self.client._client,
                table,
                max_samples=ask,
                max_in_flight=min(ask, _SAMPLES_AHEAD),
            )
            try:
                left = ask
                while left > 0:
                    found = await self._next(sampler, left, timeout_ms)
                    left -= len(found)
                    samples = make(
                        found, SampleInfo, ReplaySample, structure, emit_timesteps
                    )
                    for sample in samples:
                        yield sample
            finally:
                sampler.close()
            num_samples -= ask
            ask *= 2

    async def _next(self, sampler: _core.Sampler, limit: int, timeout_ms: int) -> List[tuple]:
        try:
            found = sampler.next(limit, 0)
        except errors.DeadlineExceededError:
            wait = sampler.next
            found = await self._run(lambda: wait(limit, timeout_ms), sampler.close)
        if not found:
            raise errors.ReverbError("the samples ended early")
        return found

    async def batches(
        self, table: str, batch_size: int, **options: Unpack[DatasetOptions]
    ) -> AsyncGenerator[Batch, None]:
        """`Client.sampler`, for `async for`: batches of stacked arrays, which are prefetched."""
        dataset = self.client.sampler(table, batch_size, **options)
        await self._call(dataset.packer, dataset._patience())  # which waits for the server
        iterator = await self._run(dataset.__iter__, lambda: None)
        try:
            while True:
                batch = await self._run(iterator.take, iterator.close)
                if batch is None:
                    return
                yield batch
        finally:
            iterator.close()

    async def mutate_priorities(
        self,
        table: str,
        updates: Optional[Mapping[int, float]] = None,
        deletes: Optional[Sequence[int]] = None,
        *,
        timeout: Optional[float] = None,
    ) -> None:
        """`Client.mutate_priorities`."""
        mutate = self.client.mutate_priorities
        await self._call(lambda left: mutate(table, updates, deletes, timeout=left), timeout)

    async def update_priorities(
        self, table: str, keys: Any, priorities: Any, *, timeout: Optional[float] = None
    ) -> None:
        """`Client.update_priorities`."""
        update = self.client.update_priorities
        await self._call(lambda left: update(table, keys, priorities, timeout=left), timeout)

    async def server_info(
        self, timeout: Optional[float] = None
    ) -> Dict[str, reverb_types.TableInfo]:
        """`Client.server_info`."""
        try:
            return await self._call(self.client.server_info, timeout or None)
        except errors.DeadlineExceededError as e:
            raise errors.DeadlineExceededError(
                f"ServerInfo call did not complete within provided timeout of {timeout}s: "
                f"{e.__cause__}"
            ) from None

    async def reset(self, table: str, *, timeout: Optional[float] = None) -> None:
        """`Client.reset`. Cancelling the task does not undo a reset that was sent."""
        reset = self.client.reset
        await self._run(lambda: reset(table, timeout=timeout), lambda: None)

    async def checkpoint(self, *, timeout: Optional[float] = None) -> str:
        """`Client.checkpoint`. Cancelling the task does not undo a request that was sent."""
        checkpoint = self.client.checkpoint
        return await self._run(lambda: checkpoint(timeout=timeout), lambda: None)

    async def why(
        self, table: Optional[str] = None, *, timeout: Optional[float] = None
    ) -> List[Waiting]:
        """`Client.why`."""
        why = self.client.why
        return await self._call(lambda left: why(table, timeout=left), timeout)

    async def rollouts(
        self,
        name: str,
        *,
        create: Optional[RolloutOptions] = None,
        timeout: Optional[float] = 30.0,
    ) -> AsyncRollouts:
        """`Client.rollouts`: a buffer for training language models."""
        found = AsyncRollouts(Rollouts(self.client, name), self._call)
        return found if create is None else await found.create(exist_ok=True, timeout=timeout, **create)
