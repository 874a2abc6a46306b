# SPDX-License-Identifier: Apache-2.0
"""Tables, and the server that serves them.

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

Where a server runs is one argument: `Server(tables)` runs it on threads of this process,
`Server(tables, where="child")` in a process of its own, and `Server(tables, where="host:8000")`
uses one that runs already, on which the tables are made. All else stays the same.
"""

from __future__ import annotations

import abc
import collections
import itertools
import operator
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence
from typing import Tuple, Union

from reprise import _core, errors, item_selectors, local_path, pybind
from reprise import rate_limiters, reverb_types, specs
from reprise import storage as storage_module
from reprise._log import logger
from reprise.platform import checkpointers_lib

if TYPE_CHECKING:
    from reprise.client import Client

__all__ = ["Server", "Table", "TableExtensionBase", "Waiting", "local_store"]

# The servers of this process, by port: a client of "localhost:port" in the same process uses
# the store itself and not the network.
_servers: Dict[int, _core.Store] = {}
# What their checkpoints are made with, of those that have storage.
_durables: Dict[int, _core.Durable] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_servers.clear)
    os.register_at_fork(after_in_child=_durables.clear)

_TIMEOUT = 30.0  # seconds, for what is asked of a server that runs elsewhere
_count = itertools.count()
_MAX_ITEMS = 2**30
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1", "")


def _split(address: str) -> Tuple[str, int]:
    """Host and port; ("", 0) of what is not of that form."""
    host, colon, port = address.rpartition(":")
    return (host, int(port)) if colon and port.isdigit() else ("", 0)


def local_store(address: str) -> Optional[_core.Store]:
    """The store behind an address, if a server of this process listens there."""
    host, port = _split(address)
    return _servers.get(port) if port and host in _LOOPBACK else None


def local_durable(address: str) -> Optional[_core.Durable]:
    """The storage behind an address, if a server of this process listens there and has one."""
    return _durables.get(_split(address)[1]) if local_store(address) is not None else None


class Waiting(NamedTuple):
    """A call that waits at a table.

    Fields:
      table: the name of the table.
      side: "insert" or "sample".
      wanted: how many items it is about.
      done: how many of them are done.
      seconds: how long it has waited.
      why: which bound holds it up, the counts, and what would release it.
    """

    table: str
    side: str
    wanted: int
    done: int
    seconds: float
    why: str

    def __str__(self) -> str:
        return f"{self.side} at '{self.table}' for {self.seconds:.1f} s: {self.why}"

    @classmethod
    def from_dict(cls, table: str, call: Mapping[str, Any]) -> Waiting:
        """From what `reprise._core` says of a waiting call."""
        return cls(
            table, call["side"], call["wanted"], call["done"], call["waiting_s"], call["why"]
        )


class _Here:
    """A table in a store of this process."""

    def __init__(self, store: _core.Store, name: str) -> None:
        self.store = store
        self._name = name

    def info(self) -> Dict[str, Any]:
        return self.store.table_info(self._name)

    def can_sample(self, count: int) -> bool:
        return self.store.can_sample(self._name, count)

    def can_insert(self, count: int) -> bool:
        return self.store.can_insert(self._name, count)

    def waiting(self) -> List[Dict[str, Any]]:
        return self.store.waiting(self._name)


