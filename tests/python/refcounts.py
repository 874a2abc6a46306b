# SPDX-License-Identifier: Apache-2.0
"""Counts references, to check that the scenarios leak none.

    python3-dbg tests/python/refcounts.py [SCENARIO...]

Each scenario is run until its caches are warm, and then in rounds. There must be a round in which
none of these counts has grown by one or more for each run:

  total    the sum that a debug build of Python keeps. NumPy is not a debug build and does not
           count, so this is checked only for scenarios without arrays
  blocks   memory blocks of Python: each additional object is an additional block
  tracked  references to all objects that the garbage collector tracks
  fixed    references to immortal objects, of which a leak would add no block: None, dtypes

The output is TAP. `make test ONLY=python` first builds the extension for the debug build of Python,
which also has many more assertions than other builds.
"""

import collections
import gc
import pickle
import sys
import traceback

import numpy as np
import reprise
from reprise import _core, _rl, specs, tree

WARM, ROUNDS, RUNS = 5, 8, 25
Point = collections.namedtuple("Point", "x y")
SCENARIOS = {}
WITHOUT_ARRAYS = {"nests_that_fail", "signatures_of_specs"}
FOREVER = [None, True, False, Ellipsis, NotImplemented, (), "", b"", *range(-5, 257), np.ndarray,
           *(vars(_core)[n] for n in dir(_core) if isinstance(vars(_core)[n], type)),
           *(np.dtype(t) for t in "?bhilBHILefdFDO")]


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


def counts(name):
    """Returns the counts that must not grow, by name."""
    gc.collect()
    # It keeps up to 4096 names of attributes, which PyObject_GetAttrString() makes anew each time.
    sys._clear_type_cache()
    found = {"blocks": sys.getallocatedblocks(),
             "tracked": sum(map(sys.getrefcount, gc.get_objects())),
             "fixed": sum(map(sys.getrefcount, FOREVER))}
    if name in WITHOUT_ARRAYS:
        found["total"] = sys.gettotalrefcount()
    return found


