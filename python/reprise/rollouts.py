# SPDX-License-Identifier: Apache-2.0
"""Rollouts: a buffer for training language models with reinforcement learning.

>>> import numpy as np
>>> import reprise
>>> server = reprise.Server([reprise.Table.queue("queue", max_size=1)])
>>> client = reprise.Client(f"localhost:{server.port}")
>>> train = client.rollouts("train", create=dict(group_size=2, max_staleness=4))
>>> for index in range(2):
...     tokens = np.arange(3 + index, dtype=np.int32)
...     train.put("prompt 1", index, {"tokens": tokens}, version=0).fate
'partial'
'complete'
>>> with train.draw(groups=1) as batch:
...     values, offsets = batch.ragged("tokens")
>>> values, offsets
(array([0, 1, 2, 0, 1, 2, 3], dtype=int32), array([0, 3, 7]))
>>> train.info()["acknowledged"]
1

docs/llm.md describes groups, versions, consumers and leases.
"""

from __future__ import annotations

import enum
from typing import (
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Type,
    TypedDict,
    Union,
)

import numpy as np

from reprise import _core, errors
from reprise._check import whole_number
from reprise._log import logger
from reprise.connection import core_client

__all__ = ["Batch", "Drawn", "Group", "Item", "Part", "PeekedGroup", "Put", "Ragged",
           "RolloutOptions", "Rollouts", "names"]


class _Action(enum.IntEnum):
    """As in reprise/rollout_calls.h."""

    CREATE = 0
    DROP = 1
    LIST = 2
    RESERVE = 3
    ABORT = 4
    PUT = 5
    UPDATE = 6
    ADVANCE = 7
    DRAW = 8
    ACK = 9
    RELEASE = 10
    RENEW = 11
    SET_CURSOR = 12
    CONFIGURE = 13
    PEEK = 14
    READ_CURSOR = 15


_STALENESS = ("drop", "wait")
_FULL = ("wait", "evict")
_ORDER = ("fifo", "lifo", "freshest")
_CHOICES = {"staleness": _STALENESS, "full": _FULL, "order": _ORDER}
# The least values of the options that are numbers.
_NUMBERS = {"group_size": 1, "max_staleness": -1, "groups_per_version": 0, "first_version": 0,
            "max_groups": 1, "max_bytes": 1}
_MOST_32, _MOST_63 = 2**32 - 1, 2**63 - 1


class RolloutOptions(TypedDict, total=False):
    """The options of `Rollouts.create`, which describes them."""

    group_size: int
    max_staleness: int
    staleness: str  # "drop" or "wait"
    groups_per_version: int
    first_version: int
    max_groups: int
    max_bytes: int
    full: str  # "wait" or "evict"
    order: str  # "fifo", "lifo" or "freshest"
    consumers: Mapping[str, Sequence[str]]


class Put(NamedTuple):
    """What has become of a group after `reserve`, `abort`, `put` or `update`."""

    fate: str  # "reserved", "partial", "complete", "leased", or why it was removed
    repeated: bool  # nothing was new
    gone: bool  # the group had been removed before the call; `fate` says why


class _Pair(NamedTuple):
    values: Any
    offsets: Any


class Ragged(_Pair):
    """A column of several items, one after another: item i has the rows
    `values[offsets[i]:offsets[i + 1]]`. A tuple of the two arrays.

    `dtype` is the name of the dtype. Values of bfloat16 are arrays of ml_dtypes if that is installed,
    else the same bits as uint16.
    """

    dtype: str

    def __new__(cls, values: Any, offsets: Any, dtype: str) -> Ragged:
        made = super().__new__(cls, values, offsets)
        made.dtype = dtype
        return made

    def torch(self, device: Any = None) -> Ragged:
        """Returns the same as tensors of PyTorch. They share the memory of the arrays, unless
        `device` is another one. Columns of bfloat16 become tensors of torch.bfloat16."""
        import torch

        values = np.asarray(self.values)
        if self.dtype == "bfloat16":
            tensor = torch.from_numpy(values.view(np.int16)).view(torch.bfloat16)
        else:
            tensor = torch.from_numpy(values)
        offsets = torch.from_numpy(np.asarray(self.offsets))
        if device is not None:
            tensor, offsets = tensor.to(device), offsets.to(device)
        return Ragged(tensor, offsets, self.dtype)


