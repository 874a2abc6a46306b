# SPDX-License-Identifier: Apache-2.0
"""The signatures and datasets of both packages, in one process: their types, whether they are equal,
and what tf.nest makes of them. `make test-long` runs this beside dm-reverb and TensorFlow."""

import collections

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
reverb = pytest.importorskip("reverb")

import reprise  # noqa: E402

if reverb is reprise:
    pytest.skip("there is no dm-reverb", allow_module_level=True)

Point = collections.namedtuple("Point", "x y")


def spec(shape=(), dtype=tf.float32, name=None):
    return tf.TensorSpec(shape, dtype, name)


SIGNATURES = {
    "leaf": spec([3]),
    "dict": {"b": spec([3], tf.int64, "b"), "a": spec([], tf.bool)},
    "list": [spec([1]), spec([2], tf.uint8)],
    "tuple": (spec([1]), spec([2], tf.uint8)),
    "tuple of one": (spec(),),
    "named": Point(spec([1], name="x"), {"z": spec([2])}),
    "nested": {"a": [{"c": (spec([], tf.string),)}, Point(spec(), spec([2]))], "b": {"x": spec()}},
    "ordered": collections.OrderedDict([("b", spec([1])), ("a", spec([2]))]),
    "unknown dimensions": [spec([None, 3]), spec([None]), spec([None, None])],
    "unknown rank": [spec(None), spec(None, tf.string)],
    "names": [spec(name="a/b"), spec(name="b")],
    "strings": {"w": spec([], tf.string), "v": spec([None], tf.string)},
    "empty": [spec([0]), spec([3, 0])],
}
DTYPES = [tf.float16, tf.float32, tf.float64, tf.bfloat16, tf.int8, tf.int16, tf.int32, tf.int64,
          tf.uint8, tf.uint16, tf.uint32, tf.uint64, tf.bool, tf.complex64, tf.complex128, tf.string]
SIGNATURES.update({dtype.name: [spec([2], dtype)] for dtype in DTYPES})
every_signature = pytest.mark.parametrize("signature", list(SIGNATURES.values()), ids=list(SIGNATURES))


def make_table(package, name, signature=None):
    return package.Table(
        name=name, sampler=package.selectors.Fifo(), remover=package.selectors.Fifo(), max_size=1000,
        rate_limiter=package.rate_limiters.MinSize(1), signature=signature)


@pytest.fixture(scope="module")
def clients():
    """A client of each package, of a server of the same package with a table for each signature."""
    servers, made = [], []
    for package in (reverb, reprise):
        server = package.Server(
            [make_table(package, name, signature) for name, signature in SIGNATURES.items()]
            + [make_table(package, name) for name in ("none", "items")], port=None)
        servers.append(server)
        made.append(package.Client(f"localhost:{server.port}"))
    yield made
    for server in servers:
        server.stop()


def outline(nest):
    """The types and texts of a nest, of its leaves, and of the parts of its leaves. Keys are in order:
    those of dm-reverb have the order of a protobuf map, which varies."""
    if isinstance(nest, dict):
        return type(nest).__name__, [(key, outline(nest[key])) for key in sorted(nest)]
    if isinstance(nest, tuple) and hasattr(nest, "_fields"):
        return type(nest).__name__, nest._fields, [outline(value) for value in nest]
    if isinstance(nest, (list, tuple)):
        return type(nest), [outline(value) for value in nest]
    return type(nest), repr(nest), type(nest.shape), type(nest.dtype), type(nest.name)


def assert_alike(ours, theirs):
    """Compares types, values and hashes of nests of specs, in both directions, and all that tf.nest
    does with them."""
    assert outline(ours) == outline(theirs)
    tf.nest.assert_same_structure(ours, theirs, check_types=True)
    tf.nest.assert_same_structure(theirs, ours, check_types=True)
    flat, expected = tf.nest.flatten(ours), tf.nest.flatten(theirs)
    assert flat == expected and expected == flat
    for one, other in zip(flat, expected):
        assert one.name == other.name and hash(one) == hash(other)
        assert one.is_compatible_with(other) and other.is_compatible_with(one)
        assert one.shape.rank == other.shape.rank
    both = tf.nest.map_structure(lambda one, other: one == other, ours, theirs)
    assert all(tf.nest.flatten(both))
    assert outline(tf.nest.pack_sequence_as(ours, expected)) == outline(theirs)


