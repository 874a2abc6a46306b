# SPDX-License-Identifier: Apache-2.0
"""`reprise top` in a terminal, and without one."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest
from conftest import REPRISE, SECONDS, answer, ask, clean_environment


class Terminal:
    """A command in a pseudo-terminal, and what its screen shows."""

    def __init__(self, server, *arguments, columns=80, lines=24):
        self.master, slave = pty.openpty()
        self.resize(columns, lines)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.process = subprocess.Popen(
            [REPRISE, "top", *arguments], stdin=slave, stdout=slave, stderr=slave,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env=clean_environment(REPRISE_SERVER=f"localhost:{server.port}", TERM="xterm"))
        self.output = ""

    def resize(self, columns, lines):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self):
        ready, _, _ = select.select([self.master], [], [], 0.05)
        if ready:
            try:
                self.output += os.read(self.master, 65536).decode()
            except OSError:  # the other end is closed
                pass

    def screen(self):
        """The lines of the last whole frame, or nothing."""
        frames = re.findall(r"\x1b\[H(.*?)\x1b\[J", self.output, re.DOTALL)
        if not frames:
            return []
        return [line.rstrip("\r") for line in frames[-1].replace("\x1b[K", "").split("\n")]

    def wait_for(self, condition):
        """Reads until the screen is as wanted."""
        deadline = time.monotonic() + SECONDS
        while not condition(self.screen()):
            assert time.monotonic() < deadline, self.output[-3000:]
            self.read()
        return self.screen()

    def press(self, keys):
        os.write(self.master, keys.encode())

    def wait(self):
        deadline = time.monotonic() + SECONDS
        while self.process.poll() is None:
            assert time.monotonic() < deadline
            self.read()
        self.read()
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.slave)
        os.close(self.master)


@pytest.fixture
def terminal():
    opened = []

    def start(*arguments, **options):
        opened.append(Terminal(*arguments, **options))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


@pytest.fixture
def server(serve):
    return serve("--port", "0", "--table", "replay:prioritized:1000", "--table", "queue:queue:4")


def has(text):
    return lambda screen: any(text in line for line in screen)


def test_top_shows_the_tables_and_q_quits(server, terminal):
    top = terminal(server, "--interval", "0.1")
    screen = top.wait_for(has("replay"))
    assert len(screen) == 24 and max(map(len, screen)) <= 80
    assert screen[0].startswith(f"reprise top  localhost:{server.port}")
    assert screen[0].endswith("? keys  q quits") and len(screen[0]) == 80
    assert screen[3].split() == ["TABLE", "ITEMS", "BYTES", "IN/S", "OUT/S", "UPD/S", "RATIO",
                                 "LIMITER", "WAIT"]
    answer(server, "insert", "replay", "-", input='{"data": [1]}\n')
    top.wait_for(lambda s: re.match(r"replay +1 ", s[4]))
    top.press("q")
    assert top.wait() == 0
    assert top.output.startswith("\x1b[?1049h") and top.output.endswith("\x1b[?25h\x1b[?1049l")
    assert termios.tcgetattr(top.slave) == top.before


def test_top_shows_waiting_calls_and_their_reason(server, terminal):
    waiting = subprocess.Popen([REPRISE, "sample", "queue", "--timeout", "0"],
                               env=clean_environment(REPRISE_SERVER=f"localhost:{server.port}"))
    try:
        top = terminal(server, "--interval", "0.1")
        # What tables tell and who waits are asked for one after the other.
        screen = top.wait_for(lambda s: has("WAITING")(s) and any(
            re.search(r"^queue .*\] 1 sample$", line) for line in s))
        assert any(line.startswith("queue  1 sample  sample waits") for line in screen)
        assert any(re.match(r" +127\.0\.0\.1:\d+ +1 call   for ", line) for line in screen)
        answer(server, "insert", "queue", "-", input='{"data": [1]}\n')
        assert waiting.wait(SECONDS) == 0
        top.wait_for(lambda s: not has("WAITING")(s))
    finally:
        waiting.kill()
        waiting.wait()


def test_a_question_mark_shows_the_keys(server, terminal):
    top = terminal(server, "--interval", "0.1")
    top.wait_for(has("replay"))
    top.press("?")
    top.wait_for(lambda s: has("refreshes at once")(s) and not has("replay")(s))
    top.press("?")
    top.wait_for(has("replay"))
    top.press("q")
    assert top.wait() == 0


def test_top_follows_the_size_of_the_window(server, terminal):
    top = terminal(server, "--interval", "10", columns=120, lines=40)
    screen = top.wait_for(has("replay"))
    assert len(screen) == 40 and len(screen[0]) == 120
    top.resize(60, 10)
    screen = top.wait_for(lambda s: len(s) == 10)
    assert max(map(len, screen)) <= 60


def test_q_quits_while_the_server_is_stopped(server, terminal):
    top = terminal(server, "--interval", "0.1")
    top.wait_for(has("replay"))
    server.signal(signal.SIGSTOP)
    try:
        begin = time.monotonic()
        top.press("q")
        assert top.wait() == 0
        assert time.monotonic() - begin < 5
    finally:
        server.signal(signal.SIGCONT)


def test_ctrl_c_ends_top_and_restores_the_terminal(server, terminal):
    top = terminal(server, "--interval", "0.1")
    top.wait_for(has("replay"))
    top.press("\x03")
    assert top.wait() == 130
    assert termios.tcgetattr(top.slave) == top.before


def test_top_shows_a_lost_server_and_reconnects(serve, terminal, tmp_path):
    server = serve("--port", "0")
    top = terminal(server, "--interval", "0.1", "--timeout", "0.5")
    top.wait_for(has("replay"))
    server.kill()
    screen = top.wait_for(lambda s: has("localhost")(s[1:2]))
    assert has("replay")(screen)  # what was known last
    serve("--port", str(server.port))
    top.wait_for(lambda s: has("1 table,")(s[1:2]))
    top.press("q")
    assert top.wait() == 0


def test_without_a_terminal_top_prints_each_snapshot(server):
    text = answer(server, "top", "--count", 2, "--interval", "0.1")
    assert text.count("reprise top") == 2 and "\x1b" not in text
    lines = answer(server, "top", "--count", 2, "--interval", "0.1", "--json").splitlines()
    for line in map(json.loads, lines):
        assert [t["table"] for t in line["tables"]] == ["replay", "queue"]
        assert line["tables"][0]["inserts_per_s"] == 0
    assert len(lines) == 2


def test_a_single_snapshot_has_rates(server):
    top = subprocess.Popen([REPRISE, "top", "--count", "1", "--interval", "2", "--json"],
                           env=clean_environment(REPRISE_SERVER=f"localhost:{server.port}"),
                           stdout=subprocess.PIPE, text=True)
    inserted = 0
    while top.poll() is None:
        inserted += ask(server, "insert", "replay", "-", input='{"data": [1]}\n').returncode == 0
    lines = top.communicate()[0].splitlines()
    assert top.returncode == 0 and len(lines) == 1 and inserted >= 1
    rates = {t["table"]: t["inserts_per_s"] for t in json.loads(lines[0])["tables"]}
    assert rates["replay"] > 0 and rates["queue"] == 0


def test_top_without_a_server_fails(server):
    done = ask(server, "top", "--server", "localhost:1", "--timeout", "2")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "localhost:1" in done.stderr


def test_intervals_have_a_bound(server):
    done = ask(server, "top", "--interval", "0")
    assert done.returncode == 2 and "--interval" in done.stderr
