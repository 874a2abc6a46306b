# SPDX-License-Identifier: Apache-2.0
"""Rules about units, the pairs x.c and x.h of src/: no circles, few parameters, assertions."""

import pathlib
import re

from tree import ROOT, c_files, code_of, expect_none, name_of, text_of

MOST_PARAMETERS = 7
CALLBACKS = {"on_request", "rp_h2_on_header"}  # libmicrohttpd and nghttp2 define their parameters
ASSERTS_PER_1000_LINES = 10
BANNER = re.compile(r"^\s*(/\*|//|#) ?(-{3,}|={3,}|\*{4,})", re.MULTILINE)


def units():
    """Maps each unit to the units that it includes. A unit is a path below src/ without suffix."""
    graph = {}
    for path in c_files("src", "rl"):
        unit = pathlib.Path(*path.relative_to(ROOT).with_suffix("").parts[1:]).as_posix()
        headers = re.findall(r'^\s*#\s*include\s*"([^"]+)\.h"', code_of(path),
                             re.MULTILINE)
        graph.setdefault(unit, set()).update(h for h in headers if h != unit)
    return {unit: {h for h in headers if h in graph} for unit, headers in graph.items()}


def circles(graph):
    """Returns the sets of two or more nodes that reach each other (Tarjan's algorithm)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            group = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def test_the_search_finds_include_cycles():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"a"}}
    assert circles(graph) == [["b", "c"]]


def test_no_unit_includes_itself_through_others():
    expect_none(" ".join(c) for c in circles(units()))


def parameters(text):
    """Yields (name, number of parameters) of each function that begins in the first column."""
    for match in re.finditer(r"^(?!typedef|return|else)[A-Za-z_][\w \t*]*?\b(\w+)\(([^;{}]*?)\)\s*[;{]",
                             text, re.MULTILINE | re.DOTALL):
        depth = count = 0
        for letter in match.group(2):
            depth += (letter == "(") - (letter == ")")
            count += letter == "," and depth == 0
        yield match.group(1), count + bool(match.group(2).strip())


def test_functions_have_few_parameters():
    expect_none(f"{name_of(path)}: {name} has {count} parameters, the bound is {MOST_PARAMETERS}"
                for path in c_files("include", "src", "rl", "python")
                for name, count in parameters(code_of(path))
                if count > MOST_PARAMETERS and name not in CALLBACKS)


def test_modules_assert_their_invariants():
    wrong = []
    for module in sorted(p for f in ("src", "rl") for p in (ROOT / f).iterdir() if p.is_dir()):
        paths = c_files(name_of(module))
        lines = sum(len(text_of(p).splitlines()) for p in paths)
        asserts = sum(len(re.findall(r"\b(?:static_assert|_Static_assert|assert|RP_VERIFY)\(", code_of(p)))
                      for p in paths)
        if asserts * 1000 < lines * ASSERTS_PER_1000_LINES:
            wrong.append(f"{name_of(module)}: {asserts} assertions in {lines} lines; "
                         f"{ASSERTS_PER_1000_LINES} for each thousand are wanted")
    expect_none(wrong)


def test_files_have_no_section_banners():
    expect_none(name_of(p) for p in [*c_files("include", "src", "rl", "tests", "fuzz", "bench", "examples",
                                             "python"),
                                     *(ROOT / "python").rglob("*.py"), *(ROOT / "tests").rglob("*.py"),
                                     *(ROOT / "bench").glob("*.py"), *(ROOT / "tools").glob("*.py")]
                if BANNER.search(text_of(p)))
