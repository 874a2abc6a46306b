# SPDX-License-Identifier: Apache-2.0
"""A server on threads of this process."""

from __future__ import annotations

import itertools
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from reprise import _core, callbacks, errors, local_path, local_servers
from reprise import storage as storage_module
from reprise._log import logger, saying
from reprise.table import Table

__all__ = ["ThreadServer"]

_count = itertools.count()


class ThreadServer:
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
        self.socket: Optional[Tuple[str, int]] = None  # its path and inode
        self.store = _core.Store(**store_options)
        self.places = [table._add_to(self.store) for table in tables]
        run_bytes = (options.get("limits") or {}).get("run_bytes", 0)
        self._durable = _open(self.store, storage, run_bytes) if storage is not None else None
        addresses = [f"{host}:{port}" for host in hosts]
        temporary = None
        if local_socket and not _needs_credentials(options):
            # The final name of the socket contains the port, which is known after the start only.
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
            local_servers.durables[self.port] = self._durable
        local_servers.stores[self.port] = self.store
        local_servers.stopped.discard(self.port)
        local_servers.forget_child(self.port)

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

    def waiting(self) -> List[Dict[str, Any]]:
        """Returns dicts of the calls that wait at tables and rollouts."""
        return _core.Client.local(self.store, 0, 0).why_blocked()

    def stop(self, grace: float) -> None:
        if self._pid != os.getpid():
            return  # in a forked child: the server runs in the parent
        if local_servers.stores.get(self.port) is self.store:
            local_servers.stores.pop(self.port, None)
            local_servers.durables.pop(self.port, None)
            local_servers.stopped.add(self.port)
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
            # First the connections, so that other processes wait for the server to come back. A
            # writer takes the error of a closed table for final, and drops its items.
            self._server.stop(0)
            self.store.close()  # ends the calls that wait in this process
            try:
                if durable is not None:
                    with saying("the storage is being closed"):
                        durable.close()
            finally:
                callbacks.stop_all([e for place in self.places for e in place.extensions])


def _open(store: _core.Store, storage: Mapping[str, Any], run_bytes: int) -> _core.Durable:
    """Opens a data directory. Loads its data, or that of the fallback, and runs up to `run_bytes`."""
    options = {key: value for key, value in storage.items() if key != "fallback"}
    # stop() writes the last checkpoint, before the tables are closed.
    options.update(final_checkpoint=False, run_bytes=run_bytes)
    with saying(f"the data in {storage['path']} is being loaded"):
        storage_module.begin_with(storage["path"], storage["fallback"])
        try:
            durable = _core.Durable(store, **options)
        except errors.StatusError as e:
            if "it is saved with sampler" in str(e):
                e.args = (f"{e}; Storage(path, accept_changes=True) keeps the items",)
            elif e.code == "DATA_LOSS":
                e.args = (f"{e}; reprise data verify lists the damage, Storage(path, salvage=True) loads "
                          "what can be read",)
            raise
        trouble = durable.info().get("trouble")
        if trouble:
            logger().warning("%s: %s", storage["path"], trouble)
        return durable


def _needs_credentials(options: Mapping[str, Any]) -> bool:
    return bool(options.get("certificate_file") or options.get("tokens_file"))
