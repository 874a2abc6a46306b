# SPDX-License-Identifier: Apache-2.0
"""reprise.v1 at its limits: requests that are too large, cancelled calls, cut rows; and the pages
of the same port under TLS. test_own.py tests the usual calls."""

import http.client
import json
import shutil
import ssl
import subprocess
import threading
import time

import grpc
import numpy as np
import pytest

import harness
from certificates import Authority
from messages import Reverb, chunk, decoded, insertion, item, new_key, stored
from stubs import own, own_service, schema, types

Code = grpc.StatusCode
LIMITS = {"tables": 5, "keys": 50, "message_bytes": 200_000}
TABLES = [harness.table("a"), harness.table("b", sampler="fifo"),
          harness.table("queue", sampler="fifo", max_size=4, max_times_sampled=1,
                        limiter=("queue", 4))]


class Replay:
    """The stub, with a timeout for every call. later(name, ...) does not wait."""

    def __init__(self, channel):
        self._stub = own_service.ReplayStub(channel)

    def __getattr__(self, name):
        return lambda **fields: self.later(name, **fields).result()

    def later(self, name, timeout=120, **fields):
        request = getattr(own, f"{name}Request")(**fields)
        return getattr(self._stub, name).future(request, timeout=timeout)


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    config = {"tables": TABLES, "limits": LIMITS}
    with harness.Reprise(config, tmp_path_factory.mktemp("limited")) as server:
        yield server.start()


@pytest.fixture
def limited_channel(limited):
    with grpc.insecure_channel(limited.address) as channel:
        yield channel


@pytest.fixture
def replay(limited_channel):
    return Replay(limited_channel)


@pytest.fixture
def store(limited_channel):
    """Reverb's service of the same server, after a reset of its tables."""
    made = Reverb(limited_channel)
    for table in TABLES:
        made.reset(table["name"])
    return made


def refusals(server):
    """Returns the number of refusals of the server, by reason."""
    connection = http.client.HTTPConnection("localhost", server.port, timeout=120)
    connection.request("GET", "/metrics")
    found = {}
    for line in connection.getresponse().read().decode().splitlines():
        if line.startswith("reprise_refusals_total{"):
            labels, value = line.rsplit(" ", 1)
            found[labels.split('"')[1]] = float(value)
    connection.close()
    return found


@pytest.fixture
def counted(limited):
    """with counted("keys"): expects one refusal for this reason."""

    class Counted:
        def __init__(self, reason):
            self.reason = reason

        def __enter__(self):
            self.before = refusals(limited)[self.reason]

        def __exit__(self, kind, error, trace):
            if kind is None:
                assert refusals(limited)[self.reason] > self.before

    return Counted


def put(reverb, data, *items):
    """Inserts items over the given chunks."""
    with reverb.inserts() as stream:
        stream.send(insertion(data, items))
        stream.confirmed(len(items))
    return [i.key for i in items]


def test_tables_are_limited(replay, refused, counted):
    names = [f"table {i}" for i in range(LIMITS["tables"] - len(TABLES))]
    for name in names:
        replay.CreateTable(options={"name": name, "max_size": 10})
    with counted("tables"), refused(Code.RESOURCE_EXHAUSTED, "the limit is 5"):
        replay.CreateTable(options={"name": "one more", "max_size": 10})
    with refused(Code.NOT_FOUND, "Priority table one more was not found"):
        replay.DropTable(table="one more")
    for name in names:
        replay.DropTable(table=name)


@pytest.mark.parametrize("call", [
    lambda r, n: r.Peek(table="a", keys=range(n)),
    lambda r, n: r.Delete(table="a", keys=range(n)),
    lambda r, n: r.Update(table="a", updates=[{"key": k, "priority": 1} for k in range(n)]),
], ids=["peek", "delete", "update"])
def test_keys_are_limited(replay, refused, counted, call):
    call(replay, LIMITS["keys"])
    with counted("keys"), refused(Code.RESOURCE_EXHAUSTED, "50 keys"):
        call(replay, LIMITS["keys"] + 1)


