# SPDX-License-Identifier: Apache-2.0
"""Runs the examples in docstrings. The code blocks of the pages are run by the part docs of tests/run.py."""

import doctest
import importlib
import pathlib
import pkgutil
import re

import pytest
import reprise
from reprise import batch

OPTIONAL = {"tensorflow", "torch", "jax", "ml_dtypes", "ray", "gymnasium", "stable_baselines3", "tianshou"}

CONCEPTS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "overview.md"


def test_names_of_concepts_exist():
    """The table of docs/overview.md has Python's names in its second column: what is called, and what follows a dot."""
    known = {name for owner in (reprise, reprise.aio, reprise.rate_limiters, reprise.selectors, reprise.Client,
                                reprise.Server, reprise.Table, reprise.TrajectoryWriter, batch.Batch)
             for name in dir(owner)}
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \|[^|]*\|[^|]*\|$", CONCEPTS.read_text(), re.MULTILINE)
    names = {name for row in rows for name in re.findall(r"(?<=\.)[a-zA-Z]\w+|\w+(?=\()|(?<=`)[A-Z]\w+(?=`)", row)}
    assert len(names) > 30
    assert names - {"ValueError"} <= known


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
