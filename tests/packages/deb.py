#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the Debian packages of build/deb into a clean Debian and runs the server there.

    tests/packages/deb.py           as root; `make test-deb` builds the packages first

mmdebstrap makes the Debian, with nothing but apt. The server runs as its own user, with the command line
of the systemd unit. systemd itself does not run: the script takes its place on
NOTIFY_SOCKET, systemd-analyze checks the unit, and strace shows that the server makes no system call that
the unit forbids. Prints TAP.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEBS = ROOT / "build" / "deb"
WORK = ROOT / "build" / "packages"
SYSTEM = WORK / "debian-root"
SUITE = "bookworm"
UNIT = "/lib/systemd/system/reprise.service"
MOST_EXPOSED = 25  # of systemd-analyze security: 100 is a service without any protection
SOCKET = "unix:/run/reprise/reprise.sock"
ITEM = '{"data": {"obs": [1, 2, 3]}}'


def run(*command, ok=True, **options):
    """Runs a command, and returns its output."""
    done = subprocess.run([str(c) for c in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=1200, **{"stdin": subprocess.DEVNULL, **options})
    assert done.returncode == 0 or not ok, f"{command}\nended with {done.returncode}:\n{done.stdout}"
    return done.stdout


def inside(*command, **options):
    """Runs a command in the clean Debian."""
    return run("chroot", SYSTEM, *command, env={**os.environ, "REPRISE_SERVER": SOCKET}, **options)


def make_system():
    """Makes the clean Debian from an archive, which is made once."""
    archive = WORK / f"{SUITE}.tar"
    WORK.mkdir(parents=True, exist_ok=True)
    if not archive.exists():
        partial = archive.with_suffix(".partial.tar")
        run("mmdebstrap", "--variant=apt", "--mode=root", "--quiet", SUITE, partial)
        partial.rename(archive)
    shutil.rmtree(SYSTEM, ignore_errors=True)
    SYSTEM.mkdir()
    run("tar", "-C", SYSTEM, "-xf", archive, "--exclude=./dev/*")
    shutil.copy2("/etc/resolv.conf", SYSTEM / "etc" / "resolv.conf")
    policy = SYSTEM / "usr" / "sbin" / "policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")  # no package starts a service
    policy.chmod(0o755)
    for kind, where in (("proc", "proc"), ("tmpfs", "run"), ("tmpfs", "tmp")):
        run("mount", "-t", kind, kind, SYSTEM / where)
    run("mount", "--rbind", "/dev", SYSTEM / "dev")


def enter_namespaces():
    """Runs this script again with mounts of its own, which end with it."""
    if os.environ.get("RP_IN_NAMESPACE"):
        return
    os.environ["RP_IN_NAMESPACE"] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--propagation=private", sys.executable, __file__])


