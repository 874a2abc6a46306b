# SPDX-License-Identifier: Apache-2.0
"""The shared library exports exactly what the headers declare, and all names begin with rp_."""

import os
import pathlib
import re
import subprocess

from tree import ROOT, c_files, expect_none, without_comments


def declared(rl=False):
    """Returns the functions of the headers of libreprise, or of those of libreprise-rl."""
    names = set()
    for path in c_files("include"):
        if (path.parent.name == "rl") != rl:
            continue
        text = without_comments(path.read_text())
        text = re.sub(r"^\s*#.*(\\\n.*)*", "", text, flags=re.MULTILINE)
        names |= set(re.findall(r"RP_API\b[^;({]*?\b(\w+)\s*\(", text))
    return names


MOST_FUNCTIONS = 194


def test_the_api_stays_small():
    """A function that only the library calls belongs in a header of src/."""
    names = declared()
    assert names and len(names) <= MOST_FUNCTIONS, len(names)


def exported(library="src/libreprise.so"):
    build = pathlib.Path(os.environ.get("RP_BUILD", ROOT / "build" / "test" / "release"))
    library = build / library
    output = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", library],
                            check=True, capture_output=True, text=True).stdout
    return {line.split()[0] for line in output.splitlines()}


def test_every_declared_function_is_exported():
    expect_none(declared() - exported())


def test_nothing_else_is_exported():
    expect_none(exported() - declared())


def test_the_rl_library_exports_what_its_headers_declare():
    assert declared(rl=True) == exported("rl/libreprise-rl.so")


def test_exported_names_have_the_prefix():
    expect_none(n for n in exported() if not n.startswith("rp_"))


def defined(archive):
    """Returns the external names that the objects of an archive define."""
    output = subprocess.run(["nm", "--defined-only", "--extern-only", "--format=posix", archive],
                            check=True, capture_output=True, text=True).stdout
    return {line.split()[0] for line in output.splitlines() if len(line.split()) > 2}


def test_the_command_defines_no_symbol_of_the_library():
    """The command and the library are linked into one program. If both had a function of the same
    name, the first one would be called for both."""
    build = pathlib.Path(os.environ.get("RP_BUILD", ROOT / "build" / "test" / "release"))
    library = defined(build / "src" / "libreprise.a")
    command = defined(build / "src" / "cli" / "libreprise-cli.a")
    assert library and command
    expect_none(library & command)
