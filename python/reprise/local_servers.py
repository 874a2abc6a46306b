# SPDX-License-Identifier: Apache-2.0
"""The servers that this process runs, by port.

A client of "localhost:port" looks here first. If a server on threads of this process listens on the
port, the client uses the server's store and not the network. If a child process of this process
listens on it, the client registers, and its waits end when this process stops the child.

A forked child process runs none of these servers, so its registries start empty.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, Dict, Optional, Tuple

from reprise import _core

__all__ = ["LOOPBACK", "child_clients", "is_local", "local_durable", "local_store", "split_address"]

LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1", "")

# The stores of the servers on threads of this process.
stores: Dict[int, _core.Store] = {}
# The storage of these servers; a server without storage has no entry.
durables: Dict[int, _core.Durable] = {}
# The clients of each server in a child process. A client waits for a server that has ended, since
# the server may come back. The client gives up only after this process has stopped the child.
clients: Dict[int, "weakref.WeakSet[Any]"] = {}

if hasattr(os, "register_at_fork"):
    for _registry in (stores, durables, clients):
        os.register_at_fork(after_in_child=_registry.clear)


def split_address(address: str) -> Tuple[str, int]:
    """Splits "host:port"; returns ("", 0) for an address of another form."""
    host, colon, port = address.rpartition(":")
    return (host, int(port)) if colon and port.isdigit() else ("", 0)


def is_local(address: str, port: int) -> bool:
    """Returns True if a server of this host that listens on `port` has this address."""
    host, own_port = split_address(address)
    return own_port == port and host in LOOPBACK


def local_store(address: str) -> Optional[_core.Store]:
    """Returns the store of the server of this process that listens at an address, or None."""
    host, port = split_address(address)
    return stores.get(port) if port and host in LOOPBACK else None


def local_durable(address: str) -> Optional[_core.Durable]:
    """Returns the storage of the server of this process that listens at an address, or None."""
    return durables.get(split_address(address)[1]) if local_store(address) is not None else None


def child_clients(address: str) -> "weakref.WeakSet[Any]":
    """Returns the set in which clients of the child process at an address register.

    If no child listens at the address, returns a new, empty set.
    """
    host, port = split_address(address)
    found = clients.get(port) if host in LOOPBACK else None
    return weakref.WeakSet() if found is None else found