class Service:
    """The server, run as systemd would run it."""

    running = []  # those that no test has stopped

    def __init__(self, *before):
        unit = (SYSTEM / UNIT.lstrip("/")).read_text()
        command = re.search(r"^ExecStart=(.*)", unit, re.MULTILINE).group(1).split()
        inside("install", "-d", "-m", "750", "-o", "reprise", "-g", "reprise", "/var/lib/reprise",
               "/run/reprise")
        path = SYSTEM / "run" / "notify"
        path.unlink(missing_ok=True)
        self.notes, self.state = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), ""
        self.notes.bind(str(path))
        path.chmod(0o777)
        self.notes.settimeout(60)
        self.process = subprocess.Popen(
            [shutil.which("chroot"), str(SYSTEM), "setpriv", "--reuid=reprise", "--regid=reprise",
             "--init-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", *before, *command],
            env={"PATH": "/usr/bin:/bin", "NOTIFY_SOCKET": "/run/notify", "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        Service.running.append(self)

    def await_note(self, wanted):
        """Waits until the server has told a state, such as READY=1."""
        while wanted not in self.state.splitlines():
            self.state = self.notes.recv(4096).decode()

    def server(self):
        """Returns the process of the server, which strace may have started."""
        for path in pathlib.Path("/proc").glob("[0-9]*/comm"):
            with contextlib.suppress(OSError):
                if path.read_text() == "reprise\n" and os.readlink(path.parent / "root") == str(SYSTEM):
                    return int(path.parent.name)
        raise AssertionError("no process of the server")

    def stop(self):
        os.kill(self.server(), signal.SIGTERM)
        self.await_note("STOPPING=1")
        output, _ = self.process.communicate(timeout=120)
        self.running.remove(self)
        self.notes.close()
        assert self.process.returncode == 0, output
        return output


def item_count():
    [table] = json.loads(inside("reprise", "info", "--json"))
    return table["items"]


def end_services():
    """Ends the servers that a failed test has left."""
    for service in Service.running:
        with contextlib.suppress(AssertionError, ProcessLookupError):
            os.kill(service.server(), signal.SIGKILL)
        service.process.kill()
        service.process.communicate()
        service.notes.close()
    Service.running.clear()


def packages_have_no_errors():
    [changes] = DEBS.glob("*.changes")
    # The tag is about uploads to Debian, which close the wish for the package.
    said = run("lintian", "--suppress-tags", "initial-upload-closes-no-bugs", "--fail-on", "error,warning",
               "--allow-root", changes, ok=False)
    assert not re.search(r"^[EW]: ", said, re.MULTILINE), said


def packages_are_installed_with_what_they_need():
    for deb in DEBS.glob("*.deb"):
        shutil.copy2(deb, SYSTEM / "tmp")
    inside("apt-get", "-q", "update")
    inside("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qy", "--no-install-recommends", "install",
           *(f"/tmp/{deb.name}" for deb in DEBS.glob("reprise_*.deb")))
    assert re.match(r"reprise \d", inside("reprise", "--version"))
    assert "compiler" not in inside("sh", "-c", "command -v cc gcc clang && echo compiler; true")
    for name in ("man/man1/reprise.1.gz", "man/man1/reprise-serve.1.gz", "zsh/vendor-completions/_reprise",
                 "bash-completion/completions/reprise", "fish/vendor_completions.d/reprise.fish",
                 "doc/reprise/copyright", "doc/reprise/README.md", "doc/reprise/docs/cli.md"):
        assert (SYSTEM / "usr" / "share" / name).exists(), name
    assert "reprise" in inside("getent", "passwd", "reprise")


def the_image_has_the_libraries_of_the_package():
    """packages/docker/Dockerfile installs what the same program needs here."""
    last_stage = (ROOT / "packages" / "docker" / "Dockerfile").read_text().split("\nFROM ")[-1]
    [deb] = DEBS.glob("reprise_*.deb")
    needed = set(re.findall(r"\b(?:lib[\w.+-]+|zlib\w+)", run("dpkg-deb", "-f", deb, "Depends")))
    needed -= {"libc6", "libgcc-s1", "libstdc++6"}  # apt needs them, so they are in debian:12-slim
    missing = {name for name in needed if name not in last_stage.split()}
    assert needed and not missing, f"the image has no {sorted(missing)}"


def the_unit_is_valid_and_protects():
    said = inside("systemd-analyze", "verify", "--man=no", UNIT, ok=False)
    assert "reprise" not in said, said
    inside("systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED}", UNIT)
    assert (SYSTEM / "etc/systemd/system/multi-user.target.wants/reprise.service").is_symlink()


def the_configuration_is_valid():
    settings = SYSTEM / "etc" / "reprise" / "reprise.yaml"
    assert "localhost:8000" in inside("reprise", "serve", "--config", "/etc/reprise/reprise.yaml",
                                      "--check-config")
    # The port may be in use on this machine.
    settings.write_text(settings.read_text().replace("- localhost:8000", f"- {SOCKET}"))


def the_service_starts_reloads_and_keeps_its_data():
    service = Service()
    service.await_note("READY=1")
    inside("reprise", "insert", "replay", "-", input=f"{ITEM}\n" * 3, stdin=None)
    assert item_count() == 3
    os.kill(service.server(), signal.SIGHUP)
    service.await_note("RELOADING=1")
    service.await_note("READY=1")
    output = service.stop()
    assert "event=reloaded" in output, output
    service = Service()
    service.await_note("READY=1")
    assert item_count() == 3
    service.stop()


def the_service_makes_no_call_that_the_unit_forbids():
    inside("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qy", "--no-install-recommends", "install",
           "strace")
    service = Service("strace", "-f", "-c", "-o", "/tmp/calls")
    service.await_note("READY=1")
    inside("reprise", "insert", "replay", "-", input=f"{ITEM}\n" * 3, stdin=None)
    inside("reprise", "sample", "replay", "--count", "3")
    inside("reprise", "checkpoint")
    service.stop()
    calls = (SYSTEM / "tmp" / "calls").read_text()
    made = set(re.findall(r"^ *\d[\d.]+ .* (\w+)$", calls, re.MULTILINE)) - {"total", "execve", "execveat"}
    assert {"epoll_wait", "epoll_pwait2"} & made and len(made) > 20, calls
    unit = (SYSTEM / UNIT.lstrip("/")).read_text()
    permitted = set()
    for line in re.findall(r"^SystemCallFilter=(.*)", unit, re.MULTILINE):
        names = {name for word in line.lstrip("~").split() for name in calls_of(word)}
        permitted = permitted - names if line.startswith("~") else permitted | names
    assert made <= permitted, f"forbidden, but called: {sorted(made - permitted)}"


def calls_of(word):
    """Returns the system calls of a group of systemd, such as @system-service."""
    if not word.startswith("@"):
        return {word}
    lines = inside("systemd-analyze", "syscall-filter", word).splitlines()[1:]
    return {name for line in lines for inner in [line.strip()] if inner and not inner.startswith("#")
            for name in calls_of(inner)}


def programs_are_compiled_with_the_headers():
    inside("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qy", "--no-install-recommends", "install",
           "gcc", "libc6-dev", "pkg-config", *(f"/tmp/{deb.name}" for deb in DEBS.glob("libreprise*.deb")))
    (SYSTEM / "tmp" / "try.c").write_text(
        "#include <stdio.h>\n#include <reprise/reprise.h>\n"
        "int main(void) { puts(rp_version()); return 0; }\n")
    libraries = {"shared": "$(pkg-config --libs reprise)",
                 "static": "-l:libreprise.a $(pkg-config --static --libs reprise | sed s/-lreprise//)"}
    for how, words in libraries.items():
        inside("sh", "-ec", f"gcc -o /tmp/{how} $(pkg-config --cflags reprise) /tmp/try.c {words}")
        assert re.match(r"\d+\.\d+\.\d+", inside(f"/tmp/{how}"))
    assert "libreprise" in inside("ldd", "/tmp/shared") and "libreprise" not in inside("ldd", "/tmp/static")


def packages_are_removed_with_their_data():
    inside("dpkg", "--purge", "reprise")
    for name in ("etc/reprise", "var/lib/reprise", "usr/bin/reprise"):
        assert not (SYSTEM / name).exists(), name


TESTS = [packages_have_no_errors, packages_are_installed_with_what_they_need,
         the_image_has_the_libraries_of_the_package, the_unit_is_valid_and_protects,
         the_configuration_is_valid,
         the_service_starts_reloads_and_keeps_its_data, the_service_makes_no_call_that_the_unit_forbids,
         programs_are_compiled_with_the_headers, packages_are_removed_with_their_data]


def main():
    if os.geteuid() != 0:
        sys.exit("tests/packages/deb.py needs root: it installs packages into a folder")
    if not list(DEBS.glob("*.deb")):
        sys.exit("build/deb has no packages: run make deb")
    enter_namespaces()
    make_system()
    print(f"1..{len(TESTS)}", flush=True)
    failed = 0
    for number, test in enumerate(TESTS, 1):
        start = time.monotonic()
        try:
            test()
        except (AssertionError, OSError, ValueError, subprocess.SubprocessError):
            failed += 1
            print("\n".join(f"# {line}" for line in traceback.format_exc().splitlines()[-40:]))
            print(f"not ok {number} - {test.__name__}", flush=True)
            end_services()
        else:
            print(f"ok {number} - {test.__name__} ({time.monotonic() - start:.0f} s)", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
