#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the project in every configuration and runs every check; `make test` calls it.

    tests/run.py                      everything, in a few minutes
    tests/run.py asan lint            these parts only
    tests/run.py --long               every test in every build, at full length; `make test-long`
    tests/run.py --long --suite property --scale 50 release asan
                                      long random runs

Parts: release, asan, tsan and cross build the library and run its tests. replay runs the fuzz
corpora. oracle compares our messages with protobuf's own. meta, format and lint check the source.
examples uses an installed copy as a user would,
and docs executes the code blocks of the documents with it. cli runs the command. conformance runs independent clients on a server process, and attack hostile ones (on the server of asan, if that part
runs as well). python tests the package of the release build, the package with the
sanitizers, and counts references. page drives the server's page in Chromium. grafana runs Prometheus on
the dashboard and the alert rules of docs/grafana. packages checks the files of the image and the hosted CI, and
installs the Debian packages into a clean Debian. planted builds a copy of the sources with bugs to be chosen, and
shows that the tests of durability find them.

Without --long, each test runs where it finds most, once: unit tests with the sanitizers, those of
threads under tsan, random runs and crashes in the release build, and what depends on the machine
under the emulator. --long runs all of them everywhere, and format, lint, planted, the site of the documents, the
gallery and the notebooks, packages, a wheel in an environment of its own, the package beside TensorFlow, dm-reverb's
client on our server, and our tests of the package
on dm-reverb itself.

One line per program, the output of what failed, and at the end `N passed, N failed`.
"""

import argparse
import concurrent.futures
import pathlib
import resource
import shutil
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "durability"))
from runner import checks  # noqa: E402: it imports what is beside the tests of durability
from runner.builds import BUILDS, JOBS, build, chosen, configure, test_jobs  # noqa: E402
from runner.crew import Crew, Tally  # noqa: E402
from runner.distribution import distribution_jobs  # noqa: E402
from runner.documents import docs_jobs  # noqa: E402
from runner.gallery import gallery_jobs  # noqa: E402
from runner.package import python_jobs, sanitizer_jobs  # noqa: E402
from runner.peers import Peers  # noqa: E402
from runner.process import BUILD, MESON, STAGE, run, spent  # noqa: E402

CHECKS = ["replay", "oracle", "meta", "format", "lint", "examples", "docs", "cli", "conformance",
          "attack", "python", "page", "grafana", "site", "packages", "planted"]
NEEDS = {"replay": {"asan"}, "oracle": {"asan"}, "lint": {"asan"}, "meta": {"release"},
         "examples": {"release"}, "docs": {"release"}, "cli": {"release"},
         "conformance": {"release"}, "attack": {"release"}, "python": {"release"},
         "sanitizers": {"release", "asan"}, "page": {"release"}, "grafana": {"release"}, "packages": {"release"},
         "planted": {"plants"}}
USES = {"attack": {"asan"}}  # builds that a part waits for if they are made at all
LATER = {"sanitizers": "python"}  # what belongs to a part and needs one more build
LONG = {"plants", "planted", "format", "lint", "site", "packages"}  # parts of --long, unless they are named


def check_jobs(part, args, peers, built):
    if part == "replay":
        return checks.replay_jobs()
    if part == "lint":
        return checks.lint_jobs()
    if part == "examples":
        return checks.example_jobs() + (gallery_jobs() if args.long else [])
    if part == "conformance":
        return peers.jobs(args.long)
    if part == "attack":
        return checks.attack_jobs(built, args.long)
    if part == "python":
        return python_jobs(peers, args.long)
    if part == "packages":
        return distribution_jobs()
    if part == "sanitizers":
        return sanitizer_jobs(args.long)
    if part == "docs":
        return docs_jobs(args.long)
    if part == "page":
        return [(0, part, part, peers.test_page)]
    job = {"oracle": checks.oracle_job, "meta": checks.meta_job, "format": checks.format_job,
           "cli": lambda: checks.cli_job(args.long), "grafana": checks.grafana_job, "site": checks.site_job,
           "planted": checks.planted_job}[part]
    return [(0 if part == "planted" else 2, part, part, job)]


def main():
    parts = list(BUILDS) + CHECKS
    parser = argparse.ArgumentParser(description="Builds and tests; see the top of the file.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(parts))
    parser.add_argument("--long", action="store_true", help="every test in every build")
    parser.add_argument("--suite", help="only tests of this suite")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies RP_TEST_SCALE")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for each program")
    args = parser.parse_args()
    for part in args.parts:
        if part not in parts:
            parser.error(f"no such part: {part}")
    wanted = args.parts or [p for p in parts if args.long or p not in LONG]

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash is reported, not kept
    tally = Tally()
    peers = Peers(args.long, wanted) if {"conformance", "page"} & set(wanted) else None
    checks_wanted = [p for p in [*CHECKS, *LATER] if LATER.get(p, p) in wanted]
    planned = [b for b in BUILDS if b in wanted or any(b in NEEDS.get(p, ()) for p in checks_wanted)]
    # Four more than there are processors: many tests wait for something most of the time.
    crew = Crew(tally, JOBS + 4)
    built, done, begun = set(), set(), set()
    configs = {name: chosen(name, args.long) for name in planned}
    # Meson needs one processor: the others configure the builds that follow.
    pool = concurrent.futures.ThreadPoolExecutor(JOBS)
    configured = {name: pool.submit(configure, name, configs[name]) for name in planned}
    for name in [None, *planned]:
        if name is not None:
            start, spent.cpu = time.monotonic(), 0
            config = configs[name]
            result = configured[name].result()
            if result.failed == 0:
                result = build(name, config)
            if result.failed == 0 and name == "release":
                shutil.rmtree(STAGE, ignore_errors=True)
                status, output = run([MESON, "install", "-C", BUILD / name, "--no-rebuild",
                                      "--quiet"])
                result.add(status == 0, output)
            tally.report(name, "build", result, time.monotonic() - start, spent.cpu)
            done.add(name)
            if result.failed == 0:
                built.add(name)
                if name in wanted:
                    crew.add(test_jobs(name, config, args))
        for part in checks_wanted:
            needs = NEEDS.get(part, set()) | (USES.get(part, set()) & set(planned))
            if part not in begun and needs <= done:
                begun.add(part)
                if NEEDS.get(part, set()) <= built:
                    crew.add(check_jobs(part, args, peers, built))
    crew.finish()
    return tally.close()


if __name__ == "__main__":
    sys.exit(main())
