# SPDX-License-Identifier: Apache-2.0
"""Tables: their settings, and their state in this process, in a child process or on a server.

>>> import reprise
>>> table = reprise.Table.queue("queue", max_size=10)
>>> table.can_sample(1), table.info.current_size
(False, 0)
"""

from __future__ import annotations

import abc
import functools
import operator
import weakref
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from reprise import _core, _log, callbacks, item_selectors, pybind
from reprise import rate_limiters, reverb_types, specs
from reprise._check import limiter_fields, suggest_names, whole_number

if TYPE_CHECKING:
    from reprise.client import Client
    from reprise.server import Server

__all__ = ["Table", "TableExtensionBase", "Waiting"]

REMOTE_TIMEOUT_S = 30.0  # for requests to a server that runs elsewhere
_MAX_ITEMS = 2**30
_MAX_UNSIGNED = 2**64 - 1


def warn_if_never_full(table: str, least: int, most: int) -> None:
    """Logs a warning if a table of at most `most` items never has the `least` items that a sample needs."""
    if least > most:
        _log.logger().warning(
            "table '%s': samples wait for ever, as they need %d items (min_size_to_sample) and "
            "the table holds at most %d (max_size): raise max_size or lower min_size_to_sample",
            table, least, most
        )


class Waiting(NamedTuple):
    """A call that waits at a table.

    Fields:
      table: the name of the table.
      side: "insert" or "sample".
      wanted: how many items the call inserts or samples.
      done: how many of them are done.
      seconds: how long the call has waited.
      why: the bound that blocks the call, the counts, and what would release it.
      shard: the address of the server, if the client has several; otherwise "".
    """

    table: str
    side: str
    wanted: int
    done: int
    seconds: float
    why: str
    shard: str = ""

    def __str__(self) -> str:
        where = f" of {self.shard}" if self.shard else ""
        return f"{self.side} at '{self.table}'{where} for {self.seconds:.1f} s: {self.why}"

    @classmethod
    def from_dict(cls, table: str, call: Mapping[str, Any], shard: str = "") -> Waiting:
        """Converts a dict of `reprise._core`."""
        return cls(
            table, call["side"], call["wanted"], call["done"], call["waiting_s"], call["why"], shard
        )


class LocalTable:
    """A table in a store of this process."""

    def __init__(
        self, store: _core.Store, name: str, extensions: Sequence[_core.TableExtension] = ()
    ) -> None:
        self.store = store
        self.extensions = tuple(extensions)
        self._name = name

    def info(self) -> Dict[str, Any]:
        return self.store.table_info(self._name)

    def can_sample(self, count: int) -> bool:
        return self.store.can_sample(self._name, count)

    def can_insert(self, count: int) -> bool:
        return self.store.can_insert(self._name, count)

    def waiting(self) -> List[Dict[str, Any]]:
        return self.store.waiting(self._name)


