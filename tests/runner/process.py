# SPDX-License-Identifier: Apache-2.0
"""Runs programs, and counts the cases that they report."""

import os
import pathlib
import platform
import re
import signal
import subprocess
import sys
import tempfile
import threading
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Builds of `make test` have only the tests that it runs. Those of --long, or by hand, have all tests.
BUILD = ROOT / "build" / ("test" if "--long" in sys.argv else "quick")
STAGE = ROOT / "build" / "stage"
MESON = "/usr/bin/meson" if os.path.exists("/usr/bin/meson") else "meson"


class Result:
    """What one program or check came to: cases passed and failed, and the text if any failed."""

    def __init__(self, passed=0, failed=0, text="", skipped=0):
        self.passed, self.failed, self.text, self.skipped = passed, failed, text, skipped

    def add(self, ok, text=""):
        if ok:
            self.passed += 1
        else:
            self.failed += 1
            self.text += text.rstrip() + "\n"


spent = threading.local()  # seconds of processors, by the programs that a thread has run


def run(command, timeout=600, env=None, cwd=ROOT):
    """Runs a command; returns its exit status and its output. Past the timeout the whole process
    group is killed, and the status is None."""
    process = subprocess.Popen(
        [str(c) for c in command], cwd=cwd, env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True)
    late = threading.Event()

    def end():
        late.set()
        os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(timeout, end)
    timer.start()
    with process.stdout:
        output = process.stdout.read()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # its number is its own until
    timer.cancel()                                             # it is waited for below
    timer.join()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    spent.cpu = getattr(spent, "cpu", 0) + usage.ru_utime + usage.ru_stime
    return None if late.is_set() else process.returncode, output.decode(errors="replace")


def describe(status, timeout=600):
    if status is None:
        return f"timed out after {timeout} s"
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"


def fixed_addresses():
    """The words that turn off address randomisation, where the system lets us: newer kernels
    scatter mappings so widely that the sanitizers of clang 14 find no room for their own."""
    command = ["setarch", platform.machine(), "-R"]
    try:
        return command if run(command + ["true"])[0] == 0 else []
    except FileNotFoundError:
        return []


def parse_tap(status, output, timeout):
    """Counts the cases of a TAP stream. A stream that ends early, a crash and a bad exit status
    count as one failed case more."""
    result = Result(text=output)
    plan = None
    for line in output.splitlines():
        match = re.match(r"1\.\.(\d+)", line)
        if match:
            plan = int(match.group(1))
        match = re.match(r"(ok|not ok)\b(.*)", line)
        if match and re.search(r"# skip", match.group(2), re.IGNORECASE):
            result.skipped += 1
        elif match and match.group(1) == "ok":
            result.passed += 1
        elif match:
            result.failed += 1
    seen = result.passed + result.failed + result.skipped
    if plan != seen or (status != 0 and result.failed == 0):
        result.failed += 1
        result.text += f"\n{describe(status, timeout)}; {seen} of {plan} cases reported"
    return result


def pytest_job(python, paths, env, timeout=600):
    """Runs the tests of a folder, or of a list of files, and counts them."""
    python = python if isinstance(python, list) else [python]
    paths = paths if isinstance(paths, list) else [paths]
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        status, output = run([*python, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                              "--tb=short", f"--junitxml={report.name}", *paths], timeout,
                             {"PYTHONDONTWRITEBYTECODE": "1", **env})
        try:
            suite = xml.etree.ElementTree.parse(report.name).getroot().find("testsuite")
            counts = {k: int(suite.get(k)) for k in ("tests", "failures", "errors", "skipped")}
        except xml.etree.ElementTree.ParseError:
            return Result(0, 1, f"{output}\n{describe(status, timeout)}")
    failed = counts["failures"] + counts["errors"]
    passed = counts["tests"] - failed - counts["skipped"]
    if status != 0 and failed == 0:  # no test at all, or pytest itself broke
        failed = 1
    return Result(passed, failed, output, counts["skipped"])
