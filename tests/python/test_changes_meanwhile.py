# SPDX-License-Identifier: Apache-2.0
"""Mappings, types and numbers of the caller may run Python code while the extension reads them. If
that code changes the nest, the list or the writer, the extension must not be affected."""

import collections
import gc
import threading
import time

import numpy as np
import pytest
from reprise import _core, specs
from reprise.trajectory_writer import TrajectoryWriter


@pytest.fixture
def writer():
    store = _core.Store()
    store.add_table("t", limiter=(1.0, 1, -1e300, 1e300), max_size=1000)
    return TrajectoryWriter(_core.Client.local(store), 64)


def litter():
    """Allocates the memory that was just freed."""
    return [bytearray(b"\xff" * n) for n in range(15, 2000, 8) for _ in range(20)]


class Acts(dict):
    """A dict that calls `act`, once, when it is made."""

    act = None

    def __init__(self, *args, **kwargs):
        act, Acts.act = Acts.act, None
        if act is not None:
            act()
        super().__init__(*args, **kwargs)


class Index:
    """A number that calls `act` whenever its value is read."""

    def __init__(self, value, act):
        self.value, self.act = value, act

    def __index__(self):
        self.act()
        return self.value


def test_flattening_a_defaultdict_adds_no_keys():
    structure = _core.Structure({"a": 1.0, "b": 2.0})
    other = collections.defaultdict(float, a=1.0, c=3.0)
    with pytest.raises(ValueError, match="same nested structure"):
        structure.flatten(other)
    assert dict(other) == {"a": 1.0, "c": 3.0}
    assert structure.flatten(collections.defaultdict(float, b=2.0, a=1.0)) == [1.0, 2.0]


def test_appending_a_defaultdict_does_not_change_it(writer):
    writer.append(collections.defaultdict(float, a=1.0, b=2.0))
    step = collections.defaultdict(float, a=5.0, c=3.0)
    writer.append(step)
    assert dict(step) == {"a": 5.0, "c": 3.0}
    assert writer.history["c"][-1].numpy() == 3.0
    with pytest.raises(ValueError, match="None data references"):
        writer.history["b"][-1]


def test_the_length_of_a_sequence_is_read_once():
    class Shrinks(collections.abc.Sequence):
        asked = 0

        def __len__(self):
            self.asked += 1
            return 1000 if self.asked == 1 else 1

        def __getitem__(self, i):
            return 1.0

    structure = _core.Structure(Shrinks())
    assert structure.leaf_count == len(structure.paths()) == 1000


def test_a_named_tuple_has_as_many_elements_as_fields():
    class Longer(collections.namedtuple("Longer", "x y")):
        def __len__(self):
            return 1000

        def __getitem__(self, i):
            return 1.0

    with pytest.raises(ValueError, match="as many elements as fields"):
        _core.Structure(Longer(1, 2))


def test_a_signature_of_a_nest_that_changes_is_refused():
    class Shrinks(collections.abc.Mapping):
        asked = 0

        def __len__(self):
            return len(list(iter(self)))

        def __iter__(self):
            self.asked += 1
            return iter([f"key {i}" for i in range(200 if self.asked == 1 else 1)])

        def __getitem__(self, key):
            return specs.TensorSpec((), np.float32)

    with pytest.raises(RuntimeError, match="changed meanwhile"):
        _core.signature_roundtrip(Shrinks())


def test_leaves_are_packed_as_they_were_given():
    leaves = [object() for _ in range(40)]
    given = list(leaves)
    structure = _core.Structure([Acts(a=1)] + [1] * 39)
    Acts.act = lambda: (leaves.clear(), litter())
    packed = structure.pack(leaves)
    assert leaves == [] and packed == [{"a": given[0]}] + given[1:]


def test_a_shape_is_taken_as_it_was_given():
    class Spec:
        shape, dtype, name = [], np.float32, None

    Spec.shape = [Index(3, lambda: (Spec.shape.clear(), litter())), 4, 5]
    assert _core.signature_roundtrip([Spec()])[0].shape == (3, 4, 5)


