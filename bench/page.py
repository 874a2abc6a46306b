# SPDX-License-Identifier: Apache-2.0
"""Measures the page: when it paints, how many bytes it has, and what open pages cost the server.

The first paint is the median of new profiles of Chromium without a cache, on loopback. The share of a
processor is that of the server process while 0, 1 and 100 pages are open on a server with 8 tables
and no other client. A page is a connection that asks for /v1/info?after=N again and again, as the
JavaScript does. Each ratio is the bound over the figure: 1 and more is good.

    make bench BENCH=page
    python3 bench/page.py --quick
"""

import argparse
import json
import os
import pathlib
import re
import resource
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "page"))
from browser import Browser, find  # noqa: E402: the driver of the tests

COMMAND = pathlib.Path(os.environ.get("RP_BUILD", ROOT / "build" / "release")) / "src" / "cli" / "reprise"
BOUNDS = {"paint": (300, "ms"), "bytes": (150, "kB"), "one": (1, "% of a core"),
          "hundred": (10, "% of a core")}


class Server:
    def __init__(self, tables):
        words = [COMMAND, "serve", "--port", "0"]
        for i in range(tables):
            words += ["--table", f"table{i}:prioritized:1000,samples_per_insert=4,min_size=10"]
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([str(w) for w in words], stdout=subprocess.DEVNULL, stderr=self.log)
        until = time.monotonic() + 30
        while time.monotonic() < until:
            self.log.seek(0)
            found = re.search(rb"event=serving.*?:(\d+)", self.log.read())
            if found:
                self.port = int(found.group(1))
                return
            time.sleep(0.01)
        sys.exit("the server does not start")

    def cpu(self):
        """Seconds of processors that the server has used."""
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def close(self):
        self.process.kill()
        self.process.wait()


class OpenPage:
    """What a page does: asks for the next state, reads it, asks again."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.data, self.pages, self.port = b"", 0, port
        self.ask("/v1/info")

    def ask(self, path):
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost:{self.port}\r\n\r\n".encode())

    def read(self):
        part = self.socket.recv(1 << 18)
        if not part:
            sys.exit("the server closed the connection of a page")
        self.data += part
        head, end, body = self.data.partition(b"\r\n\r\n")
        size = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        if not end or len(body) < int(size.group(1)):
            return
        self.data = b""
        self.pages += 1
        self.ask(f"/v1/info?after={json.loads(body)['page']}")


def share_of(server, count, seconds):
    """The share of a core, in percent, with `count` open pages; and the pages a second of each."""
    chosen = selectors.DefaultSelector()
    pages = [OpenPage(server.port) for _ in range(count)]
    for page in pages:
        chosen.register(page.socket, selectors.EVENT_READ, page)

    def serve_for(duration):
        until = time.monotonic() + duration
        while time.monotonic() < until:
            if not pages:
                time.sleep(duration)
            for key, _ in chosen.select(max(0, until - time.monotonic())) if pages else []:
                key.data.read()

    serve_for(2)  # connections are open, and the first pages are sent
    before, seen, start = server.cpu(), sum(p.pages for p in pages), time.monotonic()
    serve_for(seconds)
    took = time.monotonic() - start
    share = 100 * (server.cpu() - before) / took
    rate = (sum(p.pages for p in pages) - seen) / took / max(1, count)
    for page in pages:
        page.socket.close()
    return share, rate


FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
BYTES = """performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))
    .filter((r) => !r.name.includes('/v1/')).reduce((sum, r) => sum + r.encodedBodySize, 0)"""


def paint(server, times):
    """Medians of the first paint, of that of a page with one word (/healthz), and of the bytes. The first
    load is left out, since it starts processes."""
    paints, words, sizes = [], [], []
    with Browser() as browser:
        for _ in range(times + 1):
            page = browser.open(f"http://localhost:{server.port}/healthz", fresh=True)
            words.append(page.wait(FIRST_PAINT, "a paint"))
            page = browser.open(f"http://localhost:{server.port}/", fresh=True)
            page.wait("document.querySelector('.card')", "cards")
            paints.append(page.wait(FIRST_PAINT, "a paint"))
            sizes.append(page.evaluate(BYTES))
            page.go("about:blank")
    return statistics.median(paints[1:]), statistics.median(words[1:]), statistics.median(sizes)


def say(name, figure, more=""):
    bound, unit = BOUNDS[name]
    print(f"ratio page.{name} {bound / figure:.2f} (ours {figure:.2f} {unit} vs bound {bound}){more}")


def main():
    parser = argparse.ArgumentParser(description="Measures the page; see the top of the file.")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    seconds = 4 if args.quick else 20
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    server = Server(8)
    try:
        if find():
            first, word, size = paint(server, 3 if args.quick else 9)
            say("paint", first, f"; a page with one word: {word:.0f} ms")
            say("bytes", size / 1000)
        else:
            print("skipped the first paint: there is no Chromium (tools/need.sh page)")
        idle, _ = share_of(server, 0, seconds)
        print(f"no page open: {idle:.2f} % of a core")
        for name, count in (("one", 1), ("hundred", 100)):
            share, rate = share_of(server, count, seconds)
            say(name, share, f"; {rate:.2f} states a second each")
    finally:
        server.close()


if __name__ == "__main__":
    main()
