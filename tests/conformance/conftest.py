# SPDX-License-Identifier: Apache-2.0
"""Shared by all suites of this folder: the harness, and a limit on the time of a test."""

import pathlib
import sys
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

TEST_S = 60.0


def pytest_configure(config):
    config.addinivalue_line("markers", "seconds(n): the test may take this long")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Runs the test in a thread, so that a call that never returns fails only its test, not the
    whole run. Such a call is in a library that signals do not interrupt."""
    mark = pyfuncitem.get_closest_marker("seconds")
    seconds = mark.args[0] if mark else TEST_S
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    raised = []

    def call():
        try:
            pyfuncitem.obj(**arguments)
        except BaseException as error:  # raised again below
            raised.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        frame = sys._current_frames().get(thread.ident)
        where = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "nowhere"
        pytest.fail(f"still waiting after {seconds:.0f} s, at {where}", pytrace=False)
    if raised:
        raise raised[0]
    return True