def test_the_count_of_a_sample_is_limited(replay, store, refused, counted):
    store.insert("a")
    assert len(replay.Sample(table="a", count=LIMITS["keys"]).entries) == LIMITS["keys"]
    with counted("keys"), refused(Code.RESOURCE_EXHAUSTED, "count must be <= 50"):
        replay.Sample(table="a", count=LIMITS["keys"] + 1)


@pytest.fixture
def large(store):
    """Inserts items into the table b, each a row of one of three large chunks. Returns their
    keys."""
    data = [chunk(np.full((10, 1000), i, np.int64)) for i in range(3)]
    return sum((put(store, [d], item("b", [(d, 4, 1)])) for d in data), [])


def test_a_sample_has_as_many_items_as_fit_a_message(replay, large):
    assert len(replay.Sample(table="b", count=20).chunks) == 1
    for cut_rows in False, True:  # an item counts with its whole chunks, before rows are cut
        answer = replay.Sample(table="b", count=3, distinct=True, cut_rows=cut_rows)
        assert (len(answer.chunks), len(answer.entries)) == (2, 2)


def test_the_bytes_of_a_peek_are_limited(replay, large, refused):
    assert len(replay.Peek(table="b", keys=large).entries) == 3
    with refused(Code.RESOURCE_EXHAUSTED, "message_bytes of 200000"):
        replay.Peek(table="b", keys=large, with_data=True)
    assert len(replay.Peek(table="b", keys=large, with_data=True, cut_rows=True).chunks) == 3


@pytest.mark.parametrize("fields, part", [
    ({"count": 0}, "count must be >= 1, got 0"),
    ({"count": 2, "at_least": 3}, "at_least must be from 0 to count"),
    ({"count": 2, "at_least": -1}, "at_least"),
    ({"count": 2, "beta": -0.5}, "beta"),
    ({"count": 2, "beta": float("nan")}, "beta"),
    ({"count": 2, "beta": float("inf")}, "beta")])
def test_a_sample_out_of_range_is_refused(replay, refused, fields, part):
    with refused(Code.INVALID_ARGUMENT, part):
        replay.Sample(table="a", timeout_ms=0, **fields)


@pytest.mark.parametrize("fields, part", [
    ({"max_size": 0}, "max_size"), ({"max_size": -1}, "max_size"),
    ({"max_times_sampled": -1}, "max_times_sampled"),
    ({"limiter": {"samples_per_insert": 0}}, "samples_per_insert"),
    ({"limiter": {"min_diff": 5, "max_diff": -5}}, "diff")])
def test_a_change_out_of_range_is_refused(replay, refused, fields, part):
    with refused(Code.INVALID_ARGUMENT, part):
        replay.AlterTable(table="a", **fields)


def test_a_limiter_is_changed_in_parts(replay, store):
    replay.CreateTable(options={"name": "parts", "max_size": 9, "limiter": {
        "samples_per_insert": 2, "min_size": 3, "min_diff": -20, "max_diff": 20}})
    replay.AlterTable(table="parts", limiter={"max_diff": 30})
    limiter = store.info("parts").rate_limiter_info
    replay.DropTable(table="parts")
    assert (limiter.samples_per_insert, limiter.min_size_to_sample, limiter.min_diff,
            limiter.max_diff) == (2, 3, -20, 30)


def test_an_unknown_side_is_refused(replay, refused):
    for call in (replay.PauseTable, replay.ResumeTable):
        with refused(Code.INVALID_ARGUMENT, "side"):
            call(table="a", side=3)


def blocked(replay, table, count):
    """Waits until `count` calls wait for a table. Returns the response of WhyBlocked."""

    def answer():
        found = replay.WhyBlocked(table=table)
        return found if found.total == count else None

    return harness.wait_until(answer, 10, f"{count} calls that wait")


def test_a_sample_that_waits_is_explained(replay, store):
    waiting = replay.later("Sample", table="a", count=7, timeout_ms=5000)
    [call] = blocked(replay, "a", 1).calls
    assert (call.table, call.side, call.wanted, call.done) == ("a", own.SIDE_SAMPLES, 7, 0)
    assert 0 < call.deadline_ms <= 5000
    store.insert("a")
    assert len(waiting.result().entries) == 7
    assert replay.WhyBlocked(table="a").total == 0


