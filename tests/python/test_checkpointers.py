# SPDX-License-Identifier: Apache-2.0
"""Checkpointers hold their path; nothing is written or read yet."""

import logging
import os

import pytest

import reprise
from reprise import checkpointers, pybind
from reprise.platform import checkpointers_lib
from reprise.platform.default import checkpointers as default_checkpointers


def test_default_holds_its_arguments():
    checkpointer = checkpointers.DefaultCheckpointer("/some/where", "group", "/fall/back")
    assert checkpointer.path == "/some/where"
    assert checkpointer.group == "group"
    assert checkpointer.fallback_checkpoint_path == "/fall/back"


def test_default_has_defaults():
    checkpointer = checkpointers.DefaultCheckpointer(path="/some/where")
    assert checkpointer.group == ""
    assert checkpointer.fallback_checkpoint_path is None


def test_temporary_makes_a_directory():
    checkpointer = checkpointers.TempDirCheckpointer()
    assert os.path.isdir(checkpointer.path)
    os.rmdir(checkpointer.path)


@pytest.mark.parametrize("group", [None, "g"])
def test_default_checkpointer(group):
    checkpointer = reprise.checkpointers.default_checkpointer(group)
    assert isinstance(checkpointer, checkpointers.TempDirCheckpointer)
    os.rmdir(checkpointer.path)


def test_internal_one_is_of_pybind():
    internal = checkpointers.DefaultCheckpointer("/some/where").internal_checkpointer()
    assert isinstance(internal, pybind.Checkpointer)
    assert "/some/where" in repr(internal)


def test_base_is_abstract():
    with pytest.raises(TypeError):
        checkpointers.CheckpointerBase()


def test_modules_agree():
    assert checkpointers.DefaultCheckpointer is checkpointers_lib.DefaultCheckpointer
    assert default_checkpointers.default_checkpointer is checkpointers.default_checkpointer


def test_server_says_that_it_does_not_use_it(caplog, tmp_path):
    checkpointer = checkpointers.DefaultCheckpointer(str(tmp_path))
    with caplog.at_level(logging.WARNING, "reprise"):
        with reprise.Server([reprise.Table.queue("q", 1)], checkpointer=checkpointer) as server:
            assert str(tmp_path) in repr(server)
    assert "not written" in caplog.text
