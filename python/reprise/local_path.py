# SPDX-License-Identifier: Apache-2.0
"""The paths of the Unix sockets through which clients reach servers of the same user and host.

A server that listens on a TCP port also listens on a Unix socket, which is faster and lets
clients read large chunks in the server's memory. The path of the socket follows from the port, so a
client of "localhost:PORT" finds it by itself. The socket is in a directory of the user with mode
0700, below XDG_RUNTIME_DIR or in the directory for temporary files. A directory that belongs to
another user, or that other users may enter, is not used. Without a socket clients use TCP, which
is only slower.

The name of the socket contains the number of the network namespace. So a container that shares the
directory but not the network is not mistaken for this host.
"""

from __future__ import annotations

import os
import stat
from typing import Iterator, Optional, Union

__all__ = ["find", "remove", "socket_path"]

_MAX_PATH = 100  # bytes; a socket address has room for 107


def _candidates() -> Iterator[str]:
    import tempfile

    seen = set()
    for base in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):
        if base and os.path.isabs(base) and base not in seen:
            seen.add(base)
            yield base


def _is_safe(base: str, path: str) -> bool:
    """True if no other user can create, replace or remove files in the directory."""
    try:
        above, here = os.stat(base), os.lstat(path)
    except OSError:
        return False
    if above.st_mode & stat.S_IWOTH and not above.st_mode & stat.S_ISVTX:
        return False
    return (
        stat.S_ISDIR(here.st_mode) and here.st_uid == os.geteuid() and here.st_mode & 0o077 == 0
    )


def _namespace() -> int:
    try:
        return os.stat("/proc/self/ns/net").st_ino
    except OSError:
        return 0


def _paths(port: Union[int, str], create: bool) -> Iterator[str]:
    if not hasattr(os, "geteuid"):
        return  # not a Unix
    for base in _candidates():
        folder = os.path.join(base, f"reprise-{os.geteuid()}")
        if create:
            try:
                os.mkdir(folder, 0o700)
            except OSError:
                pass  # it exists, or cannot be made: _is_safe() decides
        path = os.path.join(folder, f"{_namespace():x}-{port}.sock")
        if _is_safe(base, folder) and len(os.fsencode(path)) <= _MAX_PATH:
            yield path


def socket_path(port: Union[int, str]) -> Optional[str]:
    """Returns the path for the socket of a server with that TCP port, or None if no directory is
    safe. Creates the directory.

    `port` may be another word for a server whose port is not known yet.
    """
    return next(_paths(port, create=True), None)


def find(port: int) -> Optional[str]:
    """Returns the path of the socket of this user's server on that TCP port. None: there is none.
    """
    import socket

    for path in _paths(port, create=False):
        try:
            found = os.lstat(path)
            if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
                continue
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                probe.settimeout(0.5)
                probe.connect(path)
                return path
        except ConnectionRefusedError:
            remove(path, found.st_ino)  # left behind by a server that was killed
        except OSError:
            continue
    return None


def remove(path: str, inode: int) -> None:
    """Removes the socket at `path`, if it still has this inode."""
    try:
        if os.lstat(path).st_ino == inode:
            os.unlink(path)
    except OSError:
        pass
