# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, and what is left out where everything takes many times as long.

RP_SANITIZED=1, which tests/run.py sets, says that the extension has the sanitizers inside. Servers
in a process of their own and over TCP run the same code of the extension as those in this process,
Reverb's suite the same as the package's own tests, and the C of the library has sanitized tests of
its own. Of what is left, every other case runs. RP_SHORT=1, of the same origin, leaves out two of
three cases with a server in a process of its own: over TCP all of them run.
"""

import os
import signal

# Whoever runs the tests in the background may have them start with Ctrl-C turned off.
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
        chosen |= set([item for item in items if "child" in item.name][::3])
    else:
        return
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]
