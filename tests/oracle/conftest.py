# SPDX-License-Identifier: Apache-2.0
"""Our codec and protobuf's own, side by side."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROTO = ROOT / "proto"


@pytest.fixture(scope="session")
def messages(tmp_path_factory):
    """The classes of proto/ by their short names, as protobuf makes them."""
    out = tmp_path_factory.mktemp("stubs")
    names = ["reverb/reverb_service", "reverb/schema", "reprise/v1/reprise", "tensorflow/struct",
             "tensorflow/tensor", "tensorflow/tensor_shape", "tensorflow/types",
             "grpc/health/v1/health", "grpc/reflection/v1/reflection"]
    subprocess.run(["protoc", f"-I{PROTO}", f"--python_out={out}", *(f"{n}.proto" for n in names)],
                   check=True)
    sys.path.insert(0, str(out))
    found = {}
    for name in names:
        # By its path: a package of that name may be installed, as `grpc` often is.
        spec = importlib.util.spec_from_file_location(name.replace("/", "_"), out / f"{name}_pb2.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found.update({n: getattr(module, n) for n in module.DESCRIPTOR.message_types_by_name})
    return found


class Codec:
    """The program that reads a message and writes it again."""

    def __init__(self, program):
        # A sanitized program may need another one in front of it.
        command = [*os.environ.get("RP_WRAPPER", "").split(), str(program)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def echo(self, message, data):
        """(status, bytes): the message as written again, or the sentence of the error."""
        self.process.stdin.write(b"%s\n%d\n" % (message.encode(), len(data)) + data)
        self.process.stdin.flush()
        status = self.process.stdout.readline()
        assert status, f"the codec died of {message} {data.hex()}"
        return int(status), self.process.stdout.read(int(self.process.stdout.readline()))

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=120) == 0


@pytest.fixture(scope="session")
def codec():
    build = pathlib.Path(os.environ.get("RP_BUILD", ROOT / "build" / "test" / "asan"))
    codec = Codec(build / "tests" / "wire_echo")
    yield codec
    codec.close()
