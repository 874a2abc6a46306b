# SPDX-License-Identifier: Apache-2.0
"""Attacks on a server process, driven from raw sockets.

    RP_BUILD=build/test/asan pytest tests/attack     another build than the release one

A test requests a target with certain limits; tests with the same limits share a server. After each
test, the tables, the memory and the descriptors must be as before, and a bystander on another
connection must not have seen an error (target.py).
"""

import pytest

from target import Nursery, Target


def key_of(options):
    return repr(sorted(options.items()))


@pytest.fixture(scope="session")
def targets():
    """The servers that were started, by their options."""
    started = {}
    yield started
    wrong = [text for text in (target.close() for target in started.values()) if text]
    Nursery.end()
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def attack(targets):
    """Starts a target; `limits` and other options are those of target.Server. Checks it at the end.
    """
    used = []

    def start(fresh=False, **options):
        key = key_of(options) + (f" of its own {len(targets)}" if fresh else "")
        if key in targets and not targets[key].alive():  # the test that ended it has failed
            targets[f"{key} dead {len(targets)}"] = targets.pop(key)
        if key in targets:
            targets[key].begin()
        else:
            targets[key] = Target(**options)
        used.append(targets[key])
        return targets[key]

    yield start
    for target in used:
        target.finish()
