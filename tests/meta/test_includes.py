# SPDX-License-Identifier: Apache-2.0
"""Each C file includes the headers that declare what it uses, itself or through others. The builds of
`make test` compile several files as one (tools/join.py), so a missing #include would show only
in a build that compiles each file alone, such as that of `make`."""

import functools
import re
import sys

from test_headers import TEMPLATES
from tree import ROOT, c_files, expect_none, name_of, without_comments

sys.path.insert(0, str(ROOT / "tools"))
from join import MACRO, names  # noqa: E402

FOLDERS = ["include", "src", "rl", "python/core", "python/rl", "tests/support"]
INCLUDE = re.compile(r'^#include ["<](.*?)[">]', re.MULTILINE)
CALLED = re.compile(r"^[A-Za-z][^\n=]*?\b(\w+)\(", re.MULTILINE)  # a prototype, or a function's beginning
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
WORD = re.compile(r"(?<![\w.>])(?<!struct )(?:rp|RP)_\w+")
SYSTEM = {
    "assert.h": "assert|static_assert",
    "errno.h": "errno",
    "math.h": "fabs|sqrt|isnan|isfinite|floor|ceil|pow|fmin|fmax",
    "pthread.h": "pthread_create|pthread_join|pthread_once",
    "stdatomic.h": "atomic_load_explicit|atomic_store_explicit|atomic_fetch_add_explicit|atomic_init",
    "stdio.h": "snprintf|fprintf|printf|fputs|fopen|fclose",
    "stdlib.h": "malloc|calloc|realloc|abort|qsort|strtol|strtod|getenv",
    "string.h": "memcpy|memmove|memset|memcmp|strlen|strcmp|strncmp|strchr|strstr|strerror",
    "sys/socket.h": "socket|bind|listen|accept4|sendmsg|recvmsg|setsockopt",
    "time.h": "clock_gettime|nanosleep",
    "unistd.h": "fsync|fdatasync|unlink|ftruncate|pread|pwrite|getpid",
}
OTHERS = {"Python.h": ["assert.h", "errno.h", "math.h", "stdio.h", "stdlib.h", "string.h", "time.h", "unistd.h"]}
SYSTEM = {word: header for header, words in SYSTEM.items() for word in words.split("|")}
USED = re.compile(r"(?<![\w.>])(?:(\w+)(?=\()|errno\b)")


@functools.cache
def text_of(path):
    return STRING.sub('""', without_comments(path.read_text()))


@functools.cache
def declares(path):
    text = text_of(path)
    return names(text) | set(MACRO.findall(text)) | set(CALLED.findall(text))


@functools.cache
def includes(path):
    """The files of the project that a file includes, and the system's headers."""
    found, system = [], set()
    for header in INCLUDE.findall(path.read_text()):
        where = [folder / header for folder in (*list(path.parents)[:4], ROOT / "include", ROOT / "src", ROOT / "tests")]
        ours = next((w for w in where if w.is_file() and ROOT in w.parents), None)
        if ours is None:
            system.update(OTHERS.get(header, [header]))
        else:
            found.append(ours)
    return found, system


@functools.cache
def closure(path):
    """All files that come with a file, and all headers of the system."""
    seen, system, left = {path}, set(), [path]
    while left:
        ours, theirs = includes(left.pop())
        system |= theirs
        left += [p for p in ours if p not in seen]
        seen.update(ours)
    return seen, system


def missing(path, where):
    seen, system = closure(path)
    text, own = text_of(path), set()
    for file in seen:
        own |= declares(file)
    wrong = [f"{name_of(path)}: {word} is declared in {' or '.join(name_of(p) for p in where[word])}, which is not included"
             for word in set(WORD.findall(text)) - own if word in where]
    used = {found or "errno" for found in USED.findall(text)} - own
    return wrong + [f"{name_of(path)}: {word} needs <{SYSTEM[word]}>" for word in used & SYSTEM.keys()
                    if SYSTEM[word] not in system]


def test_files_include_what_declares_their_names():
    paths = [p for p in c_files(*FOLDERS) if name_of(p) not in TEMPLATES]
    where = {}
    for path in paths:
        if path.suffix == ".h":
            for word in declares(path):
                where.setdefault(word, []).append(path)
    assert len(where) > 3000
    expect_none(w for path in paths for w in missing(path, where))
