# SPDX-License-Identifier: Apache-2.0
"""Checks which module may include which. The dicts below are the rules."""

import collections
import functools
import pathlib
import re

from tree import ROOT, c_files, code_of, expect_none, name_of

# A module may include itself, these modules, and include/reprise.
MAY_INCLUDE = {
    "util": [],
    "tensor": ["util"],
    "chunk": ["util", "tensor"],
    "table": ["util", "tensor", "chunk"],
    "buffer": ["util", "table"],
    "runs": ["util", "chunk", "disk", "wire"],
    "rollouts": ["util", "tensor", "chunk", "wire"],
    "store": ["util", "tensor", "chunk", "table", "runs", "rollouts"],
    "disk": ["util", "tensor", "chunk"],
    "durable": ["util", "tensor", "chunk", "table", "runs", "rollouts", "store", "disk", "wire"],
    "net": ["util"],
    "wire": ["util", "tensor", "chunk"],
    "server": ["util", "tensor", "chunk", "table", "runs", "rollouts", "store", "disk", "durable", "net", "wire"],
    "client": ["util", "tensor", "chunk", "table", "runs", "rollouts", "store", "net", "wire"],
    "cli": [],
}

# The rooms of a module, the lowest first: a room may include itself and those before it. "." is the
# module's own folder.
ROOMS = {
    "table": ["selector", ".", "operation", "snapshot", "extension"],
    "durable": ["format", "checkpoint", "tier", "journal", "recovery", "reverb", ".", "tool"],
    "wire": [".", "h2"],
    "server": ["bounds", "auth", "metrics", "shm", "http", "core", "rpc"],
    "client": ["channel", "sink", "sampler", "writer", "."],
    "cli": ["text", "help", "serve", "commands", "shell", "train", "."],
}
MOST_FILES = 50  # in one folder

# Headers of libraries other than libc.
THIRD_PARTY = {
    "chunk": ["snappy-c.h", "zstd.h", "zstd_errors.h", "lz4.h"],
    "disk": ["xxhash.h"],
    "durable": ["xxhash.h", "zlib.h"],
    "net": ["openssl/err.h", "openssl/ssl.h", "openssl/x509.h"],
    "wire": ["nghttp2/nghttp2.h"],
    "server": ["microhttpd.h", "openssl/crypto.h", "openssl/sha.h", "openssl/evp.h"],
    "cli": ["yaml.h"],
}

# The same for the folders of rl/.
RL_LIBRARIES = {"nn": ["cblas.h"], "agents": ["pthread.h"], "loop": ["pthread.h"], "apex": ["pthread.h"],
                "pal": ["linux/futex.h", "pthread.h", "sys/syscall.h", "unistd.h"]}

# The headers of libc that every module may use: those without threads, clocks and system calls,
# which only util uses.
PLAIN = """
    assert.h errno.h float.h inttypes.h limits.h math.h stdalign.h stdarg.h stdatomic.h stdbool.h
    stddef.h stdint.h stdio.h stdlib.h string.h emmintrin.h immintrin.h arm_acle.h arm_neon.h
    """.split()
SYSTEM = {
    "util": "fcntl.h malloc.h pthread.h signal.h time.h unistd.h sched.h sys/auxv.h sys/mman.h sys/random.h sys/stat.h sys/syscall.h".split(),
    "disk": """
        dirent.h fcntl.h linux/openat2.h pthread.h sys/file.h sys/stat.h sys/statvfs.h sys/syscall.h sys/types.h sys/uio.h
        unistd.h
        """.split(),
    "durable": ["pthread.h", "signal.h"],
    "net": """
        arpa/inet.h fcntl.h netdb.h netinet/in.h netinet/tcp.h poll.h sys/epoll.h sys/eventfd.h sys/ioctl.h sys/socket.h
        sys/stat.h sys/syscall.h sys/types.h sys/uio.h sys/un.h time.h unistd.h
        """.split(),
    "wire": ["sys/types.h", "sys/uio.h"],
    "client": "pthread.h sys/socket.h sys/uio.h unistd.h".split(),
    "server": """
        arpa/inet.h pthread.h sys/resource.h sys/socket.h sys/sysinfo.h sys/uio.h time.h unistd.h
        """.split(),
    "cli": """
        dirent.h fcntl.h ftw.h getopt.h poll.h pthread.h sched.h signal.h spawn.h sys/ioctl.h sys/prctl.h sys/mman.h sys/resource.h sys/socket.h
        sys/stat.h sys/types.h sys/un.h sys/wait.h termios.h time.h unistd.h
        """.split(),
}


