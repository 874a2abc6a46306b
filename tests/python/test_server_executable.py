# SPDX-License-Identifier: Apache-2.0
"""Tables that are made from the messages of a server's configuration."""

import signal
import subprocess
import sys

import pytest

import reprise
from reprise import protos, rate_limiters, selectors
from reprise.server_executable import reverb_config_pb2, server_from_proto

Options = protos.KeyDistributionOptions


@pytest.mark.parametrize(
    "options, selector",
    [
        (Options(fifo=True), selectors.Fifo()),
        (Options(lifo=True), selectors.Lifo()),
        (Options(uniform=True), selectors.Uniform()),
        (Options(heap=Options.Heap(min_heap=True)), selectors.MinHeap()),
        (Options(heap=Options.Heap(min_heap=False)), selectors.MaxHeap()),
        (
            Options(prioritized=Options.Prioritized(priority_exponent=2.0)),
            selectors.Prioritized(2.0),
        ),
    ],
)
def test_selectors(options, selector):
    assert server_from_proto.selector_from_proto(options) == selector


def test_selector_that_is_false():
    with pytest.raises(ValueError, match="distribution=lifo"):
        server_from_proto.selector_from_proto(Options(lifo=False))


def test_no_selector():
    with pytest.raises(NotImplementedError, match="distribution=None"):
        server_from_proto.selector_from_proto(Options())


def test_limiter():
    limiter = server_from_proto.rate_limiter_from_proto(
        protos.RateLimiterCheckpoint(
            samples_per_insert=1.0, min_size_to_sample=2, min_diff=-3.0, max_diff=4.0
        )
    )
    assert isinstance(limiter, rate_limiters.RateLimiter)
    assert limiter.internal_limiter._fields() == (1.0, 2, -3.0, 4.0)


def test_tables():
    config = reverb_config_pb2.ReverbServerConfig(port=8000)
    config.tables.append(
        protos.PriorityTableCheckpoint(
            table_name="queue",
            sampler=Options(fifo=True),
            remover=Options(fifo=True),
            max_size=11,
            max_times_sampled=1,
            rate_limiter=protos.RateLimiterCheckpoint(
                samples_per_insert=1.0, min_size_to_sample=1, min_diff=0.0, max_diff=11.0
            ),
        )
    )
    (table,) = server_from_proto.tables_from_proto(config.tables)
    assert table.name == "queue"
    assert table.info.max_size == 11
    assert table.info.max_times_sampled == 1
    assert table.info.sampler_options.fifo and table.info.remover_options.fifo
    assert table.info.rate_limiter_info.max_diff == 11.0


CONFIG = """
    tables {
      table_name: "queue" max_size: 11 max_times_sampled: 1
      sampler { fifo: true } remover { fifo: true }
      rate_limiter { samples_per_insert: 1 min_size_to_sample: 1 max_diff: 11 }
    }
"""
PROGRAM = [sys.executable, "-m", "reprise.server_executable.server_main"]


def test_program_serves_until_ctrl_c():
    process = subprocess.Popen(
        [*PROGRAM, "--config", CONFIG],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        address = process.stdout.readline().split()[-1]
        client = reprise.Client(address)
        client.insert([1.0], {"queue": 1.0})
        assert client.server_info(timeout=120)["queue"].max_size == 11
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        assert (process.returncode, out, err) == (0, "", "")
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    "config, why",
    [
        ("", "At least one table"),
        ("nonsense", "nonsense"),
        (CONFIG + "port: 99999", "port must be"),
        ("tables { table_name: 'a' max_size: 1 }", "distribution=None"),
    ],
)
def test_program_reports_invalid_configs(config, why):
    result = subprocess.run(
        [*PROGRAM, "--config", config], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 2
    assert why in result.stderr
