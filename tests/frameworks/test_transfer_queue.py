# SPDX-License-Identifier: Apache-2.0
"""reprise.frameworks.transfer_queue beside TransferQueue's own SimpleStorage."""

import asyncio
import os
import socket
import tempfile
import threading
import unittest

import numpy as np
import ray
import torch
import transfer_queue as tq
from omegaconf import OmegaConf
from tensordict import NonTensorData, NonTensorStack, TensorDict
from transfer_queue.metadata import BatchMeta

import reprise
from reprise.frameworks import transfer_queue as ours

COUNT = 6
SIMPLE = {"storage_backend": "SimpleStorage", "SimpleStorage": {"num_data_storage_units": 2}}
HOOK = "reprise.frameworks.transfer_queue.register"


def setUpModule():
    ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False, logging_level="error",
             runtime_env={"worker_process_setup_hook": HOOK})


def tearDownModule():
    ray.shutdown()


def serve(**options):
    return reprise.Server([reprise.Table.queue("unused", 1)], where="child", **options)


def backend(*servers, **settings):
    addresses = [each if isinstance(each, str) else f"localhost:{each.port}" for each in servers]
    return {"storage_backend": "Reprise", "Reprise": {"servers": addresses, **settings}}


def ragged(dtype, *shape, layout=torch.jagged, least=1):
    rows = [torch.arange((least + i) * int(np.prod(shape))).reshape(least + i, *shape).to(dtype)
            for i in range(COUNT)]
    return torch.nested.as_nested_tensor(rows, layout=layout)


def batch():
    """Returns samples with all kinds of fields."""
    torch.manual_seed(1)
    dtypes = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
              torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64,
              torch.complex128, torch.uint16, torch.uint32, torch.uint64, torch.float8_e5m2,
              torch.float8_e4m3fn]
    fields = {f"dense {dtype}": torch.randint(0, 2, (COUNT, 3)).to(dtype) for dtype in dtypes}
    fields.update({f"scalar {dtype}": torch.randint(0, 2, (COUNT,)).to(dtype) for dtype in dtypes[:10]})
    fields.update({
        "tokens": ragged(torch.int32), "logprob": ragged(torch.bfloat16), "frames": ragged(torch.uint8, 2, 3),
        "empty": ragged(torch.int64, least=0), "strided": ragged(torch.float32, layout=torch.strided),
        "none": torch.zeros(COUNT, 0), "image": torch.rand(COUNT, 3, 4, 5),
        "gradient": torch.rand(COUNT, 2, requires_grad=True),
        "transposed": torch.rand(2, COUNT).t(), "conjugate": torch.rand(COUNT, 2, dtype=torch.complex64).conj(),
        "numbers": torch.from_numpy(np.arange(COUNT * 2).reshape(COUNT, 2)),
        "text": NonTensorStack(*[f"prompt {i} \N{SNOWMAN}" for i in range(COUNT)]),
        "info": NonTensorStack(*[{"id": i, "tools": ["a", None], "score": i / 3} for i in range(COUNT)]),
        "array": NonTensorStack(*[np.arange(i + 1.0) for i in range(COUNT)]),
        "bytes": np.array([b"a" * i for i in range(COUNT)]), "objects": np.array([*"abcde", 6], object),
        "listed": NonTensorData([{"id": i} for i in range(COUNT)], batch_size=[COUNT]),
        "mixed": NonTensorStack(*[torch.ones(2) if i % 2 else "none" for i in range(COUNT)]),
        "inner": torch.nested.as_nested_tensor([torch.ones(2, 1 + i) for i in range(COUNT)],
                                               layout=torch.strided),
    })
    return TensorDict(fields, batch_size=COUNT)


def rows(value):
    if isinstance(value, torch.Tensor):
        return list(value.unbind())
    return [each for each in (value.tolist() if isinstance(value, NonTensorStack) else value)]


def begin(chosen):
    """Starts TransferQueue with a backend. Returns its client."""
    tq.init(OmegaConf.create({"backend": chosen, "controller": {"polling_mode": True}}))
    return tq.get_client()


