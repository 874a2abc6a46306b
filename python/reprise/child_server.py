# SPDX-License-Identifier: Apache-2.0
"""A server in a child process.

The parent starts this module with pipes to its standard input and from its standard output.
Messages are lines of JSON. The first line in is the configuration; the first line out is the
port, or an error. Then the parent may send requests for information on the tables. The request
"stop", or the end of the pipe, ends the server. So does the end of the parent, which the child
notices even if processes that the parent forked keep the pipe open.
"""

from __future__ import annotations

import json
import operator
import os
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from typing import Any, Dict, List, Mapping, Optional, Sequence

import numpy as np

from reprise import errors, local_path, local_servers, pybind, rate_limiters, specs
from reprise._log import Patience, logger, saying
from reprise.table import Table
from reprise.thread_server import ThreadServer

__all__ = ["Child", "main"]

_START_TIMEOUT = 60.0
_LOAD_TIMEOUT = 24 * 3600.0
_STOP_TIMEOUT = 10.0
_ASK_TIMEOUT = 30.0
_END_TIMEOUT = 1.0  # of a process whose pipe is closed
_LOSS_S = 1.0  # after the end of a process, until its clients have surely lost their connections
_POLL = 0.5  # seconds between two checks whether the parent is alive

# The exceptions of the child that the parent raises as they are; others become StatusError.
_BUILT_IN: Dict[str, Any] = {
    kind.__name__: kind for kind in (OverflowError, TypeError, ValueError)
}


def signature_to_json(nest: Any) -> Any:
    """Converts a nest of specs to JSON: lists of the kind of a node and its parts.

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
    """The inverse of `signature_to_json`. Named tuples get new classes of the same name and fields.
    """
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


_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
    "from reprise import child_server; sys.exit(child_server.main())"
)


class _Lines:
    """Reads lines of JSON from a file descriptor, with a timeout."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._rest = b""

    def read(self, timeout: float) -> Any:
        """Returns the next line, parsed. TimeoutError if none comes in time, EOFError at the end.
        """
        until = time.monotonic() + timeout
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._fd], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise TimeoutError
            part = os.read(self._fd, 1 << 16)
            if not part:
                raise EOFError
            self._rest += part
        line, self._rest = self._rest.split(b"\n", 1)
        return json.loads(line)


