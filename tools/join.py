#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Joins C files into fewer and larger ones. The compiler starts once for each of these, and reads
each header once.

    tools/join.py MOST SOURCE... -- OUTPUT...

Each output includes up to MOST sources. Two sources with a name in common, for example a static
function, never get into the same output. Outputs that are not needed have no sources. An output
that would not change is not written, so that a build need not compile it again.

The names are read off the beginnings of lines, where clang-format puts what is declared in a file
and not in a function.
"""

import functools
import pathlib
import re
import sys

SKIPPED = re.compile(r"/\*.*?\*/|//[^\n]*|\bRP_[A-Z_]+\([^()]*\)"
                     r"|__attribute__\(\([^()]*\)\)\s*", re.DOTALL)  # and attributes
NAMES = [re.compile(pattern, re.MULTILINE) for pattern in (
    r"^static [^;={(]*?\b(\w+)\s*[\[;=(]",      # static int x; static int x[2]; static int f(
    r"^static [^;={]*?\(\*(?:const )?(\w+)",    # static int (*f)(
    r"^static [^={(]*?,\s*\*?(\w+)[,;]",        # static int x, y;
    r"^(?:static |const |typedef )*(?:struct|union|enum) (\w+)\s*\{",
    r"^typedef [^{;]*?\b(\w+);",
    r"^typedef [^{;]*?\(\*(\w+)\)",
    r"^\} (\w+)(?:\[\w*\])*(?: =|;)",           # the end of a typedef, and of static struct {
)]
ENUM = re.compile(r"^(?:typedef )?enum\s*\w*\s*\{(.*?)\}", re.MULTILINE | re.DOTALL)
INCLUDE = re.compile(r'^#include "(.*)"', re.MULTILINE)
MACRO = re.compile(r"^#define (\w+)", re.MULTILINE)
HEADERS = ["fcntl.h", "poll.h", "pthread.h", "signal.h", "stdio.h", "stdlib.h", "string.h",
           "strings.h", "sys/mman.h", "sys/random.h", "sys/socket.h", "sys/stat.h", "sys/uio.h",
           "time.h", "unistd.h"]


@functools.cache
def system_names():
    """The functions of the system's headers that a file may include."""
    paths = [path for header in HEADERS for folder in ("", "*-linux-*/")
             for path in pathlib.Path("/usr/include").glob(folder + header)]
    return {name for path in paths for name in re.findall(r"\b(\w+) ?\(", path.read_text())}


@functools.cache
def names(text):
    """What a file declares for itself."""
    text = SKIPPED.sub("", text)
    found = {name for pattern in NAMES for name in pattern.findall(text)}
    for constants in ENUM.findall(text):
        found.update(re.findall(r"(?:^|,)\s*(\w+)", constants))
    return found


def declared(path, known):
    """Where each name of a file is declared: in it, or in a header of its folder or one above.
    `known` has the results of other files."""
    if path not in known:
        known[path] = {}
        text = path.read_text()
        for header in INCLUDE.findall(text):
            for folder in list(path.parents)[:4]:
                if (folder / header).exists():
                    known[path] |= declared(folder / header, known)
                    break
        known[path] |= dict.fromkeys(names(text), str(path))
    return known[path]


def macros(text):
    """The macros that a file defines, but for those that a header may have defined."""
    return [name for name in dict.fromkeys(MACRO.findall(text))
            if not re.search(rf"^#ifn?def {name}$", text, re.MULTILINE)]


def is_alone(text):
    """Whether a file chooses by macros what its headers declare, or has a name of the system's
    headers, which another file may include."""
    return (re.search(r"^#define .*^#include", text, re.MULTILINE | re.DOTALL) is not None
            or not names(text).isdisjoint(system_names()))


def share_out(sources, most, count):
    """Lists of the sources in each of `count` outputs."""
    outputs = [[] for _ in range(count)]
    taken = [{} for _ in outputs]  # where the names in each are declared; None: no more sources
    known = {}
    for path in sources:
        alone, own = is_alone(path.read_text()), declared(path, known)
        for i, files in enumerate(outputs):
            if not files or not alone and taken[i] is not None and all(
                    taken[i].get(name, where) == where for name, where in own.items()):
                break
        else:
            raise ValueError(f"{path} has a name in common with each of {count} outputs: give "
                             "its meson.build some more")
        files.append(path)
        taken[i] = None if alone or len(files) == most else taken[i] | own
    return outputs


def content(files):
    lines = ["/* Written by tools/join.py. */"]
    for path in files:
        lines.append(f'#include "{path}"')
        lines += [f"#undef {name}" for name in macros(path.read_text())]
    if not files:
        lines.append("typedef int rp_nothing_joined;")
    return "\n".join(lines) + "\n"


def main(arguments):
    split = arguments.index("--")
    most, sources = int(arguments[0]), [pathlib.Path(a).resolve() for a in arguments[1:split]]
    outputs = [pathlib.Path(a) for a in arguments[split + 1:]]
    for output, files in zip(outputs, share_out(sources, most, len(outputs))):
        text = content(files)
        if not output.exists() or output.read_text() != text:
            output.write_text(text)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ValueError as wrong:
        sys.exit(f"join.py: {wrong}")