class RemoteTable:
    """A table on another server, used through a client."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name

    def info(self) -> Dict[str, Any]:
        return self._client.details(timeout=REMOTE_TIMEOUT_S, table=self._name)[self._name]

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
        return self._client._client.why_blocked(self._name, timeout=REMOTE_TIMEOUT_S)


def _check_count(count: int) -> None:
    if operator.index(count) < 1:
        raise ValueError(f"the count must be >= 1, got {count}")


class TableExtensionBase(metaclass=abc.ABCMeta):
    """The base of table extensions: those of `reprise.extensions`, and others that build them."""

    @abc.abstractmethod
    def build_internal_extensions(self, table_name: str) -> Sequence[_core.TableExtension]:
        """Returns new extensions for a table of that name. It is called when the table is made, and
        again when the table gets to its server."""


def _signature(signature: Optional[reverb_types.SpecNest]) -> Optional[reverb_types.SpecNest]:
    """Converts a signature to a nest of our specs. An empty nest is the same as None."""
    if signature is None or (isinstance(signature, (dict, list, tuple)) and not signature):
        return None
    structure = _core.Structure(signature)
    for path, leaf in zip(structure.paths(), structure.flatten(signature)):
        if leaf is None or isinstance(leaf, (bool, int, float, complex, str, bytes, type)):
            named = [depth for depth, part in enumerate(path) if isinstance(part, str)]
            column = "/".join(str(part) for part in path[: named[-1] + 1 if named else len(path)])
            raise ValueError(
                f"Unsupported signature spec: {leaf}{' of column ' + repr(column) if column else ''}. "
                "Each leaf is a spec, such as reprise.TensorSpec((3,), np.float32), and not a pair "
                "of a shape and a dtype"
            )
    return specs.convert(signature)


def _check_max_size(max_size: Any) -> int:
    number = whole_number("max_size", max_size)
    if number <= 0:
        raise ValueError(f"max_size ({number}) must be a positive integer")
    return number


def _max_size(max_size: Any) -> int:
    """Limits max_size to 2^30, the most items that a table holds; Reverb accepts up to 2^31."""
    number = whole_number("max_size", max_size)
    if number >= 2**63:
        raise ValueError(f"max_size must be at most {_MAX_ITEMS}, got {number}")
    return _MAX_ITEMS if _MAX_ITEMS < number < 2**31 else number


def _max_times_sampled(max_times_sampled: Any) -> int:
    number = whole_number("max_times_sampled", max_times_sampled, highest=2**31 - 1)
    if number < -1:
        raise ValueError("max_times_sampled must be >= 0, where 0 means no limit, got "
                         f"{number}")
    return number


def _not_a_selector(role: str, given: Any) -> str:
    for name in item_selectors.__all__:
        if given is getattr(item_selectors, name):
            arguments = "0.6" if name == "Prioritized" else ""
            return (f"{role} must be an instance of one of reprise.selectors, got {name} without "
                    f"parentheses: write {name}({arguments})")
    return f"{role} must be one of reprise.selectors, such as Uniform(), got {given!r}"


@suggest_names
class Table:
    """A set of items with priorities. A sampler decides which item is drawn, a remover which is
    evicted, and a rate limiter when inserts and samples wait.

    An item refers to steps that were written once. Many items, in several tables, may refer to the
    same step, which is freed when no item refers to it any more.

    Args:
      name: not empty, unique on its server.
      sampler: selects the item that is drawn; see `reprise.selectors`.
      remover: selects the item that is removed when the table has more than `max_size` items.
      max_size: how many items the table holds at most, no more than 2^30.
      rate_limiter: decides when inserts and samples may proceed; see `reprise.rate_limiters`.
      max_times_sampled: an item is removed when it has been sampled this number of times, at most
        2^31 - 1. 0: never. -1 means 0, as in Reverb.
      extensions: run with the operations of the table, in the process of its server; see
        `reprise.extensions`.
      signature: a nest of specs that items must match, or None. `reprise.specs.convert` lists
        which objects are specs.
      max_bytes: how many bytes the items may take before the remover evicts some. 0: no limit.
        Reverb does not have this argument, nor the next.
      seed: the seed of the table's random choices. 0: derived from the server's seed and the name.

    Raises:
      ValueError: the name is empty, max_size is not > 0, max_times_sampled is less than -1, a leaf of
        the signature is not a spec, or the limiter could block inserts and samples at the same time.
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
        _check_max_size(max_size)
        for role, selector in (("sampler", sampler), ("remover", remover)):
            if not isinstance(selector, pybind.ItemSelector):
                raise TypeError(_not_a_selector(role, selector))
        self._name = name
        self._sampler = sampler
        self._remover = remover
        self._rate_limiter = rate_limiter
        if isinstance(extensions, TableExtensionBase):
            raise TypeError(f"table '{name}': extensions must be a list, got one: write "
                            f"extensions=[{type(extensions).__name__}(...)]")
        self._extensions = tuple(extensions)
        self._signature = _signature(signature)
        self._max_bytes = whole_number("max_bytes", max_bytes, 0, _MAX_UNSIGNED)
        self._seed = whole_number("seed", seed, 0, _MAX_UNSIGNED)
        self._max_times_sampled = _max_times_sampled(max_times_sampled)
        # Raises errors now, and not when there is a server.
        self._has_extensions = bool(self._build_extensions())

        self._options: Dict[str, Any] = {
            "sampler": sampler._fields(),
            "remover": remover._fields(),
            "limiter": limiter_fields(rate_limiter),
            "max_size": _max_size(max_size),
            "max_times_sampled": max(0, self._max_times_sampled),
            "max_bytes": self._max_bytes,
            "seed": self._seed,
        }
        warn_if_never_full(name, self._options["limiter"][1], self._options["max_size"])
        # Until the table is on a server, it is in a store of its own, without extensions.
        self._place: Any = self._add_to(_core.Store(), ())
        self._server: Optional[weakref.ref[Server]] = None
        rate_limiter._table = weakref.ref(self)

    def _add_to(
        self, store: _core.Store, extensions: Optional[Sequence[_core.TableExtension]] = None
    ) -> LocalTable:
        """Adds the table to a store, with new extensions unless they are given."""
        made = self._build_extensions() if extensions is None else extensions
        store.add_table(
            self._name, signature=self._signature, extensions=made, **self._options
        )
        for extension in made:
            if isinstance(extension, callbacks.CallbackThread):
                extension.start()
        return LocalTable(store, self._name, made)

    def _build_extensions(self) -> List[_core.TableExtension]:
        made: List[_core.TableExtension] = []
        for extension in self._extensions:
            if not isinstance(extension, TableExtensionBase):
                raise TypeError(
                    f"table '{self._name}': an extension must be one of reprise.extensions, "
                    f"got {extension!r}"
                )
            made += extension.build_internal_extensions(self._name)
        return made

    def _refuse_extensions(self, place: str) -> None:
        if self._has_extensions:
            raise ValueError(
                f"table '{self._name}': extensions run in this process, and {place} does not"
            )

    @classmethod
    @suggest_names
    def queue(
        cls,
        name: str,
        max_size: int,
        extensions: Sequence[TableExtensionBase] = (),
        signature: Optional[reverb_types.SpecNest] = None,
    ) -> Table:
        """Returns a queue: each item is sampled once, the oldest first. If it is full, inserts
        wait."""
        return cls(
            name=name,
            sampler=item_selectors.Fifo(),
            remover=item_selectors.Fifo(),
            max_size=max_size,
            max_times_sampled=1,
            rate_limiter=rate_limiters.Queue(_check_max_size(max_size)),
            extensions=extensions,
            signature=signature,
        )

    @classmethod
    @suggest_names
    def stack(
        cls,
        name: str,
        max_size: int,
        extensions: Sequence[TableExtensionBase] = (),
        signature: Optional[reverb_types.SpecNest] = None,
    ) -> Table:
        """Returns a stack: each item is sampled once, the newest first. If it is full, inserts
        wait."""
        return cls(
            name=name,
            sampler=item_selectors.Lifo(),
            remover=item_selectors.Lifo(),
            max_size=max_size,
            max_times_sampled=1,
            rate_limiter=rate_limiters.Stack(_check_max_size(max_size)),
            extensions=extensions,
            signature=signature,
        )

    @property
    def name(self) -> str:
        """The name, unique on the server."""
        return self._name

    @property
    def info(self) -> reverb_types.TableInfo:
        """The settings and the counts of the table, at one moment."""
        return reverb_types.TableInfo.from_dict(self._place.info())

    @property
    def details(self) -> Dict[str, Any]:
        """Information that `info` does not have: bytes, evictions, updates, waiting calls."""
        return self._place.info()

    @property
    def extensions(self) -> Tuple[_core.TableExtension, ...]:
        """What was made of the table's `extensions` for its server, in their order; without a server,
        nothing. Each has `read()`, which returns its counts."""
        return getattr(self._place, "extensions", ())

    def can_sample(self, num_samples: int) -> bool:
        """Returns True if the limiter would admit `num_samples` samples now."""
        return self._place.can_sample(num_samples)

    def can_insert(self, num_inserts: int) -> bool:
        """Returns True if the limiter would admit `num_inserts` inserts now."""
        return self._place.can_insert(num_inserts)

    def why(self) -> List[Waiting]:
        """Returns the calls that wait at this table now, in order, and what would release them.

        >>> Table.queue("q", 10).why()
        []
        """
        return [Waiting.from_dict(self._name, call) for call in self._place.waiting()]

    @suggest_names
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
        """Returns a new, empty table with the settings of this one, except for the arguments."""
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
