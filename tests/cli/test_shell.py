# SPDX-License-Identifier: Apache-2.0
"""`reprise shell`, and reprise without arguments, in a terminal and from a pipe."""

import fcntl
import hashlib
import os
import pty
import re
import select
import socket
import struct
import subprocess
import termios
import time

import pytest
from conftest import REPRISE, SECONDS, answer, clean_environment, reprise


@pytest.fixture
def server(serve):
    return serve("--port", "0", "--table", "replay:uniform:100", "--table", "queue:queue:4")


class Shell:
    """A shell in a pseudo-terminal."""

    def __init__(self, server, tmp_path, *arguments):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.slave, self.before = slave, termios.tcgetattr(slave)
        self.prompt = f"localhost:{server.port}> "
        self.process = subprocess.Popen(
            [REPRISE, *arguments], stdin=slave, stdout=slave, stderr=slave,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env=clean_environment(REPRISE_SERVER=f"localhost:{server.port}", TERM="xterm",
                                  REPRISE_HISTORY=str(tmp_path / "history")))
        self.output = ""

    def read_until(self, text):
        """Reads until the output has the text. Returns the output before it."""
        deadline = time.monotonic() + SECONDS
        while text not in self.output:
            assert time.monotonic() < deadline, repr(self.output)
            if select.select([self.master], [], [], 0.05)[0]:
                self.output += os.read(self.master, 65536).decode()
        before, _, self.output = self.output.partition(text)
        return before

    def await_prompt(self):
        """Returns what a command has printed."""
        return self.read_until("\r" + self.prompt + "\x1b[K")

    def type(self, keys):
        os.write(self.master, keys.encode())

    def run(self, line):
        """Runs a line. Returns its output."""
        self.type(line + "\r")
        self.read_until("\r\n")
        return self.await_prompt().replace("\r\n", "\n")

    def wait(self):
        return self.process.wait(SECONDS)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.slave)
        os.close(self.master)


@pytest.fixture
def shell(server, tmp_path):
    opened = []

    def start(*arguments):
        opened.append(Shell(server, tmp_path, *arguments))
        opened[-1].read_until("has 2 tables; help lists commands, exit leaves\r\n")
        opened[-1].await_prompt()
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_reprise_alone_on_a_terminal_is_a_shell(server, shell):
    sh = shell()
    assert sh.run("tables list") == "replay\nqueue\n"
    assert sh.run("reprise info replay --json").startswith('[{"table":"replay"')
    assert "did you mean 'tables'?" in sh.run("tabels list")
    assert "need another shell" in sh.run("info | grep replay")
    assert "connect ADDR" in sh.run("help")
    sh.type("exit\r")
    assert sh.wait() == 0
    assert termios.tcgetattr(sh.slave) == sh.before


def test_tab_completes_commands_and_tables_of_the_server(server, shell):
    sh = shell("shell")
    sh.type("tab\tdr\t")
    sh.read_until("tables drop ")
    sh.type("qu\t")
    sh.read_until("tables drop queue ")
    sh.type("\x15")  # Ctrl-U
    answer(server, "tables", "create", "replay_eval:fifo:3")
    # Names are asked for again after a command, and after two seconds.
    assert sh.run("version").startswith("reprise ")
    sh.type("info rep\t\t")
    assert "replay       replay_eval" in sh.read_until("\r\n\r" + sh.prompt + "info replay")
    sh.type("\x03")
    sh.await_prompt()


def test_lines_are_remembered(shell):
    first = shell()
    first.run("tables list")
    first.run("version")
    first.type("\x04")  # Ctrl-D
    assert first.wait() == 0
    second = shell()
    second.type("\x1b[A\x1b[A")
    second.read_until(second.prompt + "tables list")
    second.type("\r")
    assert "replay" in second.await_prompt()


def test_ctrl_c_ends_the_command_and_not_the_shell(server, shell):
    sh = shell()
    sh.type("sample queue --timeout 0\r")
    deadline = time.monotonic() + SECONDS
    while '"waiting_samples":1' not in answer(server, "info", "queue", "--json"):
        assert time.monotonic() < deadline
    sh.type("\x03")
    sh.await_prompt()
    sh.type("half a line\x03")
    sh.read_until("^C\r\n")
    assert sh.run("tables list") == "replay\nqueue\n"


