# SPDX-License-Identifier: Apache-2.0
"""The servers for the tests of dm-reverb's client: its own, and ours. Both have the same tables,
and every test runs against both (against its own only, if CONFORMANCE_SERVER=dm-reverb).
"""

import contextlib
import os

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# The interval at which a channel without waiting calls polls its sockets. The default is 5 s.
os.environ.setdefault("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "100")

import reverb  # noqa: E402

import harness  # noqa: E402
from harness import table  # noqa: E402

# dm-reverb's datasets lock a mutex that they never initialise, and hang unless its memory is zero,
# with either server. These variables make malloc() return zeroed memory; they must be set before
# the process starts.
ZEROED = {"MALLOC_PERTURB_": "255", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
if any(os.environ.get(name) != value for name, value in ZEROED.items()):
    pytest.exit("run this with " + " ".join(f"{n}={v}" for n, v in ZEROED.items()), 2)

KINDS = ["dm-reverb", "reprise"]
STEP = {"action": "int32[2]", "observation": "float32[2,3]"}
TABLES = [
    table("uniform"),
    table("uniform-too"),
    table("fifo", sampler="fifo"),
    table("lifo", sampler="lifo"),
    table("max-heap", sampler="max_heap"),
    table("min-heap", sampler="min_heap"),
    table("prioritized", sampler=("prioritized", 1.0)),
    table("softened", sampler=("prioritized", 0.5), max_times_sampled=3),
    table("thrice", sampler="fifo", max_times_sampled=3),
    table("small", sampler="fifo", max_size=3),
    table("small-lifo", sampler="fifo", remover="lifo", max_size=3),
    table("keeps-high", sampler="fifo", remover="min_heap", max_size=3),
    table("min-size", sampler="fifo", limiter=("min_size", 3)),
    table("ratio", sampler="fifo", limiter=("ratio", 2.0, 2, 2.0)),
    table("queue", sampler="fifo", max_size=4, max_times_sampled=1, limiter=("queue", 4)),
    table("stack", sampler="lifo", remover="lifo", max_size=4, max_times_sampled=1,
          limiter=("stack", 4)),
    table("signed", sampler="fifo",
          signature={"a": "float32[?,2]", "b": {"tuple": ["int64[?]"]}}),
    table("signed-step", sampler="fifo", signature=STEP),
    table("signed-list", sampler="fifo", signature=["float64[3]", "string[]", "bool[?]"]),
]


def make(kind, folder, tables=TABLES):
    if kind == "dm-reverb":
        return harness.DmReverb(tables, folder)
    return harness.Reprise({"tables": tables}, folder)


@pytest.fixture(scope="session")
def servers(tmp_path_factory):
    """Launches both at once, so that dm-reverb's server imports TensorFlow while the tests do."""
    kinds = KINDS if os.environ.get("CONFORMANCE_SERVER") != "dm-reverb" else KINDS[:1]
    running = {kind: make(kind, tmp_path_factory.mktemp(kind)).launch() for kind in kinds}
    with contextlib.ExitStack() as stack:
        for server in running.values():
            stack.enter_context(server)
        yield running


@pytest.fixture(scope="session", params=KINDS)
def server(request, servers):
    """Each server in turn. The client in this process connects to it over the network."""
    if request.param not in servers:
        pytest.skip("only dm-reverb's server was asked for")
    return servers[request.param].ready()


@pytest.fixture
def client(server):
    return reverb.Client(server.address)


@pytest.fixture
def fresh(client):
    """Empties the tables that a test names."""

    def empty(*names):
        for name in names:
            client.reset(name)
        return names[0]

    return empty
