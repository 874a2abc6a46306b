# SPDX-License-Identifier: Apache-2.0
"""Waiting for events, for tests that judge the order of events and never the time between them.

All limits here are against hangs only.
"""

import _thread
import os
import signal
import sys
import threading
import time

import pytest

LIMIT_S = 60  # no test takes so long unless something hangs
# True where tests repeat less: see conftest.py.
IS_SHORT = bool(os.environ.get("RP_SHORT") or os.environ.get("RP_SANITIZED"))


def wait_until(condition, what="the condition"):
    """Waits until the condition holds."""
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end, f"{what} did not come in {LIMIT_S} s"
        time.sleep(0.001)


def assert_interrupted(call, when):
    """Makes the call, and has Ctrl-C end it as soon as the condition holds."""
    def interrupt():
        try:
            wait_until(when)
        finally:  # a condition that never holds must not leave the call waiting
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        call()
    thread.join(LIMIT_S)


class Call:
    """A call on a thread of its own. `raised` is its exception, None if it has ended without."""

    def __init__(self, function, *args, **kwargs):
        self.result = self.raised = None
        self._thread = threading.Thread(target=self._run, args=(function, args, kwargs), daemon=True)
        self._thread.start()

    def _run(self, function, args, kwargs):
        try:
            self.result = function(*args, **kwargs)
        except BaseException as error:
            self.raised = error

    @property
    def is_over(self):
        return not self._thread.is_alive()

    def end(self):
        """Waits until it is over; its result, or its exception raised again."""
        self._thread.join(LIMIT_S)
        assert self.is_over, f"the call did not end in {LIMIT_S} s"
        if self.raised is not None:
            raise self.raised
        return self.result


class Witness:
    """A Python thread that can run only while the thread of the test releases the GIL.

    Python itself does not switch between threads inside the block, so `has_run` becomes true only
    if C code of the block releases the GIL.
    """

    def __init__(self):
        self.has_run = False
        self._gate = _thread.allocate_lock()
        self._gate.acquire()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        with self._gate:
            self.has_run = True

    def __enter__(self):
        self._thread.start()
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(1000)
        self._gate.release()  # from here on it waits for the GIL and nothing else
        return self

    def __exit__(self, *exc):
        sys.setswitchinterval(self._interval)
        self._thread.join(LIMIT_S)