def test_a_call_without_a_timeout_waits_as_long_as_it_lives(replay, store):
    waiting = replay.later("Sample", timeout=0.5, table="a", count=1)
    [call] = blocked(replay, "a", 1).calls
    assert 0 < call.deadline_ms <= 500
    assert waiting.code() == Code.DEADLINE_EXCEEDED
    blocked(replay, "a", 0)


def test_a_cancelled_sample_draws_nothing(replay, store):
    waiting = [replay.later("Sample", table="a", count=1) for _ in range(5)]
    blocked(replay, "a", 5)
    for call in waiting:
        call.cancel()
    blocked(replay, "a", 0)
    store.insert("a")
    assert store.info("a").rate_limiter_info.sample_stats.completed == 0


def test_hundreds_of_calls_may_wait_on_one_connection(limited, replay, store):
    """grpcio sends two window updates for each call before any data arrives."""
    waiting = [replay.later("Sample", timeout=120, table="a", count=1) for _ in range(900)]
    blocked(replay, "a", 900)
    assert refusals(limited)["abuse"] == 0
    store.insert("a")
    assert all(len(call.result().entries) == 1 for call in waiting)


def test_a_timeout_returns_the_samples_drawn_so_far(replay, store):
    for i in range(3):
        store.insert("queue", i)
    start = time.monotonic()
    answer = replay.Sample(table="queue", count=4, timeout_ms=200)
    assert time.monotonic() - start > 0.19
    assert len(answer.entries) == 3
    assert [e.info.rate_limited for e in answer.entries] == [False] * 3


def test_an_insert_that_waits_is_explained_and_released_by_a_sample(replay, store):
    with store.inserts() as stream:
        for first in range(6):
            data = chunk(np.array([first]))
            stream.send(insertion([data], [item("queue", data)]))
        stream.confirmed(4)
        [call] = blocked(replay, "queue", 1).calls  # a stream has one waiting insert
        assert (call.table, call.side) == ("queue", own.SIDE_INSERTS)
        assert call.wanted - call.done >= 1 and "sample" in call.why
        assert len(replay.Sample(table="queue", count=2).entries) == 2
        stream.confirmed(2)


def test_samples_of_many_threads_at_once(limited, store):
    for i in range(10):
        store.insert("a", i)
    failures = []

    def draw():
        try:
            with grpc.insecure_channel(limited.address) as channel:
                mine = Replay(channel)
                for _ in range(20):
                    calls = [mine.later("Sample", table="a", count=8, cut_rows=True)
                             for _ in range(8)]
                    assert all(len(c.result().entries) == 8 for c in calls)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures and not any(t.is_alive() for t in threads)
    assert store.info("a").rate_limiter_info.sample_stats.completed == 4 * 20 * 8 * 8


def test_tables_come_and_go_while_others_use_them(limited, store, replay):
    stop = threading.Event()
    seen = set()

    def use():
        with grpc.insecure_channel(limited.address) as channel:
            mine = Replay(channel)
            while not stop.is_set():
                try:
                    mine.Sample(table="brief", count=1, timeout_ms=20)
                except grpc.RpcError as error:
                    seen.add(error.code())

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        replay.CreateTable(options={"name": "brief", "max_size": 10})
        time.sleep(0.005)
        replay.DropTable(table="brief")
    stop.set()
    for thread in threads:
        thread.join(120)
    assert seen <= {Code.CANCELLED, Code.NOT_FOUND, Code.DEADLINE_EXCEEDED}
    assert Code.NOT_FOUND in seen


def plain(made):
    """Returns the rows of a chunk's first tensor, of any type, without delta encoding."""
    made_tensor = made.data.tensors[0]
    shape = [d.size for d in made_tensor.tensor_shape.dim]
    if made_tensor.dtype == types.DT_STRING:
        data = made_tensor.tensor_content
        sizes, texts = data[:shape[0]], data[shape[0]:]  # below 128 a length is one byte
        ends = np.cumsum(list(sizes))
        return [texts[end - size:end] for size, end in zip(sizes, ends)]
    kind = {types.DT_INT64: np.int64, types.DT_FLOAT: np.float32}[made_tensor.dtype]
    rows = np.frombuffer(decoded(made_tensor), kind).reshape(shape)
    if made.delta_encoded and kind == np.int64 and len(shape) > 1:
        rows = np.cumsum(rows, axis=0)
    return rows.tolist()