class Case(unittest.TestCase):
    def start(self, chosen):
        self.addCleanup(tq.close)
        return begin(chosen)

    def same_value(self, a, b, name):
        self.assertEqual(type(a), type(b), name)
        if isinstance(a, torch.Tensor):
            self.assertEqual((a.dtype, a.shape), (b.dtype, b.shape), name)
            if a.dtype.is_complex or a.dtype.is_floating_point and a.element_size() > 1 or not a.numel():
                torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)
            else:
                self.assertTrue(torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))
                                if a.dim() else a.item() == b.item(), name)
        elif isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b)
        else:
            self.assertEqual(a, b, name)

    def same(self, a, b):
        """Compares what two storages return: values, and kinds of fields."""
        self.assertEqual(a.batch_size, b.batch_size)
        self.assertEqual(set(a.keys()), set(b.keys()))
        for name in a.keys():
            x, y = a.get(name), b.get(name)
            self.assertEqual((type(x), getattr(x, "is_nested", None), getattr(x, "layout", None)),
                             (type(y), getattr(y, "is_nested", None), getattr(y, "layout", None)), name)
            self.assertEqual(len(rows(x)), len(rows(y)), name)
            for one, other in zip(rows(x), rows(y)):
                self.same_value(one, other, name)


def fetch(client, fields, count=COUNT, partition="p", task="train", **more):
    return client.get_meta(data_fields=list(fields), batch_size=count, partition_id=partition,
                           task_name=task, **more)


def meta_of(indexes, fields):
    return BatchMeta(global_indexes=list(indexes), partition_ids=["p"] * len(indexes),
                     field_schema={name: {"dtype": torch.int64, "shape": (1,), "is_nested": False,
                                          "is_non_tensor": False} for name in fields},
                     production_status=np.ones(len(indexes), np.int8))


def get(client, indexes, fields):
    return client.get_data(meta_of(indexes, fields))


def numbers(first, count, width=4):
    return TensorDict({"x": torch.arange(first, first + count * width).reshape(count, width)},
                      batch_size=count)


class Flow(Case):
    def scenario(self, chosen):
        """Puts, adds late columns, replaces some, gets and clears, as trainers do. Returns what it got."""
        client, got = self.start(chosen), []
        data = batch()
        put = client.put(data=data, partition_id="p")
        self.assertEqual(put.size, COUNT)
        meta = fetch(client, data.keys())
        self.assertEqual(meta.size, COUNT)
        got.append(client.get_data(meta))
        late = TensorDict({"reward": torch.arange(COUNT * 1.0), "advantage": ragged(torch.bfloat16)},
                          batch_size=COUNT)
        client.put(data=late, metadata=meta)
        meta = fetch(client, ["tokens", "reward", "advantage"], 4, task="score")
        self.assertEqual(meta.size, 4)
        got.append(client.get_data(meta))
        again = TensorDict({"reward": torch.arange(4) * -1.5}, batch_size=4)
        client.put(data=again, metadata=meta)
        got.append(client.get_data(meta.select_fields(["reward"])))
        got.append(client.get_data(meta.select_samples([3, 1]).select_fields(["tokens", "text"][:1])))
        client.clear_samples(meta)
        rest = fetch(client, ["tokens"], COUNT, task="rest")
        self.assertEqual(rest.size, 0)
        rest = fetch(client, ["tokens"], COUNT - 4, task="rest")
        got.append(client.get_data(rest))
        client.clear_partition("p")
        self.assertNotIn("p", client.get_partition_list() or [])
        for key in ("a", "b"):
            tq.kv_put(key=key, partition_id="kv", fields=TensorDict(
                {"x": torch.ones(1, 3) * ord(key), "name": NonTensorStack(key)}, batch_size=1),
                      tag={"score": 1})
        got.append(tq.kv_batch_get(keys=["b", "a"], partition_id="kv"))
        tq.kv_clear(keys=["a", "b"], partition_id="kv")
        tq.close()
        return got

    def test_values_are_those_of_simple_storage(self):
        theirs = self.scenario(SIMPLE)
        for count in (1, 2):
            servers = [serve() for _ in range(count)]
            try:
                found = self.scenario(backend(*servers))
                for number, (a, b) in enumerate(zip(theirs, found, strict=True)):
                    with self.subTest(servers=count, number=number):
                        self.same(a, b)
                for server in servers:
                    rollouts = reprise.Client(f"localhost:{server.port}").rollouts("transfer_queue")
                    self.assertEqual(rollouts.info()["groups"], 0)
            finally:
                for server in servers:
                    server.stop()

    def test_samples_are_spread_over_servers_and_indexes_used_again(self):
        servers = [serve(), serve()]
        self.addCleanup(lambda: [server.stop() for server in servers])
        client = self.start(backend(*servers, threads=2))
        for turn in range(3):  # the controller uses indexes again after they are cleared
            put = client.put(data=numbers(turn, 101), partition_id=f"p{turn}")
            counts = [reprise.Client(f"localhost:{s.port}").rollouts("transfer_queue").info()
                      for s in servers]
            self.assertEqual(sorted(each["groups"] for each in counts), [50, 51])
            self.assertEqual(sum(each["complete"] for each in counts), 101)  # none can expire
            found = client.get_data(fetch(client, ["x"], 101, f"p{turn}"))
            self.assertTrue(torch.equal(torch.stack(list(found["x"].unbind())), numbers(turn, 101)["x"]))
            client.clear_samples(put)

    def test_workers_of_ray_use_the_backend(self):
        server = serve()
        self.addCleanup(server.stop)
        client = self.start(backend(server))

        @ray.remote
        def work(first):
            import transfer_queue

            transfer_queue.init()
            mine = transfer_queue.get_client()
            mine.put(data=TensorDict({"x": torch.full((5, 2), first)}, batch_size=5), partition_id="p")
            return type(mine.storage_manager).__name__

        self.assertEqual(ray.get([work.remote(i) for i in range(3)]), ["RepriseStorageManager"] * 3)
        found = client.get_data(fetch(client, ["x"], 15))
        self.assertEqual(sorted(int(row[0]) for row in found["x"].unbind()), [0] * 5 + [1] * 5 + [2] * 5)


