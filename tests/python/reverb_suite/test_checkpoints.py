# SPDX-License-Identifier: Apache-2.0
"""Checkpointers, and checkpoints that are written and loaded."""

import os

import pytest

from reverb_suite.helpers import insert, values
from reverb_suite.implementation import reverb, submodule, table

checkpointers = reverb.checkpointers


def test_default_checkpointer():
    assert isinstance(checkpointers.default_checkpointer(), checkpointers.CheckpointerBase)


def test_default_checkpointer_keeps_its_arguments(tmp_path):
    made = submodule("platform.checkpointers_lib").DefaultCheckpointer(
        str(tmp_path), group="g", fallback_checkpoint_path="elsewhere")
    assert (made.path, made.group, made.fallback_checkpoint_path) == (str(tmp_path), "g",
                                                                      "elsewhere")


def test_default_checkpointer_has_defaults(tmp_path):
    made = checkpointers.DefaultCheckpointer(str(tmp_path))
    assert (made.path, made.group, made.fallback_checkpoint_path) == (str(tmp_path), "", None)


def test_temp_dir_checkpointer():
    one, two = checkpointers.TempDirCheckpointer(), checkpointers.TempDirCheckpointer()
    assert os.path.isdir(one.path)
    assert one.path != two.path
    assert isinstance(one, checkpointers.DefaultCheckpointer)


def test_checkpointer_base_is_abstract():
    with pytest.raises(TypeError):
        checkpointers.CheckpointerBase()


def test_checkpoint_returns_its_path(start, tmp_path):
    client = start(table(), folder=str(tmp_path)).client
    client.insert(1.0, {"t": 1.0})
    path = client.checkpoint()
    assert isinstance(path, str)
    assert path.startswith(str(tmp_path))
    assert os.path.exists(path)


def test_a_checkpoint_is_loaded(start, tmp_path):
    before = start(table(), folder=str(tmp_path))
    insert(before.client, [1.0, 2.0, 3.0], priorities=[5.0, 6.0, 7.0])
    before.client.checkpoint()
    before.stop()
    after = start(table(), folder=str(tmp_path)).client
    assert after.server_info()["t"].current_size == 3
    (one,) = after.sample("t", emit_timesteps=False)
    assert (one.data[0][0], one.info.priority) == (1.0, 5.0)


def test_items_inserted_after_a_checkpoint_are_not_loaded(start, tmp_path):
    before = start(table(), folder=str(tmp_path))
    insert(before.client, [1.0])
    before.client.checkpoint()
    insert(before.client, [2.0])
    before.stop()
    after = start(table(), folder=str(tmp_path)).client
    assert after.server_info()["t"].current_size == 1
    assert values(after) == [1.0]
