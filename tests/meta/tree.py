# SPDX-License-Identifier: Apache-2.0
"""Finds the files of the tree, for the tests of this folder."""

import functools
import os
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def name_of(path):
    return path.relative_to(ROOT).as_posix()


@functools.cache
def all_files():
    """Returns the files of the tree, except built ones."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if f not in ("build", ".git", "__pycache__")]
        found += [pathlib.Path(folder) / n for n in names]
    return sorted(found)


def files(*patterns):
    """Returns the files of the tree that match one of the patterns, except built ones."""
    return [p for p in all_files() if any(p.match(pattern) for pattern in patterns)]


@functools.cache
def c_files_of(folder):
    return [p for p in (ROOT / folder).rglob("*.[ch]")]


def c_files(*folders):
    """Returns the C files below the named folders."""
    return sorted(p for f in folders for p in c_files_of(f))


@functools.cache
def text_of(path):
    return path.read_text()


@functools.cache
def code_of(path):
    """Returns the text of a C file with blanks in place of comments."""
    return without_comments(text_of(path))


def without_comments(text):
    """Returns C text with blanks in place of comments; lines keep their numbers."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.DOTALL)


def expect_none(wrong):
    """Fails with one line for each violation, if there are any."""
    wrong = sorted(wrong)
    assert not wrong, "\n" + "\n".join(wrong)