@every_signature
def test_signature_of_a_table(signature):
    theirs = make_table(reverb, "t", signature).info.signature
    assert_alike(make_table(reprise, "t", signature).info.signature, theirs)


@every_signature
def test_signature_from_a_server(request, clients, signature):
    name = request.node.callspec.id
    theirs, ours = (client.server_info()[name].signature for client in clients)
    assert_alike(ours, theirs)


def test_without_a_signature(clients):
    assert [client.server_info()["none"].signature for client in clients] == [None, None]


@every_signature
def test_signature_of_a_message(signature):
    """Both packages read the message that dm-reverb has written."""
    message = make_table(reverb, "t", signature).internal_table.info()
    ours = reprise.TableInfo.from_serialized_proto(message).signature
    assert_alike(ours, reverb.reverb_types.TableInfo.from_serialized_proto(message).signature)


@every_signature
def test_signature_given_back(signature):
    """What a table returns may be the signature of another one, of either package."""
    ours = make_table(reprise, "t", signature).info.signature
    again = make_table(reprise, "u", ours).info.signature
    assert_alike(make_table(reverb, "t", ours).info.signature, again)


@pytest.mark.parametrize("signature", [SIGNATURES["nested"], SIGNATURES["unknown dimensions"]])
def test_our_own_specs_come_back_as_tensorflows(signature):
    ours = reprise.specs.convert(signature)
    assert_alike(make_table(reprise, "t", ours).info.signature,
                 make_table(reverb, "t", signature).info.signature)
    assert reprise.specs.convert(make_table(reprise, "t", ours).info.signature) == ours


def test_our_own_functions_return_our_own_specs(clients):
    details = clients[1].details()["dict"]["signature"]
    assert details == reprise.specs.convert(SIGNATURES["dict"])
    assert clients[1].sampler("dict", 1).signature() == details


def test_bounds_are_not_stored():
    """A documented difference: Reverb returns a BoundedTensorSpec."""
    from tensorflow.python.framework import tensor_spec

    bounded = tensor_spec.BoundedTensorSpec([2], tf.float32, 0.0, 1.0, "x")
    assert make_table(reverb, "t", [bounded]).info.signature == [bounded]
    assert make_table(reprise, "t", [bounded]).info.signature == [spec([2], name="x")]


def test_a_signature_is_a_signature_of_tensorflow(clients):
    signature = clients[1].server_info()["nested"].signature
    zeros = tf.nest.map_structure(lambda s: tf.zeros(s.shape, s.dtype), signature)

    @tf.function(input_signature=[signature["b"]])
    def read(part):
        return part["x"]

    assert read(zeros["b"]) == 0.0
    flat = tf.nest.flatten(signature)
    dataset = tf.data.Dataset.from_generator(lambda: iter([tuple(tf.nest.flatten(zeros))]),
                                             output_signature=tuple(flat))
    assert dataset.element_spec == tuple(tf.TensorSpec(s.shape, s.dtype) for s in flat)
    assert len(list(dataset)) == 1


STEPS = {
    "plain": {"a": spec([3]), "b": spec([], tf.int64)},
    "nested": {"a": {"c": spec([2, None]), "d": spec([], tf.string)}, "b": spec([], tf.bool)},
    "tuple": (spec([1], tf.uint8), [spec()]),
}
TRANSFORMS = {
    "plain": [lambda s: {"x": s["a"][-2:], "y": s["b"][-1]}, lambda s: {"x": s["a"][-3:], "y": s["b"][-2]}],
    "nested": [lambda s: [s["a"]["c"][-4::2], (s["a"]["d"][-1], s["b"][-3:-1])]],
    "tuple": [lambda s: Point(s[0][-1], {"z": s[1][0][-2:]})],
}


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("name", list(STEPS))
def test_inferred_signatures(name, count):
    made = []
    for package in (reverb, reprise):
        structured = package.structured_writer
        patterns = [structured.pattern_from_transform(STEPS[name], transform)
                    for transform in TRANSFORMS[name][:count]]
        configs = [structured.create_config(pattern, "t") for pattern in patterns]
        made.append(structured.infer_signature(configs, STEPS[name]))
    theirs, ours = made
    assert_alike(ours, theirs)
    assert_alike(make_table(reprise, "t", ours).info.signature,
                 make_table(reverb, "t", theirs).info.signature)


