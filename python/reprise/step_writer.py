# SPDX-License-Identifier: Apache-2.0
"""`Writer`, Reverb's older kind of writer: its items consist of whole steps."""

from __future__ import annotations

from typing import Any, Optional

from reprise import _core
from reprise._log import logger, say_dropped

__all__ = ["Writer"]


class Writer:
    """Writes whole steps, and makes items of the latest steps. Made by `Client.writer`.

    `TrajectoryWriter` has more options. Use a writer as a context manager, or call `close` at the
    end.

        with client.writer(max_sequence_length=2) as writer:
            writer.append(first)
            writer.append(second)
            writer.create_item("replay", num_timesteps=2, priority=1.0)
            writer.append(third)  # the first can no longer be used
            writer.create_item("replay", num_timesteps=2, priority=1.0)

    A step is sent once, however many items contain it, and only if an item contains it.
    """

    def __init__(
        self,
        internal_writer: _core.StepWriter,
        description: str = "Writer()",
    ):
        self._writer = internal_writer
        self._description = description
        self._closed = False
        self._logger = logger()  # for __del__: at exit of the interpreter, modules may be gone

    def __enter__(self) -> Writer:
        if self._closed:
            raise ValueError("Cannot reuse already closed Writer")
        return self

    def __exit__(self, exc_type: Any, *_: Any) -> None:
        try:
            if exc_type is None and not self._closed:
                self.flush()
                self.close()
        finally:  # after an exception, or Ctrl-C in the flush, close without waiting
            self._closed = True
            say_dropped("Writer", self._writer.close())

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            self._logger.warning("Writer-object deleted without calling .close explicitly.")
            try:
                self.close(timeout=10.0)  # not for ever: the process may be about to end
            except Exception:  # an error cannot be raised here
                self._logger.exception("items that a deleted Writer had not sent are lost")

    def __repr__(self) -> str:
        return f"{self._description}, closed: {self._closed}"

    def append(self, data: Any) -> None:
        """Appends a step: a nest of arrays. All steps have the same number of arrays and the same
        shapes.

        The step is not sent before an item contains it.

        Raises:
          ValueError: the step has other shapes or dtypes than earlier steps.
        """
        self._writer.append(data)

    def append_sequence(self, sequence: Any) -> None:
        """Appends several steps: one for each row of the arrays, which all have the same length.

            writer.append_sequence({"obs": np.zeros((5, 84)), "reward": np.zeros(5)})

        Raises:
          ValueError: a leaf is a scalar, the leaves differ in length, or they have no rows.
        """
        self._writer.append_sequence(sequence)

    def create_item(
        self,
        table: str,
        num_timesteps: int,
        priority: float,
        *,
        timeout: Optional[float] = None,
    ) -> int:
        """Makes an item of the latest steps and returns its key.

        The item is sent when the chunk with its last step is full, or with the next `flush` or
        `close`. Waits while `max_in_flight_items` items are unconfirmed.

        Raises:
          ValueError: num_timesteps is < 1, or more than there are steps; the priority is NaN; the
            steps do not match the table's signature.
          NotFoundError: there is no such table.
          DeadlineExceededError: `timeout` seconds have passed; the item was not created.
        """
        if num_timesteps < 1:
            raise ValueError(f"num_timesteps ({num_timesteps}) must be a positive integer")
        return self._writer.create_item(table, num_timesteps, priority, timeout)

    def flush(self, *, timeout: Optional[float] = None) -> None:
        """Sends all items, and waits until the server has confirmed them.

        Raises:
          DeadlineExceededError: `timeout` seconds have passed; sending continues in the background.
          StatusError: the server refuses an item.
        """
        self._writer.flush(timeout)

    def close(
        self, retry_on_unavailable: bool = True, *, timeout: Optional[float] = None
    ) -> None:
        """Flushes and closes the writer, which cannot be used after that.

        Args:
          retry_on_unavailable: if the server cannot be reached, wait for it. If False, and
            `timeout` is None, wait for 10 seconds at most.
          timeout: how many seconds to wait at most.

        Raises:
          ValueError: the writer is already closed.
          DeadlineExceededError: items that were not confirmed in time are lost.
        """
        if self._closed:
            raise ValueError("close() has already been called on Writer.")
        self._closed = True
        if timeout is None and not retry_on_unavailable:
            timeout = 10.0
        try:
            self._writer.flush(timeout)
        finally:
            self._writer.close()
