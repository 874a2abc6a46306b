# SPDX-License-Identifier: Apache-2.0
"""A server process under attack, and a bystander, another client that must not be affected."""

import atexit
import json
import os
import pathlib
import platform
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

import frames
import messages

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("RP_BUILD", ROOT / "build" / "test" / "release"))
REPRISE = BUILD / "src" / "cli" / "reprise"
MARK = "PAYLOAD"  # is in the data of attackers, and must never be in a log

IS_SHORT = bool(os.environ.get("RP_SHORT"))  # `make test` sets it, `make test-long` does not

# The reports of sanitizers.
REPORTS = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:|"
                     r"SUMMARY: \w+Sanitizer|[Aa]ssertion .* failed")


def find_sanitizer():
    """Returns "address", "thread" or None, from the contents of the program."""
    program = REPRISE.read_bytes() if REPRISE.exists() else b""
    for word in ("address", "thread"):
        if f"__{word[0]}san_init".encode() in program:
            return word
    return None


SANITIZER = find_sanitizer()
frames.SLOW = {None: 1.0, "address": 3.0, "thread": 6.0}[SANITIZER]

# The tables that attackers may use, and one for the bystander.
TABLES = {
    "a": "uniform:1000", "fifo": "fifo:1000", "lifo": "lifo:1000",
    "prioritized": "prioritized:1000,exponent=2", "min_heap": "min_heap:1000",
    "max_heap": "max_heap:1000", "weighed_out": "fifo:1000,remover=prioritized",
    "empty": "uniform:1000,min_size=1000",  # samples always wait
    "queue": "queue:2",                    # inserts wait from the third on
    "bystander": "uniform:1000",
}

REFUSAL = re.compile(r'(refusals_total|abuse_events_total)\{\w+="(\w+)"\}')
UNCHANGED = re.compile(r"table_(size|bytes|inserts_total|deletes_total|samples_total|"
                       r"updates_total|waiting_\w+|closed)\{")

# All processes that were started here; they are ended when the tests end.
STARTED = []


@atexit.register
def end_all():
    for process in STARTED:
        if process.poll() is None:
            process.kill()


def start(words, **options):
    STARTED.append(subprocess.Popen([str(w) for w in words], **options))
    return STARTED[-1]


def hurry():
    """Raises the priority of a process that is about to start, if that is allowed."""
    try:
        os.nice(-15)
    except PermissionError:
        pass