@functools.cache
def includes(folder):
    """Returns (place, path, header, quoted) for each #include in a folder of the tree."""
    found = []
    for path in c_files(folder):
        for number, line in enumerate(code_of(path).splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if match:
                found.append((f"{name_of(path)}:{number}", path, match.group(2), match.group(1) == '"'))
    return found


def module_of(path):
    return path.relative_to(ROOT / "src").parts[0]


def test_every_module_has_its_rule():
    expect_none({module_of(p) for p in c_files("src")} - set(MAY_INCLUDE))


def test_module_includes_only_lower_modules():
    wrong = []
    for place, path, header, quoted in includes("src"):
        module = module_of(path)
        allowed = [module, "reprise", *MAY_INCLUDE.get(module, [])]
        if quoted and header.split("/")[0] not in allowed:
            wrong.append(f'{place}: {module} may not include "{header}"')
    expect_none(wrong)


def room_of(path):
    """Returns the room of a path below src/MODULE; "." if it is in none."""
    return path.parts[1] if len(path.parts) > 2 else "."


def test_every_subfolder_is_in_the_table():
    rooms = {(module_of(p), room_of(p.relative_to(ROOT / "src"))) for p in c_files("src")}
    expect_none(f"src/{module}/{room}" for module, room in rooms
                if room not in ROOMS.get(module, ["."]))


def test_subfolder_includes_only_subfolders_before_it():
    wrong = []
    for place, path, header, quoted in includes("src"):
        module = module_of(path)
        if not quoted or header.split("/")[0] != module or module not in ROOMS:
            continue
        order = ROOMS[module]
        here, there = room_of(path.relative_to(ROOT / "src")), room_of(pathlib.Path(header))
        if order.index(there) > order.index(here):
            wrong.append(f'{place}: {module}/{here} may not include "{header}"')
    expect_none(wrong)


def test_rl_sees_only_public_headers_its_own_folder_and_errors():
    wrong = []
    for place, path, header, quoted in includes("rl"):
        folder = path.relative_to(ROOT / "rl").parts[0]
        if quoted and header.split("/")[0] not in ("reprise", "error", folder):
            wrong.append(f'{place}: rl/{folder} may not include "{header}"')
        if not quoted and header not in PLAIN + RL_LIBRARIES.get(folder, []):
            wrong.append(f"{place}: rl/{folder} may not include <{header}>")
    expect_none(wrong)


def test_no_folder_is_too_full():
    counts = collections.Counter(p.parent for p in c_files("src", "rl"))
    expect_none(f"{name_of(folder)}: {n} files, the bound is {MOST_FILES}"
                for folder, n in counts.items() if n > MOST_FILES)


def test_module_uses_only_its_libraries():
    wrong = []
    for place, path, header, quoted in includes("src"):
        module = module_of(path)
        allowed = PLAIN + SYSTEM.get(module, []) + THIRD_PARTY.get(module, [])
        if not quoted and header not in allowed:
            wrong.append(f"{place}: {module} may not include <{header}>")
    expect_none(wrong)


def test_public_header_includes_only_public_ones():
    expect_none(f"{place}: {header}" for place, _, header, quoted in includes("include")
                if (quoted and not header.startswith("reprise/"))
                or (not quoted and header not in ("stdbool.h", "stddef.h", "stdint.h")))


def test_programs_see_only_public_headers():
    """Benchmarks may also build chunks and choose kernels; other programs use writers."""
    for folder, more in (("bench", ("chunk/", "table/selector/sumtree.h")), ("examples", ()), ("python/core", ()),
                         ("python/rl", ())):
        own = {p.name for p in (ROOT / folder).glob("*.h")}
        expect_none(f"{place}: {header}" for place, _, header, quoted in includes(folder)
                    if quoted and header not in own and not header.startswith(("reprise/", *more)))
