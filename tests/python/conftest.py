# SPDX-License-Identifier: Apache-2.0
"""Enables Ctrl-C, and leaves out cases if all of them would take too long.

tests/run.py sets two variables. With RP_SANITIZED=1 the extension is built with sanitizers, and
everything takes many times as long. Cases with a server over TCP, and cases that start another
interpreter, are left out, since they run the same code of the extension as others. Reverb's suite
is left out as well, and so are networks with convolutions, which take minutes. The C library has
its own sanitized tests. Every second one of the other cases
runs; with RP_SHORT=1 as well, every eighth one. With RP_SHORT=1 alone, 31 of 32 cases with a server
in a child process are left out, since each starts an interpreter, and every second case over TCP. In
this process all cases run. The example that learns is left out, too: it takes half a minute.
"""

import gc
import os
import signal

import pytest

# A shell that runs the tests in the background may start them with Ctrl-C ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)


# Parts of the names of tests that start interpreters.
INTERPRETERS = ("InAChild", "outlive_their_parent", "quick", "reverb_suite", "spawn",
                "test_a_build_without_rl", "test_equals_the_command", "test_package.py",
                "test_server_executable.py", "test_the_example", "the_python_of_the_page")
CONVOLUTIONS = ("Pictures", "[images]")


def has_parameter(item, *values):
    parameters = getattr(item, "callspec", None)
    return parameters is not None and any(
        isinstance(value, str) and value in values for value in parameters.params.values())


def is_costly(item):
    return has_parameter(item, "child", "tcp") or any(
        part in item.nodeid for part in INTERPRETERS + CONVOLUTIONS)


def pytest_collection_modifyitems(config, items):
    is_short = bool(os.environ.get("RP_SHORT"))
    if os.environ.get("RP_SANITIZED"):
        chosen = set([item for item in items if not is_costly(item)][::8 if is_short else 2])
    elif is_short:
        with_child = [item for item in items if has_parameter(item, "child")]
        learns = {item for item in items if "test_dqn_improves" in item.nodeid}
        with_tcp = [item for item in items if has_parameter(item, "tcp")]
        chosen = set(items) - set(with_child) - set(with_tcp[1::2]) - learns | set(with_child[::32])
    else:
        return
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


@pytest.fixture(autouse=True, scope="module")
def freeze():
    """Excludes the objects of pytest, and what earlier modules have left, from garbage collection:
    many tests collect, and would visit all of them each time."""
    gc.collect()
    gc.freeze()
