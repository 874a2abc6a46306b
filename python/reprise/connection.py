# SPDX-License-Identifier: Apache-2.0
"""The connection of a client to its servers, and information on their tables.

If the server is in the same process, the client uses its store directly. If it is on the same host
and of the same user, the client connects through a Unix socket and reads shared memory. Otherwise
it connects through TCP.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple, TypeVar, Union

from reprise import _core, errors, local_path, local_servers, reverb_types
from reprise._check import number, suggest_names

__all__ = ["Connection", "core_client"]

_NEAR_HOSTS = ("localhost", "127.0.0.1", "[::1]")
# Counts that are added up over the shards of a table.
_SUMS = (
    "max_size",
    "max_bytes",
    "size",
    "bytes",
    "inserts",
    "samples",
    "deletes",
    "updates",
    "evictions",
    "episodes",
    "deleted_episodes",
    "unique_samples",
    "total_weight",
    "waiting_inserts",
    "waiting_samples",
)

_Any = TypeVar("_Any", bound=Any)


def core_client(client: Any) -> _core.Client:
    """Returns the C extension's client of a `Connection`. `client` may also be that client itself.
    """
    return client if isinstance(client, _core.Client) else client._client


def _check_address(address: str) -> None:
    """Raises ValueError for mistakes in an address that are known without a connection."""
    scheme, found, rest = address.partition("://")
    if found and scheme in ("http", "https", "grpc", "tcp"):
        raise ValueError(f"address {address!r}: write host:port, without '{scheme}://', as in "
                         f"{rest.split('/')[0]!r}")
    if ";" in address:
        raise ValueError(f"address {address!r}: separate addresses by commas, as in "
                         f"{address.replace(';', ',')!r}")


def _rebuild(cls: type, address: str, options: Dict[str, Any]) -> Connection:
    return cls(address, **options)


@suggest_names
class Connection:
    """A connection to one server, or to several that are shards of the same tables.

    The arguments are those of `Client`.
    """

    _usage = "the address is one argument, such as 'localhost:8000'"

    def __init__(
        self,
        server_address: Union[str, Sequence[str]],
        *,
        transport: Optional[str] = None,
        tls: bool = False,
        ca_file: Optional[str] = None,
        certificate_file: Optional[str] = None,
        key_file: Optional[str] = None,
        server_name: Optional[str] = None,
        token: Optional[str] = None,
        connect_timeout: float = 0.0,
        spread: str = "turns",
        shared_memory: bool = True,
        item_bytes: int = 0,
        batch_bytes: int = 0,
        seed: int = 0,
    ) -> None:
        if hasattr(server_address, "localhost_client"):
            raise TypeError(
                "server_address must be an address, got a server: write server.localhost_client()"
            )
        if token is not None and not isinstance(token, str):
            raise TypeError(f"token must be a str or None, got {type(token).__name__}")
        if not isinstance(server_address, str):
            if not isinstance(server_address, (list, tuple)) or not all(
                isinstance(address, str) for address in server_address
            ):
                raise TypeError(
                    "server_address must be 'host:port', or a list of these, got "
                    f"{server_address!r}"
                )
            server_address = ",".join(server_address)
        _check_address(server_address)
        if not number("connect_timeout", connect_timeout) >= 0:
            raise ValueError(f"connect_timeout must be >= 0 seconds, got {connect_timeout}")
        if transport not in (None, "tcp"):
            raise ValueError(f"transport must be None or 'tcp', got {transport!r}")
        self._server_address = server_address
        self._transport = transport
        given: Dict[str, Any] = {
            "tls": tls,
            "ca_file": ca_file,
            "certificate_file": certificate_file,
            "key_file": key_file,
            "server_name": server_name,
            "token": token,
            "connect_timeout": connect_timeout,
            "spread": spread,
            "shared_memory": shared_memory,
            "item_bytes": item_bytes,
            "batch_bytes": batch_bytes,
            "seed": seed,
        }
        usual = {"spread": "turns", "shared_memory": True}
        # Without them there would be no TLS or no token: the extension refuses empty ones.
        not_empty = ("ca_file", "certificate_file", "key_file", "token")
        self._options = {
            name: value
            for name, value in given.items()
            if (value or value == "" and name in not_empty) and value != usual.get(name)
        }
        if not shared_memory:
            self._options["shared_memory"] = False
        # Raises if an address or an option is wrong. Names are not looked up.
        known = [address.strip().removeprefix("dns:") for address in server_address.split(",")]
        _core.Client(",".join(known), **self._options)
        self._server: Any = None  # if set, kept from being garbage-collected
        self._handle: Optional[_core.Client] = None
        self._pid = 0
        self._store: Any = None
        self._path: Optional[str] = None
        self._child: Any = None  # the child process that had the address when the client connected
        self._not_stopped: Set[str] = set()  # addresses, without those of children that have ended
        self._inserters: List[_core.StepWriter] = []

    def __reduce__(self) -> Tuple[Any, ...]:
        options = dict(self._options)
        if self._transport is not None:
            options["transport"] = self._transport
        return _rebuild, (type(self), self._server_address, options)

    def __repr__(self) -> str:
        return f"Client, server_address={self._server_address}"

    @property
    def server_address(self) -> str:
        """The address or addresses that were passed to the client."""
        return self._server_address

    @property
    def _client(self) -> _core.Client:
        """The C extension's client: a new one after a fork, or when the transport has changed."""
        handle = self._handle
        if handle is None or self._pid != os.getpid():
            return self._connect()
        if self._store is not None and not self._is_local():
            return self._connect()
        # A connection that is there needs no path.
        if self._path is not None and not handle.is_connected and not os.path.exists(self._path):
            return self._connect()
        if self._child is not None and self._child.has_successor(handle):
            self._child = None
        return handle

    def _kept(self, user: _Any) -> _Any:
        """Lets an object that uses the connection keep the server from being garbage-collected."""
        user._server = self._server
        return user

    def _is_local(self) -> bool:
        return local_servers.local_store(self._server_address) is self._store

    def _local_durable(self) -> Optional[_core.Durable]:
        """Returns the storage of the server if it is in this process and used directly, or None."""
        if not self._client.is_local:
            return None
        return local_servers.local_durable(self._server_address)

    def _connect(self) -> _core.Client:
        self._inserters = []
        self._store, self._path = self._shortcut()
        if self._store is not None:
            self._handle = _core.Client.local(self._store, 0, self._options.get("batch_bytes", 0))
        else:
            address = self._server_address if self._path is None else "unix:" + self._path
            self._handle = _core.Client(address, **self._options)
            self._register_with_child()
        self._pid = os.getpid()
        return self._handle

    def _register_with_child(self) -> None:
        """Registers with each server that runs in a child process of this process."""
        addresses = self._server_address.split(",")
        self._child = local_servers.child_at(addresses[0].strip()) if len(addresses) == 1 else None
        self._not_stopped = {address.strip() for address in addresses}
        for address in addresses:
            local_servers.child_clients(address.strip()).add(self)

    def _on_stop(self, port: int) -> None:
        """Handles the end of the server in a child process, which does not come back. If it was the last
        server of the client, ends all waits. While there are other shards, calls, writers and samplers
        go on with these, as after the loss of any server."""
        self._not_stopped = {
            address for address in self._not_stopped
            if not local_servers.is_local(address, port)
        }
        if self._not_stopped:
            return
        handle, self._handle = self._handle, None
        if handle is not None and self._pid == os.getpid():
            handle.give_up()

    def _shortcut(self) -> Tuple[Any, Optional[str]]:
        """Returns the store of a server in this process, or the path of the Unix socket of a server
        on this host.

        Returns (None, None) if an option is set that needs TCP.
        """
        near = {"shared_memory", "item_bytes", "batch_bytes", "seed"}
        if self._transport == "tcp" or set(self._options) - near:
            return None, None
        host, port = local_servers.split_address(self._server_address)
        if not port or host not in _NEAR_HOSTS:
            return None, None
        store = local_servers.local_store(self._server_address)
        return (store, None) if store is not None else (None, local_path.find(port))

    def server_info(
        self, timeout: Optional[float] = None
    ) -> Dict[str, reverb_types.TableInfo]:
        """Returns information on all tables, by name. Counts of several shards are added up.

        Raises:
          DeadlineExceededError: no response within `timeout` seconds (0 and None: no limit).
        """
        tables = self.details(timeout or None)
        return {name: reverb_types.TableInfo.from_dict(info) for name, info in tables.items()}

    def details(
        self, timeout: Optional[float] = None, table: Optional[str] = None
    ) -> Dict[str, Dict[str, Any]]:
        """Returns dicts with all information on the tables, or on one of them, by name. Their
        signatures are nests of `reprise.TensorSpec`, in a process with TensorFlow too.

        Raises:
          NotFoundError: there is no such table.
        """
        try:
            tables = self._client.tables(timeout, table)
        except errors.DeadlineExceededError as e:
            raise errors.DeadlineExceededError(
                f"ServerInfo call did not complete within provided timeout of {timeout}s: {e}"
            ) from e
        found: Dict[str, Dict[str, Any]] = {}
        for info in tables:
            first = found.setdefault(info["name"], info)
            if first is not info:
                for name in _SUMS:
                    first[name] += info[name]
        return found

    def _get_signature_for_table(self, table: str, timeout: Optional[float] = None) -> Any:
        tables = self.details(timeout)
        if table not in tables:  # in Reverb's words
            raise errors.NotFoundError(
                f'Could not find table "{table}". The following tables exists: '
                f"{', '.join(tables)}."
            )
        return tables[table]["signature"]