@pytest.mark.parametrize("steps", [False, True])
def test_samples_survive_changes_to_their_source_lists(steps):
    lists = [[np.arange(3), np.arange(3.0)] for _ in range(4)]
    found = [(1, 0.5, 1, 1.0, 1, columns) for columns in lists]
    structure = _core.Structure([Acts(a=1), 1])
    Acts.act = lambda: (found.clear(), lists[0].clear(), litter())
    made = _core.Client.replay_samples(found, tuple, tuple, structure, steps)
    assert found == lists[0] == [] and len(made) == 4
    for sample in made:
        (_, data), expected = (sample[2], 2) if steps else (sample, np.arange(3))
        np.testing.assert_array_equal(data[0]["a"], expected)
        np.testing.assert_array_equal(data[1], expected)


def test_items_may_be_created_while_one_is_looked_at(writer):
    writer.append({"a": 1.0})
    column = writer.history["a"][-1:]

    class Creates(collections.abc.Mapping):
        armed = False

        def __len__(self):
            return 1

        def __iter__(self):
            return iter(["z"])

        def __getitem__(self, key):
            if Creates.armed:
                Creates.armed = False
                for i in range(8):  # as many structures as it caches
                    writer.create_item("t", 1.0, {f"k{i}": column})
            return column

    writer.create_item("t", 1.0, Creates())
    Creates.armed = True
    writer.create_item("t", 1.0, Creates())
    others = litter()
    sizes = [len(other) for other in others]
    for i in range(20):
        writer.create_item("t", 1.0, {f"q{i}": column})
    writer.flush()
    assert not Creates.armed and writer.pending == 0
    assert [len(other) for other in others] == sizes  # they were not overwritten


def test_steps_may_be_appended_while_the_history_is_made(writer):
    writer.append({"a": Acts(x=1.0), "b": Acts(x=1.0), "c": 1.0})
    Acts.act = lambda: (writer.append({f"new {i}": 1.0 for i in range(50)}), litter())
    assert set(writer.history) == {"a", "b", "c"}
    assert len(writer.history) == 53 and len(writer.history["new 7"]) == 2


def test_a_list_of_numbers_may_change_while_they_are_read(writer):
    for i in range(3):
        writer.append({"a": float(i)})
    history = writer.history["a"]
    for picked in history, history[:]:
        numbers = []
        numbers += [Index(2, lambda n=numbers: (n.clear(), litter())), 0, 1]
        assert picked[numbers].numpy().tolist() == [2.0, 0.0, 1.0] and numbers == []


def test_the_steps_of_the_episode_are_known_inside_an_append(writer):
    class Asks(collections.abc.Mapping):
        def __len__(self):
            return 1

        def __iter__(self):
            return iter(["a"])

        def __getitem__(self, key):
            return float(writer.episode_steps)

    for i in range(3):
        writer.append(Asks())
    assert writer.history["a"][:].numpy().tolist() == [0.0, 1.0, 2.0]


def test_a_writer_is_dropped_while_its_rows_are_read():
    store = _core.Store()
    client = _core.Client.local(store)
    failed = []

    def read(column, started):
        expected = np.arange(32, dtype=np.uint8)
        try:
            while True:
                rows = column.numpy()
                started.set()
                np.testing.assert_array_equal(rows[:, 0], expected)
                np.testing.assert_array_equal(rows[:, -1], expected)
        except (RuntimeError, _core.ReverbError):  # it has expired
            pass
        except BaseException as error:
            failed.append(error)

    for pause in (0.0, 0.001, 0.003, 0.005, 0.008):
        writer = TrajectoryWriter(client, 64)
        for i in range(32):
            writer.append({"x": np.full(1 << 17, i, np.uint8)})
        started = threading.Event()
        thread = threading.Thread(target=read, args=(writer.history["x"][:], started))
        thread.start()
        started.wait(120)
        time.sleep(pause)
        del writer
        gc.collect()
        thread.join(120)
        assert not thread.is_alive() and failed == []