def refuses(error, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except error:
        return
    raise AssertionError(f"{call} took {args}")


@scenario
def nests():
    nest = {"b": [1, Point(2, None)], "a": (np.zeros(3), {}), "c": collections.defaultdict(list)}
    shape = tree.Structure(nest)
    shape.pack(shape.flatten(nest))
    assert pickle.loads(pickle.dumps(shape)) == shape and hash(shape) and repr(shape)
    tree.flatten_with_path(nest)
    tree.map_structure(lambda x, y: x, nest, nest)
    tree.flatten([[i] for i in range(100)])


@scenario
def extensions_of_tables():
    given = [_core.TableExtension("statistics"), _core.TableExtension("diffusion", radius=2, decay=0.5),
             _core.TableExtension("events", max_waiting=4, kinds=31),
             _core.TableExtension("insert_on_sample", target="t", timeout=0)]
    store, options = _core.Store(), {"limiter": (1.0, 1, -1e9, 1e9), "max_size": 10}
    store.add_table("t", **options)
    store.add_table("u", extensions=given, **options)
    refuses(ValueError, store.add_table, "v", extensions=given, **options)
    fresh = _core.TableExtension("statistics")
    refuses(TypeError, store.add_table, "v", extensions=[fresh, 1], **options)
    refuses(TypeError, store.add_table, "v", extensions=1, **options)
    for arguments in ({"radius": 0}, {"decay": "x"}, {"nothing": 1}):
        refuses((TypeError, ValueError), _core.TableExtension, "diffusion", **arguments)
    client = _core.Client.local(store)
    writer = _core.StepWriter(client, 1)
    for step in range(6):
        writer.append([step])
        writer.create_item("u", 1, 1.0)
    writer.flush(10)
    assert len(given[2].take()) == 4 and given[2].read()["dropped"] == 2
    for extension in given:
        repr(extension), extension.kind, extension.read(), extension.close()
    assert given[2].take() is None


@scenario
def stacks_of_samples():
    store = _core.Store()
    store.add_table("t", limiter=(1.0, 1, -1e9, 1e9), max_size=10, sampler="fifo")
    client = _core.Client.local(store)
    writer = _core.StepWriter(client, 3)
    for length in (3, 1, 2):
        for step in range(3):
            writer.append([np.ones(2), np.array(b"x", object)])
        writer.create_item("t", length, 1.0)
    writer.flush(10)
    sampler = _core.Sampler(client, "t")
    sampler.stack(8)
    refuses(ValueError, sampler.stack, 0)


@scenario
def nests_that_fail():
    shape = tree.Structure({"a": 1, "b": [2]})
    for other in (1, {"a": 1}, {"a": 1, "b": 2}, {"a": 1, "b": (2,)}, {"b": [2], "c": 1}):
        refuses((TypeError, ValueError), shape.flatten, other)
    refuses(ValueError, shape.pack, [1])
    refuses(TypeError, tree.flatten, {1: 0, "a": 0})
    loop = []
    loop.append(loop)
    refuses(ValueError, tree.flatten, loop)
    refuses(ValueError, tree.Structure, {"a": loop})
    loop.clear()


@scenario
def tensors():
    for given in (1, 2**64 - 1, 1.5, True, 1j, "text", b"text", np.zeros((2, 3)).T, ["a", b"c"],
                  np.array(["a"]), np.zeros(2, ">i4"), np.zeros(2, [("qint8", "i1")])):
        _core.as_sampled(given)


@scenario
def tensors_that_fail():
    for given in (np.zeros(2, "M8[s]"), np.array(["a", 1], object), np.zeros((1,) * 9)):
        refuses((TypeError, ValueError), _core.as_sampled, given)


@scenario
def signatures_of_specs():
    nest = {"a": specs.TensorSpec((None, 2), "f4", "a"), "b": Point(specs.TensorSpec(None), [])}
    hash(nest["a"])
    repr(nest)
    refuses(ValueError, specs.TensorSpec, (-2,))


@scenario
def signatures():
    nest = {"a": specs.TensorSpec((None, 2), "f4", "a"), "b": Point(specs.TensorSpec(None), [])}
    _core.signature_roundtrip(nest)
    specs.convert({"a": np.zeros(3), "b": [1, "x"]})
    refuses(TypeError, _core.signature_roundtrip, {1: specs.TensorSpec(())})
    refuses(ValueError, specs.convert, [object()])


def table(name="replay", **options):
    settings = {"sampler": reprise.selectors.Prioritized(0.8),
                "remover": reprise.selectors.Fifo(), "max_size": 100,
                "rate_limiter": reprise.rate_limiters.MinSize(1), **options}
    return reprise.Table(name, **settings)


SIGNATURE = {"a": specs.TensorSpec((2, 3), "f4"), "b": specs.TensorSpec((2,), "i8")}


def write(client, items=8):
    with client.trajectory_writer(num_keep_alive_refs=2) as writer:
        for i in range(items + 1):
            writer.append({"a": np.full(3, i, np.float32), "b": i})
            if i > 0:
                trajectory = {"a": writer.history["a"][-2:], "b": writer.history["b"][-2:]}
                writer.create_item("replay", priority=i, trajectory=trajectory)
        writer.flush()


def use(client):
    """Makes the calls of a learner and an actor, and calls that fail."""
    write(client)
    samples = list(client.sample("replay", 4))
    keys = [s[0].info.key for s in samples]
    client.mutate_priorities("replay", updates={keys[0]: 2.5}, deletes=keys[1:2])
    client.server_info()
    refuses(reprise.StatusError, lambda: list(client.sample("nothing", 1)))
    refuses(ValueError, client.mutate_priorities, "replay", updates={keys[0]: float("nan")})
    client.reset("replay")


@scenario
def in_process():
    server = reprise.Server([table(signature=SIGNATURE)])
    use(server.localhost_client())
    server.stop()


@scenario
def over_tcp():
    server = reprise.Server([table()])
    use(reprise.Client(f"localhost:{server.port}", transport="tcp"))
    server.stop()


@scenario
def first_writer():
    server = reprise.Server([table()])
    client = server.localhost_client()
    with client.writer(max_sequence_length=3) as writer:
        for i in range(5):
            writer.append([np.full(2, i), float(i)])
        writer.create_item("replay", 3, 1.0)
        refuses(Exception, writer.append, [np.zeros(3)])
    client.insert([np.zeros(2), 1.0], {"replay": 1.0})
    list(client.sample("replay", 2, emit_timesteps=False))
    server.stop()


@scenario
def writers_that_fail():
    server = reprise.Server([table(signature=SIGNATURE)])
    client = server.localhost_client()
    with client.trajectory_writer(num_keep_alive_refs=1) as writer:
        writer.append({"a": np.zeros(3, np.float32), "b": 1})
        refuses(Exception, writer.append, {"a": np.zeros(4, np.float32), "b": 1})
        refuses(Exception, writer.append, {"a": object(), "b": 1})
        refuses(Exception, lambda: writer.history["c"])
        refuses(Exception, lambda: writer.history["a"][5])
        refuses(Exception, writer.create_item, "replay", 1.0, {"a": 5})
    server.stop()


@scenario
def batches():
    server = reprise.Server([table(signature=SIGNATURE)])
    client = server.localhost_client()
    write(client)
    with iter(client.sampler("replay", 4)) as batches_:
        for _, batch in zip(range(3), batches_):
            assert batch.data["a"].shape == (4, 2, 3)
    server.stop()


@scenario
def structured_writers():
    server = reprise.Server([table()])
    step = reprise.structured.create_reference_step({"a": 0, "b": 0})
    pattern = reprise.structured.pattern_from_transform(step, lambda s: {"a": s["a"][-2:]})
    config = reprise.structured.create_config(pattern, table="replay")
    with server.localhost_client().structured_writer([config]) as writer:
        for i in range(4):
            writer.append({"a": np.full(2, i), "b": i})
        writer.flush()
    server.stop()


@scenario
def timeouts():
    server = reprise.Server([table()])
    client = server.localhost_client()
    refuses(reprise.DeadlineExceededError,
            lambda: list(client.sample("replay", 1, timeout=0.001)))
    server.stop()


@scenario
def buffers():
    buffer = reprise.ReplayBuffer(64, {"o": ((3,), "f4"), "r": ((), "f4")}, alpha=0.6)
    for i in range(3):
        buffer.add(o=np.full((32, 3), i, np.float32), r=np.arange(32, dtype=np.float32))
    batch = buffer.sample(8, beta=0.4)
    buffer.update_priorities(batch["indices"], np.ones(8))


@scenario
def agents():
    given = dict(name="x", shape=(3,), pixels=False, actions=2, seed=0)
    agent = _rl.Dqn({"copies": 2, "start": 4, "batch": 4, "dueling": False}, **given)
    rows, actions, flags = np.zeros((2, 3), "f4"), np.zeros(2, "i4"), np.zeros(2, bool)
    agent.begin(rows)
    for _ in range(10):
        agent.act(rows, actions)
        agent.step(rows, actions, rows, rows, np.zeros(2), flags, flags)
    agent.predict(rows, actions, 2)
    assert agent.metrics()["updates"] and agent.settings()["copies"] == 2 and agent.parameters()
    assert len(_rl.dqn_settings()) == len(agent.settings())


@scenario
def agents_that_fail():
    given = dict(name="x", shape=(3,), pixels=False, actions=2, seed=0)
    for settings in ({"copies": 0}, {"wings": 1}, {"rate": "fast"}, {"start": 10**8}):
        refuses((TypeError, ValueError), _rl.Dqn, settings, **given)
    refuses(ValueError, _rl.Dqn, {}, **{**given, "shape": (0,)})
    agent = _rl.Dqn({"copies": 1}, **given)
    row = np.full((1, 3), np.nan, "f4")
    refuses(RuntimeError, agent.begin, row)
    refuses(ValueError, agent.begin, row[:, :1])
    refuses(ValueError, agent.act, row, np.zeros(2, "i4"))
    refuses(TypeError, agent.step, row)
    refuses(RuntimeError, agent.load, "/no-such-file")
    refuses(RuntimeError, agent.save, "/no-such-folder/file")


def check(name, function):
    """Runs a scenario. Returns None, or the error."""
    try:
        for _ in range(WARM):
            function()
        rounds = []
        for _ in range(ROUNDS):
            before = counts(name)
            for _ in range(RUNS):
                function()
            after = counts(name)
            rounds.append({what: after[what] - before[what] for what in before})
            if all(grown < RUNS for grown in rounds[-1].values()):
                return None
        return "\n".join([f"left behind in {RUNS} runs:", *map(str, rounds)])
    except BaseException:
        return traceback.format_exc()


def main():
    if not hasattr(sys, "gettotalrefcount"):
        sys.exit("this Python does not count references: use a debug build, python3-dbg")
    wanted = sys.argv[1:] or list(SCENARIOS)
    print(f"1..{len(wanted)}")
    for number, name in enumerate(wanted, 1):
        wrong = check(name, SCENARIOS[name])
        print(f"{'not ok' if wrong else 'ok'} {number} - {name}", flush=True)
        for line in (wrong or "").splitlines():
            print(f"# {line}", flush=True)


if __name__ == "__main__":
    main()
