# SPDX-License-Identifier: Apache-2.0
"""@grpc/grpc-js, run by Node against the same server; its checks are in node/client.js."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

import harness
from stubs import PROTO

CLIENT = pathlib.Path(__file__).resolve().parents[1] / "node" / "client.js"
MODULES = harness.PEERS / "node" / "node_modules"
NODE = shutil.which("node") or harness.PEERS / "node" / "python" / "bin" / "node"
NAMES = re.findall(r"^  async '([^']+)'\(\)", CLIENT.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def said(server):
    """The result of each check in Node."""
    done = subprocess.run([str(NODE), str(CLIENT), server.address, str(PROTO)], timeout=120,
                          env={**os.environ, "NODE_PATH": str(MODULES)},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_node(said, name):
    lines = [line for line in said.splitlines() if f" {name}" in line]
    assert lines == [f"ok {name}"], said
