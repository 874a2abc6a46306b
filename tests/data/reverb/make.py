# SPDX-License-Identifier: Apache-2.0
"""Has dm-reverb write the checkpoints that stand beside this file, and tells what is in them.

    build/peers/reverb/bin/python tests/data/reverb/make.py tests/data/reverb
    build/peers/reverb/bin/python tests/data/reverb/make.py --seeds fuzz/corpus/tfrecord

They were made once, by dm-reverb 0.14.0, and are kept as they are: another run makes others, with
other keys and times. `plain` and the old forms are made from the first by rewriting it, since no
dm-reverb that can still be had writes them. expected.json says what they hold, as dm-reverb sees
it. With --seeds, they become seeds of fuzz/fuzz_tfrecord.c instead.
"""

import json
import os
import pathlib
import shutil
import struct
import sys
import tempfile
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np  # noqa: E402
import reverb  # noqa: E402
import tensorflow as tf  # noqa: E402
from reverb.cc import schema_pb2  # noqa: E402
from reverb.cc.checkpointing import checkpoint_pb2  # noqa: E402

SIGNATURE = {
    "a": tf.TensorSpec([3, 2], tf.float32, name="a"),
    "b": (tf.TensorSpec([], tf.int64, name="b0"),),
}
S, R = reverb.selectors, reverb.rate_limiters


def tables():
    def table(name, sampler=None, remover=None, limiter=None, **options):
        return reverb.Table(name, sampler or S.Uniform(), remover or S.Fifo(),
                            options.pop("max_size", 100), limiter or R.MinSize(1), **options)
    return [
        table("uniform"),
        table("fifo", S.Fifo()),
        table("lifo", S.Lifo(), S.Lifo()),
        table("prioritized", S.Prioritized(0.8), S.Prioritized(-0.4)),
        table("max-heap", S.MaxHeap()),
        table("min-heap", S.MinHeap()),
        table("signed", S.Fifo(), signature=SIGNATURE),
        table("ratio", S.Fifo(), limiter=R.SampleToInsertRatio(2.0, 2, 4.0)),
        table("small", S.Fifo(), max_size=4, max_times_sampled=3),
        reverb.Table.queue("queue", 8),
        reverb.Table.stack("stack", 8),
        table("empty"),
    ]


def fill(client, rng):
    """Trajectories over several columns and chunk lengths, some drawn, some deleted."""
    names = ["uniform", "fifo", "lifo", "prioritized", "max-heap", "min-heap"]
    for episode in range(3):
        with client.trajectory_writer(8) as writer:
            writer.configure(("image",), num_keep_alive_refs=8, max_chunk_length=3)
            writer.configure(("reward",), num_keep_alive_refs=8, max_chunk_length=8)
            for step in range(10):
                writer.append({
                    "image": rng.integers(0, 255, (4, 4, 1), dtype=np.uint8),
                    "reward": np.float32(episode * 100 + step),
                    "count": np.int64(step),
                    "name": np.asarray(f"step {step}".encode()),
                })
                if step < 3 or step % 2:
                    continue
                for i, name in enumerate(names):
                    writer.create_item(name, float((episode * 7 + step * 3 + i) % 5), {
                        "images": writer.history["image"][-3:],
                        "last": writer.history["reward"][-1],
                        "counts": writer.history["count"][-4:],
                        "names": writer.history["name"][-2:],
                    })
            writer.flush()
    with client.trajectory_writer(3) as writer:
        for step in range(6):
            writer.append({"a": np.full(2, step, np.float32), "b": (np.int64(step),)})
            if step >= 2:
                writer.create_item("signed", 1.0, {"a": writer.history["a"][-3:],
                                                   "b": (writer.history["b"][0][-1],)})
        writer.flush()
    for number in range(9):
        client.insert([np.int32(number), np.zeros([2], np.float64)],
                      {"small": 1.0, "ratio": 2.0} if number < 4 else {"small": float(number)})
    for number in range(5):
        client.insert(np.int32(number), {"queue": 1.0, "stack": 1.0})


def use(client):
    """Draws, new priorities, deletions."""
    def draw(name, count=1):
        return [s.info for s in client.sample(name, count, emit_timesteps=False)]
    for name in ("uniform", "fifo", "prioritized", "max-heap", "ratio", "queue", "stack", "small"):
        draw(name, 2)
    client.mutate_priorities("fifo", deletes=[draw("fifo")[0].key])
    client.mutate_priorities("lifo", updates={draw("lifo")[0].key: 12.5})
    client.mutate_priorities("min-heap", updates={draw("min-heap")[0].key: 0.0})


def crc32c(data):
    table = crc32c.__dict__.setdefault("table", [])
    if not table:
        for i in range(256):
            for _ in range(8):
                i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
            table.append(i)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF)


def read_records(path):
    data = path.read_bytes()
    data = zlib.decompress(data) if data[:1] == b"\x78" else data
    while data:
        [size] = struct.unpack_from("<Q", data)
        assert data[8:12] == masked(data[:8])
        assert data[12 + size:16 + size] == masked(data[12:12 + size])
        yield data[12:12 + size]
        data = data[16 + size:]


def write_records(path, records, compress=True):
    data = b"".join(head + masked(head) + r + masked(r)
                    for r in records for head in [struct.pack("<Q", len(r))])
    path.write_bytes(zlib.compress(data) if compress else data)


