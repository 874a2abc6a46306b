# SPDX-License-Identifier: Apache-2.0
"""The Unix sockets of servers of the same user, and directories that are not trusted."""

import os
import pathlib
import socket
import stat
import tempfile

import pytest

import reprise
from reprise import local_path


@pytest.fixture
def base(monkeypatch):
    """The directory that is tried first; here it is the only one. Its path is short."""
    with tempfile.TemporaryDirectory() as base:
        monkeypatch.setenv("XDG_RUNTIME_DIR", base)
        monkeypatch.setattr(local_path, "_candidates", lambda: iter([base]))
        yield pathlib.Path(base)


@pytest.fixture
def listener(base):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(local_path.socket_path(1234))
        sock.listen()
        yield sock


def test_path_is_in_a_directory_of_the_users_own(base):
    path = local_path.socket_path(1234)
    folder = os.path.dirname(path)
    assert os.path.dirname(folder) == str(base)
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert os.stat(folder).st_uid == os.geteuid()


def test_path_follows_from_the_port(base):
    assert local_path.socket_path(1) == local_path.socket_path(1)
    assert local_path.socket_path(1) != local_path.socket_path(2)


def test_find_returns_the_path_of_a_listening_server(listener):
    assert local_path.find(1234) == local_path.socket_path(1234)
    assert local_path.find(1235) is None


def test_find_without_a_socket_returns_none(base):
    assert local_path.find(1234) is None
    assert os.listdir(base) == []


def test_find_removes_a_stale_socket(listener):
    path = local_path.socket_path(1234)
    listener.close()
    assert os.path.exists(path)
    assert local_path.find(1234) is None
    assert not os.path.exists(path)


def test_does_not_take_a_file_for_a_socket(base):
    path = local_path.socket_path(1234)
    with open(path, "w"):
        pass
    assert local_path.find(1234) is None
    assert os.path.exists(path)


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_does_not_trust_an_open_directory(listener, mode):
    os.chmod(os.path.dirname(local_path.socket_path(1234)), mode)
    assert local_path.find(1234) is None
    assert local_path.socket_path(1234) is None


def test_does_not_follow_a_link(base, tmp_path):
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    os.symlink(other, base / f"reprise-{os.geteuid()}")
    assert local_path.socket_path(1234) is None


def test_does_not_trust_a_directory_of_another_user(listener, monkeypatch):
    euid = os.geteuid()
    folder = os.path.dirname(local_path.socket_path(1234))
    monkeypatch.setattr(os, "geteuid", lambda: euid + 1)
    os.rename(folder, folder[: -len(str(euid))] + str(euid + 1))
    assert local_path.find(1234) is None


def test_does_not_trust_a_world_writable_parent_without_sticky_bit(listener, base):
    os.chmod(base, 0o777)
    assert local_path.find(1234) is None
    os.chmod(base, 0o1777)
    assert local_path.find(1234) is not None


def test_leaves_out_a_path_that_is_too_long(tmp_path, monkeypatch):
    base = tmp_path / ("x" * 100)
    base.mkdir(mode=0o700)
    monkeypatch.setattr(local_path, "_candidates", lambda: iter([str(base)]))
    assert local_path.socket_path(1234) is None


def test_xdg_runtime_dir_is_the_first_candidate(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert list(local_path._candidates())[0] == str(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "relative")
    assert "relative" not in list(local_path._candidates())


def test_remove_wants_the_same_file(listener):
    path = local_path.socket_path(1234)
    local_path.remove(path, os.lstat(path).st_ino + 1)
    assert os.path.exists(path)
    local_path.remove(path, os.lstat(path).st_ino)
    assert not os.path.exists(path)
    local_path.remove(path, 0)


@pytest.mark.parametrize("where", ["process", "child"])
class TestServer:
    def test_has_a_socket(self, base, where):
        with reprise.Server([reprise.Table.queue("q", 3)], where=where) as server:
            path = local_path.find(server.port)
            assert path is not None
            client = reprise._core.Client("unix:" + path)
            assert [t["name"] for t in client.tables(timeout=120)] == ["q"]
        assert not os.path.exists(path)
        assert os.listdir(os.path.dirname(path)) == []

    def test_server_without_local_socket(self, base, where):
        with reprise.Server(
            [reprise.Table.queue("q", 3)], where=where, local_socket=False
        ) as server:
            assert local_path.find(server.port) is None

    def test_server_runs_without_a_trusted_directory(self, base, where):
        os.mkdir(base / f"reprise-{os.geteuid()}", 0o777)
        os.chmod(base / f"reprise-{os.geteuid()}", 0o777)
        with reprise.Server([reprise.Table.queue("q", 3)], where=where) as server:
            assert server.running
