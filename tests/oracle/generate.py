# SPDX-License-Identifier: Apache-2.0
"""Random messages of every kind that the server reads or writes: whatever a peer may say, with
numbers at the edges of their types more often than not."""

from wire import varint

UINT64 = [0, 1, 127, 128, 2**31, 2**32 - 1, 2**63, 2**64 - 1]
INT64 = [0, 1, -1, 2**31, -2**31, 2**63 - 1, -2**63]
INT32 = [0, 1, -1, 2**31 - 1, -2**31]
DOUBLE = [0.0, -0.0, 1.0, -1.5, 0.1, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf"),
          float("nan")]
LETTERS = "abcxyz_/ é€😀\x01\x7f"
KINDS = ["fifo", "uniform", "prioritized", "heap", "lifo"]
PLAIN_DTYPES = {1: 4, 2: 8, 3: 4, 4: 1, 5: 2, 6: 1, 9: 8, 10: 1, 19: 2, 22: 4, 23: 8}


class Generator:
    def __init__(self, rng, messages):
        self.rng, self.m = rng, messages
        self.makers = {name[5:]: getattr(self, name) for name in dir(self)
                       if name.startswith("make_")}

    def make(self, name):
        message = self.m[name]()
        self.makers[name](message)
        return message

    def maybe(self):
        return self.rng.random() < 0.7

    def some(self, most=4):
        return range(self.rng.choice([0, 1, 1, 2, most]))

    def uint64(self):
        return self.rng.choice(UINT64 + [self.rng.getrandbits(64)])

    def int64(self):
        return self.rng.choice(INT64 + [self.rng.getrandbits(62)])

    def int32(self):
        return self.rng.choice(INT32 + [self.rng.getrandbits(30)])

    def count(self):
        return self.rng.choice([0, 1, 2**31 - 1, self.rng.getrandbits(10)])

    def double(self):
        return self.rng.choice(DOUBLE + [self.rng.gauss(0, 1)])

    def text(self, least=0):
        size = self.rng.choice([least, 1, 5, 40, 60])  # of up to four bytes: names have 255
        return "".join(self.rng.choice(LETTERS) for _ in range(size))

    def make_SampleStreamRequest(self, m):
        m.table, m.num_samples = self.text(), self.int64()
        if self.maybe():
            m.rate_limiter_timeout.milliseconds = self.int64()

    def updates(self, repeated):
        for _ in self.some(30):
            repeated.add(key=self.uint64(), priority=self.double())

    def make_MutatePrioritiesRequest(self, m):
        m.table = self.text()
        self.updates(m.updates)
        m.delete_keys.extend(self.uint64() for _ in self.some(50))

    def make_ResetRequest(self, m):
        m.table = self.text()

    def make_InitializeConnectionRequest(self, m):
        m.pid, m.table_name = self.int64(), self.text()

    def trajectory(self, t, slice_of):
        for _ in range(self.rng.randrange(1, 5)):
            column = t.columns.add(squeeze=self.rng.random() < 0.3)
            for _ in range(1 if column.squeeze else self.rng.randrange(1, 5)):
                slice_of(column.chunk_slices.add())

    def any_slice(self, s):
        s.chunk_key, s.offset, s.length, s.index = (self.uint64(), self.count(), self.count(),
                                                    self.count())

    def make_InsertStreamRequest(self, m):
        for _ in self.some(5):
            self.chunk(m.chunks.add())
        for _ in self.some(5):
            item = m.items.add(key=self.uint64(), table=self.text(), priority=self.double(),
                               times_sampled=self.int32())
            self.trajectory(item.flat_trajectory, self.any_slice)
        m.keep_chunk_keys.extend(self.uint64() for _ in self.some(50))

    def spec(self, spec):
        if self.maybe():
            spec.name = self.text()
        spec.shape.SetInParent()
        if self.rng.random() < 0.2:
            spec.shape.unknown_rank = True
        else:
            for _ in range(self.rng.randrange(5)):
                spec.shape.dim.add(size=self.rng.choice([-1, 0, 1, 84, 2**40]))
        spec.dtype = self.rng.choice(list(PLAIN_DTYPES) + [7, 8, 14, 18, 24, 30])

    def make_StructuredValue(self, value, depth=0):
        kind = self.rng.choice(["tensor_spec_value"] * (1 + depth)
                               + ["list_value", "tuple_value", "dict_value", "named_tuple_value"])
        target = getattr(value, kind)
        target.SetInParent()
        count = self.rng.randrange(1, 4)
        if kind == "tensor_spec_value":
            self.spec(target)
        elif kind == "dict_value":
            for i in range(count):
                self.make_StructuredValue(target.fields[f"{i}{self.text()}"], depth + 1)
        elif kind == "named_tuple_value":
            target.name = self.text()
            for i in range(count):
                self.make_StructuredValue(target.values.add(key=f"{i}{self.text()}").value, depth + 1)
        else:
            for _ in range(count):
                self.make_StructuredValue(target.values.add(), depth + 1)

    def distribution(self, options, says_deterministic):
        kind = self.rng.choice(KINDS)
        if kind == "prioritized":
            options.prioritized.priority_exponent = self.double()
        elif kind == "heap":
            options.heap.min_heap = self.rng.random() < 0.5
            options.heap.SetInParent()
        else:
            setattr(options, kind, True)
        if says_deterministic:
            options.is_deterministic = kind in ("fifo", "lifo", "heap")

    def make_ServerInfoResponse(self, m):
        m.tables_state_id.SetInParent()
        m.tables_state_id.high, m.tables_state_id.low = self.uint64(), self.uint64()
        for _ in self.some(5):
            table = m.table_info.add(
                max_size=self.int64(), max_times_sampled=self.int32(), current_size=self.int64(),
                name=self.text(), num_episodes=self.int64(), num_deleted_episodes=self.int64(),
                num_unique_samples=self.int64())
            self.distribution(table.sampler_options, True)
            self.distribution(table.remover_options, True)
            limiter = table.rate_limiter_info
            limiter.samples_per_insert, limiter.min_diff = self.double(), self.double()
            limiter.max_diff, limiter.min_size_to_sample = self.double(), self.int64()
            limiter.insert_stats.completed = self.int64()
            limiter.sample_stats.completed = self.int64()
            for part in (limiter.insert_stats, limiter.sample_stats, table.table_worker_time):
                part.SetInParent()
            if self.maybe():
                self.make_StructuredValue(table.signature)

    def limiter(self, limiter):
        limiter.SetInParent()
        for name in ("samples_per_insert", "min_diff", "max_diff"):
            if self.maybe():
                setattr(limiter, name, self.double())
        if self.maybe():
            limiter.min_size = self.int64()

    def make_CreateTableRequest(self, m):
        o = m.options
        o.SetInParent()
        o.name, o.max_size, o.max_bytes = self.text(), self.int64(), self.uint64()
        o.max_times_sampled, o.soft_limit = self.int32(), self.maybe()
        for part in (o.sampler, o.remover):
            if self.maybe():
                self.distribution(part, False)
        if self.maybe():
            self.limiter(o.limiter)
        if self.maybe():
            self.make_StructuredValue(o.signature)

    def make_DropTableRequest(self, m):
        m.table = self.text()

    def make_AlterTableRequest(self, m):
        m.table, m.recenter = self.text(), self.maybe()
        for name, value in (("max_size", self.int64), ("max_bytes", self.uint64),
                            ("max_times_sampled", self.int32)):
            if self.maybe():
                setattr(m, name, value())
        self.limiter(m.limiter)

    def make_PauseTableRequest(self, m):
        m.table, m.side = self.text(), self.rng.randrange(3)

    def make_WhyBlockedRequest(self, m):
        m.table, m.max_calls = self.text(), abs(self.int32())

    def make_WhyBlockedResponse(self, m):
        for _ in self.some():
            call = m.calls.add(table=self.text(), side=self.rng.randrange(1, 3),
                               wanted=self.count(), done=self.count(), waiting_ms=self.count(),
                               why=self.text()[:60], client=self.text()[:60],
                               client_id=self.uint64())
            if self.maybe():
                call.deadline_ms = self.count()
        m.total = self.count()

    def make_ClientsResponse(self, m):
        for _ in self.some():
            m.clients.add(id=self.uint64(), address=self.text(), role=self.text(),
                          protocol=self.text(), open_ms=self.count(), calls=self.uint64(),
                          bytes_in=self.uint64(), bytes_out=self.uint64(),
                          is_caller=self.maybe())
        m.total = len(m.clients) + self.count()  # the reader raises a total below

    def make_StatusRequest(self, m):
        m.table, m.without_tables = self.text(), self.maybe()

    def make_StatusResponse(self, m):
        for _ in self.some():
            status = m.tables.add(
                name=self.text(), total_weight=self.double(), size=self.int64(),
                bytes=self.uint64(), max_bytes=self.uint64(), soft_limit=self.maybe(),
                closed=self.maybe(), inserts_paused=self.maybe(), samples_paused=self.maybe(),
                deletes=self.int64(), updates=self.int64(), evictions=self.int64(),
                max_priority=self.double(), limiter_diff=self.double(),
                waiting_inserts=self.int64(), waiting_samples=self.int64())
            for waits in (status.insert_waits, status.sample_waits):
                waits.SetInParent()
                waits.longest_ns, waits.parked = self.int64(), self.int64()
                waits.total_ns = self.int64()
        if self.maybe():
            self.durability(m.durability)

    def durability(self, d):
        d.SetInParent()
        d.mode, d.degraded, d.trouble = self.rng.randrange(3), self.maybe(), self.text()[:60]
        for field in d.DESCRIPTOR.fields:
            if field.type == field.TYPE_UINT64:
                setattr(d, field.name, self.uint64())
            if field.type == field.TYPE_INT64:
                setattr(d, field.name, self.int64())
        if self.maybe():
            p = d.progress
            p.what = self.rng.choice(["loading", "redoing", "checkpoint", "verifying"])
            p.done, p.total = self.uint64(), self.uint64()
            p.elapsed_ns, p.left_ns = self.int64(), self.int64()

    def make_PeekRequest(self, m):
        m.table, m.with_data, m.cut_rows = self.text(), self.maybe(), self.maybe()
        m.keys.extend(self.uint64() for _ in self.some(50))

    def make_DeleteRequest(self, m):
        m.table = self.text()
        m.keys.extend(self.uint64() for _ in self.some(50))

    def make_UpdateRequest(self, m):
        m.table = self.text()
        self.updates(m.updates)

    def make_UpdateResponse(self, m):
        m.found = self.count()

    make_DeleteResponse = make_UpdateResponse

    def make_SampleRequest(self, m):
        m.table, m.count, m.at_least = self.text(), self.int64(), self.int64()
        m.distinct, m.cut_rows, m.beta = self.maybe(), self.maybe(), self.double()
        if self.maybe():
            m.timeout_ms = self.int64()

    def chunk(self, chunk, rows=None):
        """A chunk that our parser takes: tensors stored as snappy literals. Returns its rows."""
        rows = rows or self.rng.randrange(1, 6)
        chunk.chunk_key = self.rng.getrandbits(64) or 1
        sequence = chunk.sequence_range
        sequence.episode_id, sequence.start = self.uint64(), self.rng.randrange(100)
        sequence.end = sequence.start + rows - 1
        sequence.sparse = self.rng.random() < 0.2
        for _ in range(self.rng.randrange(1, 4)):
            tensor = chunk.data.tensors.add()
            tensor.dtype = self.rng.choice(list(PLAIN_DTYPES))
            shape = [rows] + self.rng.choice([[], [3], [2, 2]])
            size = PLAIN_DTYPES[tensor.dtype]
            for dim in shape:
                tensor.tensor_shape.dim.add(size=dim)
                size *= dim
            tensor.tensor_content = stored(bytes(self.rng.getrandbits(8) for _ in range(size)))
        chunk.data_tensors_len = len(chunk.data.tensors)
        chunk.data_uncompressed_size = self.rng.randrange(1000)
        return rows

    def sample(self, info, chunks):
        """An item over rows of `chunks`, a list of (chunk, rows), in which every chunk is used."""
        left = list(chunks)

        def slice_of(s):
            chunk, rows = left.pop(0) if left else self.rng.choice(chunks)
            s.chunk_key, s.offset = chunk.chunk_key, self.rng.randrange(rows)
            s.length = self.rng.randrange(1, rows - s.offset + 1)
            s.index = self.rng.randrange(len(chunk.data.tensors))

        item = info.item
        item.key, item.table, item.priority = self.uint64(), self.text(1), self.double()
        item.times_sampled = self.int32()
        item.inserted_at.SetInParent()
        item.inserted_at.seconds = self.rng.choice([0, 1, 1700000000, 9000000000])
        item.inserted_at.nanos = self.rng.choice([0, 1, 999999999])
        while left:  # one slice a column: slices of one column must have one shape
            column = item.flat_trajectory.columns.add()
            slice_of(column.chunk_slices.add())
            column.squeeze = column.chunk_slices[0].length == 1 and self.maybe()
        info.probability, info.table_size = self.double(), self.int64()
        info.rate_limited = self.maybe()

    def chunks(self, repeated, most):
        made = []
        for _ in range(self.rng.randrange(1, most)):
            chunk = repeated.add()
            made.append((chunk, self.chunk(chunk)))
        return made

    def make_SampleStreamResponse(self, m):
        for _ in self.some():
            entry = m.entries.add(end_of_sequence=True)
            self.sample(entry.info, self.chunks(entry.data, 5))

    def make_SampleResponse(self, m):
        chunks = self.chunks(m.chunks, 6)
        for _ in self.some():
            entry = m.entries.add(weight=self.double())
            self.sample(entry.info, self.rng.sample(chunks, self.rng.randrange(1, len(chunks) + 1)))

    make_PeekResponse = make_SampleResponse

    def make_InsertStreamResponse(self, m):
        m.keys.extend(self.uint64() for _ in self.some(200))

    def make_CheckpointResponse(self, m):
        m.checkpoint_path = self.text()

    def make_HealthCheckRequest(self, m):
        m.service = self.text()

    def make_HealthCheckResponse(self, m):
        m.status = self.rng.randrange(4)


def stored(data):
    """A snappy block of one literal."""
    size = len(data) - 1
    if size < 60:
        return varint(len(data)) + bytes([size << 2]) + data
    return varint(len(data)) + bytes([61 << 2]) + size.to_bytes(2, "little") + data
