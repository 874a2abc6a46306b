# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, and the cases that are left out where all of them would take too long.

tests/run.py sets one of two variables. With RP_SANITIZED=1 the extension has the sanitizers inside:
everything takes many times as long. Cases with a server in a process of its own or over TCP are
left out, since they run the same code of the extension as those in this process, and so is Reverb's
suite; the C library has sanitized tests of its own. Of the other cases, every second one runs. With
RP_SHORT=1 seven of eight cases with a server in a process of its own are left out: each starts an
interpreter, and over TCP and in this process all cases run.
"""

import gc
import os
import signal

# A shell that runs the tests in the background may start them with Ctrl-C ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)


def is_costly(item):
    parameters = getattr(item, "callspec", None)
    transport = parameters.params.get("transport") if parameters is not None else None
    return (transport in ("child", "tcp") or "child" in item.name or "quick" in item.name
            or "reverb_suite" in item.nodeid)


def pytest_collection_modifyitems(config, items):
    if os.environ.get("RP_SANITIZED"):
        chosen = set([item for item in items if not is_costly(item)][::2])
    elif os.environ.get("RP_SHORT"):
        chosen = {item for item in items if "child" not in item.name}
        chosen |= set([item for item in items if "child" in item.name][::8])
    else:
        return
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


def pytest_collection_finish(session):
    """Takes the objects of pytest and of all test modules out of garbage collection: many tests
    collect, and would look through all of them each time."""
    gc.collect()
    gc.freeze()
