# SPDX-License-Identifier: Apache-2.0
"""A server in a process of its own.

The parent starts this module with a pipe to its standard input and one from its standard output.
The first line in says what to serve; the first line out says where, or what went wrong. After
that a line "stop SECONDS", or the end of the pipe, ends the server; so does the end of the
parent, which the child notices even if processes that the parent forked still hold the pipe.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
from typing import Any, Dict, List, Mapping, Sequence

import numpy as np

from reprise import errors, specs

__all__ = ["Child", "main"]

_START_TIMEOUT = 60.0
_STOP_TIMEOUT = 10.0
_POLL = 0.5

# --- signatures as JSON ---------------------------------------------------------------------------


def signature_to_json(nest: Any) -> Any:
    """A nest of specs as lists of a word and what belongs to it.

    >>> signature_to_json((specs.TensorSpec((2, None), "int32", "x"),))
    ['tuple', [['spec', [2, None], 'int32', 'x']]]
    """
    if isinstance(nest, specs.TensorSpec):
        shape = None if nest.shape is None else list(nest.shape)
        dtype = "object" if nest.dtype == object else nest.dtype.name
        return ["spec", shape, dtype, nest.name]
    if isinstance(nest, tuple) and hasattr(nest, "_fields"):
        values = [signature_to_json(value) for value in nest]
        return ["named", type(nest).__name__, list(nest._fields), values]
    if isinstance(nest, (list, tuple)):
        word = "list" if isinstance(nest, list) else "tuple"
        return [word, [signature_to_json(value) for value in nest]]
    if hasattr(nest, "items"):
        return ["dict", {key: signature_to_json(value) for key, value in nest.items()}]
    return None


def _dtype(name: str) -> np.dtype:
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))


def signature_from_json(node: Any) -> Any:
    """The nest again, with named tuples of the same names and fields."""
    if node is None:
        return None
    if node[0] == "spec":
        return specs.TensorSpec(node[1], _dtype(node[2]), node[3])
    if node[0] == "dict":
        return {key: signature_from_json(value) for key, value in node[1].items()}
    if node[0] == "named":
        values = [signature_from_json(value) for value in node[3]]
        return specs._named_tuple(node[1], list(zip(node[2], values)))
    values = [signature_from_json(value) for value in node[1]]
    return values if node[0] == "list" else tuple(values)


# --- the parent -----------------------------------------------------------------------------------

_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
    "from reprise import child_server; sys.exit(child_server.main())"
)


class Child:
    """A server in a child process, as `reprise.server.Server` uses it."""

    def __init__(
        self,
        tables: Sequence[Any],
        hosts: Sequence[str],
        port: int,
        local_socket: bool,
        store_options: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> None:
        from reprise import client, server

        self._parent = os.getpid()
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            answer = self._start(
                {
                    "parent": self._parent,
                    "tables": [
                        dict(
                            table._options,
                            name=table.name,
                            signature=signature_to_json(table._signature),
                        )
                        for table in tables
                    ],
                    "hosts": list(hosts),
                    "port": port,
                    "local_socket": local_socket,
                    "store": dict(store_options),
                    "options": dict(options),
                }
            )
        except BaseException:
            self.kill()
            raise
        if "error" in answer:
            self.kill()
            kind = ValueError if answer["value_error"] else errors.StatusError
            raise kind(answer["error"])
        self.port = answer["port"]
        self._path = answer["path"]
        own = "unix:" + self._path if self._path else f"{hosts[0]}:{self.port}"
        asker = client._core.Client(own)
        self.places = [server._There(asker, table.name) for table in tables]

    def _start(self, config: Mapping[str, Any]) -> Dict[str, Any]:
        try:
            self._write(json.dumps(config))
        except BrokenPipeError:
            pass  # what comes, or does not come, from it says more
        out = self._process.stdout
        assert out is not None
        ready, _, _ = select.select([out], [], [], _START_TIMEOUT)
        line = out.readline() if ready else b""
        if not line:
            raise errors.StatusError(
                f"the server's process did not start: it ended with "
                f"{self._process.wait(_STOP_TIMEOUT)}"
                if ready
                else f"the server's process did not start in {_START_TIMEOUT:g} s"
            )
        return json.loads(line)

    def _write(self, line: str) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write(line.encode() + b"\n")
        stdin.flush()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return os.getpid() == self._parent and self._process.poll() is None

    def stop(self, grace: float) -> None:
        if os.getpid() != self._parent:
            return
        with self._lock:
            if self._process.poll() is None:
                try:
                    self._write(f"stop {grace}")
                except OSError:
                    pass
                try:
                    self._process.wait(grace + _STOP_TIMEOUT)
                except subprocess.TimeoutExpired:
                    self._process.kill()
            self._clean_up()

    def kill(self) -> None:
        if os.getpid() == self._parent:
            self._process.kill()
            self._clean_up()

    def _clean_up(self) -> None:
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    pass


# --- the child ------------------------------------------------------------------------------------


def _serve(config: Mapping[str, Any]) -> Any:
    """Starts the server. What it returns has `port`, `_path` and `stop`."""
    from reprise import pybind, rate_limiters, server

    tables: List[Any] = []
    for table in config["tables"]:
        tables.append(
            server.Table(
                name=table["name"],
                sampler=pybind.selector(*table["sampler"]),  # type: ignore[arg-type]
                remover=pybind.selector(*table["remover"]),  # type: ignore[arg-type]
                max_size=table["max_size"],
                rate_limiter=rate_limiters.RateLimiter(*table["limiter"]),
                max_times_sampled=table["max_times_sampled"],
                signature=signature_from_json(table["signature"]),
                max_bytes=table["max_bytes"],
                seed=table["seed"],
            )
        )
    return server._Threads(
        tables,
        config["hosts"],
        config["port"],
        config["local_socket"],
        config["store"],
        config["options"],
    )


def _wait_for_end(parent: int) -> float:
    """Waits until somebody wants it to end; returns for how long calls may go on."""
    while True:
        ready, _, _ = select.select([0], [], [], _POLL)
        if ready:
            words = os.read(0, 1000).split()
            return float(words[1]) if len(words) > 1 else 0.0
        if os.getppid() != parent:
            return 0.0


def _read_config() -> Dict[str, Any]:
    """The first line, and nothing of the next."""
    line = bytearray()
    while not line.endswith(b"\n"):
        part = os.read(0, 65536)
        if not part:
            sys.exit(1)
        line += part
    return json.loads(bytes(line))


def main() -> int:
    """Serves what the first line of the standard input says."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which stops us
    config = _read_config()
    out = os.dup(1)
    os.dup2(2, 1)  # nothing but the answer goes there
    answer: Dict[str, Any]
    server = None
    try:
        server = _serve(config)
        answer = {"port": server.port, "path": server._path}
    except (ValueError, errors.ReverbError) as error:
        answer = {"error": str(error), "value_error": isinstance(error, ValueError)}
    os.write(out, json.dumps(answer).encode() + b"\n")
    os.close(out)
    if server is None:
        return 1
    server.stop(_wait_for_end(config["parent"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
