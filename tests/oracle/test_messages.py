# SPDX-License-Identifier: Apache-2.0
"""Random messages made by protobuf go through our codec and come back as they were."""

import random

import pytest
from generate import Generator
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.message import DecodeError
from wire import damaged, rearranged

ROUNDS = 300
NAMES = sorted(n.removeprefix("make_") for n in dir(Generator) if n.startswith("make_"))

# Numbers of repeated uint64 fields.
PACKED = {"MutatePrioritiesRequest": {3}, "InsertStreamRequest": {3}, "PeekRequest": {2},
          "DeleteRequest": {2}}

# Messages of which our reader looks at all there is, so that it must see what protobuf sees.
WHOLE = ["SampleStreamRequest", "MutatePrioritiesRequest", "ResetRequest", "DropTableRequest",
         "AlterTableRequest", "PeekRequest", "DeleteRequest", "UpdateRequest", "SampleRequest",
         "HealthCheckRequest"]


def same(a, b):
    """Equal in every field, also where a number is not equal to itself."""
    return a.SerializeToString(deterministic=True) == b.SerializeToString(deterministic=True)


def expected(name, message):
    """What the codec makes of a message where it does not come out as it went in."""
    if name == "WhyBlockedRequest":
        message.max_calls = min(message.max_calls, 1000) or 100
    if name == "CreateTableRequest":
        options = message.options
        if not options.HasField("sampler"):
            options.sampler.uniform = True
        if not options.HasField("remover"):
            options.remover.fifo = True
        limits = {"samples_per_insert": 1.0, "min_size": 1, "min_diff": -1.7976931348623157e308,
                  "max_diff": 1.7976931348623157e308}
        for field, value in limits.items():
            if not options.limiter.HasField(field):
                setattr(options.limiter, field, value)
    return message


@pytest.mark.parametrize("name", NAMES)
def test_messages_round_trip(name, codec, messages):
    rng = random.Random(name)
    generator = Generator(rng, messages)
    sizes = set()
    for _ in range(ROUNDS):
        message = generator.make(name)
        data = message.SerializeToString()
        status, back = codec.echo(name, data)
        assert status == 0, f"{back.decode()}\n{message}"
        sizes.add(len(data))
        message = expected(name, message)
        found = messages[name].FromString(back)
        assert same(found, message), f"{message}\ncame back as\n{found}"
    assert len(sizes) > 1


@pytest.mark.parametrize("name", [n for n in NAMES if n.endswith("Request")])
def test_other_bytes_that_mean_the_same_are_read_the_same(name, codec, messages):
    rng = random.Random(name + "rearranged")
    generator = Generator(rng, messages)
    for _ in range(ROUNDS):
        message = generator.make(name)
        data = rearranged(rng, message.SerializeToString(), PACKED.get(name, ()))
        status, back = codec.echo(name, data)
        assert status == 0, f"{back.decode()}\n{message}"
        assert same(messages[name].FromString(back), expected(name, message))


@pytest.mark.parametrize("name", WHOLE)
def test_damaged_messages_that_parse_also_parse_in_protobuf(name, codec, messages):
    rng = random.Random(name + "damaged")
    generator = Generator(rng, messages)
    read = 0
    for _ in range(5 * ROUNDS):
        data = damaged(rng, generator.make(name).SerializeToString())
        status, back = codec.echo(name, data)
        if status != 0:
            assert status in (3, 8) and back
            continue
        read += 1
        try:
            message = messages[name].FromString(data)
        except DecodeError:
            pytest.fail(f"protobuf refuses {data.hex()}")
        message.DiscardUnknownFields()
        if name == "AlterTableRequest":
            message.limiter.SetInParent()
        assert same(messages[name].FromString(back), message), data.hex()
    assert read > ROUNDS / 10


def test_bounded_specs_come_back_as_plain_ones(codec, messages):
    value = messages["StructuredValue"]()
    bounded = value.list_value.values.add().bounded_tensor_spec_value
    bounded.name, bounded.dtype = "x", 1
    bounded.shape.dim.add(size=3)
    bounded.minimum.float_val.append(-1)
    bounded.maximum.float_val.append(1)
    status, back = codec.echo("StructuredValue", value.SerializeToString())
    assert status == 0
    spec = messages["StructuredValue"].FromString(back).list_value.values[0].tensor_spec_value
    assert (spec.name, spec.dtype, [d.size for d in spec.shape.dim]) == ("x", 1, [3])


def reflect(codec, messages, **request):
    asked = messages["ServerReflectionRequest"](host="here", **request)
    status, back = codec.echo("ServerReflectionRequest", asked.SerializeToString())
    assert status == 0
    response = messages["ServerReflectionResponse"].FromString(back)
    assert response.valid_host == "here"
    assert same(response.original_request, asked)
    return response


def test_every_service_can_be_called_from_its_reflection(codec, messages):
    services = [s.name for s in
                reflect(codec, messages, list_services="").list_services_response.service]
    assert "deepmind.reverb.ReverbService" in services and "reprise.v1.Replay" in services
    for service in services:
        files = reflect(codec, messages, file_containing_symbol=service)
        pool = descriptor_pool.DescriptorPool()
        # The file asked for stands first; what it imports must be known before it is.
        for data in reversed(imports_last(files.file_descriptor_response.file_descriptor_proto)):
            pool.AddSerializedFile(data)
        methods = pool.FindServiceByName(service).methods
        assert methods and all(m.input_type.full_name and m.output_type.full_name for m in methods)


def imports_last(files):
    """Files in an order in which each stands before all that it imports."""
    files = {descriptor_pb2.FileDescriptorProto.FromString(f).name: f for f in files}
    ordered = []
    while files:
        imported = {d for f in files.values()
                    for d in descriptor_pb2.FileDescriptorProto.FromString(f).dependency}
        free = [n for n in files if n not in imported]
        assert free
        ordered += [files.pop(n) for n in free]
    return ordered


def test_descriptors_are_those_of_the_classes(codec, messages):
    for name, cls in messages.items():
        file = cls.DESCRIPTOR.file
        answer = reflect(codec, messages, file_by_filename=file.name).file_descriptor_response
        found = descriptor_pb2.FileDescriptorProto.FromString(answer.file_descriptor_proto[0])
        known = descriptor_pb2.FileDescriptorProto()
        file.CopyToProto(known)
        for field in all_fields(found):
            field.ClearField("json_name")
        for field in all_fields(known):
            field.ClearField("json_name")
        assert found == known, name
        again = reflect(codec, messages, file_containing_symbol=cls.DESCRIPTOR.full_name)
        assert again.file_descriptor_response == answer


def all_fields(message):
    """Every FieldDescriptorProto in a file or a message."""
    for field in getattr(message, "field", []):
        yield field
    for inner in list(getattr(message, "message_type", [])) + list(getattr(message, "nested_type", [])):
        yield from all_fields(inner)


def test_unknown_names_are_errors_within_the_response(codec, messages):
    for request in ({"file_by_filename": "no.proto"}, {"file_containing_symbol": "no.Such"},
                    {"all_extension_numbers_of_type": "no.Such"}):
        assert reflect(codec, messages, **request).error_response.error_code == 5
    assert reflect(codec, messages).error_response.error_code == 12
