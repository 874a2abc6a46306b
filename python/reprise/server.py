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
process. `Server(tables, where="host:8000")` uses a server that is already running, and creates the
tables on it. Everything else is the same.
"""

from __future__ import annotations

import collections
import contextlib
import os
import threading
import weakref
from typing import Any, Iterator, List, Mapping, Optional, Sequence, Union

from reprise import errors
from reprise import storage as storage_module
from reprise._check import number, suggest_names, whole_number
from reprise.client import Client
from reprise.local_servers import local_store, split_address
from reprise.platform import checkpointers_lib
from reprise.table import (
    REMOTE_TIMEOUT_S,
    RemoteTable,
    Table,
    TableExtensionBase,
    Waiting,
)
from reprise.thread_server import ThreadServer

__all__ = ["Server", "Table", "TableExtensionBase", "Waiting", "local_store"]


def _check_tables(tables: Optional[Sequence[Table]]) -> List[Table]:
    if not tables:
        raise ValueError("At least one table must be provided")
    if isinstance(tables, Table):
        raise TypeError("tables must be a list of tables, got a Table: write Server([table])")
    tables = list(tables)
    for table in tables:
        if not isinstance(table, Table):
            raise TypeError(f"tables must be a list of tables, got {table!r} in it")
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
    """A server that was already running, used through a client. stop() leaves it running."""

    def __init__(self, tables: Sequence[Table], client: Client) -> None:
        for table in tables:
            table._refuse_extensions("a server that is running already")
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
        self._client = client

    def waiting(self) -> List[Dict[str, Any]]:
        return self._client._client.why_blocked(timeout=REMOTE_TIMEOUT_S)

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
    """Returns the hosts to listen on, with IPv6 addresses in brackets."""
    if address is None:
        return ["localhost"]
    hosts = [address] if isinstance(address, str) else list(address)
    if not hosts:
        raise ValueError("address must have at least one host")
    for host in hosts:
        name, port = split_address(host)
        if port and (":" not in name or name[0] == "["):
            raise ValueError(f"address takes hosts without a port, got {host!r}: write address={name!r}, "
                             f"port={port}")
    return [f"[{host}]" if ":" in host and host[0] != "[" else host for host in hosts]


def _page_hosts(names: Sequence[str]) -> Optional[str]:
    """Returns the names separated by commas, as the C extension takes them."""
    names = [names] if isinstance(names, str) else list(names)
    for name in names:
        if not isinstance(name, str) or not name or "," in name:
            raise ValueError(f"page_hosts must be names of hosts, got {name!r}")
    return ",".join(names) or None


@contextlib.contextmanager
def _naming_directory(stored: Optional[Mapping[str, Any]]) -> Iterator[None]:
    """Adds the directory of the storage to the error that another server has it."""
    try:
        yield
    except errors.StatusError as error:
        if stored is not None and "has this directory" in str(error):
            error.args = (f"the storage {stored['path']!r} is used by another server: {error}",)
        raise


def _client_of(where: Union[str, Client]) -> Client:
    if isinstance(where, Client):
        return where
    if split_address(where.split(",")[0])[1] or where.startswith("unix:"):
        return Client(where)
    raise ValueError(
        "where must be 'process', 'child', an address host:port or a Client, " f"got {where!r}"
    )


@suggest_names
class Server:
    """Serves tables to Reverb's clients and our own.

    Args:
      tables: at least one table.
      port: the port to listen on. None or 0: any free port; the attribute `port` has its number.
      checkpointer: the directory of checkpoints. The newest checkpoint is loaded at the start;
        `Client.checkpoint` writes one. `storage` has more options.

    Reverb does not have these:

    Args:
      where: "process", the default: on threads of this process. "child": in a child process,
        which ends when this process ends, even if this process is killed. The address of a reprise
        server that is already running, or a `Client` of it: tables that it does not have are
        created.
      address: the host or hosts to listen on. None: "localhost"; "0.0.0.0": all addresses. A
        server on any address but loopback needs a certificate, tokens or `insecure`.
      insecure: every client that can reach the address may make every call.
      certificate_file, key_file: PEM files, for TLS.
      client_ca_file: PEM file of the certificate authorities for clients.
      require_client_certificate: refuse clients without a certificate.
      tokens_file: tokens and their permissions; see docs/security.md.
      page_hosts: host names under which /metrics and /v1/info are served without credentials, in
        addition to IP addresses and names without a dot.
      max_bytes: the most bytes that the items of all tables may take. Rollouts may take a third of it in
        addition. 0: no limit; rollouts then take at most 8 GiB, or half of the machine's memory.
      policy: what happens to an insert that would exceed `max_bytes`. "evict": the removers evict
        items; "block": it waits; "reject": it fails.
      seed: the seed of all random choices of the tables. 0: from the system.
      storage: a directory, or a `reprise.Storage`. Its data is loaded at the start, and new data is
        written to it.
      local_socket: listen on a Unix socket, too. Clients of the same host and user find it by
        themselves, and read large chunks in the server's memory. Not with certificates or tokens.
      threads: the number of event loops; 0: one for each processor.
      limits: limits on the requests of peers, by their names in reprise/server.h.
      log: the level of the log on stderr: "error"; "warning", for instance connections that are refused;
        "info", also the start and the stop of the server; or "debug", also the memory that the items
        take near `max_bytes`. None: no log.

    Raises:
      ValueError: there is no table, two tables have the same name, a table belongs to another
        server, or the server cannot listen on the port or the address.
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
            with _naming_directory(stored):
                place = ThreadServer(
                    self._tables, hosts, port, local_socket, store_options, stored, options
                )
        elif where == "child":
            from reprise import child_server  # with subprocess, which few servers need

            with _naming_directory(stored):
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
        # Stops the server when the object is garbage-collected, or when the interpreter exits.
        self._finalizer = weakref.finalize(self, place.stop, 0.0)
        try:
            for table, its_place in zip(self._tables, place.places):
                table._place = its_place
                table._server = weakref.ref(self)
                if stored is not None:
                    storage_module.warn_of_saved(table.name, table._options, its_place.info())
        except BaseException:  # Ctrl-C as well: nothing else would stop the server now
            self._finalizer()
            raise

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
        """ "process", "child", or the address of a server that was already running."""
        return self._where

    @property
    def pid(self) -> int:
        """The process in which the server runs; 0 for a server that was already running."""
        if self._where == "process":
            return os.getpid()
        return self._place.pid if self._where == "child" else 0

    @property
    def running(self) -> bool:
        """False once the server has been stopped, or its process has ended."""
        return not self._stopped.is_set() and self._place.alive

    def stop(self, grace: float = 0.0) -> None:
        """Ends all calls and stops the server. May be called again.

        Waiting calls of clients in this process end with CANCELLED. Clients with other shards go on
        with these. Other clients wait for the server to come back, until their timeouts.

        A server that was already running keeps running.

        Args:
          grace: for how many seconds open calls may continue.
        """
        if not 0 <= number("grace", grace) < float("inf"):
            raise ValueError(f"grace must be a number of seconds >= 0, got {grace}")
        self._place.stop(grace)
        self._finalizer.detach()
        self._stopped.set()

    def why(self) -> List[Waiting]:
        """Returns the calls that wait at the server's tables and rollouts now, and what would release
        them. A draw of rollouts counts as a sample, what puts or reserves groups as an insert.
        """
        return [Waiting.from_dict(call["table"], call) for call in self._place.waiting()]

    def kill(self) -> None:
        """Kills the child process of the server."""
        if self._where != "child":
            raise ValueError(f"only a server with where='child' can be killed: {self!r}")
        self._place.kill()

    def wait(self) -> None:
        """Waits until the server is stopped by another thread, or its process ends.

        Raises:
          KeyboardInterrupt: on Ctrl-C, after the server was stopped.
        """
        try:
            while self.running and not self._stopped.wait(0.25):
                pass
        except KeyboardInterrupt:
            self.stop()
            raise

    def localhost_client(self, **options: Any) -> Client:
        """Returns a `Client` of this server. `options` are those of `Client`.

        The server runs at least as long as the client, its writers, datasets and iterators exist,
        unless `stop()` is called. A pickled client does not keep it running, nor does a
        `Client(server.address)`.
        """
        client = Client(self.address, **options)
        client._server = self
        return client

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.stop()

    def __repr__(self) -> str:
        tables = ", ".join(repr(table) for table in self._tables)
        internal = self._checkpointer and self._checkpointer.internal_checkpointer()
        end = self._place.end if self._where == "child" else ""
        ended = f", ended={end!r}" if end else ""
        return (
            f"Server(port={self.port}, where={self._where}, tables=[{tables}], "
            f"checkpointer={internal}{ended})"
        )
