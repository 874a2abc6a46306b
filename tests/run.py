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
examples and docs use an installed copy as a user would. cli runs the command. conformance runs
independent clients on a server process, and attack hostile ones (on the servers of asan and tsan, if
these parts run as well). python tests the package of the release build, the package with the
sanitizers, and counts references. planted builds a copy of the sources with bugs to be chosen, and
shows that the tests of durability find them.

Without --long, each test runs where it finds most, once: unit tests with the sanitizers, those of
threads under tsan, random runs and crashes in the release build, and what depends on the machine
under the emulator. --long runs all of them everywhere, and lint, planted, a wheel in an environment of
its own, the package beside TensorFlow, and our tests of the package on dm-reverb itself.

One line per program, the output of what failed, and at the end `N passed, N failed`.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import platform
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "durability"))
import plant  # noqa: E402: beside its tests

BUILD = ROOT / "build" / "test"
STAGE = ROOT / "build" / "stage"
MESON = "/usr/bin/meson" if os.path.exists("/usr/bin/meson") else "meson"
JOBS = os.cpu_count() or 2
OTHER_MACHINE = "x86_64" if platform.machine() == "aarch64" else "aarch64"

# How each configuration is built and run. RP_TEST_SCALE tells a long test how much to do: 1 is
# what a plain build manages in a minute. "short" has what differs without --long: "programs", those
# that are built and run; "without", tests that another build runs; and "scale".
# Sanitized builds have what a stack trace needs and no more: a fifth of the time to compile.
SANITIZED = ["-Dbuildtype=debugoptimized", "-Doptimization=1", "-Ddebug=false",
             "-Db_lundef=false", "-Dprograms=false", "-Dc_link_args=-fuse-ld=lld"]
