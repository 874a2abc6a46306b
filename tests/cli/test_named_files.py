# SPDX-License-Identifier: Apache-2.0
"""`reprise insert` matches .npy files with columns by name."""

import json
import struct

import pytest
from conftest import answer, ask, save_npy


@pytest.fixture
def table(serve, tmp_path):
    server = serve("--port", "0")
    answer(server, "tables", "create", "ab:fifo:100", "--column", "a=float64 []", "--column",
           "e/b=float64 []")
    for name, value in [("ones", 1.0), ("twos", 2.0), ("a", 1.0), ("e.b", 2.0)]:
        save_npy(tmp_path / f"{name}.npy", "<f8", "(1,)", struct.pack("<d", value))
    return server


@pytest.mark.parametrize("files, part", [
    (["e/b=twos.npy", "aa=ones.npy"], "aa=ones.npy: there is no column 'aa'"),
    (["bb=twos.npy", "a=ones.npy"], "bb=twos.npy: there is no column 'bb'"),
    (["aa=twos.npy", "bb=ones.npy"], "aa=twos.npy: there is no column 'aa'"),
    (["x=twos.npy", "ones.npy"], "x=twos.npy: there is no column 'x'"),
    (["a.npy", "a=ones.npy"], "another file is column 'a' too"),
    (["a.npy", "twos.npy"], "twos.npy: there is no column 'twos', but other files are given"),
    (["ones.npy", "e.b.npy"], "ones.npy: there is no column 'ones', but other files are given"),
    (["ones.npy"], "expected 2 files, got 1"),
])
def test_a_file_without_a_column_is_refused(table, tmp_path, files, part):
    done = ask(table, "insert", "ab", *files, cwd=tmp_path)
    assert done.returncode == 1 and part in done.stderr, done
    assert "the columns of table 'ab' are: a, e/b\n" in done.stderr, done
    assert json.loads(answer(table, "info", "ab", "--json"))[0]["items"] == 0


@pytest.mark.parametrize("files", [
    ["e/b=twos.npy", "a=ones.npy"], ["e.b.npy", "a.npy"], ["e.b.npy", "a=ones.npy"],
    ["ones.npy", "twos.npy"],
])
def test_files_are_columns_by_name_or_all_by_order(table, tmp_path, files):
    answer(table, "insert", "ab", *files, cwd=tmp_path)
    item = json.loads(answer(table, "sample", "ab", "--json"))
    assert {name: value["data"] for name, value in item["data"].items()} == {"a": 1.0, "e/b": 2.0}