def wrapper():
    """Returns the command that turns off address randomisation, with which old sanitizers fail."""
    words = ["setarch", platform.machine(), "-R"]
    try:
        works = subprocess.run(words + ["true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        works = False
    return words if SANITIZER and works else []


def environment():
    found = {k: v for k, v in os.environ.items()
             if k not in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "NOTIFY_SOCKET")}
    found.setdefault("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=1:quarantine_size_mb=16:"
                     f"detect_stack_use_after_return={0 if IS_SHORT else 1}:"
                     "allocator_may_return_null=1")
    found.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    found.setdefault("TSAN_OPTIONS", "halt_on_error=1:second_deadlock_stack=1")
    return found


class Server:
    """A server process, and its metrics."""

    def __init__(self, limits=None, arguments=(), tables=None, token=None, before=None):
        self.log = tempfile.TemporaryFile()
        self.token = token
        self.source = "127.0.0.1"  # the address from which pages are requested
        words = [*wrapper(), REPRISE, "serve", "--port", "0", *arguments]
        for name, spec in (tables or TABLES).items():
            words += ["--table", f"{name}:{spec}"]
        for name, value in (limits or {}).items():
            words += ["--limit", f"{name}={value}"]
        self.process = start(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=self.log, env=environment(), preexec_fn=before)
        self.port = self.find_port()

    def find_port(self):
        until = time.monotonic() + 20 * frames.SLOW
        while time.monotonic() < until and self.process.poll() is None:
            found = re.search(r"event=serving.*?:(\d+)", self.said())
            if found:
                return int(found.group(1))
            time.sleep(0.005)
        raise AssertionError(f"it does not serve: {self.said()}")

    def said(self):
        return os.pread(self.log.fileno(), 1 << 24, 0).decode(errors="replace")

    def alive(self):
        return self.process.poll() is None

    def peer(self, **options):
        return frames.Peer(self.port, **options)

    def page(self, path):
        with socket.create_connection(("127.0.0.1", self.port), 10 * frames.SLOW,
                                      (self.source, 0)) as s:
            extra = f"Authorization: Bearer {self.token}\r\n" if self.token else ""
            s.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{extra}\r\n"
                      .encode())
            got = b""
            while part := s.recv(1 << 16):
                got += part
        head, _, body = got.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        return body.decode()

    def metrics(self):
        lines = (line.rpartition(" ") for line in self.page("/metrics").split("\n")
                 if line and not line.startswith("#"))
        return {name.removeprefix("reprise_"): float(value) for name, _, value in lines}

    def refusals(self, metrics=None):
        """Returns refusals by reason, and events of abuse by kind."""
        found = {}
        for name, value in (metrics or self.metrics()).items():
            if label := REFUSAL.fullmatch(name):
                found[("abuse:" if "abuse" in label[1] else "") + label[2]] = int(value)
        return found

    def status(self, name):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{name}:\s+(\d+)", text, re.MULTILINE)[1])

    def rss(self):
        """Returns the resident bytes, for budget.py. Tests check what the server counts itself,
        since resident memory depends on the C library and the machine."""
        return self.status("VmRSS") << 10

    def peak_rss(self):
        """Returns the most bytes that were ever resident."""
        return self.status("VmHWM") << 10

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def cpu(self):
        """Returns the seconds of processor time so far."""
        words = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2]
        user, system = words.split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        """Stops the server with SIGTERM. Returns a list of what went wrong."""
        wrong = []
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(60 * frames.SLOW)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        said = self.said()
        self.log.close()
        if status != 0:
            wrong.append(f"it ended with {status}")
        if REPORTS.search(said):
            wrong.append("a sanitizer has something to say")
        if MARK in said:
            wrong.append("its log has what an attacker sent")
        return "\n".join([*wrong, said[-12000:]]) if wrong else ""


class Helper:
    """A program of this folder that reads commands from its input. It ends with its input."""

    def __init__(self, name, *arguments, before=None):
        program = pathlib.Path(__file__).with_name(name)
        self.socket, own = socket.socketpair()
        self.start([sys.executable, "-S", program, *arguments], own, before)
        own.close()
        self.input, self.output = self.socket.makefile("w"), self.socket.makefile("r")

    def start(self, words, own, before):
        """Starts the program, with a socket as its input and its output."""
        start(words, stdin=own, stdout=own, preexec_fn=before)

    def tell(self, word):
        self.input.write(word + "\n")
        self.input.flush()

    def hear(self):
        """Returns the next line of its output."""
        line = self.output.readline()
        assert line, "it is gone"
        return line.strip()

    def stop(self):
        """Ends its input and waits until its output has ended."""
        self.socket.shutdown(socket.SHUT_WR)
        self.socket.settimeout(10 * frames.SLOW)
        self.output.read()
        for file in (self.input, self.output, self.socket):
            file.close()


class Nursery:
    """A process that forks bystanders. It is started for the first of them."""

    socket = process = None

    @classmethod
    def bear(cls, arguments, own):
        """Starts a bystander that has the socket as its input and its output."""
        if cls.socket is None:
            cls.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            cls.process = start([sys.executable, "-S", pathlib.Path(__file__).with_name("bystander.py")], stdin=theirs)
            theirs.close()
        socket.send_fds(cls.socket, [json.dumps(list(map(str, arguments))).encode()], [own.fileno()])

    @classmethod
    def end(cls):
        if cls.socket is not None:
            cls.socket.close()
            cls.socket = None
            cls.process.wait(10 * frames.SLOW)


