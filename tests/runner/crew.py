# SPDX-License-Identifier: Apache-2.0
"""Runs jobs on several threads and reports what each came to. A job is a tuple: its order, its part,
its name, and the function that does it."""

import threading
import time

from runner.builds import WAITS
from runner.checks import ALONE
from runner.process import Result, spent


class Tally:
    """Prints one line per result and keeps the sums."""

    def __init__(self):
        self.lock = threading.Lock()
        self.sums = {}

    def report(self, part, name, result, seconds, cpu):
        with self.lock:
            sums = self.sums.setdefault(part, [0, 0, 0])
            for i, n in enumerate((result.passed, result.failed, result.skipped)):
                sums[i] += n
            cases = result.passed + result.failed
            state = "FAIL" if result.failed else "ok"
            detail = f"{result.failed} of {cases} failed" if result.failed else f"{cases}"
            if result.skipped and not cases:
                state, detail = "SKIP", f"{result.skipped} skipped"
            print(f"{state:4} {part:11} {name:30} {detail:>16} {seconds:7.1f} s {cpu:7.1f} s of "
                  "processors", flush=True)
            if result.failed or state == "SKIP":
                for line in result.text.rstrip().splitlines()[-200:]:
                    print(f"     | {line}", flush=True)

    def close(self):
        print()
        for part, (passed, failed, skipped) in self.sums.items():
            print(f"{part:11} {passed:6} ok {failed:6} not ok {skipped:6} skipped")
        passed = sum(s[0] for s in self.sums.values())
        failed = sum(s[1] for s in self.sums.values())
        print(f"{passed} passed, {failed} failed", flush=True)
        return 1 if failed or not passed else 0


class Crew:
    """Threads that run jobs, the lowest order first, while others are still being made."""

    def __init__(self, tally, threads):
        self.tally, self.changed = tally, threading.Condition()
        self.jobs, self.is_closed = [], False
        self.threads = [threading.Thread(target=self.work, args=(i == 0,)) for i in range(threads)]
        for thread in self.threads:
            thread.start()

    def add(self, jobs):
        with self.changed:
            self.jobs = sorted(self.jobs + jobs, key=lambda j: j[0])
            self.changed.notify_all()

    def take(self, waits):
        """The next job, or None at the end. One thread runs the jobs that wait, and no others."""
        with self.changed:
            while True:
                mine = [j for j in self.jobs if j[0] != ALONE and (j[0] == WAITS) == waits]
                if mine or self.is_closed:
                    break
                self.changed.wait()
            if not mine:
                return None
            self.jobs.remove(mine[0])
            return mine[0]

    def work(self, waits):
        while (entry := self.take(waits)) is not None:
            self.do(entry)

    def do(self, entry):
        _, part, name, job = entry
        start, spent.cpu = time.monotonic(), 0
        try:
            result = job()
        except Exception as error:  # a broken check is a failed one
            result = Result(0, 1, f"{type(error).__name__}: {error}")
        self.tally.report(part, name, result, time.monotonic() - start, spent.cpu)

    def finish(self):
        with self.changed:
            self.is_closed = True
            self.changed.notify_all()
        for thread in self.threads:
            thread.join()
        for entry in self.jobs:
            self.do(entry)
