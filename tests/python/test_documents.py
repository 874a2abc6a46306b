# SPDX-License-Identifier: Apache-2.0
"""Runs the Python code of the documents, and the examples in docstrings."""

import doctest
import importlib
import pathlib
import pkgutil
import re
import subprocess
import sys

import pytest
import reprise

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "python.md", ROOT / "docs" / "http.md"]
OPTIONAL = {"tensorflow", "torch", "jax", "ml_dtypes", "ray", "gymnasium", "stable_baselines3", "tianshou"}


def snippets(page):
    """Returns the Python blocks of a page as one program. Lines keep their numbers, so that errors
    show the right line. Blocks that use gRPC are left out, since they do not use this package."""
    text, program = page.read_text(), ""
    for block in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        if "import grpc" not in block.group(1):
            before = text[: block.start(1)].count("\n")
            program += "\n" * (before - program.count("\n")) + block.group(1)
    return program


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_the_python_of_a_page_runs(page, tmp_path):
    script = tmp_path / f"page_{page.stem}.py"  # http.py would hide a module of Python
    script.write_text(snippets(page))
    done = subprocess.run([sys.executable, "-X", "faulthandler", script], capture_output=True,
                          text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


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
