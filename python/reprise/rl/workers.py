# SPDX-License-Identifier: Apache-2.0
"""Copies of an environment in processes of their own, over shared memory.

Every worker steps some of the copies. A step is one byte to each worker and one back; actions,
observations and rewards are in memory that all share. Workers are forked, so a callable need not be
pickled. Ctrl-C reaches the parent only. A worker ends when its parent does.

A worker's replies: "k" done, "e" failed, with a text in the shared memory.
"""

import mmap
import multiprocessing
import os
import select
import signal
import weakref
from typing import List, NamedTuple, NoReturn, Optional, Sequence

import numpy as np
from reprise.rl.group import Arrays, Copies, new_arrays
from reprise.rl.source import EnvSource

TEXT_BYTES = 2048
JOIN_S = 2.0


class _Worker(NamedTuple):
    process: "multiprocessing.process.BaseProcess"
    commands: int  # we write
    replies: int  # we read
    first: int
    copies: int


def _serve(source: EnvSource, arrays: Arrays, first: int, count: int, seeds: np.ndarray,
           text: np.ndarray, commands: int, replies: int) -> None:
    copies = Copies(source, arrays, first, count)
    while True:
        command = os.read(commands, 1)
        if command in (b"", b"q"):
            break
        try:
            if command == b"s":
                copies.step()
            else:
                copies.reset([int(seed) for seed in seeds] if command == b"S" else None)
        except Exception as error:
            said = str(error).encode("utf-8", "replace")[:TEXT_BYTES - 1]
            text[:] = 0
            text[:len(said)] = np.frombuffer(said, np.uint8)
            os.write(replies, b"e")
            continue
        os.write(replies, b"k")
    copies.close()


def _main(source: EnvSource, arrays: Arrays, first: int, count: int, seeds: np.ndarray,
          text: np.ndarray, commands: int, replies: int, of_parent: List[int]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for descriptor in of_parent:
        os.close(descriptor)
    try:
        _serve(source, arrays, first, count, seeds, text, commands, replies)
    except (BrokenPipeError, KeyboardInterrupt):
        pass


def _stop(workers: List[_Worker], owner: int) -> None:
    """Ends the workers and waits for them."""
    if os.getpid() != owner:
        return
    for worker in workers:
        os.close(worker.commands)  # a worker reads this as the end
        os.close(worker.replies)
    for worker in workers:
        worker.process.join(JOIN_S)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
    workers.clear()


class WorkerGroup:
    """All copies, stepped by `count` processes at the same time."""

    def __init__(self, source: EnvSource, copies: int, count: int) -> None:
        if source.single is not None:
            raise ValueError("workers make their environments themselves: pass a name or a "
                             "callable, not an environment")
        source.close()
        self._name = source.name
        memory = [mmap.mmap(-1, max(copies * 8, 1)), mmap.mmap(-1, count * TEXT_BYTES)]
        self.arrays = new_arrays(copies, source.observations, lambda n: mmap.mmap(-1, n))
        self._seeds: np.ndarray = np.ndarray((copies,), np.uint64, memory[0])
        self._texts: np.ndarray = np.ndarray((count, TEXT_BYTES), np.uint8, memory[1])
        self._workers: List[_Worker] = []
        self._finalizer = weakref.finalize(self, _stop, self._workers, os.getpid())
        edges = [copies * i // count for i in range(count + 1)]
        for i in range(count):
            self._start(source, i, edges[i], edges[i + 1] - edges[i])

    def _start(self, source: EnvSource, index: int, first: int, count: int) -> None:
        command_in, command_out = os.pipe()
        reply_in, reply_out = os.pipe()
        ours = [command_out, reply_in]
        for worker in self._workers:
            ours += [worker.commands, worker.replies]
        process = multiprocessing.get_context("fork").Process(
            target=_main, daemon=True, name=f"reprise-worker-{index}",
            args=(source, self.arrays, first, count, self._seeds, self._texts[index], command_in,
                  reply_out, ours))
        process.start()
        os.close(command_in)
        os.close(reply_out)
        self._workers.append(_Worker(process, command_out, reply_in, first, count))

    def _fail(self, index: int, reply: bytes) -> NoReturn:
        """Ends all workers and raises what one of them said, or how it ended."""
        worker, count = self._workers[index], len(self._workers)
        text = bytes(self._texts[index]).split(b"\0")[0].decode("utf-8", "replace")
        worker.process.join(JOIN_S if reply == b"" else 0)
        code = worker.process.exitcode
        self.close()
        if reply == b"e":
            raise RuntimeError(text)
        how = "it closed its pipe"
        if code is not None:
            how = f"exit status {code}"
            if code < 0:
                how = f"signal {-code}, {signal.strsignal(-code)}"
        raise RuntimeError(f"environment {self._name!r}: worker {index + 1} of {count}, which "
                           f"steps copies {worker.first} to {worker.first + worker.copies - 1}, "
                           f"has ended: {how}")

    def _ask(self, command: bytes) -> None:
        """Sends a command to every worker and waits for all replies."""
        if not self._workers:
            raise RuntimeError(f"environment {self._name!r}: its workers have ended")
        waiting, poll = {}, select.poll()
        for index, worker in enumerate(self._workers):
            try:
                os.write(worker.commands, command)
            except BrokenPipeError:
                self._fail(index, b"")
            waiting[worker.replies] = index
            poll.register(worker.replies, select.POLLIN | select.POLLHUP)
        while waiting:
            for descriptor, _ in poll.poll():
                index = waiting.pop(descriptor)
                poll.unregister(descriptor)
                reply = os.read(descriptor, 1)
                if reply != b"k":
                    self._fail(index, reply)

    def reset(self, seeds: Optional[Sequence[int]]) -> None:
        if seeds is not None:
            self._seeds[:] = seeds
        self._ask(b"r" if seeds is None else b"S")

    def step(self) -> None:
        self._ask(b"s")

    def close(self) -> None:
        _stop(self._workers, os.getpid())