class _There:
    """A table on a server elsewhere, asked through a client."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name

    def info(self) -> Dict[str, Any]:
        tables = self._client.details(timeout=_TIMEOUT)
        if self._name in tables:
            return tables[self._name]
        error = errors.StatusError(f"no table is called '{self._name}'")
        error.code = "NOT_FOUND"
        raise error

    def can_sample(self, count: int) -> bool:
        _check_count(count)
        info = self.info()
        _, min_size, min_diff, _ = info["limiter"]
        if info["paused"] & 2:
            return False
        enough = info["inserts"] - info["deletes"] >= min_size
        return enough and info["limiter_diff"] - count >= min_diff

    def can_insert(self, count: int) -> bool:
        _check_count(count)
        info = self.info()
        spi, min_size, _, max_diff = info["limiter"]
        if info["paused"] & 1:
            return False
        if info["inserts"] + count - info["deletes"] <= min_size:
            return True
        return info["limiter_diff"] + count * spi <= max_diff

    def waiting(self) -> List[Dict[str, Any]]:
        return self._client._client.why_blocked(self._name, timeout=_TIMEOUT)


def _check_count(count: int) -> None:
    if operator.index(count) < 1:
        raise ValueError(f"the count must be >= 1, got {count}")


class TableExtensionBase(metaclass=abc.ABCMeta):
    """What Reverb's extensions of tables derive from. As there, Python can make none."""

    @abc.abstractmethod
    def build_internal_extensions(self, table_name: str) -> Sequence[pybind.TableExtension]:
        """The extensions for a table of that name."""


def _signature(signature: Optional[reverb_types.SpecNest]) -> Optional[reverb_types.SpecNest]:
    """The signature as a nest of our specs. An empty nest is as good as none."""
    if signature is None or (isinstance(signature, (dict, list, tuple)) and not signature):
        return None
    for leaf in _core.Structure(signature).flatten(signature):
        if leaf is None or isinstance(leaf, (bool, int, float, complex, str, bytes)):
            raise ValueError("Unsupported signature spec: " + str(leaf))
    return specs.convert(signature)


def _whole(name: str, value: Any, lowest: Optional[int] = None) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None
    if lowest is not None and number < lowest:
        raise ValueError(f"{name} must be >= {lowest}, got {number}")
    return number


def _max_size(max_size: Any) -> int:
    """As much as Reverb takes, though 2^30 is the most a table holds."""
    number = _whole("max_size", max_size)
    return _MAX_ITEMS if _MAX_ITEMS < number < 2**31 else number


