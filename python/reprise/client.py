# SPDX-License-Identifier: Apache-2.0
"""The client: inserts, samples, sets priorities, and administers tables.

>>> import numpy as np
>>> import reprise
>>> server = reprise.Server([reprise.Table.queue("queue", max_size=10)])
>>> client = reprise.Client(f"localhost:{server.port}")
>>> client.insert({"obs": np.arange(3.0), "reward": 1.5}, {"queue": 1.0})
>>> (step,) = next(client.sample("queue"))
>>> step.data
[array([0., 1., 2.]), array(1.5)]

If the server is in the same process, the client uses its tables directly. If it is on the same host
and of the same user, the client uses a Unix socket and shared memory. Otherwise it uses TCP;
`transport="tcp"` forces TCP.
"""

from __future__ import annotations

import time
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Generator,
    List,
    Mapping,
    NoReturn,
    Optional,
    Sequence,
    Union,
    overload,
)

from reprise import _core, _log, errors
from reprise import structured_writer as structured_writer_lib
from reprise import trajectory_writer as trajectory_writer_lib
from reprise._check import (
    check_names,
    check_seconds,
    limiter_fields,
    milliseconds,
    suggest_names,
    whole_number,
)
from reprise.connection import Connection
from reprise.replay_sample import ReplaySample, SampleInfo
from reprise.step_writer import Writer
from reprise.table import Waiting, warn_if_never_full

if TYPE_CHECKING:
    from typing_extensions import Literal, Unpack  # which type checkers have inside

    from reprise.dataset import Dataset, DatasetOptions
    from reprise.rate_limiters import RateLimiter
    from reprise.rollouts import RolloutOptions, Rollouts
    from reprise.table import Table

__all__ = ["Client", "Writer"]

_SIDES = {"inserts": 1, "samples": 2, "both": 3}
_INSERTERS = 8  # writers that a client keeps for insert()
_SAMPLES_AHEAD = 128
_BRIEF_S = 0.5  # for a request that serves a warning only
_MOST_STEPS = 2**31 - 1


def _flush(
    writer: _core.StepWriter,
    timeout: Optional[float],
    go_on: Callable[[], bool],
    patience: _log.Patience,
) -> None:
    while True:
        try:
            return writer.flush(None if timeout is None else patience.slice(timeout))
        except errors.DeadlineExceededError as e:
            if not go_on():
                raise
            patience.check(e)