OLD_TABLES = {"small", "ratio", "queue", "stack"}
FILES = ["tables.tfrecord", "items.tfrecord", "chunks.tfrecord"]


def rewrite(source, to, change, compress=True):
    """A checkpoint made from another: `change` gets a file's name and its records."""
    to.mkdir()
    for name in FILES:
        write_records(to / name, change(name, list(read_records(source / name))), compress)
    (to / "DONE").touch()


def old_form(name, records):
    """Items of whole chunks, and tensors in another place. Only of tables whose items are so."""
    if name == "tables.tfrecord":
        parsed = [checkpoint_pb2.PriorityTableCheckpoint.FromString(r) for r in records]
        return [p.SerializeToString() for p in parsed if p.table_name in OLD_TABLES]
    if name == "chunks.tfrecord":
        parsed = [schema_pb2.ChunkData.FromString(r) for r in records]
        for p in parsed:
            p.deprecated_data.extend(p.data.tensors)
            p.ClearField("data")
            p.ClearField("data_tensors_len")
        return [p.SerializeToString() for p in parsed]
    parsed = [p for p in map(schema_pb2.PrioritizedItem.FromString, records) if p.table in OLD_TABLES]
    for p in parsed:
        slices = p.flat_trajectory.columns[0].chunk_slices
        p.deprecated_chunk_keys.extend(s.chunk_key for s in slices)
        p.deprecated_sequence_range.offset = slices[0].offset
        p.deprecated_sequence_range.length = sum(s.length for s in slices)
        p.ClearField("flat_trajectory")
    return [p.SerializeToString() for p in parsed]


def describe(folder):
    """What is in a checkpoint, from its own messages."""
    told = {}
    for record in read_records(folder / "tables.tfrecord"):
        t = checkpoint_pb2.PriorityTableCheckpoint.FromString(record)
        told[t.table_name] = {
            "max_size": t.max_size, "max_times_sampled": t.max_times_sampled,
            "inserts": t.rate_limiter.insert_count, "samples": t.rate_limiter.sample_count,
            "deletes": t.rate_limiter.delete_count, "unique_samples": t.num_unique_samples,
            "deleted_episodes": t.num_deleted_episodes, "items": [],
        }
    for record in read_records(folder / "items.tfrecord"):
        i = schema_pb2.PrioritizedItem.FromString(record)
        told[i.table]["items"].append({
            "key": i.key, "priority": i.priority, "times_sampled": i.times_sampled,
            "inserted_at_ns": i.inserted_at.seconds * 10**9 + i.inserted_at.nanos,
            "columns": len(i.flat_trajectory.columns),
        })
    return {"tables": told, "chunks": len(list(read_records(folder / "chunks.tfrecord")))}


def save_seeds(data, out):
    """The files as they are, and the records of one table, to be framed by the target."""
    out.mkdir(parents=True, exist_ok=True)
    for kind in ("zlib", "plain"):
        (out / f"file_{kind}").write_bytes(b"\0" + (data / kind / "tables.tfrecord").read_bytes())
    for table in ("queue", "small", "signed", "uniform"):
        tables = [r for r in read_records(data / "zlib" / "tables.tfrecord")
                  if checkpoint_pb2.PriorityTableCheckpoint.FromString(r).table_name == table]
        items = [r for r in read_records(data / "zlib" / "items.tfrecord")
                 if schema_pb2.PrioritizedItem.FromString(r).table == table][:3]
        keys = {s.chunk_key for r in items
                for c in schema_pb2.PrioritizedItem.FromString(r).flat_trajectory.columns
                for s in c.chunk_slices}
        chunks = [r for r in read_records(data / "zlib" / "chunks.tfrecord")
                  if schema_pb2.ChunkData.FromString(r).chunk_key in keys]
        for form, change in (("new", lambda _, r: r), ("old", old_form)):
            if form == "old" and table not in OLD_TABLES:
                continue
            files = [change(name, r) for name, r in
                     zip(("tables.tfrecord", "chunks.tfrecord", "items.tfrecord"),
                         (tables, chunks, items))]
            (out / f"{form}_{table}").write_bytes(b"\1" + b"".join(
                struct.pack("<BH", i, len(r)) + r for i, rs in enumerate(files) for r in rs))


def main():
    if sys.argv[1] == "--seeds":
        save_seeds(pathlib.Path(__file__).parent, pathlib.Path(sys.argv[2]))
        return
    out = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as root:
        server = reverb.Server(tables(), checkpointer=reverb.checkpointers.DefaultCheckpointer(root))
        client = reverb.Client(f"localhost:{server.port}")
        fill(client, np.random.default_rng(7))
        use(client)
        made = pathlib.Path(client.checkpoint())
        server.stop()
        for name in ("zlib", "plain", "old"):
            shutil.rmtree(out / name, ignore_errors=True)
        shutil.copytree(made, out / "zlib")
    rewrite(out / "zlib", out / "plain", lambda _, records: records, compress=False)
    rewrite(out / "zlib", out / "old", old_form, compress=False)
    (out / "expected.json").write_text(json.dumps(describe(out / "zlib"), indent=1) + "\n")


if __name__ == "__main__":
    main()