def rows_of(answer, entry):
    """Returns the rows of each column of an entry."""
    chunks = {c.chunk_key: plain(c) for c in answer.chunks}
    columns = []
    for column in entry.info.item.flat_trajectory.columns:
        rows = []
        for part in column.chunk_slices:
            rows += chunks[part.chunk_key][part.offset:part.offset + part.length]
        columns.append(rows)
    return columns


def differences(values):
    made = chunk(np.diff(values, axis=0, prepend=np.zeros_like(values[:1])))
    made.delta_encoded = True
    return made


def texts(values):
    made = schema.ChunkData(chunk_key=new_key(), data_tensors_len=1)
    made.sequence_range.end = len(values) - 1
    tensor = made.data.tensors.add(dtype=types.DT_STRING)
    tensor.tensor_shape.dim.add(size=len(values))
    tensor.tensor_content = bytes(map(len, values)) + b"".join(values)
    return made


CUTS = {
    "numbers": lambda: chunk(np.arange(400, dtype=np.int64).reshape(40, 10)),
    "floats": lambda: chunk(np.linspace(0, 1, 400, dtype=np.float32).reshape(40, 10)),
    "differences": lambda: differences(
        np.random.default_rng(5).integers(0, 9, (40, 10)).cumsum(axis=0)),
    "texts": lambda: texts([b"text %d" % i for i in range(40)]),
}


@pytest.mark.parametrize("kind", CUTS)
def test_rows_of_every_kind_are_cut(replay, store, kind):
    data = CUTS[kind]()
    keys = put(store, [data], item("b", [(data, 10, 2), (data, 15, 1)]),
               item("b", [(data, 12, 4)]))
    whole = replay.Peek(table="b", keys=keys, with_data=True)
    cut = replay.Peek(table="b", keys=keys, with_data=True, cut_rows=True)
    assert list(whole.chunks) == [data]
    assert [rows_of(cut, e) for e in cut.entries] == [rows_of(whole, e) for e in whole.entries]
    [sent] = cut.chunks
    assert (sent.chunk_key, sent.delta_encoded) == (data.chunk_key, data.delta_encoded)
    assert (sent.sequence_range.start, sent.sequence_range.end) == (10, 15)
    assert sent.data.tensors[0].tensor_shape.dim[0].size == 6
    assert sent.ByteSize() < data.ByteSize() / 2


def test_items_of_several_chunks_and_columns_are_cut(replay, store):
    one, two = (chunk(np.arange(i, i + 200, dtype=np.int64).reshape(50, 4)) for i in (0, 1000))
    made = item("b", [(one, 48, 2), (two, 0, 3)], [(two, 2, 1)])
    made.flat_trajectory.columns[1].squeeze = True
    put(store, [one, two], made)
    whole = replay.Sample(table="b", count=1)
    cut = replay.Sample(table="b", count=1, cut_rows=True)
    assert rows_of(cut, cut.entries[0]) == rows_of(whole, whole.entries[0])
    columns = cut.entries[0].info.item.flat_trajectory.columns
    assert [c.squeeze for c in columns] == [False, True]
    assert [s.offset for c in columns for s in c.chunk_slices] == [0, 0, 2]


def test_missing_steps_stay_missing(replay, store):
    data = chunk(np.arange(400, dtype=np.int64).reshape(40, 10))
    data.sequence_range.sparse, data.sequence_range.end = True, 99
    put(store, [data], item("b", [(data, 3, 1)]))
    [sent] = replay.Sample(table="b", count=1, cut_rows=True).chunks
    assert sent.sequence_range == data.sequence_range


def test_a_chunk_that_is_mostly_used_is_sent_whole(replay, store):
    data = chunk(np.arange(400, dtype=np.int64).reshape(40, 10))
    put(store, [data], item("b", [(data, 0, 35)]))
    assert list(replay.Sample(table="b", count=1, cut_rows=True).chunks) == [data]


