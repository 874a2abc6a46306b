# SPDX-License-Identifier: Apache-2.0
"""The tests of the Python package: of the release build, with the sanitizers, and of a wheel."""

import concurrent.futures
import functools
import platform
import re
import shutil
import sys
import threading
import time

from runner.builds import BUILDS
from runner.checks import pkg_config
from runner import typed
from runner.distribution import pip_job
from runner.process import (BUILD, MESON, ROOT, STAGE, Result, fixed_addresses, parse_tap,
                            pytest_job, run)

PYTHON_VERSION = "{}{}".format(*sys.version_info[:2])
PYTHON_TEST_PACKAGES = ["pytest==8.4.2", "dm-tree==0.1.9", "ml_dtypes==0.5.3", "dm-env==1.6",
                        "gymnasium==1.2.2", "mypy==2.4.1"]
wheel_made = concurrent.futures.Future()  # its path; None: it could not be made


def wheel_job():
    """Builds a wheel as `make wheel` does, installs it into a new environment, and runs the tests of
    the package there."""
    started = time.monotonic()
    version = "{}.{}".format(*sys.version_info[:2])
    wheel = None
    try:
        status, output = run([sys.executable, ROOT / "tools" / "wheel.py", "--quick", version], 1800)
        if status == 0:
            [wheel] = (ROOT / "build" / "wheels").glob(
                f"*-cp{PYTHON_VERSION}-*_{platform.machine()}.whl")
    finally:
        wheel_made.set_result(wheel)
    if status != 0:
        return Result(0, 1, output)
    installed = ROOT / "build" / "packages" / f"installed{version}" / "bin" / "python"
    status, output = run([installed, "-m", "pip", "install", "-q", *PYTHON_TEST_PACKAGES])
    if status != 0:
        return Result(0, 1, output)
    print(f"     python      wheel built and installed in {time.monotonic() - started:.0f} s")
    # Away from the sources, so that nothing but the installed package can be imported.
    return pytest_job(installed, "tests/python", {"RP_BUILD": str(BUILD / "release")}, 1800)


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


def sanitized_job(is_long):
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
            "LSAN_OPTIONS": "exitcode=0:max_leaks=0", "RP_SANITIZED": "1",
            "RP_SHORT": "" if is_long else "1",
            # To rewrite the assertions of all tests takes half as long as to run these. The same tests
            # tell the values of an assertion in the release build.
            "PYTEST_ADDOPTS": "--assert=plain"}
    wrapper = fixed_addresses()
    result = pytest_job([*wrapper, "/usr/bin/python3"], "tests/python", env)
    for log in sorted(logs.iterdir()):
        for block in re.split(r"\n\n", log.read_text(errors="replace")):
            ours = re.search(r"_(core|rl)\.cpython", block)
            if "ERROR: " in block and "LeakSanitizer" not in block or "runtime error" in block:
                result.add(False, block)
            elif block.startswith("Direct leak") and ours:
                result.add(False, block)
    return result


def join(sources, folder):
    """Joins C files, which compile faster so. Returns the files to compile."""
    joined = [folder / f"{sources[0].parent.name}_{i}.c" for i in range(len(sources))]
    status, output = run([sys.executable, ROOT / "tools" / "join.py", "12", *sources, "--", *joined])
    assert status == 0, output
    return [file for file in joined if "#include" in file.read_text()]


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
    static = ["-l:libreprise.a" if x == "-lreprise" else x
              for x in pkg_config("--static", "--libs")]
    shared = [*pkg_config("--libs", package="reprise-rl"), f"-Wl,-rpath,{STAGE / 'lib'}"]
    for name, libraries in (("core", static), ("rl", shared)):
        command = ["gcc", "-std=c17", "-D_GNU_SOURCE", '-DRP_VERSION="0"', "-O0", "-fPIC",
                   "-shared", "-fvisibility=hidden", f"-I{numpy}", f"-I{include}",
                   *pkg_config("--cflags"), *join(sorted((ROOT / "python" / name).glob("*.c")), folder),
                   "-o", folder / "reprise" / f"_{name}{suffix}", *libraries, "-lpthread", "-lm"]
        status, output = run(command)
        if status != 0:
            return Result(0, 1, output)
    status, output = run([python, "-X", "faulthandler", "tests/python/refcounts.py"], 300,
                         {"PYTHONPATH": str(folder)})
    return parse_tap(status, output, 300)


@functools.cache
def made_environment():
    """Stages the package of the release build, and makes an environment with the packages that it may
    meet. Returns its interpreter, and the folder of the package; or None, and what went wrong."""
    folder, wrong = stage_python("release")
    if folder is None:
        return None, wrong
    where = ROOT / "build" / "python" / "tests"
    stamp = where / "packages"
    if not stamp.exists() or stamp.read_text() != " ".join(PYTHON_TEST_PACKAGES):
        shutil.rmtree(where, ignore_errors=True)
        # NumPy is the one that the extension was compiled for.
        # It installs with the pip of the system if there is one: a new one takes 5 s.
        status, _ = run(["/usr/bin/python3", "-c", "import pip"])
        for command in (["/usr/bin/python3", "-m", "venv", "--system-site-packages",
                         *(["--without-pip"] if status == 0 else []), where],
                        [where / "bin" / "python", "-m", "pip", "install", "-q",
                         "--no-compile", "--disable-pip-version-check", *PYTHON_TEST_PACKAGES]):
            status, output = run(command)
            if status != 0:
                return None, output
        stamp.write_text(" ".join(PYTHON_TEST_PACKAGES))
    return where / "bin" / "python", str(folder)


making = threading.Lock()  # several jobs need the same environment


def package_environment():
    """Returns an interpreter, the variables with which it imports the package of the release build,
    and what went wrong if there is none."""
    with making:
        python, said = made_environment()
    if python is None:
        return None, {}, said
    return python, {"RP_BUILD": str(BUILD / "release"), "PYTHONPATH": said, "PYTHONDONTWRITEBYTECODE": ""}, ""


def package_job():
    """The tests of the package with the extension of the release build, in an environment that has
    the packages that it may meet."""
    python, env, wrong = package_environment()
    if python is None:
        return Result(0, 1, wrong)
    return pytest_job(python, "tests/python", {**env, "RP_SHORT": "1"})


def pyright_job():
    """Checks the types of the programs in the documents and of the examples with pyright, which takes
    three times as long as mypy (tests/python/test_types.py)."""
    status, output = run([sys.executable, ROOT / "tools" / "peers.py", "pyright"], 3600)
    if status != 0:
        return Result(0, 1, output)
    where, folder = ROOT / "build" / "peers" / "pyright", ROOT / "build" / "python" / "pyright"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    node = shutil.which("node") or where / "python" / "bin" / "node"
    status, output = run(typed.pyright(node, where / "node_modules" / "pyright" / "index.js",
                                       "/usr/bin/python3", folder), 900)
    result = Result()
    result.add(status == 0, output)
    return result


def sanitizer_jobs(is_long):
    return [(0, "python", "sanitizers", lambda: sanitized_job(is_long))]


def python_jobs(peers, is_long):
    jobs = [(1, "python", "references", refcount_job)]
    if not is_long:
        return [(0, "python", "package", package_job), *jobs]
    jobs.append((0, "python", "installed wheel", wheel_job))
    jobs.append((1, "python", "pyright", pyright_job))
    jobs.append((1, "python", "wheel by pip", lambda: pip_job(wheel_made)))
    if peers is not None and "reverb" in peers.made:
        jobs.append((1, "python", "beside TensorFlow", peers.test_package))
    return jobs