class Table:
    """Items with priorities, drawn by a sampler, evicted by a remover, paced by a limiter.

    An item refers to steps that were written once and may be shared by many items, of several
    tables; the steps are freed when no item refers to them any more.

    Args:
      name: not empty, unique on its server.
      sampler: which item is drawn; see `reprise.selectors`.
      remover: which item goes when there are more than `max_size`.
      max_size: how many items the table holds at most, no more than 2^30.
      rate_limiter: when inserts and samples may go ahead; see `reprise.rate_limiters`.
      max_times_sampled: an item goes when it has been sampled so often. < 1: never.
      extensions: there are none that could be given here.
      signature: a nest of specs that items must fit, or None; see `reprise.specs.convert` for
        what counts as a spec.
      max_bytes: how many bytes of steps its items may refer to before the remover makes room.
        0: no limit. Beyond Reverb, as are those below.
      seed: of its random choices. 0: drawn from the server's seed and the name.

    Raises:
      ValueError: the name is empty, max_size is not > 0, a leaf of the signature is no spec, or
        the limiter would come to block inserts and samples both.
    """

    def __init__(
        self,
        name: str,
        sampler: reverb_types.SelectorType,
        remover: reverb_types.SelectorType,
        max_size: int,
        rate_limiter: rate_limiters.RateLimiter,
        max_times_sampled: int = 0,
        extensions: Sequence[TableExtensionBase] = (),
        signature: Optional[reverb_types.SpecNest] = None,
        *,
        max_bytes: int = 0,
        seed: int = 0,
    ) -> None:
        if not name:
            raise ValueError("name must be nonempty")
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, got {name!r}")
        if max_size <= 0:
            raise ValueError(f"max_size ({max_size}) must be a positive integer")
        for role, selector in (("sampler", sampler), ("remover", remover)):
            if not isinstance(selector, pybind.ItemSelector):
                raise TypeError(f"{role} must be one of reprise.selectors, got {selector!r}")
        self._name = name
        self._sampler = sampler
        self._remover = remover
        self._rate_limiter = rate_limiter
        self._extensions = extensions
        self._signature = _signature(signature)
        self._max_bytes = _whole("max_bytes", max_bytes, 0)
        self._seed = _whole("seed", seed, 0)
        self._max_times_sampled = _whole("max_times_sampled", max_times_sampled)
        internal = [e for x in extensions for e in x.build_internal_extensions(name)]
        if internal:
            raise ValueError(f"table '{name}': there are no extensions to be made from Python")

        self._options: Dict[str, Any] = {
            "sampler": sampler._fields(),
            "remover": remover._fields(),
            "limiter": rate_limiter.internal_limiter._fields(),
            "max_size": _max_size(max_size),
            "max_times_sampled": max(0, self._max_times_sampled),
            "max_bytes": self._max_bytes,
            "seed": self._seed,
        }
        # Until a server takes it, it is alone in a store of its own.
        self._place: Any = self._add_to(_core.Store())
        self._server: Optional[weakref.ref[Server]] = None
        rate_limiter._table = weakref.ref(self)

    def _add_to(self, store: _core.Store) -> _Here:
        store.add_table(self._name, signature=self._signature, **self._options)
        return _Here(store, self._name)

    @classmethod
    def queue(
        cls,
        name: str,
        max_size: int,
        extensions: Sequence[TableExtensionBase] = (),
        signature: Optional[reverb_types.SpecNest] = None,
    ) -> Table:
        """A queue: items are sampled once each, the oldest first; a full one blocks inserts."""
        return cls(
            name=name,
            sampler=item_selectors.Fifo(),
            remover=item_selectors.Fifo(),
            max_size=max_size,
            max_times_sampled=1,
            rate_limiter=rate_limiters.Queue(max_size),
            extensions=extensions,
            signature=signature,
        )

    @classmethod
    def stack(
        cls,
        name: str,
        max_size: int,
        extensions: Sequence[TableExtensionBase] = (),
        signature: Optional[reverb_types.SpecNest] = None,
    ) -> Table:
        """A stack: items are sampled once each, the newest first; a full one blocks inserts."""
        return cls(
            name=name,
            sampler=item_selectors.Lifo(),
            remover=item_selectors.Lifo(),
            max_size=max_size,
            max_times_sampled=1,
            rate_limiter=rate_limiters.Stack(max_size),
            extensions=extensions,
            signature=signature,
        )

    @property
    def name(self) -> str:
        return self._name

    @property
    def info(self) -> reverb_types.TableInfo:
        """Its settings and counts, all of one moment."""
        return reverb_types.TableInfo.from_dict(self._place.info())

    @property
    def details(self) -> Dict[str, Any]:
        """What `info` has not: bytes, evictions, updates, who waits and for how long."""
        return self._place.info()

    def can_sample(self, num_samples: int) -> bool:
        """Whether the limiter would let so many samples go ahead now."""
        return self._place.can_sample(num_samples)

    def can_insert(self, num_inserts: int) -> bool:
        """Whether the limiter would let so many inserts go ahead now."""
        return self._place.can_insert(num_inserts)

    def why(self) -> List[Waiting]:
        """Which calls wait at this table now, first in line first, and what would release them.

        >>> Table.queue("q", 10).why()
        []
        """
        return [Waiting.from_dict(self._name, call) for call in self._place.waiting()]

    def replace(
        self,
        name: Optional[str] = None,
        sampler: Optional[reverb_types.SelectorType] = None,
        remover: Optional[reverb_types.SelectorType] = None,
        max_size: Optional[int] = None,
        rate_limiter: Optional[rate_limiters.RateLimiter] = None,
        max_times_sampled: Optional[int] = None,
        extensions: Optional[Sequence[TableExtensionBase]] = None,
        signature: Optional[reverb_types.SpecNest] = None,
    ) -> Table:
        """A new, empty table with the settings of this one, except for those given."""
        info = self._place.info()
        if max_times_sampled is None:
            max_times_sampled = info["max_times_sampled"]
        return Table(
            name=self._name if name is None else name,
            sampler=sampler or pybind.selector(*info["sampler"]),
            remover=remover or pybind.selector(*info["remover"]),
            max_size=info["max_size"] if max_size is None else max_size,
            rate_limiter=rate_limiter or rate_limiters.RateLimiter(*info["limiter"]),
            max_times_sampled=max_times_sampled,
            extensions=self._extensions if extensions is None else extensions,
            signature=self._signature if signature is None else signature,
            max_bytes=info["max_bytes"],
            seed=self._seed,
        )

    def __repr__(self) -> str:
        signature = "nullptr" if self._signature is None else repr(self._signature)
        return (
            f"Table(sampler={self._sampler!r}, remover={self._remover!r}, "
            f"max_size={self._options['max_size']}, "
            f"max_times_sampled={self._max_times_sampled}, name={self._name}, "
            f"rate_limiter={self._rate_limiter!r}, signature={signature})"
        )


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
    number = _whole("port", port)
    if not 0 <= number <= 65535:
        raise ValueError(f"port must be from 0 to 65535, got {number}")
    return number


