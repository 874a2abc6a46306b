# SPDX-License-Identifier: Apache-2.0
"""Every header compiles alone, and its guard is named for its file."""

import re
import subprocess

import pytest
from tree import ROOT, c_files, expect_none, name_of, text_of

# Does not compile alone: the file that includes it must first define the names that it uses.
TEMPLATES = {"src/table/selector/sumtree_lanes.h", "rl/nn/gemm_lanes.h",
             "rl/nn/gemm_narrow.h", "rl/nn/gemm_pack.h", "rl/nn/gemm_tiles.h", "rl/nn/loops_body.h"}

PUBLIC = c_files("include")
PRIVATE = [p for p in c_files("src", "rl") if p.suffix == ".h"]
SUPPORT = [p for p in c_files("tests/support") if p.suffix == ".h"]
FLAGS = ["-fsyntax-only", "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{ROOT}/include"]


def messages(compiler, flags, *paths):
    """Returns the messages of the compiler for a file that includes only these headers."""
    program = "".join(f'#include "{p}"\n' for p in paths) + "extern int not_empty;\n"
    done = subprocess.run([compiler, *FLAGS, *flags, "-"], input=program, capture_output=True,
                          text=True)
    return [] if done.returncode == 0 else [done.stderr or f"{paths}: failed"]


def includes_itself_first(header):
    """Whether the source file of the header's name includes it before any other file: then `make`,
    which compiles each file alone, compiles the header alone."""
    source = header.with_suffix(".c")
    if not source.exists():
        return False
    first = re.search(r'^#include ["<](.*?)[">]', text_of(source), re.MULTILINE)
    return first is not None and name_of(header).endswith("/" + first.group(1))


def test_public_headers_compile_alone_as_c11():
    flags = ["-std=c11", "-x", "c"]
    expect_none(m for p in PUBLIC for m in messages("gcc", flags, p))


@pytest.mark.parametrize("compiler, language", [("clang", "c"), ("g++", "c++"), ("clang++", "c++")])
@pytest.mark.parametrize("order", [1, -1])
def test_public_headers_compile_together_in_any_order(compiler, language, order):
    flags = ["-std=c11" if language == "c" else "-std=c++17", "-x", language]
    expect_none(messages(compiler, flags, *PUBLIC[::order]))


def test_private_headers_compile_alone_as_c17():
    flags = ["-std=c17", "-D_GNU_SOURCE", f"-I{ROOT}/src", f"-I{ROOT}/rl", f"-I{ROOT}/tests", "-x", "c"]
    expect_none(m for p in PRIVATE + SUPPORT
                if name_of(p) not in TEMPLATES and not includes_itself_first(p)
                for m in messages("gcc", flags, p))


def test_guards_are_named_for_their_files():
    wrong = []
    for path in PUBLIC + PRIVATE:
        words = list(path.relative_to(ROOT).with_suffix("").parts[1:])
        prefix = [] if words[0] == "reprise" else ["rp"]
        guard = "_".join(prefix + words + ["h"]).upper()
        text = text_of(path)
        if not re.search(rf"^#ifndef {guard}\n#define {guard}$", text, re.MULTILINE):
            wrong.append(f"{name_of(path)}: the guard should be {guard}")
        if not text.endswith("\n#endif\n"):
            wrong.append(f"{name_of(path)}: the guard does not close the file")
    expect_none(wrong)


def test_reprise_h_names_and_includes_every_public_header():
    text = (ROOT / "include" / "reprise" / "reprise.h").read_text()
    names = {p.name for p in PUBLIC if p.parent.name != "rl"} - {"reprise.h"}
    assert set(re.findall(r'^#include "reprise/(\w+\.h)"$', text, re.MULTILINE)) == names
    assert set(re.findall(r"^ \*   (\w+\.h)  ", text, re.MULTILINE)) == names


def test_version_of_the_headers_is_that_of_the_build():
    text = (ROOT / "include" / "reprise" / "version.h").read_text()
    parts = [re.search(rf"#define RP_VERSION_{part} (\d+)\n", text).group(1)
             for part in ("MAJOR", "MINOR", "PATCH")]
    build = re.search(r"version: '([\d.]+)'", (ROOT / "meson.build").read_text()).group(1)
    assert ".".join(parts) == build
