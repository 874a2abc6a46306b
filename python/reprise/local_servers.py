# SPDX-License-Identifier: Apache-2.0
"""The servers that this process runs, by port.

A client of "localhost:port" looks here first. If a server on threads of this process listens on the
port, the client uses the server's store and not the network. If a child process of this process
listens on it, the client registers, and its waits end when this process stops the child.

A forked child process runs none of these servers, so its registries start empty.
"""

from __future__ import annotations

import os
import re
import weakref
from typing import Any, Dict, Optional, Set, Tuple

from reprise import _core

__all__ = ["LOOPBACK", "child_at", "child_clients", "explain", "forget_child", "is_local", "local_durable",
           "local_store", "split_address"]

LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1", "")

# The stores of the servers on threads of this process.
stores: Dict[int, _core.Store] = {}
# The storage of these servers; a server without storage has no entry.
durables: Dict[int, _core.Durable] = {}
# The clients of each server in a child process. A client waits for a server that has ended, since
# the server may come back. The client gives up only after this process has stopped the child.
clients: Dict[int, "weakref.WeakSet[Any]"] = {}
# The servers in child processes that this process has not stopped (`child_server.Child`).
children: Dict[int, Any] = {}
# The ports of the servers on threads of this process that it has stopped.
stopped: Set[int] = set()

if hasattr(os, "register_at_fork"):
    for _registry in (stores, durables, clients, children, stopped):
        os.register_at_fork(after_in_child=_registry.clear)


def forget_child(port: int) -> None:
    """Ends what errors say about a child process that had this port: another server has it now."""
    children.pop(port, None)


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


def child_at(address: str) -> Any:
    """Returns the child process that had an address last, or None. It may have ended."""
    host, port = split_address(address)
    return children.get(port) if host in LOOPBACK else None


def child_clients(address: str) -> "weakref.WeakSet[Any]":
    """Returns the set in which clients of the child process at an address register.

    If no child listens at the address, returns a new, empty set.
    """
    host, port = split_address(address)
    found = clients.get(port) if host in LOOPBACK else None
    return weakref.WeakSet() if found is None else found


_STOPPED = "this process has stopped the server: make a new Server, and clients of it"
# What to do about the errors of connections, by a part of their text.
_ADVICE = (
    ("wants TLS", "pass tls=True, or ca_file= with the file of its certificate or authority"),
    ("does it want TLS", "if it does, pass tls=True or ca_file="),
    ("wrong version number", "the server does not use TLS: leave out tls=, ca_file= and certificate_file="),
    ("certificate required", "pass certificate_file= and key_file="),
    ("is not signed by what", "ca_file= has to be the file of that certificate, or of its authority"),
    ("self-signed certificate", "pass ca_file= with the file of that certificate or its authority"),
    ("unable to get local issuer", "pass ca_file= with the file of its authority"),
    ("authorization: Bearer", "pass token="),
    ("the token is not known", "check token="),
)


def explain(text: str) -> str:
    """Adds to the error of a connection what to do, or that this process has stopped the server, or that
    it was a child process, which has ended.

    The C extension calls it for the errors of calls that did not reach their server or showed no token
    that it knows, and the log for the reasons of waits.
    """
    for part, advice in _ADVICE:
        if part in text:
            return text if advice in text else f"{text}; {advice}"
    for child in list(children.values()):
        if not any(_names(text, address) for address in child.addresses):
            continue
        said = child.say_end(0.1 if "refused" in text else 0.0)
        if said and said not in text:
            return f"{text}; {said}"
    for port in re.findall(r"(?:localhost|127\.0\.0\.1|::1\]?):(\d+)", text) if "refused" in text else ():
        if int(port) in stopped and _STOPPED not in text:
            return f"{text}; {_STOPPED}"
    return text


def _names(text: str, address: str) -> bool:
    """Returns True if `address` is in the text, and not only the beginning of another one."""
    _, found, rest = text.partition(address)
    return bool(found) and not rest[:1].isdigit()