def fill(client, table, lengths):
    with client.trajectory_writer(max(lengths)) as writer:
        for i in range(max(lengths)):
            writer.append({"a": np.full(3, i, np.float32), "b": np.int64(i), "c": str(i)})
        for i, length in enumerate(lengths):
            history = writer.history
            writer.create_item(table, 1.0 + i, {
                "a": history["a"][-length:], "b": history["b"][-1], "c": history["c"][-length:]})
        writer.flush()


ITEMS = {
    "known": ((2, 2, 2), {"a": [2, 3], "b": [], "c": [2]}),
    "rows unknown": ((1, 3, 3, 2), {"a": [None, 3], "b": [], "c": [None]}),
    "all unknown": ((2, 2, 4), {"a": [None, None], "b": [], "c": [None]}),
    "rank unknown": ((1, 2), {"a": None, "b": None, "c": None}),
}
ITEM_DTYPES = {"a": tf.float32, "b": tf.int64, "c": tf.string}


def datasets(clients, kind, dtypes, shapes, **options):
    options = {"max_in_flight_samples_per_worker": 1, "num_workers_per_iterator": 1, **options}
    shapes = {key: tf.TensorShape(shape) for key, shape in shapes.items()}
    return [getattr(package, kind)(client.server_address, "items", dtypes, shapes, **options)
            for package, client in zip((reverb, reprise), clients)]


def assert_same_elements(ours, theirs):
    """Compares types, dtypes and values. The keys of items are random."""
    ours, theirs = list(ours), list(theirs)
    assert len(ours) == len(theirs) > 0
    for one, other in zip(ours, theirs):
        tf.nest.assert_same_structure(one, other, check_types=True)
        one, other = (element._replace(info=element.info._replace(key=tf.constant(0, tf.uint64)))
                      for element in (one, other))
        for a, b in zip(tf.nest.flatten(one), tf.nest.flatten(other)):
            assert type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape
            assert a.numpy().tolist() == b.numpy().tolist()


@pytest.mark.parametrize("case", list(ITEMS))
def test_trajectory_datasets(clients, case):
    lengths, shapes = ITEMS[case]
    theirs, ours = datasets(clients, "TrajectoryDataset", ITEM_DTYPES, shapes,
                            max_samples=len(lengths))
    assert isinstance(ours, tf.data.Dataset) and isinstance(ours, reprise.TrajectoryDataset)
    assert_alike(ours.element_spec, theirs.element_spec)
    for client in clients:
        client.reset("items")
        fill(client, "items", lengths)
    # A Fifo table gives its first item each time.
    assert_same_elements(ours, theirs)


def test_timestep_datasets(clients):
    dtypes = {"a": tf.float32, "b": tf.int64}
    theirs, ours = datasets(clients, "TimestepDataset", dtypes, {"a": [3], "b": []}, max_samples=2)
    assert_alike(ours.element_spec, theirs.element_spec)
    for client in clients:
        client.reset("items")
        client.insert({"a": np.ones(3, np.float32), "b": np.int64(4)}, {"items": 2.0})
    assert_same_elements(ours, theirs)


@pytest.mark.parametrize("name", ["dict", "tuple", "list", "nested", "unknown dimensions"])
def test_datasets_from_a_signature(clients, name):
    theirs, ours = (package.TrajectoryDataset.from_table_signature(client.server_address, name, 1)
                    for package, client in zip((reverb, reprise), clients))
    assert_alike(ours.element_spec, theirs.element_spec)


def test_pattern_datasets():
    made = []
    for package in (reverb, reprise):
        source = tf.data.Dataset.from_tensor_slices({"a": np.arange(6), "end": [False] * 5 + [True]})
        pattern = package.structured_writer.pattern_from_transform(
            source.element_spec, lambda step: {"x": step["a"][-2:], "y": (step["a"][-1],)})
        config = package.structured_writer.create_config(pattern, "t")
        made.append(package.PatternDataset(source, [config], True, lambda step: step["end"]))
    theirs, ours = made
    assert_alike(ours.element_spec, theirs.element_spec)
    read = [[tf.nest.map_structure(lambda t: t.numpy().tolist(), one) for one in d] for d in made]
    assert read[0] == read[1] and len(read[0]) == 5


def test_info_of_samples():
    assert reprise.SampleInfo.tf_dtypes() == tuple(reverb.SampleInfo.tf_dtypes())
    assert reprise.SampleInfo.tf_shapes() == tuple(reverb.SampleInfo.tf_shapes())
