# SPDX-License-Identifier: Apache-2.0
"""Hard limits on the size of files and functions (docs/style.md)."""

from tree import c_files, expect_none, name_of, text_of

MAX_FUNCTION, MAX_SOURCE, MAX_HEADER = 80, 700, 320
MAX_ELSEWHERE = 700  # lines of a test, a benchmark or a fuzz target

# Functions that may be longer, since they are a switch whose cases are calls.
DISPATCHERS = set()

FILES = c_files("include", "src", "rl", "tests", "fuzz", "bench", "examples", "python")


def functions(path):
    """Yields (name, lines) of each function; clang-format puts its braces in the first column."""
    start, head = None, ""
    for number, line in enumerate(text_of(path).splitlines(), 1):
        if line == "{":
            start = number
        elif line.startswith("}") and start is not None:
            yield head.split("(")[0].split()[-1].lstrip("*"), number - start + 1
            start = None
        elif start is None and line[:1].isalpha() and "(" in line:
            head = line


def test_files_are_within_their_budget():
    wrong = []
    for path in FILES:
        count = len(text_of(path).splitlines())
        most = MAX_SOURCE if name_of(path).startswith(("src/", "rl/", "python/")) else MAX_ELSEWHERE
        if path.suffix == ".h":
            most = MAX_HEADER
        if count > most:
            wrong.append(f"{name_of(path)}: {count} lines, the bound is {most}")
    expect_none(wrong)


def test_functions_are_within_their_budget():
    expect_none(f"{name_of(path)}: {name} has {lines} lines"
                for path in FILES for name, lines in functions(path)
                if lines > MAX_FUNCTION and name not in DISPATCHERS)
