# SPDX-License-Identifier: Apache-2.0
"""Python stubs of all services of the server, generated from proto/ only."""

import atexit
import importlib
import pathlib
import shutil
import sys
import tempfile

import grpc  # noqa: F401  imported before the path below is set, which has a package of that name
import grpc_tools
from grpc_tools import protoc

PROTO = pathlib.Path(__file__).resolve().parents[3] / "proto"


def generate(folder):
    """Generates all stubs below `folder`. In Python the package `grpc` belongs to grpcio, so the
    files in proto/grpc are compiled relative to that folder."""
    shipped = pathlib.Path(grpc_tools.__file__).parent / "_proto"  # google/protobuf/*.proto
    for root in (PROTO, PROTO / "grpc"):
        files = [p.relative_to(root).as_posix() for p in sorted(root.rglob("*.proto"))]
        if root == PROTO:
            files = [f for f in files if not f.startswith("grpc/")]
        status = protoc.main(["protoc", f"-I{root}", f"-I{shipped}", f"--python_out={folder}",
                              f"--grpc_python_out={folder}", *files])
        assert status == 0, f"protoc failed on {root}"


_folder = tempfile.mkdtemp(prefix="stubs-")
atexit.register(shutil.rmtree, _folder, True)
generate(_folder)
sys.path.insert(0, _folder)

rpc = importlib.import_module("reverb.reverb_service_pb2")
service = importlib.import_module("reverb.reverb_service_pb2_grpc")
schema = importlib.import_module("reverb.schema_pb2")
tensor = importlib.import_module("tensorflow.tensor_pb2")
struct = importlib.import_module("tensorflow.struct_pb2")
types = importlib.import_module("tensorflow.types_pb2")
own = importlib.import_module("reprise.v1.reprise_pb2")
own_service = importlib.import_module("reprise.v1.reprise_pb2_grpc")
rollouts = importlib.import_module("reprise.v1.rollouts_pb2")
rollouts_service = importlib.import_module("reprise.v1.rollouts_pb2_grpc")
runs = importlib.import_module("reprise.v1.runs_pb2")
runs_service = importlib.import_module("reprise.v1.runs_pb2_grpc")
health = importlib.import_module("health.v1.health_pb2")
health_service = importlib.import_module("health.v1.health_pb2_grpc")
reflection = {
    version: importlib.import_module(f"reflection.{version}.reflection_pb2")
    for version in ("v1", "v1alpha")
}
reflection_service = {
    version: importlib.import_module(f"reflection.{version}.reflection_pb2_grpc")
    for version in ("v1", "v1alpha")
}