class Crashes(Case):
    def test_killed_server_has_all_samples_when_it_runs_again(self):
        with tempfile.TemporaryDirectory() as folder:
            storage = reprise.Storage(folder, durability="interval")
            server = serve(storage=storage)
            port = server.port
            client = self.start(backend(server))
            put = client.put(data=batch(), partition_id="p")
            before = client.get_data(put)
            server.kill()
            server.wait()
            found, errors = [], []

            def read():
                try:
                    found.append(client.get_data(put))
                except Exception as e:
                    errors.append(e)

            reader = threading.Thread(target=read)  # waits for the server
            reader.start()
            server = serve(storage=storage, port=port)
            reader.join()
            self.assertEqual(errors, [])
            self.same(before, found[0])
            client.put(data=TensorDict({"reward": torch.ones(COUNT)}, batch_size=COUNT), metadata=put)
            self.assertEqual(client.get_data(fetch(client, ["reward"]))["reward"].tolist(), [1.0] * COUNT)
            server.stop()

    def test_controller_and_server_start_again_from_checkpoint_and_directory(self):
        with tempfile.TemporaryDirectory() as folder:
            storage = reprise.Storage(os.path.join(folder, "data"), durability="sync")
            server = serve(storage=storage)
            client = self.start(backend(server))
            before = client.get_data(client.put(data=batch(), partition_id="p"))
            tq.save_checkpoint(os.path.join(folder, "controller"), include_storage=False)
            tq.close()
            server.kill()
            server.wait()
            server = serve(storage=storage)
            client = self.start(backend(server))
            tq.load_checkpoint(os.path.join(folder, "controller"))
            self.same(before, client.get_data(fetch(client, batch().keys())))
            server.stop()

    def test_missing_server_is_named(self):
        with socket.socket() as bound:  # bound, but it does not listen
            bound.bind(("localhost", 0))
            address = f"localhost:{bound.getsockname()[1]}"
            server = serve()
            self.addCleanup(server.stop)
            with self.assertRaisesRegex((RuntimeError, TimeoutError), f"server {address}"):
                tq.init(OmegaConf.create({"backend": backend(server, address, timeout=1)}))
            tq.close()

    def test_server_that_is_lost_is_named(self):
        servers = [serve(), serve()]
        self.addCleanup(servers[0].stop)
        client = self.start(backend(*servers, timeout=2))
        put = client.put(data=numbers(0, COUNT), partition_id="p")
        servers[1].kill()
        lost = f"sample 1, server localhost:{servers[1].port}"
        for call in (lambda: client.get_data(put), lambda: client.clear_samples(put),
                     lambda: client.put(data=numbers(1, COUNT), metadata=put)):
            with self.assertRaisesRegex((RuntimeError, TimeoutError), lost):
                call()
        there = asyncio.run(client.storage_manager.get_data(meta_of([0, 2, 4], ["x"])))
        self.assertEqual(there["x"].unbind()[0].tolist(), [1, 2, 3, 4])  # the put has replaced it
        empty = serve(port=servers[1].port)  # it has no data directory
        self.addCleanup(empty.stop)
        with self.assertRaisesRegex(RuntimeError, f"{lost}: .*transfer_queue"):
            client.get_data(put)