class Bystander(Helper):
    """A process that inserts and samples repeatedly, except after the order `rest`."""

    def __init__(self, server, pause_ms=60 if IS_SHORT else 20, token=None, before=None):
        super().__init__("bystander.py", server.port, frames.SLOW, pause_ms, token or "",
                         before=before)
        self.order("ready")

    def start(self, words, own, before):
        if before:
            super().start(words, own, before)
        else:
            Nursery.bear(words[3:], own)

    def order(self, word):
        """Gives an order: `report`, `rest` or `go`. Returns what happened since the last order:
        `done`, the number of inserts and samples; `errors`; `ms`, the time that each took."""
        self.tell(word)
        return json.loads(self.hear())


class Target(Server):
    """A server with a bystander, and the state that must be restored after each attack."""

    def __init__(self, busy=True, **options):
        super().__init__(**options)
        self.busy = busy  # whether the bystander works
        self.settled_metrics = None  # of the end of the last attack, if it changed nothing
        self.bystander = Bystander(self, token=self.token)
        self.begin()

    def table_state(self, metrics=None):
        """Returns the metrics that attackers must not change, unless `may_change` is set."""
        return {name: value for name, value in (metrics or self.metrics()).items()
                if UNCHANGED.match(name) and '"bystander"' not in name}

    def begin(self):
        """Records the state before an attack."""
        self.may_change = False  # whether tables may be changed
        self.bystander.order("go" if self.busy else "rest")
        metrics = self.settled_metrics or self.metrics()
        self.settled_metrics = None
        self.tables_before = self.table_state(metrics)
        self.refused_before = self.refusals(metrics)
        self.descriptors_before = self.descriptors()

    def refused(self):
        """Returns refusals and abuse since the attack began, without zeros."""
        now = self.refusals()
        return {k: v - self.refused_before[k] for k, v in now.items()
                if v != self.refused_before[k]}

    def limits_hit(self):
        """Returns the refusals only."""
        return {k: v for k, v in self.refused().items() if not k.startswith("abuse:")}

    def settled(self):
        """Returns what is not as before the attack, or None."""
        if self.descriptors() > self.descriptors_before:
            return f"{self.descriptors()} descriptors, {self.descriptors_before} before"
        metrics = self.metrics()
        for name, own in {"connections": 1, "streams": 2}.items():  # of the bystander
            if metrics[name] > own:
                return f"{metrics[name]} {name}"
        for name in ("queued_bytes", "pinned_bytes"):
            if metrics[name] > 65536:
                return f"{metrics[name]} {name}"
        if not self.may_change and (tables := self.table_state(metrics)) != self.tables_before:
            return f"{tables} before: {self.tables_before}"
        self.settled_metrics = None if self.may_change else metrics
        return None

    def finish(self):
        """Checks after an attack that the state is as before and the bystander saw no errors."""
        until = time.monotonic() + 10 * frames.SLOW
        while self.alive() and (wrong := self.settled()) and time.monotonic() < until:
            time.sleep(0.02)
        assert self.alive(), f"the server is gone: {self.said()[-8000:]}"
        assert not wrong, wrong
        with self.peer() as peer:
            key = time.monotonic_ns()
            insert = peer.open(messages.INSERT, more=self.credentials())
            peer.write(insert, messages.one(key, "bystander"))
            assert messages.confirmed(peer.reply(insert)) == [key]
            call = peer.ask(messages.SAMPLE, messages.sample("bystander"),
                            more=self.credentials())
            assert call.status == messages.OK and call.body
        report = self.bystander.order("rest")
        assert not report["errors"] and (report["done"] or not self.busy), report

    def credentials(self):
        return [("authorization", f"Bearer {self.token}")] if self.token else []

    def close(self):
        self.bystander.stop()
        return self.stop()
