# SPDX-License-Identifier: Apache-2.0
"""gRPC's health checks."""

import signal

import grpc
import pytest

import harness
from messages import Reverb, wish
from stubs import health, health_service

Code = grpc.StatusCode
SERVING = health.HealthCheckResponse.SERVING
NOT_SERVING = health.HealthCheckResponse.NOT_SERVING
SERVICE_UNKNOWN = health.HealthCheckResponse.SERVICE_UNKNOWN
SERVICES = ["", "deepmind.reverb.ReverbService", "reprise.v1.Replay"]


@pytest.fixture
def checks(channel):
    return health_service.HealthStub(channel)


@pytest.mark.parametrize("name", SERVICES)
def test_existing_services_are_serving(checks, name):
    answer = checks.Check(health.HealthCheckRequest(service=name), timeout=120)
    assert answer.status == SERVING


def test_an_unknown_service_is_not_found(checks, refused):
    with refused(Code.NOT_FOUND):
        checks.Check(health.HealthCheckRequest(service="nobody.Nothing"), timeout=120)


@pytest.mark.parametrize("name, status", [*((n, SERVING) for n in SERVICES),
                                          ("nobody.Nothing", SERVICE_UNKNOWN)])
def test_a_watch_responds_at_once_and_then_waits(checks, name, status):
    call = checks.Watch(health.HealthCheckRequest(service=name), timeout=0.5)
    assert next(call).status == status
    with pytest.raises(grpc.RpcError) as failure:
        next(call)
    assert failure.value.code() == Code.DEADLINE_EXCEEDED


def test_a_watch_may_be_cancelled(checks):
    call = checks.Watch(health.HealthCheckRequest(), timeout=120)
    next(call)
    call.cancel()
    assert call.code() == Code.CANCELLED
    checks.Check(health.HealthCheckRequest(), timeout=120)


def test_a_watch_sees_the_server_drain(tmp_path):
    """A sampler that waits keeps the server draining long enough for the watch to report it."""
    server = harness.Reprise({"tables": [harness.table("fifo", sampler="fifo")]}, tmp_path)
    with server, grpc.insecure_channel(server.start().address) as channel:
        with Reverb(channel).samples() as stream:
            stream.send(wish("fifo"))
            watch = health_service.HealthStub(channel).Watch(
                health.HealthCheckRequest(), timeout=120)
            assert next(watch).status == SERVING
            server.process.send_signal(signal.SIGTERM)
            assert next(watch).status == NOT_SERVING
        assert server.process.wait(120) == 0