class _Threads:
    """A server on threads of this process."""

    def __init__(
        self,
        tables: Sequence[Table],
        hosts: Sequence[str],
        port: int,
        local_socket: bool,
        store_options: Mapping[str, Any],
        storage: Optional[Mapping[str, Any]],
        options: Mapping[str, Any],
    ) -> None:
        self._pid = os.getpid()
        self._final = bool(storage and storage["final_checkpoint"])
        self.socket: Optional[Tuple[str, int]] = None  # path and number of the file
        self.store = _core.Store(**store_options)
        self.places = [table._add_to(self.store) for table in tables]
        self._durable = _open(self.store, storage) if storage is not None else None
        addresses = [f"{host}:{port}" for host in hosts]
        temporary = None
        if local_socket and not _needs_credentials(options):
            # The port is known, and with it the name, when the server has started.
            temporary = local_path.socket_path(f"{self._pid:x}.{next(_count)}")
            if temporary is not None:
                addresses.append("unix:" + temporary)
        try:
            self._server = _core.Server(
                self.store, addresses, durable=self._durable, **options
            )
        except errors.StatusError as error:
            if error.code != "UNAVAILABLE":
                raise
            raise ValueError(f"Failed to start the server: {error}") from None
        self.port = self._server.port
        if temporary is not None:
            self._name_socket(temporary)
        if self._durable is not None:
            _durables[self.port] = self._durable
        _servers[self.port] = self.store

    def _name_socket(self, temporary: str) -> None:
        path = local_path.socket_path(self.port)
        try:
            if path is not None:
                os.rename(temporary, path)
                self.socket = (path, os.lstat(path).st_ino)
        except OSError:
            logger().debug("no socket for clients of this host", exc_info=True)

    @property
    def alive(self) -> bool:
        return self._server.running

    def stop(self, grace: float) -> None:
        if self._pid != os.getpid():
            return  # a forked child has a copy of the object, and not the server
        if _servers.get(self.port) is self.store:
            _servers.pop(self.port, None)
            _durables.pop(self.port, None)
        if self.socket is not None:
            local_path.remove(*self.socket)
            self.socket = None
        if grace > 0:
            self._server.stop(int(grace * 1000))
        durable, self._durable = self._durable, None
        try:
            if durable is not None and self._final:
                durable.checkpoint()
        finally:
            self.store.close()  # ends all waits, so that nothing is left to stop
            self._server.stop(0)
            if durable is not None:
                durable.close()


def _open(store: _core.Store, storage: Mapping[str, Any]) -> _core.Durable:
    """Loads a data directory, or what it is to begin with."""
    storage_module.begin_with(storage["path"], storage["fallback"])
    options = {key: value for key, value in storage.items() if key != "fallback"}
    # The last checkpoint is asked for before the tables are closed.
    return _core.Durable(store, **dict(options, final_checkpoint=False))


def _needs_credentials(options: Mapping[str, Any]) -> bool:
    return bool(options.get("certificate_file") or options.get("tokens_file"))