def test_a_chunk_that_cannot_be_cut_is_sent_whole(replay, store):
    data = chunk(np.zeros((40, 10), np.int64))
    content = bytearray(stored(bytes(3200)))
    content[4:] = b"\xfe\xff\xff" * (len(content) // 3)  # copies from before the start of the data
    data.data.tensors[0].tensor_content = bytes(content)
    put(store, [data], item("b", [(data, 3, 1)]))
    assert list(replay.Sample(table="b", count=1).chunks) == [data]
    assert list(replay.Sample(table="b", count=1, cut_rows=True).chunks) == [data]


def test_two_chunks_with_the_same_key_get_distinct_keys_in_a_response(replay, store):
    one, two = (chunk(np.array([i]), key=77) for i in (1, 2))
    keys = put(store, [one], item("b", one)) + put(store, [two], item("b", two))
    chunks = list(replay.Peek(table="b", keys=keys, with_data=True).chunks)
    assert len({c.chunk_key for c in chunks}) == 2
    assert {c.data.tensors[0].tensor_content for c in chunks} == \
        {c.data.tensors[0].tensor_content for c in (one, two)}
    assert list(replay.Peek(table="b", keys=keys[1:], with_data=True).chunks) == [two]


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("page-authority"))


@pytest.fixture(scope="module")
def people(authority):
    return {name: authority.issue(name) for name in ("reader", "stranger")}


@pytest.fixture(scope="module")
def tls_server(tmp_path_factory, authority, people):
    """A server that requests client certificates, and knows only one."""
    folder = tmp_path_factory.mktemp("page-server")
    certificate, key = authority.issue("localhost", "server")
    (folder / "tokens").write_text("read reader cert:reader\n")
    config = {"tables": [harness.table(f"table-{i}") for i in range(200)],
              "tls_cert": str(certificate), "tls_key": str(key),
              "tls_client_ca": str(authority.certificate), "tokens": str(folder / "tokens")}
    with harness.Reprise(config, folder) as server:
        yield server.start()


def visit(server, authority, person=None):
    context = ssl.create_default_context(cafile=str(authority.certificate))
    if person:
        context.load_cert_chain(*map(str, person))
    return http.client.HTTPSConnection("localhost", server.port, timeout=120, context=context)


def get(connection, path):
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_pages_under_tls_on_one_connection(tls_server, authority):
    connection = visit(tls_server, authority)
    assert [get(connection, "/healthz") for _ in range(3)] == [(200, "serving\n")] * 3
    assert get(connection, "/nothing")[0] == 404
    connection.close()


def test_a_certificate_opens_pages_as_it_does_calls(tls_server, authority, people):
    for person, status in [("reader", 200), ("stranger", 403), (None, 401)]:
        connection = visit(tls_server, authority, people.get(person))
        assert get(connection, "/metrics")[0] == status
        connection.close()


def test_a_large_page_under_tls_is_whole(tls_server, authority, people):
    connection = visit(tls_server, authority, people["reader"])
    status, body = get(connection, "/v1/info")
    assert (status, len(json.loads(body)["tables"])) == (200, 200)
    status, body = get(connection, "/metrics")
    assert status == 200 and len(body) > 200_000 and body.endswith("\n")
    connection.close()


def test_a_post_with_a_body_is_method_not_allowed(tls_server, authority):
    connection = visit(tls_server, authority)
    connection.request("POST", "/healthz", body=bytes(500_000))
    assert connection.getresponse().status == 405
    connection.close()


@pytest.mark.skipif(not shutil.which("curl"), reason="no curl")
@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_curl_reads_pages_under_tls(tls_server, authority, people, version):
    certificate, key = people["reader"]
    done = subprocess.run(
        ["curl", "-sS", version, "--max-time", "20", "--cacert", authority.certificate,
         "--cert", certificate, "--key", key, f"https://localhost:{tls_server.port}/metrics"],
        stdout=subprocess.PIPE, timeout=120)
    assert done.returncode == 0
    assert b"reprise_table_" in done.stdout
