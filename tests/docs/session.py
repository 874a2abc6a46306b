# SPDX-License-Identifier: Apache-2.0
"""Executes the code blocks of one page as they are typed, in order.

    tests/docs/session.py [--long] PAGE       with the interpreter that has the package

The blocks run in a namespace of their own, as root of it: no port is taken there, /var/lib and /etc/reprise
are empty, and nothing outside is reached. The working directory looks like a checkout. `reprise`, the headers and
the library are those of build/stage, or of the prefix RP_STAGE. What a Python block defines, and the
variables of a shell block, are there for the later blocks of the page.
"""

import argparse
import ctypes
import fcntl
import linecache
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from runner.blocks import ROOT, blocks  # noqa: E402

STAGE = pathlib.Path(os.environ.get("RP_STAGE", ROOT / "build" / "stage"))
SHOWN = ("docs", "examples", "include", "proto", "README.md", "tools", "bench", "pyproject.toml")
LIMIT_S = 300  # of one block; a busy machine is no failure
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def prepare():
    """Takes the loopback device up, and puts empty folders where a server has its files."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
        fcntl.ioctl(device, 0x8914, struct.pack("16sh14x", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: up, running
    subprocess.run(["mount", "-t", "tmpfs", "none", "/var/lib"], check=True)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)  # what a block leaves running becomes a child of this process


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def end_children():
    """Ends what blocks have left running."""
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid():
                os.kill(int(path.parent.name), signal.SIGKILL)
        except (OSError, ValueError):
            continue  # it has ended


class Failed(Exception):
    """A block did not do what it says."""


class Session:
    def __init__(self, folder):
        self.folder = folder
        self.variables = folder / ".variables"
        self.module = types.ModuleType("__main__")
        self.server = None
        self.said = []
        here = pathlib.Path(sys.executable).parent
        self.env = {**os.environ, "PATH": f"{STAGE / 'bin'}:{here}:{os.environ['PATH']}", "HOME": str(folder),
                    "LD_LIBRARY_PATH": str(STAGE / "lib"), "PKG_CONFIG_PATH": str(STAGE / "lib" / "pkgconfig"),
                    "PYTHONUNBUFFERED": "1"}
        for name in ("REPRISE_SERVER", "REPRISE_TOKEN"):
            self.env.pop(name, None)
        os.environ.update(PATH=self.env["PATH"], HOME=self.env["HOME"])
        for name in SHOWN:
            (folder / name).symlink_to(ROOT / name)
        os.chdir(folder)

    def run(self, block):
        if block.language == "c":
            (self.folder / "program.c").write_text(block.text)
            return
        if block.word == "client" and self.server is None:
            self.serve("reprise serve --data data\n")
        if block.language == "python":
            self.execute(block)
        elif block.word == "server":
            self.stop()
            self.serve(block.text)
        else:
            self.shell(block)

    def execute(self, block):
        sys.modules["__main__"] = self.module
        linecache.checkcache(str(block.page))
        try:
            code = compile("\n" * (block.line - 1) + block.text, str(block.page), "exec")
            exec(code, self.module.__dict__)
        except BaseException as error:  # also SystemExit and KeyboardInterrupt, which a block must not raise
            traceback.print_exc()
            raise Failed(f"raised {type(error).__name__}") from None

    def shell(self, block):
        script = (f"set -a -e -o pipefail\n[ -e {self.variables} ] && . {self.variables}\n"
                  f"{block.text}\nexport -p > {self.variables}\n")
        done = subprocess.run(["bash", "-c", script], env=self.env, stdin=subprocess.DEVNULL, check=False,
                              timeout=LIMIT_S)
        if done.returncode != 0:
            raise Failed(f"ended with {done.returncode}")

    def serve(self, text):
        """Starts what the block says, and waits until it serves."""
        self.said = []
        self.server = subprocess.Popen(["bash", "-c", text], env=self.env, stdin=subprocess.DEVNULL, text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                                       preexec_fn=end_with_parent)
        serving = threading.Event()

        def read():
            for line in self.server.stdout:
                self.said.append(line)
                if re.search(r"event=serving |^serving at ", line):
                    serving.set()
            serving.set()

        threading.Thread(target=read, daemon=True).start()
        if not serving.wait(LIMIT_S) or self.server.poll() is not None:
            raise Failed("no server: " + "".join(self.said))

    def stop(self):
        """Stops the server as Ctrl-C does, and checks that it ended well."""
        if self.server is None:
            return
        server, self.server = self.server, None
        os.killpg(server.pid, signal.SIGINT)
        time.sleep(0.05)
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGTERM)  # bash waits for it
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            raise Failed("the server did not stop:\n" + "".join(self.said)) from None


def is_executed(block, is_long):
    """Whether a block runs here. Programs of C become the file that a shell block may compile."""
    words = ("", "client", "server", "slow") if is_long else ("", "client", "server")
    return (block.language in ("python", "sh") and block.word in words
            or block.language == "c" and "int main" in block.text)


def run_page(page, is_long):
    status = 0
    with tempfile.TemporaryDirectory(prefix="page", ignore_cleanup_errors=True) as folder:
        session = Session(pathlib.Path(folder))
        for block in blocks(page):
            if not is_executed(block, is_long):
                continue
            started = time.monotonic()
            try:
                session.run(block)
                print(f"ok {block.name} {time.monotonic() - started:.1f} s", flush=True)
            except (Failed, subprocess.TimeoutExpired) as failure:
                print(f"not ok {block.name}: {failure}", flush=True)
                status = 1
                break
        try:
            session.stop()
        except Failed as failure:
            print(f"not ok {page.relative_to(ROOT)}: {failure}")
            status = 1
        os.chdir("/")
    sys.stdout.flush()
    sys.stderr.flush()
    end_children()
    os._exit(status)  # threads of the page need not end


def main():
    parser = argparse.ArgumentParser(description="Executes the code blocks of a page.")
    parser.add_argument("--long", action="store_true", help="also the blocks that take long")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("page", type=pathlib.Path)
    args = parser.parse_args()
    staged = sorted((ROOT / "build" / "python" / "stage-release").rglob("_core.*.so"))
    if "PYTHONPATH" not in os.environ and staged:  # by hand
        os.environ["PYTHONPATH"] = str(staged[0].parent.parent)
        sys.path.insert(0, os.environ["PYTHONPATH"])
    if args.inside:
        prepare()
        run_page(args.page.resolve(), args.long)
    namespace = ["unshare", "-rnm"]
    tried = subprocess.run([*namespace, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        print(f"skipped: a page needs a namespace of its own, and there is none: {tried.stderr.strip()}")
        return
    os.execvp(namespace[0], [*namespace, sys.executable, __file__, "--inside", *sys.argv[1:]])


if __name__ == "__main__":
    main()
