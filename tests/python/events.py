# SPDX-License-Identifier: Apache-2.0
"""Waits for events, for tests that check the order of events and never the time between them.

All limits are against hangs only.
"""

import _thread
import os
import re
import signal
import sys
import threading
import time

import pytest

LIMIT_S = 60  # only a call that hangs takes this long
# True if tests repeat less; see conftest.py.
IS_SHORT = bool(os.environ.get("RP_SHORT") or os.environ.get("RP_SANITIZED"))


def wait_until(condition, what="the condition"):
    """Waits until the condition is true."""
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end, f"{what} did not come in {LIMIT_S} s"
        time.sleep(0.001)


def stop(pid):
    """Stops a child process, and waits until it has stopped: on a loaded machine its threads go on for a while."""
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)


def assert_interrupted(call, when):
    """Makes the call, and ends it by Ctrl-C as soon as the condition is true."""
    def interrupt():
        try:
            wait_until(when)
        finally:  # the call must end even if the condition is never true
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        call()
    thread.join(LIMIT_S)


class Call:
    """A call on a new thread. `raised` is its exception, or None."""

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
        """Waits until the call is over. Returns its result, or raises its exception."""
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
        self._gate.release()  # from here on it waits for the GIL only
        return self

    def __exit__(self, *exc):
        sys.setswitchinterval(self._interval)
        self._thread.join(LIMIT_S)


def expect_reason(error, match, call, timeouts=(0.3, 3, 30)):
    """Makes a call with each of these timeouts until its error has the reason: a busy machine may need longer than
    the first to find it out."""
    for timeout in timeouts:
        with pytest.raises(error) as late:
            call(timeout)
        if re.search(match, str(late.value)):
            return
    raise late.value