class Client(Connection):
    """A client of one server, or of several that are shards of the same tables.

    Creating a client does no I/O. It connects at the first call, and reconnects when a connection
    breaks. Threads may share a client. It can be pickled (as its address and options), and used in
    a child process after a fork.

    If the server cannot be reached, calls wait for it: up to `timeout` seconds, or for ever if
    `timeout` is None. A client that the server refuses, since it does not use TLS or does not trust the
    certificate, does not wait: its calls raise StatusError (UNAVAILABLE). Ctrl-C ends every wait. A wait
    of 2 seconds or more is logged, with its reason, as a warning of the logger `reprise`.

    Args:
      server_address: "host:port", "unix:/path", several of them separated by commas or as a
        list, or "dns:name:port" for all addresses of a name. Several servers are shards of
        the same tables: items are spread over them, samples are drawn from all of them, and
        priorities are set on all of them.
      transport: None: the fastest that is possible; "tcp": always TCP.
      tls: encrypt the connection. The files below imply it.
      ca_file: PEM file of the certificate authorities for servers; None: the system's.
      certificate_file, key_file: PEM files of this client's own certificate.
      server_name: the name that the server's certificate must have; None: the host in the
        address.
      token: a bearer token, ASCII without spaces, not empty; None: none is sent.
      connect_timeout: seconds for one attempt to connect; 0: 10 seconds.
      spread: how items are spread over shards: "turns" (round robin) or "keys" (by key).
      shared_memory: read large chunks from memory shared with a server on this host.
      item_bytes: the largest item accepted from a server, in decoded bytes; 0: 1 GiB. A larger
        item raises StatusError (RESOURCE_EXHAUSTED) before memory is allocated for it.
      batch_bytes: the largest batch, in decoded bytes, with the same error; 0: half of the
        machine's memory.
      seed: seed of keys and of the choice of shards; 0: from the system.
    """

    def insert(
        self,
        data: Any,
        priorities: Mapping[str, float],
        *,
        timeout: Optional[float] = None,
        **unknown: NoReturn,
    ) -> None:
        """Inserts one step as an item of each table, and waits until all are confirmed.

        The data is sent and stored once, however many tables it is in. A table that does not exist, and
        a priority that its selectors refuse, are found before anything is sent, unless no server
        responds in time, or the table was dropped or created anew since an earlier insert. Then, or
        if a table refuses the item for another reason, the other tables may have it nevertheless.

        Args:
          data: a nest of arrays.
          priorities: a mapping from the name of each table to the item's priority in it.
          timeout: seconds to wait at most.

        Raises:
          ValueError: `priorities` is empty or has a NaN; the data does not match the signature of a
            table.
          NotFoundError: there is no such table.
          DeadlineExceededError: an item was not confirmed in time; it may still be inserted.
        """
        if data is None:
            raise TypeError("data must be a nest of arrays, such as {'obs': obs}, got None")
        if not priorities:
            raise ValueError("priorities must contain at least one item")
        if unknown:  # `suggest_names` would slow each insert down
            check_names("Client.insert()", unknown, ("data", "priorities", "timeout"))
        check_seconds("timeout", timeout)
        self._insert(data, priorities, timeout, lambda: False)

    def _insert(
        self,
        data: Any,
        priorities: Mapping[str, float],
        timeout: Optional[float],
        go_on: Callable[[], bool],
        patience: Optional[_log.Patience] = None,
    ) -> None:
        """Inserts an item. After each `timeout`, waits as long again if `go_on()` is true."""
        client = self._client
        deadline = None if timeout is None else time.monotonic() + timeout
        tried = []
        fits = False
        while not fits:
            try:
                writer = self._inserters.pop()
            except IndexError:
                writer = _core.StepWriter(client, 1, timeout=timeout)
            # A new writer has waited for the signatures of the tables.
            # A call that does not wait at all could not say why the item is not confirmed.
            shortest = 0.0 if timeout is None else min(timeout, 0.001)
            left = None if deadline is None else max(deadline - time.monotonic(), shortest)
            try:
                fits = writer.insert(data, priorities, left)
            except errors.DeadlineExceededError as e:
                if patience is None or not go_on():
                    if timeout == 0:
                        e.args = (f"{e}: a timeout of 0 does not wait for the server, so the item may still be "
                                  f"inserted into {', '.join(map(repr, priorities))}",)
                    raise
                fits = True
                patience.check(e)
                _flush(writer, timeout, go_on, patience)
            if not fits:
                tried.append(writer)  # its steps have other shapes
        self._inserters[:0] = tried
        self._inserters.append(writer)
        del self._inserters[:-_INSERTERS]

    @suggest_names
    def writer(
        self,
        max_sequence_length: int,
        delta_encoded: bool = False,
        chunk_length: Optional[int] = None,
        max_in_flight_items: Optional[int] = 25,
        *,
        timeout: Optional[float] = None,
    ) -> Writer:
        """Returns a `Writer`. Prefer `trajectory_writer` in new code.

        Args:
          max_sequence_length: the largest number of steps in an item.
          delta_encoded: store integers as differences between steps. Frames that change little
            become smaller.
          chunk_length: the number of steps that are compressed together. None: 10, or
            `max_sequence_length` if that is less. Longer chunks compress better; with shorter ones,
            an item sends and keeps fewer steps that it does not use.
          max_in_flight_items: how many items may be unconfirmed before `create_item` waits; None:
            any number.
          timeout: seconds to wait for the server to send the signatures of its tables.

        Raises:
          ValueError: max_sequence_length < 1; chunk_length not in [1, max_sequence_length];
            max_in_flight_items < 1.
        """
        if whole_number("max_sequence_length", max_sequence_length) < 1:
            raise ValueError(
                f"max_sequence_length ({max_sequence_length}) must be a positive integer"
            )
        if max_sequence_length > _MOST_STEPS:
            raise ValueError(
                f"max_sequence_length ({max_sequence_length}) must be at most {_MOST_STEPS}"
            )
        if chunk_length is None:
            chunk_length = min(10, max_sequence_length)
        if chunk_length < 1 or chunk_length > max_sequence_length:
            raise ValueError(
                f"chunk_length ({chunk_length}) must be a positive integer le to "
                f"max_sequence_length ({max_sequence_length})"
            )
        if max_in_flight_items is None:
            max_in_flight_items = 1_000_000
        if max_in_flight_items < 1:
            raise ValueError(
                f"max_in_flight_items ({max_in_flight_items}) must be a positive integer"
            )
        writer = _core.StepWriter(
            self._client,
            max_sequence_length,
            chunk_length=chunk_length,
            delta=delta_encoded,
            max_in_flight=max_in_flight_items,
            timeout=timeout,
        )
        made = Writer(
            writer,
            f"Writer(chunk_length={chunk_length}, max_timesteps={max_sequence_length}, "
            f"delta_encoded={int(delta_encoded)}, max_in_flight_items={max_in_flight_items})",
        )
        return self._kept(made)

    @suggest_names
    def trajectory_writer(
        self,
        num_keep_alive_refs: int,
        *,
        validate_items: bool = True,
        max_items: int = 0,
        max_bytes: int = 0,
        timeout: Optional[float] = None,
    ) -> trajectory_writer_lib.TrajectoryWriter:
        """Returns a `TrajectoryWriter`. Its items may have any of the latest values of each column.

        Args:
          num_keep_alive_refs: how many of the latest values of a column items may refer to.
          validate_items: compare each item with the signature of its table when it is created.
          max_items, max_bytes: how many items, and how many bytes of them, may be unconfirmed
            before `create_item` waits; 0: 100,000 items and 1 GiB.
          timeout: seconds to wait for the server to send the signatures of its tables.

        Raises:
          ValueError: num_keep_alive_refs < 1.
        """
        if not 1 <= whole_number("num_keep_alive_refs", num_keep_alive_refs) <= _MOST_STEPS:
            raise ValueError(
                f"num_keep_alive_refs ({num_keep_alive_refs}) must be a positive integer, at most "
                f"{_MOST_STEPS}"
            )
        made = trajectory_writer_lib.TrajectoryWriter(
            self._client,
            num_keep_alive_refs,
            validate=validate_items,
            max_items=max_items,
            max_bytes=max_bytes,
            timeout=timeout,
        )
        return self._kept(made)

    def structured_writer(
        self, configs: Sequence[structured_writer_lib.Config]
    ) -> structured_writer_lib.StructuredWriter:
        """Returns a `StructuredWriter`, which makes items by patterns: see `reprise.structured`.

        Raises:
          ValueError: there are no configs, or one is invalid; the message says which.
        """
        return self._kept(structured_writer_lib.StructuredWriter(self._client, configs))

    def batch_writer(
        self, num_environments: int, configs: Sequence[structured_writer_lib.Config]
    ) -> structured_writer_lib.BatchWriter:
        """Returns a `BatchWriter`: one call appends a step of each of N environments, and each has
        a structured writer.

        Raises:
          ValueError: num_environments < 1; there are no configs, or one is invalid.
        """
        return self._kept(
            structured_writer_lib.BatchWriter(self._client, num_environments, configs)
        )

    @overload
    def sample(
        self,
        table: str,
        num_samples: int = 1,
        *,
        emit_timesteps: Literal[True] = True,
        unpack_as_table_signature: bool = False,
        timeout: Optional[float] = None,
    ) -> Generator[List[ReplaySample], None, None]: ...

    @overload
    def sample(
        self,
        table: str,
        num_samples: int = 1,
        *,
        emit_timesteps: Literal[False],
        unpack_as_table_signature: bool = False,
        timeout: Optional[float] = None,
    ) -> Generator[ReplaySample, None, None]: ...

    @overload
    def sample(
        self,
        table: str,
        num_samples: int = 1,
        *,
        emit_timesteps: bool = True,
        unpack_as_table_signature: bool = False,
        timeout: Optional[float] = None,
    ) -> Generator[Union[List[ReplaySample], ReplaySample], None, None]: ...

    @suggest_names
    def sample(
        self,
        table: str,
        num_samples: int = 1,
        *,
        emit_timesteps: bool = True,
        unpack_as_table_signature: bool = False,
        timeout: Optional[float] = None,
    ) -> Generator[Any, None, None]:
        """Draws items, one after another. Waits while the rate limiter does not allow samples.

        The client draws ahead at most as many items as the caller has taken so far, and never more
        than 128. For training, `sampler` is faster: it stacks whole batches.

        Args:
          table: the name of the table.
          num_samples: how many items to draw.
          emit_timesteps: yield each item as a list of its steps; if False, as whole columns.
          unpack_as_table_signature: yield the data in the structure of the table's signature. If
            False, or if the table has no signature, the data is a list of the leaves.
          timeout: seconds to wait for each item.

        Yields:
          With `emit_timesteps`, a list for each item: one `ReplaySample` for each step, all with
          the same `info`. Otherwise one `ReplaySample` for each item, in which the first dimension
          of every array counts steps.

        Raises:
          ValueError: num_samples < 1; the item cannot be split into steps since its columns differ
            in length.
          NotFoundError: there is no such table.
          StatusError: the server has stopped.
          DeadlineExceededError: no item arrived for `timeout` seconds.
        """
        whole_number("num_samples", num_samples, 1)
        timeout_ms = milliseconds("timeout", timeout)
        structure = None
        if unpack_as_table_signature:
            signature = self._get_signature_for_table(table, timeout)
            if signature is not None:
                structure = _core.Structure(signature)
        make = _core.Client.replay_samples
        for found in self._draw(table, num_samples, timeout_ms):
            yield from make(found, SampleInfo, ReplaySample, structure, emit_timesteps)

    def _draw(
        self, table: str, count: int, timeout_ms: int
    ) -> Generator[List[tuple], None, None]:
        """Yields samples as they arrive. Requests one sample, then two, then four, so that few
        items were removed from a queue if the caller stops early."""
        client = self._client
        ask = 1
        while count > 0:
            ask = count if ask >= _SAMPLES_AHEAD or ask > count else ask
            sampler = _core.Sampler(
                client, table, max_samples=ask, max_in_flight=min(ask, _SAMPLES_AHEAD)
            )
            try:
                left = ask
                while left > 0:
                    found = sampler.next(left, timeout_ms)
                    if not found:
                        raise errors.ReverbError(f"the samples of table '{table}' ended early")
                    left -= len(found)
                    yield found
            finally:
                sampler.close()
            count -= ask
            ask *= 2

    def sampler(
        self, table: str, batch_size: int, **options: Unpack[DatasetOptions]
    ) -> Dataset:
        """Returns a `reprise.Dataset`: batches of stacked arrays, prefetched without the GIL.

            for batch in client.sampler("replay", 256, beta=0.4):
                learn(batch.data, batch.weights)

        The options are those of `reprise.Dataset`.

        Raises:
          TypeError: there is no such option.
        """
        from reprise import dataset

        check_names("a sampler", options, dataset.DatasetOptions.__annotations__)
        return dataset.Dataset(self, table, batch_size, **options)

    @suggest_names
    def mutate_priorities(
        self,
        table: str,
        updates: Optional[Mapping[int, float]] = None,
        deletes: Optional[Sequence[int]] = None,
        *,
        timeout: Optional[float] = None,
    ) -> None:
        """Sets priorities, then deletes items. Keys that the table does not have are ignored.

        Args:
          table: the name of the table.
          updates: a mapping from key to new priority.
          deletes: the keys of the items to delete.
          timeout: seconds to wait at most.
        """
        if updates is not None and not isinstance(updates, dict):
            if not hasattr(updates, "keys"):
                raise TypeError(f"updates must map keys to priorities, got {updates!r}")
            updates = dict(updates)
        if deletes is not None and not hasattr(deletes, "__len__"):
            raise TypeError(f"deletes must be a list or an array of keys, got {deletes!r}")
        self._client.mutate(table, updates, None, deletes, timeout)

    @suggest_names
    def update_priorities(
        self, table: str, keys: Any, priorities: Any, *, timeout: Optional[float] = None
    ) -> None:
        """Sets the priorities of the items with these keys. `priorities` has one priority for each
        key, or is one number for all of them.

            batch = next(iter(client.sampler("replay", 256)))
            client.update_priorities("replay", batch.keys, numpy.abs(td_error))

        Raises:
          ValueError: there are not as many priorities as keys, or a priority is invalid.
        """
        if keys is None:
            raise TypeError("keys must be a list or an array of keys, such as batch.keys, got None")
        self._client.mutate(table, keys, priorities, None, timeout)

    @suggest_names
    def reset(self, table: str, *, timeout: Optional[float] = None) -> None:
        """Removes all items of a table and resets its rate limiter.

        Servers that cannot be reached are left out, and a warning is logged.
        """
        self._client.reset(table, timeout)

    def checkpoint(self, *, timeout: Optional[float] = None) -> str:
        """Makes the server write a checkpoint. Returns the path of the checkpoint on the server.

        The checkpoint has all data that was confirmed before the call. Servers that cannot be reached
        are left out, and a warning is logged.

        Raises:
          ValueError: the server has neither a checkpointer nor storage.
        """
        try:
            return (self._local_durable() or self._client).checkpoint(timeout)
        except ValueError as e:
            told, found, _ = str(e).partition("no checkpointer is configured")
            if not found:
                raise
            raise ValueError(
                f"{told}{found} for this server: make it with reprise.Server(tables, storage=DIR), or "
                "start it with reprise serve --data DIR"
            ) from None

    def storage(self, *, timeout: Optional[float] = None) -> List[Dict[str, Any]]:
        """Returns a dict for each server, with the state of its storage.

        "shard" is the address of the server. If the server has storage, the dict also has the mode
        ("durability"), whether and why it is "degraded", the checkpoints, the journal ("lsn",
        "safe_lsn"), the bytes on disk and in memory, the data recovered at the start, and the
        "progress" of a running checkpoint or recovery.
        """
        durable = self._local_durable()
        if durable is not None:
            return [dict(durable.info(), shard=self._server_address)]
        return self._client.durability(timeout)

    def why(
        self, table: Optional[str] = None, *, timeout: Optional[float] = None
    ) -> List[Waiting]:
        """Returns the calls that wait at `table` (None: at any table), and why they wait.

        `table` may also be the name of rollouts. A draw that waits counts as a sample, an operation
        that puts or reserves a group as an insert.
        """
        client = self._client
        calls = client.why_blocked(table, timeout)
        addresses = client.addresses if calls else []
        return [
            Waiting.from_dict(
                call["table"], call, addresses[call["shard"]] if len(addresses) > 1 else ""
            )
            for call in calls
        ]

    def create_table(self, table: Table, *, timeout: Optional[float] = None) -> None:
        """Creates a table with the settings of `table` on a running server.

        Servers that cannot be reached are left out, and a warning is logged.

        Raises:
          StatusError: a table of that name exists; the server is Reverb's, which cannot do this.
        """
        if not hasattr(table, "_options"):
            raise TypeError(f"table must be a reprise.Table, got {table!r}")
        table._refuse_extensions("a server that is running already")
        self._client.create_table(
            table.name, signature=table._signature, **table._options, timeout=timeout
        )

    def drop_table(self, table: str, *, timeout: Optional[float] = None) -> None:
        """Removes a table with its items from a running server. This cannot be undone: a table of that
        name which is created later is empty.

        Calls that wait at the table end with NotFoundError, or with StatusError (CANCELLED), and so
        do samplers and iterators of it. A writer refuses only its items for this table: the next
        `flush()` raises NotFoundError, and the writer goes on. Items in other tables stay as they
        are, with the data that they share with items of this one.

        Servers that cannot be reached are left out, and a warning is logged.

        Raises:
          NotFoundError: there is no such table.
        """
        self._client.drop_table(table, timeout)

    @suggest_names
    def alter_table(
        self,
        table: str,
        *,
        max_size: Optional[int] = None,
        max_bytes: Optional[int] = None,
        max_times_sampled: Optional[int] = None,
        rate_limiter: Optional[RateLimiter] = None,
        recenter: bool = False,
        timeout: Optional[float] = None,
    ) -> None:
        """Changes settings of a table while it is in use. If one of them is invalid, none changes.

        Servers that cannot be reached are left out, and a warning is logged.

        `recenter`: the new rate limiter counts only later inserts and samples. Otherwise it counts
        earlier ones too, so that inserts or samples may first have to wait for the other side.
        """
        limiter = None if rate_limiter is None else limiter_fields(rate_limiter)
        for name, value in (("max_size", max_size), ("max_bytes", max_bytes),
                            ("max_times_sampled", max_times_sampled)):
            if value is not None:
                whole_number(name, value)
        may_evict = max_size is not None or max_bytes is not None
        check_seconds("timeout", timeout)
        deadline = None if timeout is None else time.monotonic() + timeout
        # It serves a warning only: a server that is slow must not take the time of the alteration.
        brief = _BRIEF_S if timeout is None else min(timeout / 4, _BRIEF_S)
        before = self._tables_named(table, brief) if may_evict else []
        if deadline is not None:
            timeout = max(0.0, deadline - time.monotonic())
        self._client.alter_table(
            table,
            max_size=max_size,
            max_bytes=max_bytes,
            max_times_sampled=max_times_sampled,
            limiter=limiter,
            recenter=recenter,
            timeout=timeout,
        )
        if may_evict or rate_limiter is not None:
            left = _BRIEF_S if deadline is None else max(0.0, deadline - time.monotonic())
            self._warn_of_alteration(table, before, min(left, _BRIEF_S))

    def _tables_named(self, table: str, timeout: Optional[float]) -> List[Dict[str, Any]]:
        """The tables of that name, of each server; [] if no server responds."""
        try:
            return self._client.tables(timeout, table)
        except (errors.StatusError, errors.DeadlineExceededError):
            return []

    def _warn_of_alteration(self, table: str, before: List[Dict[str, Any]],
                            timeout: Optional[float]) -> None:
        """Logs warnings about what an alteration has evicted, and about samples that wait for ever."""
        now = self._tables_named(table, timeout)
        old = {info["shard"]: info for info in before}
        evicted = sum(max(0, info["evictions"] - old[info["shard"]]["evictions"])
                      for info in now if info["shard"] in old)
        # Inserts evict as well: the alteration is named only if it left less room than the items had.
        if evicted and any(info["max_size"] < old[info["shard"]]["size"] or
                           0 < info["max_bytes"] < old[info["shard"]]["bytes"]
                           for info in now if info["shard"] in old):
            _log.logger().warning("table '%s': %d item%s evicted, as alter_table() has made it smaller", table,
                                  evicted, " was" if evicted == 1 else "s were")
        for info in now:
            was = old.get(info["shard"], info)
            item = was["bytes"] // was["size"] if was["size"] else 0
            if 0 < info["max_bytes"] < item:
                _log.logger().warning("table '%s': max_bytes %d is less than an item takes, %d bytes: the table keeps "
                                      "none", table, info["max_bytes"], item)
                break
        for info in now:
            if not info["soft_limit"]:
                warn_if_never_full(table, info["limiter"][1], info["max_size"])
                return

    def pause_table(
        self, table: str, sides: str = "both", *, timeout: Optional[float] = None
    ) -> None:
        """Makes "inserts", "samples" or "both" of a table wait, as its rate limiter would.

        Servers that cannot be reached are left out, and a warning is logged.
        """
        self._client.pause(table, _side(sides), timeout)

    def resume_table(
        self, table: str, sides: str = "both", *, timeout: Optional[float] = None
    ) -> None:
        """Resumes paused inserts, samples or both.

        Servers that cannot be reached are left out, and a warning is logged.
        """
        self._client.resume(table, _side(sides), timeout)

    def rollouts(
        self,
        name: str,
        *,
        create: Optional[RolloutOptions] = None,
        timeout: Optional[float] = 30.0,
    ) -> Rollouts:
        """Returns the rollouts of that name, a buffer for training language models.

        Args:
          name: of the rollouts.
          create: makes the rollouts with these options (`Rollouts.create`), unless there are some of
            that name already. None: does not ask the server.
          timeout: seconds to wait for the server, with `create`.

        Raises:
          DeadlineExceededError: no server answered in time.
        """
        from reprise.rollouts import Rollouts

        found = Rollouts(self, name)
        return found if create is None else found.create(exist_ok=True, timeout=timeout, **create)


def _side(sides: str) -> int:
    if sides not in _SIDES:
        raise ValueError(f"sides must be 'inserts', 'samples' or 'both', got {sides!r}")
    return _SIDES[sides]
