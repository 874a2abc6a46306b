# SPDX-License-Identifier: Apache-2.0
"""The server, which serves tables.

>>> import reprise
>>> table = reprise.Table(
...     name="replay",
...     sampler=reprise.selectors.Uniform(),
...     remover=reprise.selectors.Fifo(),
...     max_size=1000,
...     rate_limiter=reprise.rate_limiters.MinSize(1),
... )
>>> server = reprise.Server([table])
>>> table.can_sample(1), table.info.current_size
(False, 0)
>>> server.stop()

`Server(tables)` runs on threads of this process, `Server(tables, where="child")` in a child
process. `Server(tables, where="host:8000")` uses a server that runs already, and creates the
tables there. Everything else is the same.
"""

from __future__ import annotations

import collections
import os
import threading
import weakref
from typing import Any, List, Mapping, Optional, Sequence, Union

from reprise import storage as storage_module
from reprise.client import Client
from reprise.local_servers import local_store, split_address
from reprise.platform import checkpointers_lib
from reprise.table import (
    REMOTE_TIMEOUT_S,
    RemoteTable,
    Table,
    TableExtensionBase,
    Waiting,
    whole_number,
)
from reprise.thread_server import ThreadServer

__all__ = ["Server", "Table", "TableExtensionBase", "Waiting", "local_store"]


def _check_tables(tables: Optional[Sequence[Table]]) -> List[Table]:
    if not tables:
        raise ValueError("At least one table must be provided")
    tables = list(tables)
    names = collections.Counter(table.name for table in tables)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise ValueError(f"Multiple items in tables have the same name: {', '.join(twice)}")
    for table in tables:
        server = table._server() if table._server is not None else None
        if server is not None and server.running:
            raise ValueError(
                f"table '{table.name}' is on another server already: {server.address}; "
                "table.replace() makes a new one with the same settings"
            )
    return tables


def _check_port(port: Optional[int]) -> int:
    if port is None:
        return 0
    number = whole_number("port", port)
    if not 0 <= number <= 65535:
        raise ValueError(f"port must be from 0 to 65535, got {number}")
    return number


class _Remote:
    """A server that runs elsewhere, by a client of it. It is left running."""

    def __init__(self, tables: Sequence[Table], client: Client) -> None:
        self.address = client.server_address
        self.port = split_address(self.address.split(",")[0])[1]
        self.places = [RemoteTable(client, table.name) for table in tables]
        there = client.details(timeout=REMOTE_TIMEOUT_S)
        for table in tables:
            if table.name not in there:
                client.create_table(table, timeout=REMOTE_TIMEOUT_S)
            else:
                _check_same(table, there[table.name])
        self.alive = True

    def stop(self, grace: float) -> None:
        del grace
        self.alive = False


def _check_same(table: Table, info: Mapping[str, Any]) -> None:
    for name in ("sampler", "remover", "limiter", "max_size", "max_times_sampled"):
        ours, theirs = table._options[name], info[name]
        if tuple(ours) != tuple(theirs) if isinstance(ours, tuple) else ours != theirs:
            raise ValueError(
                f"table '{table.name}' is on the server already, with {name} {theirs!r} "
                f"and not {ours!r}"
            )


def _hosts(address: Union[None, str, Sequence[str]]) -> List[str]:
    """The hosts to listen at; those of IPv6 in brackets."""
    if address is None:
        return ["localhost"]
    hosts = [address] if isinstance(address, str) else list(address)
    if not hosts:
        raise ValueError("address must have at least one host")
    return [f"[{host}]" if ":" in host and host[0] != "[" else host for host in hosts]


def _page_hosts(names: Sequence[str]) -> Optional[str]:
    """The names as the server takes them."""
    names = [names] if isinstance(names, str) else list(names)
    for name in names:
        if not isinstance(name, str) or not name or "," in name:
            raise ValueError(f"page_hosts must be names of hosts, got {name!r}")
    return ",".join(names) or None


def _client_of(where: Union[str, Client]) -> Client:
    if isinstance(where, Client):
        return where
    if split_address(where.split(",")[0])[1] or where.startswith("unix:"):
        return Client(where)
    raise ValueError(
        "where must be 'process', 'child', an address host:port or a Client, " f"got {where!r}"
    )


