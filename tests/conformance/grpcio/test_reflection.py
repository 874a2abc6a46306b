# SPDX-License-Identifier: Apache-2.0
"""Server reflection, both versions: a client without stubs can make calls."""

import grpc
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from messages import WAIT_S
from stubs import PROTO, reflection, reflection_service

SERVICES = {
    "deepmind.reverb.ReverbService",
    "reprise.v1.Replay", "reprise.v1.Rollouts", "reprise.v1.Runs",
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection",
}


class Reflection:
    """One version of the service. Each request is one message of a stream."""

    def __init__(self, channel, version):
        self.messages = reflection[version]
        self.stub = reflection_service[version].ServerReflectionStub(channel)

    def ask(self, *questions):
        requests = [self.messages.ServerReflectionRequest(**{kind: value})
                    for kind, value in questions]
        answers = list(self.stub.ServerReflectionInfo(iter(requests), timeout=WAIT_S))
        assert [a.original_request for a in answers] == requests
        return answers

    def files(self, kind, value):
        [answer] = self.ask((kind, value))
        assert answer.WhichOneof("message_response") == "file_descriptor_response", answer
        return [descriptor_pb2.FileDescriptorProto.FromString(f)
                for f in answer.file_descriptor_response.file_descriptor_proto]

    def pool(self, symbol):
        """Returns a pool with all files that a symbol needs, as a client would collect them."""
        found, missing = {}, []
        for file in self.files("file_containing_symbol", symbol):
            found[file.name] = file
        missing = [d for f in found.values() for d in f.dependency if d not in found]
        while missing:
            for file in self.files("file_by_filename", missing.pop()):
                found[file.name] = file
            missing = [d for f in found.values() for d in f.dependency if d not in found]
        pool, added = descriptor_pool.DescriptorPool(), set()

        def add(name):
            if name not in added:
                added.add(name)
                for dependency in found[name].dependency:
                    add(dependency)
                pool.Add(found[name])

        for name in found:
            add(name)
        return pool


@pytest.fixture(params=["v1", "v1alpha"])
def mirror(request, channel):
    return Reflection(channel, request.param)


def test_services_are_listed(mirror):
    [answer] = mirror.ask(("list_services", ""))
    assert {s.name for s in answer.list_services_response.service} == SERVICES


@pytest.mark.parametrize("symbol, name", [
    ("deepmind.reverb.ReverbService", "reverb/reverb_service.proto"),
    ("deepmind.reverb.ReverbService.InsertStream", "reverb/reverb_service.proto"),
    ("deepmind.reverb.SampleStreamResponse.SampleEntry", "reverb/reverb_service.proto"),
    ("deepmind.reverb.ChunkData", "reverb/schema.proto"),
    ("tensorflow.TensorProto", "tensorflow/tensor.proto"),
    ("reprise.v1.Replay.Sample", "reprise/v1/reprise.proto"),
    ("grpc.health.v1.HealthCheckResponse.ServingStatus", "grpc/health/v1/health.proto"),
])
def test_symbols_are_found(mirror, symbol, name):
    assert name in [f.name for f in mirror.files("file_containing_symbol", symbol)]


@pytest.mark.parametrize("name", sorted(
    p.relative_to(PROTO).as_posix() for p in PROTO.rglob("*.proto")))
def test_every_file_is_found_by_its_name(mirror, name):
    assert name in [f.name for f in mirror.files("file_by_filename", name)]


@pytest.mark.parametrize("kind", ["file_containing_symbol", "file_by_filename"])
def test_an_unknown_symbol_is_an_error_response_and_the_stream_goes_on(mirror, kind):
    nothing, services = mirror.ask((kind, "no.such.Thing"), ("list_services", ""))
    assert nothing.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]
    assert services.list_services_response.service


def test_requests_about_extensions_get_a_response(mirror):
    """No message has extensions."""
    [answer] = mirror.ask(("all_extension_numbers_of_type", "deepmind.reverb.ChunkData"))
    if answer.WhichOneof("message_response") == "all_extension_numbers_response":
        assert list(answer.all_extension_numbers_response.extension_number) == []
    else:
        assert answer.error_response.error_code in (5, 12)


def test_a_call_made_from_reflection_alone(mirror, channel):
    pool = mirror.pool("deepmind.reverb.ReverbService")
    method = pool.FindServiceByName("deepmind.reverb.ReverbService").methods_by_name["ServerInfo"]
    request = message_factory.GetMessageClass(method.input_type)
    response = message_factory.GetMessageClass(method.output_type)
    call = channel.unary_unary("/deepmind.reverb.ReverbService/ServerInfo",
                               request.SerializeToString, response.FromString)
    answer = call(request(), timeout=WAIT_S)
    assert "uniform" in [t.name for t in answer.table_info]


def test_the_reprise_service_lists_all_its_methods(mirror):
    pool = mirror.pool("reprise.v1.Replay")
    methods = pool.FindServiceByName("reprise.v1.Replay").methods_by_name
    assert {"CreateTable", "DropTable", "AlterTable", "PauseTable", "ResumeTable", "WhyBlocked",
            "Clients", "Status", "Peek", "Update", "Delete", "Sample", "SampleShared"} == set(methods)


def test_the_service_of_runs_lists_all_its_methods(mirror):
    pool = mirror.pool("reprise.v1.Runs")
    methods = pool.FindServiceByName("reprise.v1.Runs").methods_by_name
    assert {"LogScalars", "ReadRuns"} == set(methods)