class Child:
    """A server in a child process, as `reprise.server.Server` uses it."""

    def __init__(
        self,
        tables: Sequence[Any],
        hosts: Sequence[str],
        port: int,
        local_socket: bool,
        store_options: Mapping[str, Any],
        storage: Optional[Mapping[str, Any]],
        options: Mapping[str, Any],
    ) -> None:
        for table in tables:
            table._refuse_extensions("a server in a child process")
        self._parent = os.getpid()
        # Reentrant: garbage collection may stop the server during a request of this thread.
        self._lock = threading.RLock()
        self._asked = 0
        self._ended_at: Optional[float] = None  # when a client first saw that the process has ended
        self._socket: Optional[List[Any]] = None
        self._clients: Optional["weakref.WeakSet[Any]"] = None
        # The last checkpoint may take long.
        self._stop_timeout = _LOAD_TIMEOUT if storage else _STOP_TIMEOUT
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, json.dumps([str(path) for path in sys.path])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self._lines = _Lines(self._out.fileno())
        config = {
            "parent": self._parent,
            "tables": [_table_to_json(table) for table in tables],
            "hosts": list(hosts),
            "port": port,
            "local_socket": local_socket,
            "store": dict(store_options),
            "storage": storage and dict(storage),
            "options": dict(options),
        }
        try:
            answer = self._start(config)
        except BaseException:
            self.kill()
            raise
        if "error" in answer:
            self.kill()
            raise _error(answer)
        self.port: int = answer["port"]
        self._socket = answer["socket"]
        self._clients = weakref.WeakSet()
        local_servers.clients[self.port] = self._clients
        local_servers.children[self.port] = self
        self.places = [_InChild(self, table.name) for table in tables]

    def _start(self, config: Mapping[str, Any]) -> Dict[str, Any]:
        try:
            self._write(config)
            # Loading the data may take long.
            storage = config["storage"]
            with saying("the server's process is starting"):
                return self._lines.read(_LOAD_TIMEOUT if storage else _START_TIMEOUT)
        except TimeoutError:
            text = f"the server's process did not start in {_START_TIMEOUT:g} s"
        except (EOFError, OSError):
            text = f"the server's process ended with {self._process.wait(_STOP_TIMEOUT)}"
        raise _status("UNAVAILABLE", text)

    def _write(self, message: Mapping[str, Any]) -> None:
        line = memoryview(json.dumps(message).encode() + b"\n")
        while line:
            line = line[self._in.write(line) :]

    def ask(self, what: str, table: str, *arguments: Any) -> Any:
        """Calls the method `what` of the child's store for `table`, and returns its result."""
        if os.getpid() != self._parent:
            raise _status(
                "FAILED_PRECONDITION",
                "the server belongs to the process that forked this one: ask it by a client",
            )
        with self._lock:
            self._asked += 1
            number = self._asked
            try:
                self._write({"do": what, "table": table, "with": arguments, "id": number})
                while True:
                    answer = self._lines.read(_ASK_TIMEOUT)
                    if answer["id"] == number:
                        break  # earlier responses belong to calls that Ctrl-C has ended
            except TimeoutError:
                text = f"the server's process did not answer in {_ASK_TIMEOUT:g} s"
                raise errors.DeadlineExceededError(text) from None
            except (EOFError, OSError, ValueError):
                text = self.say_end(_END_TIMEOUT) or "the server's process does not respond"
                raise _status("UNAVAILABLE", text) from None
        if "error" in answer:
            raise _error(answer)
        return answer["result"]

    def waiting(self) -> List[Dict[str, Any]]:
        """Returns dicts of the calls that wait at tables and rollouts."""
        return self.ask("waiting", "")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return os.getpid() == self._parent and self._process.poll() is None

    @property
    def end(self) -> str:
        """How the process has ended; "" if it runs, or belongs to another process."""
        code = self._process.poll() if os.getpid() == self._parent else None
        if code is None:
            return ""
        return f"signal {-code}" if code < 0 else f"status {code}"

    @property
    def addresses(self) -> List[str]:
        """The addresses of the server in the errors of clients of this host."""
        names = [f"{host}:{self.port}" for host in local_servers.LOOPBACK if host]
        return names if self._socket is None else [*names, f"unix:{self._socket[0]}"]

    def say_end(self, timeout: float) -> str:
        """Says that the process has ended, how, and what to do; "" if it still runs after `timeout`
        seconds."""
        if os.getpid() != self._parent:
            return ""
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return ""
        return (
            f"the server's process {self.pid} has ended ({self.end}): make a new Server, and "
            "clients of it"
        )

    def has_successor(self, handle: Any) -> bool:
        """Returns True if another server has the port of the process, which has ended: then errors do not
        name the process any more. A client that is connected some time after the end shows that."""
        if local_servers.children.get(self.port) is not self:
            return True
        if not self.end:
            return False
        if self._ended_at is None:
            self._ended_at = time.monotonic()
        if time.monotonic() - self._ended_at <= _LOSS_S or not handle.is_connected:
            return False
        local_servers.forget_child(self.port)
        return True

    def stop(self, grace: float) -> None:
        if os.getpid() != self._parent:
            return
        with self._lock:
            if self._process.poll() is None:
                try:
                    self._write({"do": "stop", "grace": grace})
                    self._wait_for_end(grace)
                except (OSError, ValueError, subprocess.TimeoutExpired):
                    self._process.kill()
            self._clean_up()

    def _wait_for_end(self, grace: float) -> None:
        """Waits for the end of the process after a request to stop. Logs what it waits for, and that it
        gives up: then raises TimeoutExpired."""
        until = time.monotonic() + grace + self._stop_timeout
        what = "writes its last checkpoint, or " if self._stop_timeout == _LOAD_TIMEOUT else ""
        reason = f"the server's process {self.pid} has not ended after stop(): it {what}does not respond"
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            pass
        patience = Patience()
        while True:
            left = until - time.monotonic()
            try:
                self._process.wait(patience.slice(max(0.0, left)))
                return
            except subprocess.TimeoutExpired:
                if left <= 0:
                    logger().warning("the server's process %d did not end within %.0f s of stop() and was "
                                     "killed", self.pid, grace + self._stop_timeout)
                    raise
                patience.check(reason)

    def kill(self) -> None:
        if os.getpid() == self._parent:
            self._process.kill()
            self._clean_up()

    def _clean_up(self) -> None:
        self._process.wait()
        if self._clients is not None:
            if local_servers.children.get(self.port) is self:
                del local_servers.children[self.port]
            if local_servers.clients.get(self.port) is self._clients:
                del local_servers.clients[self.port]
            for client in list(self._clients):
                client._on_stop(self.port)
        self._in.close()
        self._out.close()
        if self._socket is not None:  # left behind by a child that was killed
            local_path.remove(*self._socket)
            self._socket = None


