# SPDX-License-Identifier: Apache-2.0
"""Independent clients, each in an environment of its own."""

import shutil
import sys
import threading

from runner.package import wheel_made
from runner.process import BUILD, ROOT, Result, pytest_job, run

# dm-reverb's datasets hang unless their memory is zero: see tests/conformance/dmreverb/conftest.py.
ZEROED = {"MALLOC_PERTURB_": "255", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}


def left_out(files, why):
    """Tests that cannot run here: their number at least, with two transports each."""
    tests = 2 * sum(f.read_text().count("\ndef test_") for f in files)
    return Result(0, 0, f"at least {tests} tests were left out: {why}", tests)


class Peers:
    """Makes the environments that the wanted parts need, while the builds run. The tests of conformance
    fail without those of gRPC, and those of the page without axe. With --long it also makes
    dm-reverb's, for which pip downloads 600 MB; if that fails, dm-reverb's tests count as skipped."""

    def __init__(self, is_long, wanted):
        names = {"axe": ["axe"]} if "page" in wanted else {}
        if "conformance" in wanted:
            names |= {"grpc": ["grpc", "node"], **({"reverb": ["reverb"]} if is_long else {})}
        self.made = {name: threading.Thread(target=self.make, args=(name, environments))
                     for name, environments in names.items()}
        self.said = {}
        for thread in self.made.values():
            thread.start()

    def make(self, name, environments):
        self.said[name] = run([sys.executable, ROOT / "tools" / "peers.py", *environments], 3600)

    def jobs(self, is_long):
        suites = {"grpcio": "grpc"}
        if is_long:
            suites |= {"dmreverb": "reverb", "reverb_suite": "reverb"}
        return [(0, "conformance", suite, lambda s=suite, n=name: self.test(s, n, is_long))
                for suite, name in suites.items()]

    def test_page(self):
        """The page in Chromium."""
        self.made["axe"].join()
        status, output = self.said["axe"]
        if status != 0:
            return Result(0, 1, output)
        return pytest_job("/usr/bin/python3", "tests/page", {"RP_BUILD": str(BUILD / "release")})

    def test_package(self):
        """The wheel beside TensorFlow and dm-reverb, and with the NumPy of their time."""
        self.made["reverb"].join()
        status, output = self.said["reverb"]
        wheel = wheel_made.result()
        files = [ROOT / "tests" / "python" / f"test_{name}.py"
                 for name in ("beside_reverb", "tf_datasets", "replay_sample", "specs", "package")]
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
                           "RP_SHORT": "1", "TF_CPP_MIN_LOG_LEVEL": "3", **ZEROED})

    def test(self, suite, name, is_long):
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
        env = {"REPRISE_BIN": str(binary), "REPLAY_IMPLEMENTATION": "reverb",
               "RP_SHORT": "" if is_long else "1",
               "PYTHONDONTWRITEBYTECODE": ""}  # pip has compiled nothing
        if name == "reverb":
            env |= ZEROED
        return pytest_job(ROOT / "build" / "peers" / name / "bin" / "python", folder, env)
