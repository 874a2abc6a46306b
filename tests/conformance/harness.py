# SPDX-License-Identifier: Apache-2.0
"""Runs servers as processes: ours, and dm-reverb's for comparison.

A table is described once, by table(), and the description is converted to the format of each
server. Every wait has a timeout; every process is ended by its id.
"""

import json
import os
import pathlib
import platform
import signal
import socket
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = ROOT / "build" / "peers"
START_S = 60.0  # importing TensorFlow on a busy machine takes long
STOP_S = 20.0
IS_SHORT = bool(os.environ.get("RP_SHORT"))  # `make test` sets it, `make test-long` does not


def binary():
    """Returns the path of the program under test."""
    default = ROOT / "build" / "test" / "release" / "src" / "cli" / "reprise"
    return pathlib.Path(os.environ.get("REPRISE_BIN", default))


def reverb_python():
    """Returns the interpreter of dm-reverb's environment, or None."""
    python = PEERS / "reverb" / "bin" / "python"
    made = (PEERS / "reverb.stamp").exists() and platform.machine() == "x86_64"
    return python if made else None


def free_port():
    """Returns a port that is free on all addresses."""
    with socket.socket(socket.AF_INET6) as probe:
        probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        probe.bind(("::", 0))
        return probe.getsockname()[1]


def wait_until(condition, seconds, what):
    """Polls until condition() is true. Returns its value."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(0.01)


def table(name, sampler="uniform", remover="fifo", max_size=1000, limiter=("min_size", 1),
          max_times_sampled=0, signature=None):
    """Describes a table. Selectors: fifo, lifo, uniform, min_heap, max_heap, ("prioritized",
    exponent). Limiters: ("min_size", n), ("ratio", samples per insert, min size, error buffer),
    ("queue", n), ("stack", n). A signature is nested dicts and lists with leaves such as
    "float32[?,2]"; {"tuple": [...]} stands for a tuple."""
    return dict(name=name, sampler=sampler, remover=remover, max_size=max_size,
                limiter=list(limiter), max_times_sampled=max_times_sampled,
                signature=signature)


class Server:
    """A process that listens on a port. Subclasses define its command."""

    def __init__(self, folder=None):
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="conformance-"))
        self.port = free_port()
        self.process = None
        self.log_path = self.folder / f"server-{self.port}.log"

    @property
    def address(self):
        return f"localhost:{self.port}"

    def command(self):
        raise NotImplementedError

    def launch(self):
        """Starts the process and returns at once; ready() waits until it listens."""
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [str(word) for word in self.command()], stdin=subprocess.PIPE, stdout=log,
                stderr=log, cwd=self.folder)
        return self

    def ready(self):
        wait_until(self._listens, START_S, f"a server on port {self.port}")
        return self

    def start(self):
        return self.launch().ready()

    def _listens(self):
        status = self.process.poll()
        if status is not None:
            raise RuntimeError(f"the server ended with status {status}:\n{self.log()}")
        try:
            with socket.create_connection(("localhost", self.port), timeout=1):
                return True
        except OSError:
            return False

    def stop(self):
        """Ends the process as a service manager would. Returns its exit status."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self.process.stdin.close()
        self.process = None
        return status

    def restart(self):
        """Ends the process and starts another on the same port."""
        self.stop()
        self.start()

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class DmReverb(Server):
    """dm-reverb's own server. It is restarted within its process, to import TensorFlow once."""

    kind = "dm-reverb"

    def __init__(self, tables, folder=None):
        super().__init__(folder)
        self.tables = tables
        self.said = 0

    def command(self):
        config = self.folder / f"tables-{self.port}.json"
        config.write_text(json.dumps(self.tables))
        self.said = self._count_ready()
        return [reverb_python(), ROOT / "tests" / "conformance" / "dmreverb" / "dm_server.py",
                self.port, config]

    def _count_ready(self):
        return self.log().count("READY\n")

    def ready(self):
        def says_so():
            return self._listens() and self._count_ready() > self.said

        wait_until(says_so, START_S, "dm-reverb's server")
        return self

    def restart(self):
        self.said = self._count_ready()
        self.process.stdin.write(b"restart\n")
        self.process.stdin.flush()
        self.ready()


def yaml(node):
    """Formats a description as YAML. JSON is YAML, but a tuple of a signature needs a tag."""
    if isinstance(node, dict) and set(node) == {"tuple"}:
        return "!tuple " + yaml(node["tuple"])
    if isinstance(node, dict):
        return "{" + ", ".join(f"{json.dumps(k)}: {yaml(v)}" for k, v in node.items()) + "}"
    if isinstance(node, (list, tuple)):
        return "[" + ", ".join(yaml(n) for n in node) + "]"
    return json.dumps(node)


class Reprise(Server):
    """The server under test. `config` has the keys of a configuration file; its tables are a
    list of table()."""

    kind = "reprise"

    def __init__(self, config, folder=None):
        super().__init__(folder)
        self.config = config

    @staticmethod
    def _selector(settings, key, description):
        if isinstance(description, (list, tuple)):
            exponent = "exponent" if key == "sampler" else "remover_exponent"
            settings[key], settings[exponent] = description
        else:
            settings[key] = description

    @classmethod
    def _table(cls, description):
        limiter, *numbers = description["limiter"]
        settings = {"max_size": description["max_size"]}
        if limiter in ("queue", "stack"):
            assert numbers == [description["max_size"]]
            settings["sampler"] = limiter
        else:
            cls._selector(settings, "sampler", description["sampler"])
            cls._selector(settings, "remover", description["remover"])
            if description["max_times_sampled"]:
                settings["max_times_sampled"] = description["max_times_sampled"]
            names = {"min_size": ["min_size"],
                     "ratio": ["samples_per_insert", "min_size", "error_buffer"]}
            settings.update(zip(names[limiter], numbers))
        if description["signature"]:
            settings["signature"] = description["signature"]
        return settings

    def command(self):
        config = {"log_level": "debug", "drain_seconds": 0.5, **self.config}
        config["tables"] = {d["name"]: self._table(d) for d in self.config["tables"]}
        if "listen" not in config:
            config["port"] = self.port
        path = self.folder / f"reprise-{self.port}.yaml"
        path.write_text(yaml(config) + "\n")
        return [binary(), "serve", "--config", path]

    def __exit__(self, *_):
        """Checks the exit status: a stopped server ends with 0. A server that crashed, or that was
        built with a leak detector and has leaks, does not."""
        status = self.stop()
        assert status in (0, None), f"ended with {status}:\n{self.log()[-4000:]}"

    def reload(self):
        """Makes the server reload certificates, tokens and limits."""
        self.process.send_signal(signal.SIGHUP)
