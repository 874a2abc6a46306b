# SPDX-License-Identifier: Apache-2.0
"""Checks of the source, the documents, the installed library and the command."""

import json
import pathlib
import re
import shlex
import sys
import tempfile

from runner.builds import BUILDS, chosen
from runner.process import (BUILD, ROOT, STAGE, Result, describe, fixed_addresses, pytest_job,
                            run)

ALONE = 9  # order of jobs that measure times: behind all others, one by one


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


def oracle_job():
    return pytest_job("/usr/bin/python3", "tests/oracle",
                      {**BUILDS["asan"]["env"], "RP_BUILD": str(BUILD / "asan"),
                       "RP_WRAPPER": " ".join(fixed_addresses())})


def meta_job():
    return pytest_job("/usr/bin/python3", "tests/meta", {"RP_BUILD": str(BUILD / "release")})


def cli_job(is_long):
    return pytest_job("/usr/bin/python3", "tests/cli", {"RP_BUILD": str(BUILD / "release"),
                                                        "RP_SHORT": "" if is_long else "1"})


def grafana_job():
    return pytest_job("/usr/bin/python3", "tests/grafana", {"RP_BUILD": str(BUILD / "release")})


def attack_jobs(built, is_long):
    """The attack pack, on a server with the sanitizers if there is one. With --long also the mixed
    load under tsan, and what is timed, on the plain build."""
    latency, load = "tests/attack/test_latency.py", "tests/attack/test_load.py"
    victim = "asan" if "asan" in built else "release"
    runs = [(0, victim, victim, "tests/attack")]
    if is_long:
        runs += [(0, "tsan", "tsan", load), (ALONE, "latency", "release", latency)]
    jobs = []
    for order, name, build, what in runs:
        env = {**chosen(build, is_long).get("env", {}), "RP_BUILD": str(BUILD / build),
               "RP_SHORT": "" if is_long else "1"}
        if what == "tests/attack":
            env["PYTEST_ADDOPTS"] = f"--ignore={latency}"
        if build in built:
            jobs.append((order, "attack", name, lambda what=what, env=env: pytest_job(
                "/usr/bin/python3", what, env)))
    return jobs


def c_files(*folders):
    return sorted(p for f in folders for p in (ROOT / f).rglob("*.[ch]"))


def format_job():
    files = c_files("include", "src", "rl", "tests", "fuzz", "bench", "examples", "python")
    status, output = run(["clang-format", "--dry-run", "-Werror", *files])
    wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", output, re.MULTILINE)))
    result = Result()
    result.add(status == 0, "\n".join(wrong) + "\n`make format` mends these" if wrong else output)
    return result


# How far clang's analyzer follows a function; its own bound is four times that, and takes as much longer.
ANALYZER_NODES = 60000


def each_alone(build, where):
    """Writes a database of commands for clang-tidy, which has an entry for each source: tools/join.py
    may have joined several. Returns its entries."""
    entries = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"]) / entry["file"]
        sources = [str(path.resolve())]
        if path.name.startswith("joined_") and path.exists():
            sources = re.findall(r'^#include "(/.*\.c)"', path.read_text(), re.MULTILINE)
        for source in sources:
            command = entry["command"].removesuffix(entry["file"]) + shlex.quote(source)
            entries.append({**entry, "file": source, "command": command})
    where.mkdir(exist_ok=True)
    (where / "compile_commands.json").write_text(json.dumps(entries))
    return entries


def lint_jobs():
    """clang-tidy and its analyzer over the sources that this machine's build compiles."""
    depth = [f"--extra-arg={x}"
             for x in ("-Xclang", "-analyzer-config", "-Xclang", f"max-nodes={ANALYZER_NODES}")]
    where = BUILD / "asan" / "alone"
    sources = {pathlib.Path(entry["file"]) for entry in each_alone(BUILD / "asan", where)}
    jobs = []
    for path in sorted(s for s in sources if s.is_relative_to(ROOT / "src")):

        def job(path=path):
            status, output = run(["clang-tidy", "--quiet", "-p", where, *depth, path])
            found = re.findall(r"^\S*?(src/\S+: (?:error|warning): .*)", output, re.MULTILINE)
            found.append(f"`clang-tidy -p {where.relative_to(ROOT)} {path.relative_to(ROOT)}` says how")
            result = Result()
            result.add(status == 0, "\n".join(found) if len(found) > 1 else output)
            return result

        jobs.append((1, "lint", str(path.relative_to(ROOT / "src")), job))
    return jobs


def pkg_config(*arguments, package="reprise"):
    status, output = run(["pkg-config", *arguments, package],
                         env={"PKG_CONFIG_PATH": str(STAGE / "lib" / "pkgconfig")})
    assert status == 0, output
    return output.split()


def use_installed(source, static, expected=None):
    """Compiles one program against the installed library, runs it, and returns what went wrong:
    nothing, if all is well."""
    uses_rl = "reprise/rl/" in pathlib.Path(source).read_text()
    flags = pkg_config("--cflags")
    if static:
        libraries = pkg_config("--static", "--libs")
        libraries = ["-l:libreprise.a" if x == "-lreprise" else x for x in libraries]
    else:
        libraries = pkg_config("--libs", package="reprise-rl" if uses_rl else "reprise")
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


def compile_fragment(source):
    """Compiles a piece of C that is no program, and returns what went wrong."""
    status, output = run(["cc", "-std=c17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                          *pkg_config("--cflags"), "-x", "c", source])
    return output if status != 0 else ""


def site_job():
    """The site of the documents is made, and every link and anchor leads somewhere."""
    status, output = run([sys.executable, ROOT / "tools" / "peers.py", "site"], 3600)
    if status == 0:
        status, output = run([ROOT / "build" / "peers" / "site" / "bin" / "python", ROOT / "tools" / "site.py"], 900)
    return Result(int(status == 0), int(status != 0), output)


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
