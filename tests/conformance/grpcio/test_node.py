# SPDX-License-Identifier: Apache-2.0
"""@grpc/grpc-js, run by Node against the same server; its checks are in node/client.js."""

import pathlib
import re
import shutil
import subprocess

import pytest

import harness
from stubs import PROTO

CLIENT = pathlib.Path(__file__).resolve().parents[1] / "node" / "client.js"
MODULES = harness.PEERS / "node" / "node_modules"
NAMES = re.findall(r"^  async '([^']+)'\(\)", CLIENT.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def said(server):
    """What Node says of each check."""
    if shutil.which("node") is None or not MODULES.exists():
        pytest.skip("there is no Node, or no @grpc/grpc-js")
    done = subprocess.run(["node", str(CLIENT), server.address, str(PROTO)], timeout=120,
                          env={"NODE_PATH": str(MODULES), "PATH": "/usr/local/bin:/usr/bin:/bin"},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_node(said, name):
    lines = [line for line in said.splitlines() if f" {name}" in line]
    assert lines == [f"ok {name}"], said