class _Remote:
    """A server that runs elsewhere, by a client of it. It is left running."""

    def __init__(self, tables: Sequence[Table], client: Client) -> None:
        self.address = client.server_address
        self.port = _split(self.address.split(",")[0])[1]
        self.places = [_There(client, table.name) for table in tables]
        there = client.details(timeout=_TIMEOUT)
        for table in tables:
            if table.name not in there:
                client.create_table(table, timeout=_TIMEOUT)
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
    from reprise.client import Client

    if isinstance(where, Client):
        return where
    if _split(where.split(",")[0])[1] or where.startswith("unix:"):
        return Client(where)
    raise ValueError(
        "where must be 'process', 'child', an address host:port or a Client, " f"got {where!r}"
    )


class Server:
    """Serves tables: to Reverb's clients and our own.

    Args:
      tables: at least one.
      port: to listen on. None or 0: any that is free; see `port`.
      checkpointer: where checkpoints are, of which the newest is loaded. They are written when
        `Client.checkpoint` asks for it. `storage` can do more.

    Beyond Reverb:

    Args:
      where: "process": on threads of this process, the default; "child": in a process of its
        own, which ends when this one does, however it ends; or the address of a reprise server
        that runs already, or a `Client` of it: those tables are made there that are not there.
      address: the host or hosts to listen at, "localhost" if not given; "0.0.0.0" is every
        one. Others than this host's own are refused without certificate, tokens or `insecure`.
      insecure: lets anybody who can reach the address do everything.
      certificate_file, key_file: PEM files, for TLS.
      client_ca_file: PEM, by which the certificates of clients are checked.
      require_client_certificate: clients without one are refused.
      tokens_file: who may do what; see docs/security.md.
      page_hosts: names under which a browser may ask for /metrics and /v1/info if there are no
        credentials, besides IP addresses and names without a dot.
      max_bytes: of all that items of all tables refer to. 0: no limit.
      policy: of an insert that would go over `max_bytes`: "evict" has the remover make room,
        "block" waits, "reject" fails.
      seed: of everything random in the tables. 0: from the system.
      storage: a directory, or a `reprise.Storage`: the data is kept there, and what is there
        is loaded.
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
            "max_bytes": _whole("max_bytes", max_bytes, 0),
            "policy": policy,
            "seed": _whole("seed", seed, 0),
        }
        options = {
            "insecure": insecure,
            "certificate_file": certificate_file,
            "key_file": key_file,
            "client_ca_file": client_ca_file,
            "require_client_certificate": require_client_certificate,
            "tokens_file": tokens_file,
            "page_hosts": _page_hosts(page_hosts),
            "loops": _whole("threads", threads, 0),
            "limits": None if limits is None else dict(limits),
            "log": log,
        }
        self._where: str = where if isinstance(where, str) else ""
        place: Any
        if where == "process":
            place = _Threads(
                self._tables, hosts, port, local_socket, store_options, stored, options
            )
        elif where == "child":
            from reprise import child_server

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
        # When the object goes, or when the interpreter is about to.
        self._finalizer = weakref.finalize(self, place.stop, 0.0)

    @property
    def port(self) -> int:
        """The TCP port."""
        return self._place.port

    @property
    def address(self) -> str:
        """What a client on this host is to be given."""
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

        What clients of this process wait for ends with CANCELLED. Clients elsewhere wait for the
        server to come back, as long as their timeouts allow.

        Of a server that ran already, only the connection is given up.

        Args:
          grace: how many seconds calls that are open may take to finish.
        """
        self._place.stop(grace)
        self._finalizer.detach()
        self._stopped.set()

    def why(self) -> List[Waiting]:
        """Which calls wait at its tables now, and what would release them."""
        return [waiting for table in self._tables for waiting in table.why()]

    def kill(self) -> None:
        """Ends the process of a server that runs in a child, at once and without a goodbye."""
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
        from reprise.client import Client

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
