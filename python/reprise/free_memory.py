# SPDX-License-Identifier: Apache-2.0
"""The memory that this process may still take, as the kernel of Linux reports it."""

from __future__ import annotations

import os
from typing import Iterator, Optional

__all__ = ["available_bytes", "check_memory"]


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""


def _group_limits(mount: str, group: str, name: str) -> Iterator[int]:
    """Yields the limits of a control group and of the groups that contain it."""
    while True:
        text = _first_line(f"{mount}{group.rstrip('/')}/{name}")
        if text.isdigit():  # otherwise "max", or there is no such file
            yield int(text)
        if group in ("", "/"):
            return
        group = os.path.dirname(group)


def _limits(root: str) -> Iterator[int]:
    try:
        with open(f"{root}/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    yield 1024 * int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    try:
        with open(f"{root}/proc/self/cgroup", encoding="utf-8", errors="replace") as file:
            groups = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return
    for parts in groups:  # "id:controllers:/group"; version 2 has no controllers
        if len(parts) != 3 or not parts[2].startswith("/"):
            continue
        if not parts[1]:
            yield from _group_limits(f"{root}/sys/fs/cgroup", parts[2], "memory.max")
        elif "memory" in parts[1].split(","):
            yield from _group_limits(f"{root}/sys/fs/cgroup/memory", parts[2],
                                     "memory.limit_in_bytes")


def available_bytes(root: str = "") -> Optional[int]:
    """Returns the lesser of the available memory of the machine and the limits of this process's
    control groups, or None if neither is known."""
    return min(_limits(root), default=None)


def check_memory(what: str, needed: int) -> None:
    """Raises MemoryError if `needed` bytes are more than are available."""
    available = available_bytes()
    if available is not None and needed > available:
        raise MemoryError(f"{what} needs {needed:,} bytes, but only {available:,} bytes of memory are "
                          "available")
