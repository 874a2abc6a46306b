# SPDX-License-Identifier: Apache-2.0
"""The command under test, and servers started from it.

    RP_BUILD=build/test/asan pytest tests/cli       another build than the release one
    pytest tests/cli --record                       write the golden files anew
"""

import ast
import json
import os
import pathlib
import queue
import re
import shlex
import signal
import struct
import subprocess
import threading
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("RP_BUILD", ROOT / "build" / "test" / "release"))
REPRISE = BUILD / "src" / "cli" / "reprise"
SECONDS = 120  # for everything that is waited for
IS_SHORT = bool(os.environ.get("RP_SHORT"))  # `make test` sets it, `make test-long` does not


def pytest_addoption(parser):
    parser.addoption("--record", action="store_true", help="write the golden files anew")


def clean_environment(**more):
    """The environment without what a service manager, or a user of ours, may have left in it."""
    hidden = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "NOTIFY_SOCKET", "REPRISE_SERVER",
              "REPRISE_TOKEN")
    return {**{k: v for k, v in os.environ.items() if k not in hidden}, **more}


def reprise(*arguments, **options):
    """Runs the command to its end."""
    return subprocess.run([REPRISE, *map(str, arguments)], capture_output=True, text=True,
                          timeout=SECONDS, env=clean_environment(), **options)


def ask(server, *arguments, **options):
    """Runs the command to its end against a server."""
    return subprocess.run([REPRISE, *map(str, arguments)], capture_output=True, text=True,
                          timeout=SECONDS, **options,
                          env=clean_environment(REPRISE_SERVER=f"localhost:{server.port}"))


def without_notices(text):
    """Standard error without the lines about a wait, which a busy machine makes long, and notes."""
    return re.sub(r"^reprise \w+: (waiting for|note:) .*\n", "", text, flags=re.MULTILINE)


def answer(server, *arguments, **options):
    """What a command prints that has nothing to complain about."""
    done = ask(server, *arguments, **options)
    assert (done.returncode, without_notices(done.stderr)) == (0, ""), done
    return done.stdout


def ask_why(server, reason, *arguments, **options):
    """Asks with longer and longer timeouts until the errors have the reason: a busy machine may need longer than the
    first to find it out."""
    for timeout in ("0.3", "3", "30"):
        done = ask(server, *arguments, "--timeout", timeout, **options)
        if reason in done.stderr:
            break
    return done


def save_npy(path, descr, shape, data):
    """A .npy file as NumPy writes it."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + data)


def load_npy(path):
    """(descr, shape, bytes) of a .npy file."""
    file = path.read_bytes()
    assert file[:8] == b"\x93NUMPY\1\0"
    end = 10 + struct.unpack("<H", file[8:10])[0]
    header = ast.literal_eval(file[10:end].decode())
    assert header["fortran_order"] is False and end % 64 == 0
    return header["descr"], header["shape"], file[end:]


@pytest.fixture
def golden(request):
    """Compares text with a golden file, or writes it with --record."""

    def compare(name, text):
        path = pathlib.Path(__file__).parent / "golden" / name
        if request.config.getoption("--record"):
            path.write_text(text)
        assert text == path.read_text(), f"{path} says otherwise; pytest --record writes it anew"

    return compare


def fields_of(line):
    """The fields of a log line, of either format."""
    if line.startswith("{"):
        return json.loads(line)
    return dict(word.split("=", 1) for word in shlex.split(line))


class Server:
    """A server process whose log lines are gathered."""

    def __init__(self, command, **options):
        self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        **options)
        self.lines = []
        self.arrived = queue.Queue()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.arrived.put(line.rstrip("\n"))
        self.arrived.put(None)

    def wait_for(self, event):
        """The fields of the next line of this event."""
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                line = self.arrived.get(timeout=max(0, deadline - time.monotonic()))
            except queue.Empty:
                pytest.fail(f"no line of {event}; there were {self.lines}")
            if line is None:
                pytest.fail(f"it ended without a line of {event}; there were {self.lines}")
            self.lines.append(line)
            fields = fields_of(line)
            if fields.get("event") == event:
                return fields

    def events(self):
        """Every event so far; call it after the end for all of them."""
        while True:
            try:
                line = self.arrived.get_nowait()
            except queue.Empty:
                break
            if line is not None:
                self.lines.append(line)
        return [fields_of(line)["event"] for line in self.lines]

    def signal(self, number):
        self.process.send_signal(number)
        if number == signal.SIGSTOP:  # a loaded machine takes its time
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def wait(self):
        """Its exit status."""
        status = self.process.wait(SECONDS)
        self.reader.join(SECONDS)
        return status

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join(SECONDS)
        self.process.stdout.close()
        self.process.stderr.close()


@pytest.fixture
def serve():
    """Starts `reprise serve` with arguments and waits until it serves; adds `.port` and
    `.serving`, the fields of its first line."""
    started = []

    def start(*arguments, command=None, **options):
        options.setdefault("env", clean_environment())
        # A test on the default port, 8000, fails if any other program uses it.
        assert command or any(str(a).startswith(("--port", "--listen", "--config")) for a in arguments), arguments
        server = Server(command or [REPRISE, "serve", *arguments], **options)
        started.append(server)
        server.serving = server.wait_for("serving")
        found = re.search(r":(\d+)", server.serving["addresses"])
        server.port = int(found.group(1)) if found else None
        return server

    yield start
    for server in started:
        server.kill()


@pytest.fixture
def stop():
    """Stops a server in order."""

    def ask(server):
        server.signal(signal.SIGTERM)
        assert server.wait() == 0, server.lines
        server.events()

    return ask