# These checks of UBSan find what ASan finds as well, and take a quarter of the time to compile.
DOUBLE = "-fno-sanitize=null,object-size,pointer-overflow"
BUILDS = {
    "release": {
        "cc": "gcc",
        "options": [f"--prefix={STAGE}", "--libdir=lib", "-Dpython=auto"],
        "scale": 1.0,
        "short": {
            "programs": ["durability_damage", "durability_errors", "durability_exact",
                         "durability_full", "durability_kill", "durability_power", "fault",
                         "property", "transport", "unit_buffer", "unit_chunk", "unit_disk",
                         "unit_table", "unit_util"],
            "more": ["client_driver"],
            "scale": 0.2,
        },
    },
    "asan": {
        "cc": "clang",
        "options": SANITIZED
        + ["-Db_sanitize=address,undefined", "-Dpython=auto",
           f"-Dc_args=['-fno-sanitize-recover=all', '-gline-tables-only', '{DOUBLE}']"],
        "scale": 0.1,
        "env": {
            "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=1:detect_stack_use_after_return=1:"
            "strict_string_checks=1:allocator_may_return_null=1:"
            "handle_segv=2:handle_sigbus=2:handle_sigfpe=2:handle_sigill=2",
            "UBSAN_OPTIONS": "print_stacktrace=1",
        },
        "short": {
            "scale": 0.05,
            "without": {"durability_damage", "durability_exact", "durability_kill_checkpoint",
                        "durability_kill_interval", "durability_kill_sync", "durability_power",
                        "unit_memory_budget"},  # the release build runs them
        },
    },
    "tsan": {
        "cc": "clang",
        "options": SANITIZED + ["-Db_sanitize=thread", "-Dc_args=-gline-tables-only"],
        "scale": 0.1,
        # Programs that start no thread.
        "without": {"durability_damage", "durability_exact"},
        "env": {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"},
        "short": {
            "programs": ["property", "transport", "unit_client", "unit_disk", "unit_durable",
                         "unit_net", "unit_server", "unit_store", "unit_table", "unit_util"],
            # Errors injected at each call, one by one, memory, and what has one thread: asan and
            # the release build run them.
            "without": {"property_distribution", "property_model", "property_replay",
                        "property_restore", "property_tier", "unit_draw_room", "unit_fallback",
                        "unit_full_disk", "unit_image", "unit_memory_budget", "unit_moved",
                        "unit_restore", "unit_segments_trouble", "unit_tier_memory"},
            "scale": 0.05,
        },
    },
    "plants": {
        "cc": "gcc",
        "options": ["-Dkill_points=true", "-Dprograms=false", "-Doptimization=1",
                    f"-Dc_args=-include {plant.HEADER}"],
        "source": ROOT / "build" / "planted",
        "scale": 1.0,
        "targets": ["test_durability_damage", "test_durability_errors", "test_durability_exact",
                    "test_durability_points", "test_durability_power", "test_unit_table"],
        "tests": {"durability_points"},
    },
    "cross": {
        "cc": None,  # in the cross file
        "options": [f"--cross-file={ROOT}/tools/cross/{OTHER_MACHINE}-linux-gnu.ini",
                    "-Dprograms=false", "-Doptimization=1"],
        "scale": 0.01,
        "wrapper": [f"qemu-{OTHER_MACHINE}"],
        "skip_suites": {"slow"},
        # What depends on the other side of a connection and not on the machine, at length.
        "without": {"unit_remote_sink", "unit_remote_source", "unit_shard_sink", "fault_durable",
                    "property_tier", "unit_queue_budget",
                    # qemu asks the kernel for more descriptors than the program does.
                    "unit_fd_pass"},
        "short": {
            "programs": ["unit_buffer", "unit_chunk", "unit_disk", "unit_store", "unit_table",
                         "unit_tensor", "unit_util", "unit_wire"],
            "without": {"unit_memory_budget", "unit_segments_trouble"},
        },
    },
}
CHECKS = ["replay", "oracle", "meta", "format", "lint", "examples", "docs", "cli", "conformance",
          "attack", "python", "planted"]
NEEDS = {"replay": {"asan"}, "oracle": {"asan"}, "lint": {"asan"}, "meta": {"release"},
         "examples": {"release"}, "docs": {"release"}, "cli": {"release"},
         "conformance": {"release"}, "attack": {"release"}, "python": {"release", "asan"},
         "planted": {"plants"}}
USES = {"attack": {"asan", "tsan"}}  # builds that a part waits for if they are made at all
LONG = {"plants", "planted", "lint"}  # parts of --long, unless they are named
ALONE = 9  # order of jobs that measure times: behind all others, one by one
WAITS = -1  # of jobs that wait nearly all the time: beside the others, one by one


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


def chosen(name, is_long):
    """The settings of a configuration, with or without --long."""
    config = BUILDS[name]
    return config if is_long else {**config, **config.get("short", {})}


def needed(where, config):
    """The files to build: all, or what is installed, the command and the programs of the tests that
    run."""
    if "programs" not in config:
        return config.get("targets", [])
    names = {f"test_{p}" for p in config["programs"]} | set(config.get("more", []))
    status, output = run([MESON, "introspect", "--targets", where])
    assert status == 0, output
    return [os.path.relpath(file, where) for target in json.loads(output)
            if target["installed"] or target["name"] in names for file in target["filename"]]


def build(name, config):
    """Configures and builds one configuration with warnings as errors. A directory configured
    with other options is made anew."""
    where = BUILD / name
    source = config.get("source", ROOT)
    options = ["-Dwerror=true", "-Dtests=enabled", "-Db_colorout=never"] + config["options"]
    stamp = where / "options.json"
    # The system's own Python is the one that has NumPy: tools/need.sh installs it.
    env = {"PATH": f"/usr/bin:{os.environ['PATH']}"}
    if config["cc"]:
        env["CC"] = config["cc"]
    if source != ROOT:
        try:
            plant.make(source)
        except ValueError as wrong:
            return Result(0, 1, str(wrong))
    if not stamp.exists() or json.loads(stamp.read_text()) != options:
        shutil.rmtree(where, ignore_errors=True)
        status, output = run([MESON, "setup", where, source] + options, env=env)
        if status != 0:
            return Result(0, 1, output)
        stamp.write_text(json.dumps(options))
    status, output = run(["ninja", "-C", where, f"-j{JOBS}", "-k0", *needed(where, config)], 1800,
                         env)
    progress = r"\A.*?(?=^FAILED: )|^\[\d+/\d+\] [^\n]*\n"
    output = re.sub(progress, "", output, flags=re.DOTALL | re.MULTILINE)
    return Result(1, 0) if status == 0 else Result(0, 1, output)


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


def test_jobs(name, config, args):
    """One job for each file of tests in a build."""
    where = BUILD / name
    status, output = run([MESON, "introspect", "--tests", where])
    assert status == 0, output
    wrapper = fixed_addresses() if config.get("env") else config.get("wrapper", [])
    programs = {f"test_{p}" for p in config.get("programs", [])}
    jobs = []
    for test in json.loads(output):
        suites = {s.split(":")[-1] for s in test["suite"]}
        if suites & config.get("skip_suites", set()):
            continue
        if args.suite and args.suite not in suites:
            continue
        if test["name"] not in config.get("tests", {test["name"]}):
            continue
        if test["name"] in config.get("without", set()):
            continue
        if programs and pathlib.Path(test["cmd"][0]).name not in programs:
            continue
        env = {**test["env"], **config.get("env", {}),
               "RP_TEST_SCALE": str(config["scale"] * args.scale)}
        command = wrapper + test["cmd"]

        def job(command=command, env=env):
            status, output = run(command, args.timeout, env, where)
            return parse_tap(status, output, args.timeout)

        # Long ones first, so that the last to finish is a short one.
        order = 0 if "slow" in suites else 1 if "property" in suites else 2
        if test["name"].startswith("durability_kill"):
            order = WAITS
        jobs.append((order, name, test["name"], job))
    return jobs


def replay_jobs():
    """Each fuzz target over its corpus, in the sanitized build and without a fuzzing engine."""
    jobs = []
    for program in sorted((BUILD / "asan" / "fuzz").glob("replay_*")):
        if not program.is_file():
            continue
        target = program.name.removeprefix("replay_")

        def job(program=program, target=target):
            corpus = sorted((ROOT / "fuzz" / "corpus" / target).glob("*"))
            if not corpus:
                return Result(0, 1, f"fuzz/corpus/{target} is empty")
            status, output = run(fixed_addresses() + [program] + corpus,
                                 env=BUILDS["asan"]["env"])
            result = Result()
            result.add(status == 0, f"{output}\n{describe(status)}")
            return result

        jobs.append((3, "replay", target, job))
    return jobs


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


def oracle_job():
    return pytest_job("/usr/bin/python3", "tests/oracle",
                      {**BUILDS["asan"]["env"], "RP_BUILD": str(BUILD / "asan"),
                       "RP_WRAPPER": " ".join(fixed_addresses())})


def meta_job():
    return pytest_job("/usr/bin/python3", "tests/meta", {"RP_BUILD": str(BUILD / "release")})


def cli_job():
    return pytest_job("/usr/bin/python3", "tests/cli", {"RP_BUILD": str(BUILD / "release")})


def attack_jobs(built, is_long):
    """The attack pack, on a server with the sanitizers if there is one; under tsan the mixed load
    only, and what is timed on the plain build, with --long."""
    latency, load = "tests/attack/test_latency.py", "tests/attack/test_load.py"
    victim = "asan" if "asan" in built else "release"
    runs = [(0, victim, victim, "tests/attack"), (0, "tsan", "tsan", load)]
    if is_long:
        runs.append((ALONE, "latency", "release", latency))
    jobs = []
    for order, name, build, what in runs:
        env = {**BUILDS[build].get("env", {}), "RP_BUILD": str(BUILD / build)}
        if what == "tests/attack":
            env["PYTEST_ADDOPTS"] = f"--ignore={latency}"
        if build in built:
            jobs.append((order, "attack", name, lambda what=what, env=env: pytest_job(
                "/usr/bin/python3", what, env)))
    return jobs


def left_out(files, why):
    """Tests that cannot run here: their number at least, with two transports each."""
    tests = 2 * sum(f.read_text().count("\ndef test_") for f in files)
    return Result(0, 0, f"at least {tests} tests were left out: {why}", tests)


class Peers:
    """The environments of independent clients: made while the builds run, and then waited for.
    Those of gRPC have to be had; dm-reverb may be missing, and then its tests count as skipped."""

    def __init__(self):
        self.made = {name: threading.Thread(target=self.make, args=(name, list(names)))
                     for name, names in {"grpc": ["grpc", "node"], "reverb": ["reverb"]}.items()}
        self.said = {}
        for thread in self.made.values():
            thread.start()

    def make(self, name, environments):
        self.said[name] = run([sys.executable, ROOT / "tools" / "peers.py", *environments], 900)

    def jobs(self, is_long):
        suites = {"dmreverb": "reverb", "grpcio": "grpc"}
        if is_long:
            suites["reverb_suite"] = "reverb"
        return [(0, "conformance", suite, lambda s=suite, n=name: self.test(s, n))
                for suite, name in suites.items()]

    def test_package(self):
        """The wheel beside TensorFlow, and with the NumPy of its time."""
        self.made["reverb"].join()
        status, output = self.said["reverb"]
        wheel = wheel_made.result()
        files = [ROOT / "tests" / "python" / f"test_{name}.py"
                 for name in ("tf_datasets", "replay_sample", "specs", "package")]
        if status == 0 and (wheel is None or "-cp311-" not in wheel.name):
            status, output = 1, f"there is no wheel for TensorFlow's Python 3.11: {wheel}"
        if status != 0:
            return left_out(files, output)
        python = ROOT / "build" / "peers" / "reverb" / "bin" / "python"
        site = ROOT / "build" / "python" / "beside-tensorflow"
        shutil.rmtree(site, ignore_errors=True)
        status, output = run([python, "-m", "pip", "install", "-q", "--no-deps", "--target", site,
                              wheel])
        if status != 0:
            return Result(0, 1, output)
        return pytest_job(python, files,
                          {"PYTHONPATH": str(site), "RP_BUILD": str(BUILD / "release"),
                           "RP_SHORT": "1", "TF_CPP_MIN_LOG_LEVEL": "3"})

    def test(self, suite, name):
        self.made[name].join()
        status, output = self.said[name]
        folder = ROOT / "tests" / "conformance" / suite
        if suite == "reverb_suite":  # the tests of the package, on dm-reverb itself
            folder = ROOT / "tests" / "python" / suite
        if status != 0 and name == "reverb":
            return left_out(folder.glob("test_*.py"), output)
        if status != 0:
            return Result(0, 1, output)
        binary = BUILD / "release" / "src" / "cli" / "reprise"
        env = {"REPRISE_BIN": str(binary), "REPLAY_IMPLEMENTATION": "reverb"}
        if name == "reverb":  # see dmreverb/conftest.py
            env |= {"MALLOC_PERTURB_": "255", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
        return pytest_job(ROOT / "build" / "peers" / name / "bin" / "python", folder, env)


wheel_made = concurrent.futures.Future()  # its path; None: it could not be made


def wheel_job():
    """Builds a wheel as pip does, installs it into a new environment, and runs the tests of the
    package there."""
    started = time.monotonic()
    python = "/usr/bin/python3"
    wheel = None
    try:
        status, output = run([sys.executable, ROOT / "tools" / "wheel.py", "--quick", python], 900)
        if status == 0:
            [wheel] = (ROOT / "build" / "wheels").glob(f"*-cp{PYTHON_VERSION}-*.whl")
    finally:
        wheel_made.set_result(wheel)
    if status != 0:
        return Result(0, 1, output)
    installed = ROOT / "build" / "python" / f"installed{PYTHON_VERSION}" / "bin" / "python"
    status, output = run([installed, "-m", "pip", "install", "-q", *PYTHON_TEST_PACKAGES])
    if status != 0:
        return Result(0, 1, output)
    print(f"     python      wheel built and installed in {time.monotonic() - started:.0f} s")
    # Away from the sources, so that nothing but the installed package can be imported.
    return pytest_job(installed, "tests/python",
                      {"RP_BUILD": str(BUILD / "release"), "RP_SHORT": "1"})


PYTHON_VERSION = "{}{}".format(*sys.version_info[:2])
PYTHON_TEST_PACKAGES = ["pytest==8.4.2", "dm-tree==0.1.9", "ml_dtypes==0.5.3", "dm-env==1.6",
                        "gymnasium==1.2.2"]


def stage_python(build):
    """Puts the package of a build where it can be imported; the folder, or what went wrong."""
    stage = ROOT / "build" / "python" / f"stage-{build}"
    shutil.rmtree(stage, ignore_errors=True)
    status, output = run([MESON, "install", "-C", BUILD / build, "--tags", "python-runtime",
                          "--no-rebuild", "--quiet", "--destdir", stage])
    found = list(stage.rglob("_core.*.so"))
    if status != 0 or not found:
        return None, f"{output}\nno extension in the {build} build: python3-numpy and python3-dev?"
    # Programs with the sanitizers inside do not start where those are loaded beforehand.
    shutil.copy2(BUILD / "release" / "src" / "cli" / "reprise",
                 found[0].parent / "reprise-command")
    return found[0].parent.parent, ""


def sanitized_job():
    """The tests of the package with the sanitized build of the extension. Of what was not freed at
    the end, only what the extension or the library has allocated counts."""
    folder, wrong = stage_python("asan")
    if folder is None:
        return Result(0, 1, wrong)
    _, runtime = run(["clang", "-print-file-name=libclang_rt.asan-" + platform.machine() + ".so"])
    logs = ROOT / "build" / "python" / "sanitizer"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    env = dict(BUILDS["asan"]["env"])
    # Little that was freed is held back: what is resident is measured.
    env["ASAN_OPTIONS"] += (f":log_path={logs}/log:detect_stack_use_after_return=0"
                            ":quarantine_size_mb=1:thread_local_quarantine_size_kb=64")
    env |= {"LD_PRELOAD": runtime.strip(), "PYTHONPATH": str(folder), "PYTHONMALLOC": "malloc",
            "LSAN_OPTIONS": "exitcode=0:max_leaks=0", "RP_SANITIZED": "1"}
    wrapper = fixed_addresses()
    result = pytest_job([*wrapper, "/usr/bin/python3"], "tests/python", env)
    for log in sorted(logs.iterdir()):
        for block in re.split(r"\n\n", log.read_text(errors="replace")):
            ours = re.search(r"_core\.cpython", block)
            if "ERROR: " in block and "LeakSanitizer" not in block or "runtime error" in block:
                result.add(False, block)
            elif block.startswith("Direct leak") and ours:
                result.add(False, block)
    return result


def refcount_job():
    """Runs tests/python/refcounts.py in a debug build of Python, which counts all references, with
    an extension that was compiled for it."""
    python = shutil.which("/usr/bin/python3-dbg")
    if python is None:
        return Result(0, 1, "there is no python3-dbg: see tools/need.sh")
    status, said = run([python, "-c", "import sysconfig, numpy; print(sysconfig.get_path('include'),"
                        "sysconfig.get_config_var('EXT_SUFFIX'), numpy.get_include())"])
    if status != 0:
        return Result(0, 1, said)
    include, suffix, numpy = said.split()
    folder = ROOT / "build" / "python" / "refcount"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "python" / "reprise", folder / "reprise",
                    ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(BUILD / "release" / "src" / "cli" / "reprise",
                 folder / "reprise" / "reprise-command")
    sources = sorted((ROOT / "python" / "core").glob("*.c"))
    libraries = ["-l:libreprise.a" if x == "-lreprise" else x
                 for x in pkg_config("--static", "--libs")]
    command = ["gcc", "-std=c17", "-D_GNU_SOURCE", '-DRP_VERSION="0"', "-O1", "-fPIC", "-shared",
               "-fvisibility=hidden", f"-I{numpy}", f"-I{include}",
               *pkg_config("--cflags"), *sources, "-o", folder / "reprise" / f"_core{suffix}",
               *libraries, "-lpthread", "-lm"]
    status, output = run(command)
    if status != 0:
        return Result(0, 1, output)
    status, output = run([python, "-X", "faulthandler", "tests/python/refcounts.py"], 300,
                         {"PYTHONPATH": str(folder)})
    return parse_tap(status, output, 300)


def package_job():
    """The tests of the package with the extension of the release build, in an environment that has
    the packages that it may meet."""
    folder, wrong = stage_python("release")
    if folder is None:
        return Result(0, 1, wrong)
    where = ROOT / "build" / "python" / "tests"
    stamp = where / "packages"
    if not stamp.exists() or stamp.read_text() != " ".join(PYTHON_TEST_PACKAGES):
        shutil.rmtree(where, ignore_errors=True)
        # NumPy is the one that the extension was compiled for.
        for command in (["/usr/bin/python3", "-m", "venv", "--system-site-packages", where],
                        [where / "bin" / "python", "-m", "pip", "install", "-q",
                         *PYTHON_TEST_PACKAGES]):
            status, output = run(command)
            if status != 0:
                return Result(0, 1, output)
        stamp.write_text(" ".join(PYTHON_TEST_PACKAGES))
    return pytest_job(where / "bin" / "python", "tests/python",
                      {"RP_BUILD": str(BUILD / "release"), "RP_SHORT": "1",
                       "PYTHONPATH": str(folder)})


def python_jobs(peers, is_long):
    jobs = [(0, "python", "sanitizers", sanitized_job), (1, "python", "references", refcount_job)]
    if not is_long:
        return [(0, "python", "package", package_job), *jobs]
    jobs.append((0, "python", "installed wheel", wheel_job))
    if peers is not None:
        jobs.append((1, "python", "beside TensorFlow", peers.test_package))
    return jobs


def c_files(*folders):
    return sorted(p for f in folders for p in (ROOT / f).rglob("*.[ch]"))


def format_job():
    files = c_files("include", "src", "tests", "fuzz", "bench", "examples", "python")
    status, output = run(["clang-format", "--dry-run", "-Werror", *files])
    wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", output, re.MULTILINE)))
    result = Result()
    result.add(status == 0, "\n".join(wrong) + "\n`make format` mends these" if wrong else output)
    return result


# How far clang's analyzer follows a function; its own bound is four times that, and takes as much longer.
ANALYZER_NODES = 60000


def lint_jobs():
    """clang-tidy and its analyzer over the sources that this machine's build compiles."""
    depth = [f"--extra-arg={x}"
             for x in ("-Xclang", "-analyzer-config", "-Xclang", f"max-nodes={ANALYZER_NODES}")]
    database = json.loads((BUILD / "asan" / "compile_commands.json").read_text())
    sources = {(pathlib.Path(e["directory"]) / e["file"]).resolve() for e in database}
    jobs = []
    for path in sorted(s for s in sources if s.is_relative_to(ROOT / "src")):

        def job(path=path):
            status, output = run(["clang-tidy", "--quiet", "-p", BUILD / "asan", *depth, path])
            found = re.findall(r"^\S*?(src/\S+: (?:error|warning): .*)", output, re.MULTILINE)
            found.append(f"`clang-tidy -p build/test/asan {path.relative_to(ROOT)}` says how")
            result = Result()
            result.add(status == 0, "\n".join(found) if len(found) > 1 else output)
            return result

        jobs.append((1, "lint", str(path.relative_to(ROOT / "src")), job))
    return jobs


def pkg_config(*arguments):
    status, output = run(["pkg-config", *arguments, "reprise"],
                         env={"PKG_CONFIG_PATH": str(STAGE / "lib" / "pkgconfig")})
    assert status == 0, output
    return output.split()


def use_installed(source, static, expected=None):
    """Compiles one program against the installed library, runs it, and returns what went wrong:
    nothing, if all is well."""
    flags = pkg_config("--cflags")
    if static:
        libraries = pkg_config("--static", "--libs")
        libraries = ["-l:libreprise.a" if x == "-lreprise" else x for x in libraries]
    else:
        libraries = pkg_config("--libs")
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "program"
        command = ["cc", "-std=c17", "-Wall", "-Wextra", "-Werror", *flags, "-x", "c", source,
                   "-x", "none", "-o", program, *libraries]
        status, output = run(command)
        if status != 0:
            return output
        status, output = run([program], env={"LD_LIBRARY_PATH": str(STAGE / "lib")}, cwd=folder)
        if status != 0:
            return f"{output}\n{describe(status)}"
        if expected is not None and output != expected:
            return f"printed\n{output}\ninstead of\n{expected}"
    return ""


def example_jobs():
    jobs = []
    for source in sorted((ROOT / "examples").glob("*.c")):

        def job(source=source):
            golden = ROOT / "examples" / "expected" / f"{source.stem}.txt"
            expected = golden.read_text() if golden.exists() else None
            result = Result()
            for static in (False, True):
                wrong = use_installed(source, static, expected)
                kind = "static" if static else "shared"
                result.add(not wrong, f"{source.name} with the {kind} library: {wrong}")
            return result

        jobs.append((2, "examples", source.stem, job))
    return jobs


def docs_job():
    """Every complete C program in the documents compiles against the installed library and
    runs; every other piece of C compiles behind reprise.h."""
    result = Result()
    for page in sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")]):
        if not page.exists():
            continue
        for block in re.finditer(r"^```c\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            line = page.read_text()[: block.start()].count("\n") + 1
            with tempfile.NamedTemporaryFile("w", suffix=".c") as source:
                source.write(block.group(1))
                source.flush()
                if "int main" in block.group(1):
                    wrong = use_installed(source.name, False)
                else:
                    status, output = run(
                        ["cc", "-std=c17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                         *pkg_config("--cflags"), "-include", "reprise/reprise.h", source.name])
                    wrong = output if status != 0 else ""
            result.add(not wrong, f"{page.relative_to(ROOT)}:{line}: {wrong}")
    return result


def planted_job():
    """Each of the planted bugs makes its test fail."""
    status, output = run([sys.executable, ROOT / "tests" / "durability" / "planted.py",
                          BUILD / "plants"])
    result = Result()
    for line in output.splitlines():
        if line.startswith(("ok", "not ok")):
            result.add(line.startswith("ok"), line)
    if status != 0 and result.failed == 0:
        result.add(False, f"{output}\n{describe(status)}")
    return result


def check_jobs(part, args, peers, built):
    if part == "replay":
        return replay_jobs()
    if part == "lint":
        return lint_jobs()
    if part == "examples":
        return example_jobs()
    if part == "conformance":
        return peers.jobs(args.long)
    if part == "attack":
        return attack_jobs(built, args.long)
    if part == "python":
        return python_jobs(peers, args.long)
    job = {"oracle": oracle_job, "meta": meta_job, "format": format_job, "docs": docs_job,
           "cli": cli_job, "planted": planted_job}[part]
    return [(0 if part == "planted" else 2, part, part, job)]


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
    peers = Peers() if "conformance" in wanted else None
    planned = [b for b in BUILDS if b in wanted or any(b in NEEDS.get(p, ()) for p in wanted)]
    # Two more than there are processors: many tests wait for something most of the time.
    crew = Crew(tally, JOBS + 2)
    built, done, begun = set(), set(), set()
    for name in [None, *planned]:
        if name is not None:
            start, spent.cpu = time.monotonic(), 0
            config = chosen(name, args.long)
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
        for part in CHECKS:
            needs = NEEDS.get(part, set()) | (USES.get(part, set()) & set(planned))
            if part in wanted and part not in begun and needs <= done:
                begun.add(part)
                if NEEDS.get(part, set()) <= built:
                    crew.add(check_jobs(part, args, peers, built))
    crew.finish()
    return tally.close()


if __name__ == "__main__":
    sys.exit(main())
