# SPDX-License-Identifier: Apache-2.0
"""Servers, load and a browser for the tests of the page.

    RP_BUILD=build/test/release pytest tests/page

shots.py takes pictures of each view.
"""

import hashlib
import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import pytest

from browser import Browser, SECONDS, find

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("RP_BUILD", ROOT / "build" / "test" / "release"))
REPRISE = BUILD / "src" / "cli" / "reprise"
AXE = pathlib.Path(os.environ.get("RP_AXE", ROOT / "build" / "peers" / "axe" / "node_modules" / "axe-core" / "axe.min.js"))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A server process on a port that stays the same when it is started again."""

    def __init__(self, *arguments, tables=(), token=None, scheme="http", context=None):
        self.port = free_port()
        self.token, self.scheme, self.context = token, scheme, context
        self.words = [REPRISE, "serve", "--port", self.port, "--drain-seconds", 1, *arguments]
        for table in tables:
            self.words += ["--table", table]
        self.process = None
        self.started = []
        self.start()

    def start(self):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(list(map(str, self.words)), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=self.log)
        until = time.monotonic() + SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1):
                    pass
                if b"event=serving" in self.said():
                    return
            except OSError:
                pass
            time.sleep(0.01)
        raise AssertionError(f"it does not serve: {self.said().decode()}")

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def address(self, path="/"):
        return f"{self.scheme}://localhost:{self.port}{path}"

    def ask(self, path, body=None, confirm=None):
        """The JSON of a page, or the response to a POST request."""
        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        if confirm is not None:
            headers |= {"x-reprise-confirm": urllib.request.quote(confirm, safe=""),
                        "content-type": "application/json"}
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.address(path), data, headers)
        with urllib.request.urlopen(request, timeout=SECONDS, context=self.context) as response:
            return json.loads(response.read())

    def info(self):
        return self.ask("/v1/info")

    def wait_for(self, holds):
        """Waits until `holds` is true of the info, and returns it."""
        until = time.monotonic() + SECONDS
        while not holds(info := self.info()):
            assert time.monotonic() < until, info
            time.sleep(0.02)
        return info

    def table(self, name):
        [found] = [t for t in self.info()["tables"] if t["name"] == name]
        return found

    def command(self, *words, **options):
        """Starts a command against the server; it is ended with the server at the latest."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("REPRISE_")}
        env["REPRISE_SERVER"] = f"localhost:{self.port}"
        process = subprocess.Popen([str(REPRISE), *map(str, words)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env=env, **options)
        self.started.append(process)
        return process

    def insert(self, table, items, timeout=120):
        """Starts to insert items, given as data or as pairs of priority and data."""
        lines = "".join(json.dumps({"priority": 1, "data": item}) + "\n" for item in items)
        process = self.command("insert", table, "-", "--timeout", timeout, stdin=subprocess.PIPE)
        process.stdin.write(lines.encode())
        process.stdin.close()
        return process

    def sample(self, table, count):
        return self.command("sample", table, "--count", count, "--json", stdin=subprocess.DEVNULL)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def close(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
        self.kill()


@pytest.fixture(scope="session")
def browser():
    assert find(), "there is no Chromium: tools/need.sh page installs it"
    with Browser() as running:
        yield running


@pytest.fixture
def serve():
    """Starts servers that end with the test."""
    started = []

    def start(*arguments, **options):
        started.append(Server(*arguments, **options))
        return started[-1]

    yield start
    for server in started:
        server.close()


@pytest.fixture
def show(browser):
    """Opens pages that are closed with the test. No page may have asked another host for anything,
    and no page may have thrown an exception or broken the policy of its content."""
    opened = []

    def open_page(server, path="/", lost=False, **options):
        page = browser.open(server.address(path), **options)
        opened.append((page, server, lost))
        return page

    yield open_page
    for page, server, lost in opened:
        others = [a for a in page.requests() if not a.startswith((server.address(), "data:"))]
        wrong = [] if lost else page.troubles()
        page.close()
        assert not others, others
        assert not wrong, wrong


TOKENS = {role: f"{role}-token-of-the-page" for role in ("read", "write", "admin")}


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens"
    path.write_text("".join(f"{role} {role}-name sha256:{hashlib.sha256(text.encode()).hexdigest()}\n"
                            for role, text in TOKENS.items()))
    path.chmod(0o600)
    return path


def number(text):
    """The number that a text of the page begins with."""
    return float(re.match(r"[\d,.]+", text).group().replace(",", ""))