class Inputs(Case):
    @classmethod
    def setUpClass(cls):
        cls.server = serve()
        cls.addClassCleanup(cls.server.stop)
        cls.addClassCleanup(tq.close)
        cls.client = begin(backend(cls.server, timeout=10, max_groups=200))

    def setUp(self):
        self.put = self.client.put(data=numbers(0, COUNT), partition_id=self.id())
        self.addCleanup(self.client.clear_partition, self.id())

    def test_missing_samples_and_fields_are_named(self):
        with self.assertRaisesRegex(tq.StorageKeyNotFoundError, "has no field 'y'; it has x"):
            get(self.client, self.put.global_indexes[:1], ["x", "y"])
        with self.assertRaisesRegex(tq.StorageKeyNotFoundError, "there is no sample 77777"):
            get(self.client, [self.put.global_indexes[1], 77777], ["x"])
        cleared = self.put.global_indexes[2:4]
        self.client.clear_samples(self.put.select_samples([2, 3]))
        with self.assertRaisesRegex(tq.StorageKeyNotFoundError, f"there is no sample {cleared[1]}: aborted"):
            get(self.client, cleared[1:], ["x"])
        manager = self.client.storage_manager
        asyncio.run(manager.clear_data(meta_of([*cleared, 77777], ["x"])))  # no error, as with SimpleStorage

    def test_empty_and_wrong_batches(self):
        manager = self.client.storage_manager
        empty = asyncio.run(manager.get_data(meta_of([], ["x"])))
        self.assertEqual(list(empty.batch_size), [0])
        asyncio.run(manager.put_data(TensorDict({}, batch_size=0), meta_of([], [])))
        asyncio.run(manager.clear_data(meta_of([], [])))
        with self.assertRaisesRegex(ValueError, r"batch size \[2\], but the metadata have 6 samples"):
            asyncio.run(manager.put_data(numbers(0, 2), self.put))
        nested = TensorDict({"x": TensorDict({"y": torch.ones(COUNT)}, batch_size=COUNT)}, batch_size=COUNT)
        with self.assertRaisesRegex(TypeError, "field 'x' .* not a TensorDict"):
            asyncio.run(manager.put_data(nested, self.put))
        with self.assertRaisesRegex(NotImplementedError, "data_parser"):
            self.client.put(data=numbers(0, COUNT), metadata=self.put, data_parser=lambda data: None)

    def test_dtype_and_shape_may_change(self):
        for value in (torch.zeros(COUNT, 2, 2, dtype=torch.bfloat16), torch.arange(COUNT),
                      NonTensorStack(*"abcdef"), torch.ones(COUNT, 1, dtype=torch.float8_e5m2)):
            self.client.put(data=TensorDict({"x": value}, batch_size=COUNT), metadata=self.put)
            found = self.client.get_data(self.put.select_fields(["x"])).get("x")
            for one, other in zip(rows(TensorDict({"x": value}, batch_size=COUNT).get("x")), rows(found)):
                self.same_value(one, other, "x")

    def test_samples_that_are_too_large_or_too_many_are_refused(self):
        large = TensorDict({"x": torch.zeros(COUNT, 2**24)}, batch_size=COUNT)  # 64 MiB each
        with self.assertRaisesRegex((RuntimeError, ValueError), f"sample {self.put.global_indexes[0]}, server .*"):
            self.client.put(data=large, metadata=self.put)
        manager, many = self.client.storage_manager, meta_of(range(300, 600), "x")
        with self.assertRaisesRegex((RuntimeError, TimeoutError), "max_groups"):
            asyncio.run(manager.put_data(numbers(0, 300), many))
        asyncio.run(manager.clear_data(many))

    def test_settings_are_checked(self):
        for settings, text in (({"servers": []}, "addresses of servers"), ({"servers": None}, "addresses"),
                               ({"servers": ["a:1"], "sever": 1}, "no setting 'sever'"),
                               ({"servers": ["http://a:1"]}, "without 'http://'"),
                               ({"servers": ["a:1"], "timeout": 0}, "timeout must be > 0")):
            with self.subTest(settings=settings), self.assertRaisesRegex(ValueError, text):
                ours.RepriseStorageManager(None, OmegaConf.create(settings))
        address = f"localhost:{self.server.port}"
        reprise.Client(address).rollouts("prompts", create={"group_size": 4})
        with self.assertRaisesRegex(ValueError, "groups of 4 items"):
            ours.RepriseStorageManager(None, {"servers": address, "rollouts": "prompts"})


if __name__ == "__main__":
    unittest.main()
