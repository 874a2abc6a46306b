# SPDX-License-Identifier: Apache-2.0
"""Runs the examples in docstrings. The code blocks of the pages are run by the part docs of tests/run.py."""

import doctest
import importlib
import pkgutil
import re

import pytest
import reprise

OPTIONAL = {"tensorflow", "torch", "jax", "ml_dtypes", "ray", "gymnasium", "stable_baselines3", "tianshou"}


def modules():
    yield "reprise"
    for module in pkgutil.walk_packages(reprise.__path__, "reprise."):
        if not module.name.endswith("__main__"):
            yield module.name


@pytest.mark.parametrize("name", sorted(modules()))
def test_examples_in_docstrings(name):
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        if error.name not in OPTIONAL and not OPTIONAL & set(re.findall(r"\w+", str(error))):
            raise
        pytest.skip(f"needs {error.name}")
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0
