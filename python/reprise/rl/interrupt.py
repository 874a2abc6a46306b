# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C between two steps, so that what learns is whole afterwards."""

import signal
import threading
from types import FrameType
from typing import Any, Optional


class Interrupt:
    """While it is entered, the first Ctrl-C only sets `asked`; a second one raises at once.

    Leaving raises KeyboardInterrupt if it was asked for. Only in the main thread, and only if the
    program has no handler of its own.
    """

    def __init__(self) -> None:
        self.asked = False
        self._old: Any = None

    def _handle(self, number: int, frame: Optional[FrameType]) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def __enter__(self) -> "Interrupt":
        if (threading.current_thread() is threading.main_thread()
                and signal.getsignal(signal.SIGINT) is signal.default_int_handler):
            self._old = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self._old is not None:
            signal.signal(signal.SIGINT, self._old)
        if self.asked and kind is None:
            raise KeyboardInterrupt
