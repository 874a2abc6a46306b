# SPDX-License-Identifier: Apache-2.0
"""tools/join.py joins only files that have no name in common."""

import subprocess
import sys

import pytest

from tree import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import join  # noqa: E402: it is below tools/

APART = {
    "functions": ("static int\nadd(int x)\n{\n    return x;\n}\n", "static void add(void)\n{\n}\n"),
    "attributes": ("static RP_PRINTF(1, 2) void end(const char *f);\n", "static int end;\n"),
    "pointers": ("static int (*call)(void);\n", "static int call[2] = {1};\n"),
    "constants": ("enum { MOST = 3, LEAST };\n", "enum kind {\n    FIRST, /* or */\n    LEAST,\n};\n"),
    "types": ("typedef struct {\n    int x;\n} pair;\n", "typedef int pair;\n"),
    "tags": ("struct pair {\n    int x;\n};\n", "union pair {\n    int x;\n};\n"),
    "tables": ("static const struct {\n    int x;\n} rows[] = {{1}};\n", "static const int rows[1];\n"),
    "several": ("static int a, *b;\n", "static int b;\n"),
    "headers": ('#include "own.h"\n', "static int hidden;\n"),
    "calls": ("static void send(void)\n{\n}\n", "#include <sys/socket.h>\n"),
    "choices": ('#define WIDE\n#include "own.h"\n', "static int x;\n"),
}


def joined(folder, *texts, most=9, count=3):
    (folder / "own.h").write_text("static int hidden(void);\n")
    paths = [folder / f"{i}.c" for i in range(len(texts))]
    for path, text in zip(paths, texts):
        path.write_text(text)
    return [[int(path.stem) for path in files] for files in join.share_out(paths, most, count)]


@pytest.mark.parametrize("name", APART)
def test_files_with_a_name_in_common_stay_apart(tmp_path, name):
    assert joined(tmp_path, *APART[name], "static int y;\n")[:2] in ([[0, 2], [1]], [[0], [1, 2]])


def test_other_files_are_joined(tmp_path):
    first = '#include "own.h"\nstatic int f(int x)\n{\n    static int y;\n    return x + y;\n}\n'
    second = '#include "own.h"\nint z;\nstatic int y(int f)\n{\n    enum { x };\n    return f;\n}\n'
    assert joined(tmp_path, first, second) == [[0, 1], [], []]
    assert joined(tmp_path, first, second, most=1) == [[0], [1], []]
    with pytest.raises(ValueError, match="1.c has a name in common with each of 1 outputs"):
        joined(tmp_path, first, first, count=1)


def test_macros_end_with_their_file(tmp_path):
    source = tmp_path / "a.c"
    source.write_text("#define OWN 1\n#ifndef OTHER\n#define OTHER 2\n#endif\nint x = OWN;\n")
    outputs = [tmp_path / "joined_0.c", tmp_path / "joined_1.c"]
    command = [sys.executable, ROOT / "tools" / "join.py", "9", source, "--", *outputs]
    subprocess.run(command, check=True)
    assert f'#include "{source}"\n#undef OWN\n' in outputs[0].read_text()
    assert "OTHER" not in outputs[0].read_text() and "#include" not in outputs[1].read_text()
    before = outputs[0].stat().st_mtime_ns
    subprocess.run(command, check=True)
    assert outputs[0].stat().st_mtime_ns == before  # nothing to compile again