class Item(NamedTuple):
    """An item of a group. The arrays are read-only and refer to the memory of the batch."""

    columns: Dict[str, Any]
    first_version: int
    last_version: int

    def __getitem__(self, name: Any) -> Any:
        return self.columns[name] if isinstance(name, str) else tuple(self)[name]


class Group(NamedTuple):
    """A group of a draw."""

    name: str
    items: List[Item]
    first_version: int
    last_version: int


class PeekedGroup(NamedTuple):
    """A group as `peek` finds it. An item that was not put yet is None."""

    name: str
    items: List[Optional[Item]]
    first_version: int
    last_version: int


class Part:
    """Some of the items of a batch, one after another."""

    def __init__(self, draw: _core.RolloutDraw, first: int, last: int) -> None:
        self._draw, self._first, self._last = draw, first, last

    @property
    def item_count(self) -> int:
        return self._last - self._first

    @property
    def items(self) -> List[Item]:
        """The items, group by group."""
        size = self._draw.group_size
        return _items((self._draw, at // size, at % size) for at in range(self._first, self._last))

    def ragged(self, name: str) -> Ragged:
        """Returns the rows of a column of all items, one after another, and where each item begins.

        Raises:
          NotFoundError: an item has no such column.
          ValueError: the columns differ in dtype, or in the shape of a row.
        """
        return Ragged(*self._draw.ragged(name, self._first, self._last))

    def pack(self, name: str, budget: int) -> List[Part]:
        """Divides the items into consecutive parts. Each takes as many of the next items as have
        at most `budget` rows of the column together, or one item if that alone has more.

        Raises:
          NotFoundError: an item has no such column.
        """
        budget = _number("budget", budget, 1)
        first = self._draw.pack((name, self._first, self._last), budget)
        return [Part(self._draw, self._first + a, self._first + b) for a, b in zip(first, first[1:])]


class Drawn(Part):
    """The groups of a draw, an iterable of `Group`."""

    def __init__(self, draw: _core.RolloutDraw) -> None:
        super().__init__(draw, 0, draw.group_count * draw.group_size)
        self.lease = draw.lease
        self.version = draw.version  # the current one at the time of the draw
        self.expires = draw.expires  # seconds since 1970, by the clock of the server
        self.group_size = draw.group_size

    def __len__(self) -> int:
        return self._draw.group_count

    def __iter__(self) -> Iterator[Group]:
        for at in range(len(self)):
            yield self[at]

    def __getitem__(self, at: int) -> Group:
        return _group(self._draw, at)


class Batch(Drawn):
    """The groups of a draw, an iterable of `Group`. They are leased: `ack` says that they have been
    consumed, `release` that they have not. As a context manager, a batch is acknowledged at the
    end, and released if an exception is raised."""

    def __init__(self, rollouts: Rollouts, draw: _core.RolloutDraw) -> None:
        super().__init__(draw)
        self._rollouts = rollouts

    def ack(self, *, timeout: Optional[float] = None) -> None:
        """Says that the consumer has consumed the groups. A second time is fine.

        Raises:
          NotFoundError: the lease has expired. Other draws get the groups.
        """
        self._rollouts.ack(self.lease, timeout=timeout)

    def release(self, *, timeout: Optional[float] = None) -> None:
        """Ends the lease, so that other draws get the groups."""
        self._rollouts.release(self.lease, timeout=timeout)

    def renew(self, ttl: float, *, timeout: Optional[float] = None) -> None:
        """Makes the lease end `ttl` seconds from now."""
        self._rollouts.renew(self.lease, ttl, timeout=timeout)

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: Any) -> None:
        if kind is None:
            self.ack()
            return
        try:
            self.release(timeout=5.0)
        except (errors.ReverbError, errors.StatusError):
            pass  # the lease expires; the first exception matters more


def _item(draw: _core.RolloutDraw, group: int, index: int) -> Optional[Item]:
    found = draw.item(group, index)
    return None if found is None else Item(found[2], found[0], found[1])


def _items(places: Iterable[Tuple[_core.RolloutDraw, int, int]]) -> List[Item]:
    return [item for item in (_item(*place) for place in places) if item is not None]


def _group(draw: _core.RolloutDraw, at: int) -> Group:
    name, first, last, _ = draw.group(at)
    return Group(name, _items((draw, at, index) for index in range(draw.group_size)), first, last)


def _peeked(draw: _core.RolloutDraw) -> PeekedGroup:
    name, first, last, _ = draw.group(0)
    items = [_item(draw, 0, index) for index in range(draw.group_size)]
    return PeekedGroup(name, items, first, last)


def _array(value: Any) -> Tuple[Any, bool]:
    """Returns an array for a column, and whether its numbers are bfloat16."""
    if type(value).__module__.split(".")[0] == "torch":
        value = value.detach().cpu().contiguous()
        if str(value.dtype) == "torch.bfloat16":
            import torch

            return value.view(torch.int16).numpy().view(np.uint16), True
        value = value.numpy()
    return np.ascontiguousarray(value).reshape(np.shape(value)), False


def _columns(columns: Mapping[str, Any]) -> List[Tuple[str, Any, bool]]:
    if not isinstance(columns, Mapping):
        raise TypeError(f"columns must be a dict from name to array, as in {{'tokens': tokens}}, got "
                        f"{type(columns).__name__}")
    return [(str(name), *_array(value)) for name, value in columns.items()]


def _ns(what: str, seconds: float) -> int:
    ns = round(float(seconds) * 1e9)
    if not 1 <= ns <= 2**60:
        raise ValueError(f"{what} must be more than 0 and at most {2**60 / 1e9:.0f} s, got {seconds}")
    return ns


def _number(name: str, value: Any, least: int, most: int = _MOST_63) -> int:
    """Returns a whole number, which may be given as a float. TypeError, ValueError."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return whole_number(name, value, least, most)


def _consumers(consumers: Any) -> List[Tuple[str, List[str]]]:
    if not isinstance(consumers, Mapping):
        raise TypeError("consumers must be a dict from the name of each to a list of the columns that it "
                        f"needs, as in {{'trainer': ['tokens']}}, got {consumers!r}")
    for each, columns in consumers.items():
        if isinstance(columns, (str, bytes)) or not hasattr(columns, "__iter__"):
            raise TypeError(f"the columns of consumer {each!r} must be a list, as in "
                            f"{{{each!r}: ['tokens']}}, got {columns!r}")
    return [(str(each), [str(column) for column in columns])
            for each, columns in consumers.items()]


def _options(options: Mapping[str, Any]) -> Dict[str, Any]:
    """Checks the options of rollouts, and returns them as the C extension expects them."""
    found: Dict[str, Any] = {}
    for name, value in options.items():
        if name in _CHOICES:
            if value not in _CHOICES[name]:
                raise ValueError(f"{name} must be one of {_CHOICES[name]}, got {value!r}")
            found[name] = _CHOICES[name].index(value)
        elif name in _NUMBERS:
            most = _MOST_32 if name in ("group_size", "groups_per_version") else _MOST_63
            found[name] = _number(name, value, _NUMBERS[name], most)
        elif name == "consumers":
            found[name] = _consumers(value)
        else:
            known = sorted([*_CHOICES, *_NUMBERS, "consumers"])
            raise TypeError(f"rollouts have no option {name!r}; there are {', '.join(known)}")
    return found


def _described(options: Mapping[str, Any]) -> Dict[str, Any]:
    """The inverse of _options()."""
    found = {name: _CHOICES[name][value] if name in _CHOICES else value
             for name, value in options.items()}
    found["consumers"] = dict(options["consumers"])
    return found


def _entry(entry: Dict[str, Any]) -> Dict[str, Any]:
    entry["options"] = _described(entry["options"])
    entry["consumers"] = {each.pop("name"): each for each in entry["consumers"]}
    return entry


def names(client: Any, *, timeout: Optional[float] = None) -> List[str]:
    """Returns the names of all rollouts of a server."""
    result = core_client(client).rollouts(_Action.LIST, "", {}, timeout)
    return [entry["name"] for entry in result["entries"]]


class Rollouts:
    """Rollouts of a server, or of a store of this process. `Client.rollouts` makes this object.

    All methods may be called from any thread. `timeout` bounds a call in seconds; None: it waits as
    long as it has to. A call that waits can be interrupted with Ctrl-C, and says after 2 s what it
    waits for. 0: it is tried once, for at most 2 s. After `DeadlineExceededError` nothing was changed,
    and its text has the reason. Only if that is "no response in time", the server may have done it.

    While no server can be reached, calls wait for one. If the connection breaks during a call, the
    call is repeated. The exceptions are `draw` and `release`, which raise `StatusError` then: a second
    draw would lease other groups.
    """

    def __init__(self, client: Any, name: str) -> None:
        self.client = client
        self.name = str(name)

    def __repr__(self) -> str:
        return f"Rollouts({self.name!r})"

    def _call(self, action: _Action, timeout: Optional[float], **arguments: Any) -> Dict[str, Any]:
        return core_client(self.client).rollouts(action, self.name, arguments, timeout)

    def _put(self, action: _Action, timeout: Optional[float], **arguments: Any) -> Put:
        result = self._call(action, timeout, **arguments)
        return Put(result["fate"], result["repeated"], result["gone"])

    def create(self, *, exist_ok: bool = False, timeout: Optional[float] = 30.0,
               **options: Any) -> Rollouts:
        """Makes the rollouts on the server.

        Args:
          exist_ok: if there are rollouts of that name, keep them with the options that they have. A
            warning is logged if these differ.
          options: `group_size` (1), `max_staleness` (-1: no bound), `staleness` ("drop" or "wait"),
            `groups_per_version` (0: no limiter), `first_version` (0), `max_groups` (65,536),
            `max_bytes` (1 GiB), `full` ("wait" or "evict"), `order` ("fifo", "lifo" or "freshest"),
            `consumers`: a dict from the name of each to the columns that it needs. Without it there
            is one, "", which needs none.
        """
        try:
            self._call(_Action.CREATE, timeout, options=_options(options))
        except errors.StatusError as e:
            if not (exist_ok and e.code == "ALREADY_EXISTS"):
                raise
            self._say_other_options(options, timeout)
        return self

    def _say_other_options(self, options: Mapping[str, Any], timeout: Optional[float]) -> None:
        """Logs which options of rollouts that exist are not those that were given."""
        have = self.info(timeout=timeout)["options"]
        given = _described({"consumers": have["consumers"], **_options(options)})
        other = [f"{name}={have[name]!r} and not {given[name]!r}" for name in options
                 if given[name] != have[name]]
        if other:
            logger().warning("rollouts '%s' exist with %s, and stay so: configure() changes options, "
                             "drop() removes the rollouts", self.name, ", ".join(other))

    def drop(self, *, timeout: Optional[float] = 30.0) -> None:
        """Removes the rollouts with their groups. All waits end with `StatusError`."""
        self._call(_Action.DROP, timeout)

    def configure(self, *, timeout: Optional[float] = 30.0, **options: Any) -> None:
        """Changes options; those that are not given stay. The group size, the first version and the
        consumers can be changed only while there are no groups."""
        current = self.info(timeout=timeout)["options"]
        self._call(_Action.CONFIGURE, timeout, options=_options({**current, **options}))

    def info(self, *, timeout: Optional[float] = 30.0) -> Dict[str, Any]:
        """Returns the options, the version, and counts of groups."""
        return _entry(self._call(_Action.LIST, timeout)["entries"][0])

    def reserve(self, group: str, *, ttl: float = 600.0, timeout: Optional[float] = None) -> Put:
        """Begins a group, for `ttl` seconds; each put into it begins this time again. A partial group
        that has no such time gets one. Waits while the limits allow no further group."""
        return self._put(_Action.RESERVE, timeout, group=group, ttl=_ns("ttl", ttl))

    def abort(self, group: str, *, timeout: Optional[float] = None) -> Put:
        """Removes a group that is not leased, with the items that it has."""
        return self._put(_Action.ABORT, timeout, group=group)

    def put(self, group: str, index: int, columns: Mapping[str, Any], *,
            version: Union[int, Tuple[int, int]], timeout: Optional[float] = None) -> Put:
        """Puts an item of a group, or columns of it. The same again is fine.

        Args:
          group: the name of the group, which is created if it does not exist.
          index: of the item in its group, from 0.
          columns: arrays, or tensors of PyTorch, by name. Text is an array of uint8.
          version: of the policy that generated the item, or the first one and the last one.
        """
        first, last = (version, version) if isinstance(version, str) or not hasattr(version, "__len__") else version
        return self._put(_Action.PUT, timeout, group=group, index=_number("index", index, 0, _MOST_32),
                         columns=_columns(columns), first_version=_number("version", first, -_MOST_63),
                         last_version=_number("version", last, -_MOST_63))

    def update(self, group: str, index: int, columns: Mapping[str, Any], *, replace: bool = False,
               timeout: Optional[float] = None) -> Put:
        """Adds columns to an item, such as its reward. A column that exists with other values is an
        error, unless `replace` is true."""
        return self._put(_Action.UPDATE, timeout, group=group, index=_number("index", index, 0, _MOST_32),
                         columns=_columns(columns), replace=bool(replace))

    def advance(self, version: int, *, timeout: Optional[float] = None) -> int:
        """Sets the version of the policy; one that is not above the current one changes nothing.
        Returns how many groups were dropped as too stale during this call, by this or any other call."""
        return int(self._call(_Action.ADVANCE, timeout, version=_number("version", version, -_MOST_63))["removed"])

    def draw(self, groups: Optional[int] = None, *, tokens: Optional[int] = None,
             column: str = "tokens", min_groups: Optional[int] = None, consumer: str = "",
             ttl: float = 600.0, timeout: Optional[float] = None) -> Batch:
        """Leases groups to a consumer.

        Args:
          groups: how many. With `tokens`, the most that are drawn.
          tokens: a budget: as many groups as have at most that many rows of `column`.
          min_groups: how many must be ready; None: `groups` of them, or 1 with `tokens`.
          consumer: its name.
          ttl: seconds until the lease ends. If the groups are not acknowledged by then, they are
            drawn again.
        """
        if groups is None and tokens is None:
            raise ValueError("give groups, tokens or both")
        if groups is None:
            size = int(self.info()["options"]["group_size"])
            groups = max(1, 65536 // size)
        groups = _number("groups", groups, 1, _MOST_32)
        if min_groups is not None:
            min_groups = _number("min_groups", min_groups, 1, _MOST_32)
        arguments: Dict[str, Any] = {"groups": groups, "consumer": consumer,
                                     "ttl": _ns("ttl", ttl)}
        if tokens is not None:
            arguments.update(column=column, tokens=_number("tokens", tokens, 1))
            arguments["min_groups"] = 1 if min_groups is None else min_groups
        else:
            arguments["min_groups"] = groups if min_groups is None else min_groups
        return Batch(self, self._call(_Action.DRAW, timeout, **arguments)["draw"])

    def ack(self, lease: int, *, timeout: Optional[float] = None) -> None:
        """Says that the groups of a lease have been consumed."""
        self._call(_Action.ACK, timeout, lease=int(lease))

    def release(self, lease: int, *, timeout: Optional[float] = None) -> None:
        """Ends a lease: its groups are drawn again."""
        self._call(_Action.RELEASE, timeout, lease=int(lease))

    def renew(self, lease: int, ttl: float, *, timeout: Optional[float] = None) -> None:
        """Makes a lease end `ttl` seconds from now."""
        self._call(_Action.RENEW, timeout, lease=int(lease), ttl=_ns("ttl", ttl))

    def peek(self, group: str, *, timeout: Optional[float] = 30.0) -> Tuple[str, Optional[PeekedGroup]]:
        """Returns what has become of a group, such as "partial" or "acknowledged", and the group if
        it is there."""
        result = self._call(_Action.PEEK, timeout, group=group)
        draw = result.get("draw")
        return result["fate"], None if draw is None else _peeked(draw)

    def set_cursor(self, name: str, data: bytes, *, timeout: Optional[float] = None) -> None:
        """Stores bytes under a name, such as the position of a data loader. Checkpoints save them
        with the groups. No bytes: the cursor is removed."""
        if isinstance(data, str):
            raise TypeError(f"data must be bytes, got {data!r}: write data.encode()")
        try:
            data = bytes(memoryview(data))
        except TypeError:
            raise TypeError(f"data must be bytes, got {data!r}") from None
        self._call(_Action.SET_CURSOR, timeout, cursor=name, data=data)

    def cursor(self, name: str, *, timeout: Optional[float] = 30.0) -> Optional[bytes]:
        """Returns the bytes that `set_cursor` has stored, or None."""
        if name not in self.info(timeout=timeout)["cursors"]:
            return None
        data: bytes = self._call(_Action.READ_CURSOR, timeout, cursor=name)["data"]
        return data