def test_connect_uses_another_server(serve, shell):
    other = serve("--port", "0", "--table", "elsewhere:fifo:1")
    sh = shell()
    sh.type(f"connect localhost:{other.port}\r")
    sh.prompt = f"localhost:{other.port}> "
    assert "has 1 table;" in sh.await_prompt()
    assert sh.run("tables list") == "elsewhere\n"
    assert sh.run("connect nonsense").startswith("reprise shell: ")


def test_ctrl_c_ends_the_wait_for_a_server(shell):
    sh = shell()
    with socket.socket() as silent:  # accepts connections and does not answer
        silent.bind(("localhost", 0))
        silent.listen()
        before = sh.prompt
        sh.prompt = f"localhost:{silent.getsockname()[1]}> "
        sh.type(f"connect {sh.prompt[:-2]}\r")
        connection = silent.accept()[0]
        sh.type("\x03")
        assert "interrupted before an answer" in sh.await_prompt()
        connection.close()
        sh.type(f"connect {before[:-2]}\r")
        sh.prompt = before
        sh.await_prompt()
        assert sh.run("tables list") == "replay\nqueue\n"


def test_lines_of_a_pipe_are_run(server):
    script = f"# a comment\n\ntables list\n  info replay --json\nconnect localhost:{server.port}\n"
    text = answer(server, "shell", input=script)
    assert text.startswith("replay\nqueue\n[{")
    done = reprise("shell", "--server", f"localhost:{server.port}", "--json",
                   input="tables list\ninsert replay -\nsample nothing")
    assert done.returncode == 1 and done.stdout.startswith('["replay","queue"]\n')
    assert "no table 'nothing'" in done.stderr
    assert '"inserted":0' in done.stdout  # the rest of the script is not the items
    done = reprise("shell", "--server", f"localhost:{server.port}", input="info 'x\n")
    assert done.returncode == 2 and "a quote is not closed" in done.stderr
    done = reprise("shell", "--server", f"localhost:{server.port}", input="shell\n")
    assert done.returncode == 2 and "a shell is running already" in done.stderr


def test_a_signal_that_ends_the_shell_ends_its_command(server):
    sh = subprocess.Popen([REPRISE, "shell", "--server", f"localhost:{server.port}"],
                          stdin=subprocess.PIPE, env=clean_environment())
    sh.stdin.write(b"sample queue --timeout 0\n")
    sh.stdin.flush()
    deadline = time.monotonic() + SECONDS
    while '"waiting_samples":1' not in answer(server, "info", "queue", "--json"):
        assert time.monotonic() < deadline
    sh.terminate()
    assert sh.wait(SECONDS) == 128 + 15
    while '"waiting_samples":1' in answer(server, "info", "queue", "--json"):
        assert time.monotonic() < deadline
    sh.stdin.close()


def test_a_line_with_a_nul_byte_is_not_run(server):
    done = reprise("shell", "--server", f"localhost:{server.port}",
                   input="tables drop rep\0lay\n\0\ntables drop replay\0x")
    assert done.returncode == 2
    assert done.stderr.count("NUL byte") == 3 == done.stderr.count("\n"), done.stderr
    assert answer(server, "tables", "list") == "replay\nqueue\n"


def test_options_of_the_shell_are_no_arguments_of_a_command(server):
    arguments = ["shell", "--server", f"localhost:{server.port}", "--json", "--timeout", "30"]
    done = reprise(*arguments, input="info -- replay\n")
    assert done.returncode == 0 and done.stdout.startswith('[{"table":"replay"'), done.stderr
    done = reprise(*arguments, input="info --timeout\n")
    assert done.returncode == 2 and "--json=true" not in done.stderr, done.stderr


def test_the_token_of_the_shell_is_that_of_its_commands(serve, tmp_path):
    digest = hashlib.sha256(b"s3cret-s3cret-s3cret").hexdigest()
    (tmp_path / "tokens").write_text(f"admin me sha256:{digest}\n")
    (tmp_path / "tokens").chmod(0o600)
    (tmp_path / "token").write_text("s3cret-s3cret-s3cret\n")
    server = serve("--port", "0", "--tokens", str(tmp_path / "tokens"))
    done = reprise("shell", "--server", f"localhost:{server.port}", "--token-file",
                   str(tmp_path / "token"), input="tables list\n")
    assert (done.returncode, done.stdout) == (0, "replay\n"), done.stderr
    assert not re.search("s3cret", done.stdout + done.stderr)