class Server:
    """Serves tables: to Reverb's clients and our own.

    Args:
      tables: at least one.
      port: to listen on. None or 0: any that is free; see `port`.
      checkpointer: where checkpoints are. The newest is loaded at the start; `Client.checkpoint`
        writes one. `storage` can do more.

    Beyond Reverb:

    Args:
      where: "process": on threads of this process, the default; "child": in a process of its
        own, which ends when this one does, however it ends; or the address of a reprise server
        that runs already, or a `Client` of it: tables that it does not have are created.
      address: the host or hosts to listen at, "localhost" if not given; "0.0.0.0" is every
        one. Others than this host's own are refused without certificate, tokens or `insecure`.
      insecure: allow everything to everyone who can reach the address.
      certificate_file, key_file: PEM files, for TLS.
      client_ca_file: PEM file of the certificate authorities for clients.
      require_client_certificate: clients without one are refused.
      tokens_file: tokens and their permissions; see docs/security.md.
      page_hosts: names under which a browser may ask for /metrics and /v1/info if there are no
        credentials, besides IP addresses and names without a dot.
      max_bytes: of all that items of all tables refer to. 0: no limit.
      policy: of an insert that would go over `max_bytes`: "evict" has the remover make room,
        "block" waits, "reject" fails.
      seed: of everything random in the tables. 0: from the system.
      storage: a directory, or a `reprise.Storage`. Data in it is loaded at the start, and kept
        there.
      local_socket: clients of this host and user find a Unix socket by themselves, and read
        large steps in the server's memory. Left out with certificates and tokens.
      threads: of the server; 0: one a processor.
      limits: what peers may ask for, by the names in reprise/server.h.
      log: "error", "warning", "info" or "debug": what to write to stderr. None: nothing.

    Raises:
      ValueError: no table, two of one name, a table of another server, a port or an address
        that cannot be had.
    """

    def __init__(
        self,
        tables: Optional[Sequence[Table]] = None,
        port: Optional[int] = None,
        checkpointer: Optional[checkpointers_lib.CheckpointerBase] = None,
        *,
        where: Union[str, Client] = "process",
        address: Union[None, str, Sequence[str]] = None,
        insecure: bool = False,
        certificate_file: Optional[str] = None,
        key_file: Optional[str] = None,
        client_ca_file: Optional[str] = None,
        require_client_certificate: bool = False,
        tokens_file: Optional[str] = None,
        page_hosts: Sequence[str] = (),
        max_bytes: int = 0,
        policy: str = "evict",
        seed: int = 0,
        storage: Union[None, str, "os.PathLike[str]", storage_module.Storage] = None,
        local_socket: bool = True,
        threads: int = 0,
        limits: Optional[Mapping[str, int]] = None,
        log: Optional[str] = None,
    ) -> None:
        self._tables = _check_tables(tables)
        self._checkpointer = checkpointer
        self._stopped = threading.Event()
        stored = storage_module.choose(storage, checkpointer)
        port = _check_port(port)
        hosts = _hosts(address)
        self._host = hosts[0]
        store_options = {
            "max_bytes": whole_number("max_bytes", max_bytes, 0),
            "policy": policy,
            "seed": whole_number("seed", seed, 0),
        }
        options = {
            "insecure": insecure,
            "certificate_file": certificate_file,
            "key_file": key_file,
            "client_ca_file": client_ca_file,
            "require_client_certificate": require_client_certificate,
            "tokens_file": tokens_file,
            "page_hosts": _page_hosts(page_hosts),
            "loops": whole_number("threads", threads, 0),
            "limits": None if limits is None else dict(limits),
            "log": log,
        }
        self._where: str = where if isinstance(where, str) else ""
        place: Any
        if where == "process":
            place = ThreadServer(
                self._tables, hosts, port, local_socket, store_options, stored, options
            )
        elif where == "child":
            from reprise import child_server  # with subprocess, which few servers need

            place = child_server.Child(
                self._tables, hosts, port, local_socket, store_options, stored, options
            )
        else:
            if port or address is not None:
                raise ValueError("a server that runs already has its own port and address")
            if stored is not None:
                raise ValueError("a server that runs already has its own storage, or none")
            place = _Remote(self._tables, _client_of(where))
            self._where = place.address
        self._place = place
        for table, its_place in zip(self._tables, place.places):
            table._place = its_place
            table._server = weakref.ref(self)
        # Stops the server when the object is collected, or at exit of the interpreter.
        self._finalizer = weakref.finalize(self, place.stop, 0.0)

    @property
    def port(self) -> int:
        """The TCP port."""
        return self._place.port

    @property
    def address(self) -> str:
        """The address for a client on this host."""
        if self._where not in ("process", "child"):
            return self._where
        host = "localhost" if self._host in ("", "0.0.0.0", "::", "[::]") else self._host
        return f"{host}:{self.port}"

    @property
    def where(self) -> str:
        """ "process", "child", or the address of one that ran already."""
        return self._where

    @property
    def pid(self) -> int:
        """The process it runs in; 0 of one that ran already."""
        if self._where == "process":
            return os.getpid()
        return self._place.pid if self._where == "child" else 0

    @property
    def running(self) -> bool:
        """False once it has been stopped, or its process has ended."""
        return not self._stopped.is_set() and self._place.alive

    def stop(self, grace: float = 0.0) -> None:
        """Ends all calls and stops. May be called again.

        Calls of clients in this process that wait end with CANCELLED. Other clients wait for the
        server to come back, until their timeouts.

        A server that ran already keeps running; only the connection is closed.

        Args:
          grace: how many seconds calls that are open may take to finish.
        """
        self._place.stop(grace)
        self._finalizer.detach()
        self._stopped.set()

    def why(self) -> List[Waiting]:
        """Returns the calls that wait at its tables now, and what would release them."""
        return [waiting for table in self._tables for waiting in table.why()]

    def kill(self) -> None:
        """Kills the child process of the server."""
        if self._where != "child":
            raise ValueError(f"only a server with where='child' can be killed: {self!r}")
        self._place.kill()

    def wait(self) -> None:
        """Waits until the server is stopped by another thread, or its process ends.

        Raises:
          KeyboardInterrupt: Ctrl-C; the server is stopped first.
        """
        try:
            while self.running and not self._stopped.wait(0.25):
                pass
        except KeyboardInterrupt:
            self.stop()
            raise

    def localhost_client(self, **options: Any) -> Client:
        """A `Client` of this server; `options` are the client's."""
        return Client(self.address, **options)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.stop()

    def __repr__(self) -> str:
        tables = ", ".join(repr(table) for table in self._tables)
        internal = self._checkpointer and self._checkpointer.internal_checkpointer()
        return (
            f"Server(port={self.port}, where={self._where}, tables=[{tables}], "
            f"checkpointer={internal})"
        )