class _InChild:
    """A table of a server in a child process, as `reprise.server.Table` uses it."""

    def __init__(self, child: Child, name: str) -> None:
        self._child = child
        self._name = name

    def info(self) -> Dict[str, Any]:
        info = self._child.ask("table_info", self._name)
        for name in ("sampler", "remover", "limiter"):
            info[name] = tuple(info[name])
        return dict(info, signature=signature_from_json(info["signature"]))

    def can_sample(self, count: int) -> bool:
        return self._child.ask("can_sample", self._name, operator.index(count))

    def can_insert(self, count: int) -> bool:
        return self._child.ask("can_insert", self._name, operator.index(count))

    def waiting(self) -> List[Dict[str, Any]]:
        return self._child.ask("waiting", self._name)


def _table_to_json(table: Any) -> Dict[str, Any]:
    signature = signature_to_json(table._signature)
    return dict(table._options, name=table.name, signature=signature)


def _error(answer: Mapping[str, Any]) -> Exception:
    kind = _BUILT_IN.get(answer["kind"])
    return kind(answer["error"]) if kind else _status(answer["kind"], answer["error"])


def _status(code: str, text: str) -> errors.StatusError:
    error = errors.StatusError(text)
    error.code = code
    return error


def _serve(config: Mapping[str, Any]) -> ThreadServer:
    """Starts the server of a configuration."""
    tables = [
        Table(
            name=table["name"],
            sampler=pybind.selector(*table["sampler"]),
            remover=pybind.selector(*table["remover"]),
            max_size=table["max_size"],
            rate_limiter=rate_limiters.RateLimiter(*table["limiter"]),
            max_times_sampled=table["max_times_sampled"],
            signature=signature_from_json(table["signature"]),
            max_bytes=table["max_bytes"],
            seed=table["seed"],
        )
        for table in config["tables"]
    ]
    return ThreadServer(
        tables,
        config["hosts"],
        config["port"],
        config["local_socket"],
        config["store"],
        config["storage"],
        config["options"],
    )


def _answer(server: Any, request: Mapping[str, Any]) -> Dict[str, Any]:
    try:
        if request["do"] == "waiting" and not request["table"]:
            result = server.waiting()
        else:
            result = getattr(server.store, request["do"])(request["table"], *request["with"])
    except Exception as error:
        return _error_to_json(error)
    if request["do"] == "table_info":
        result["signature"] = signature_to_json(result["signature"])
    return {"result": result}


def _error_to_json(error: Exception) -> Dict[str, Any]:
    kind = type(error).__name__
    if kind not in _BUILT_IN:
        kind = getattr(error, "code", "INTERNAL")
    return {"error": str(error), "kind": kind}


def _run(server: Any, parent: int, requests: _Lines, out: int) -> float:
    """Handles requests until the server must stop. Returns the grace period in seconds."""
    while os.getppid() == parent:
        try:
            request = requests.read(_POLL)
        except TimeoutError:
            continue
        except EOFError:
            break
        if request["do"] == "stop":
            return request["grace"]
        _put(out, dict(_answer(server, request), id=request["id"]))
    return 0.0


def _put(out: int, message: Mapping[str, Any]) -> None:
    line = memoryview(json.dumps(message).encode() + b"\n")
    while line:
        line = line[os.write(out, line) :]


def main() -> int:
    """Serves the configuration that is the first line of the standard input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Ctrl-C the parent stops this process
    out = os.dup(1)
    os.dup2(2, 1)  # `out` is for responses only
    requests = _Lines(0)
    grace = 0.0
    server = None
    try:
        config = requests.read(_START_TIMEOUT)
        server = _serve(config)
        _put(out, {"port": server.port, "socket": server.socket})
        grace = _run(server, config["parent"], requests, out)
    except (BrokenPipeError, EOFError):
        pass  # the parent has gone
    except Exception as error:
        _put(out, _error_to_json(error))
    if server is None:
        return 1
    server.stop(grace)
    return 0


if __name__ == "__main__":
    sys.exit(main())
