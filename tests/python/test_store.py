# SPDX-License-Identifier: Apache-2.0
"""Store and Server of the C extension, on which the Python package is built."""

import gc
import os
import socket
import sys
import urllib.request

import pytest

from reprise import _core, errors, specs

MIN_SIZE = (1.0, 1, -sys.float_info.max, sys.float_info.max)


def store_with(*names, **options):
    store = _core.Store()
    for name in names:
        store.add_table(name, limiter=MIN_SIZE, max_size=10, **options)
    return store


class TestStore:
    def test_starts_empty(self):
        store = _core.Store()
        assert store.tables() == []
        assert store.info()["table_count"] == 0
        assert store.info()["bytes"] == 0

    def test_takes_its_options(self):
        info = _core.Store(max_bytes=1000, policy="block", seed=7).info()
        assert (info["max_bytes"], info["policy"], info["seed"]) == (1000, "block", 7)

    def test_draws_a_seed(self):
        assert _core.Store().info()["seed"] != 0

    @pytest.mark.parametrize("policy", ["", "Evict", "drop"])
    def test_refuses_an_unknown_policy(self, policy):
        with pytest.raises(ValueError, match="evict.*block.*reject"):
            _core.Store(policy=policy)

    def test_refuses_positional_arguments(self):
        with pytest.raises(TypeError):
            _core.Store(1000)

    def test_lists_tables_in_order(self):
        assert store_with("b", "a", "c").tables() == ["b", "a", "c"]

    def test_drops_tables(self):
        store = store_with("a", "b")
        store.drop_table("a")
        assert store.tables() == ["b"]
        with pytest.raises(errors.StatusError) as caught:
            store.drop_table("a")
        assert caught.value.code == "NOT_FOUND"

    def test_refuses_a_name_twice(self):
        store = store_with("a")
        with pytest.raises(errors.StatusError, match="a") as caught:
            store.add_table("a", limiter=MIN_SIZE, max_size=1)
        assert caught.value.code == "ALREADY_EXISTS"

    @pytest.mark.parametrize("call", ["table_info", "waiting", "drop_table"])
    def test_an_unknown_table_is_not_found(self, call):
        text = "^Priority table nothing was not found"
        with pytest.raises(errors.StatusError, match=f"{text}: there are no tables$") as caught:
            getattr(_core.Store(), call)("nothing")
        assert caught.value.code == "NOT_FOUND"
        with pytest.raises(errors.StatusError, match=f"{text}; the tables are: a$"):
            getattr(store_with("a"), call)("nothing")

    @pytest.mark.parametrize("call", ["table_info", "waiting", "drop_table"])
    def test_a_name_is_text(self, call):
        with pytest.raises(TypeError):
            getattr(_core.Store(), call)(3)

    @pytest.mark.parametrize("call", ["can_sample", "can_insert"])
    def test_counts_start_at_one(self, call):
        with pytest.raises(ValueError, match=">= 1, got 0"):
            getattr(store_with("a"), call)("a", 0)

    @pytest.mark.parametrize("call", ["can_sample", "can_insert"])
    @pytest.mark.parametrize("count", [1.5, "1", None])
    def test_counts_are_whole(self, call, count):
        with pytest.raises(TypeError):
            getattr(store_with("a"), call)("a", count)

    def test_table_info_has_the_options_of_the_table(self):
        store = _core.Store()
        store.add_table(
            "a",
            limiter=(2.0, 3, -4.0, float("inf")),
            max_size=9,
            sampler=("prioritized", 0.25),
            remover="lifo",
            max_times_sampled=5,
            max_bytes=1 << 40,
            soft_limit=True,
            signature={"x": specs.TensorSpec((2, None), "int16", "n")},
        )
        info = store.table_info("a")
        assert info["name"] == "a"
        assert info["limiter"] == (2.0, 3, -4.0, float("inf"))
        assert info["max_size"] == 9
        assert info["sampler"] == ("prioritized", 0.25)
        assert info["remover"] == ("lifo", 0.0)
        assert info["max_times_sampled"] == 5
        assert info["max_bytes"] == 1 << 40
        assert info["soft_limit"] is True
        assert info["closed"] is False
        assert info["signature"]["x"].shape == (2, None)
        assert info["size"] == info["inserts"] == info["samples"] == 0

    @pytest.mark.parametrize("name", ["fifo", "lifo", "uniform", "min_heap", "max_heap"])
    def test_knows_selectors(self, name):
        assert store_with("a", sampler=name).table_info("a")["sampler"] == (name, 0.0)

    @pytest.mark.parametrize(
        "selector, error",
        [
            ("heap", ValueError),
            (3, TypeError),
            (("fifo",), TypeError),
            (("fifo", "x"), TypeError),
        ],
    )
    def test_refuses_other_selectors(self, selector, error):
        with pytest.raises(error):
            store_with("a", sampler=selector)

    @pytest.mark.parametrize(
        "limiter", [None, (1.0, 1), (1.0, 1.5, 0.0, 2.0), [1.0, 1, 0.0, 2.0]]
    )
    def test_refuses_a_limiter_of_another_type(self, limiter):
        with pytest.raises(TypeError):
            _core.Store().add_table("a", limiter=limiter, max_size=1)

    def test_needs_a_limiter_and_a_size(self):
        with pytest.raises(ValueError, match="limiter"):
            _core.Store().add_table("a", max_size=1)
        with pytest.raises(ValueError, match="max_size"):
            _core.Store().add_table("a", limiter=MIN_SIZE)

    def test_can_be_read_when_closed(self):
        store = store_with("a")
        store.close()
        store.close()
        assert store.table_info("a")["closed"] is True
        with pytest.raises(errors.StatusError) as caught:
            store.add_table("b", limiter=MIN_SIZE, max_size=1)
        assert caught.value.code == "FAILED_PRECONDITION"

    def test_belongs_to_its_process(self):
        store = store_with("a")
        pid = os.fork()
        if pid == 0:
            try:
                store.tables()
            except errors.StatusError as error:
                os._exit(7 if error.code == "FAILED_PRECONDITION" else 1)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        assert store.tables() == ["a"]

    def test_keeps_no_references(self):
        spec = {"x": specs.TensorSpec((), "float32")}

        def once():
            store = store_with("a", "b", signature=spec)
            store.table_info("a")
            store.waiting("a")
            store.info()
            for wrong in (
                {"sampler": "no"},
                {"signature": {"x": 1}},
                {"remover": ("fifo", "x")},
            ):
                with pytest.raises((TypeError, ValueError, AttributeError)):
                    store.add_table("c", limiter=MIN_SIZE, max_size=3, **wrong)

        once()
        gc.collect()
        before = sys.getrefcount(spec), sys.getrefcount(MIN_SIZE)
        for _ in range(20):
            once()
        gc.collect()
        assert (sys.getrefcount(spec), sys.getrefcount(MIN_SIZE)) == before


class TestServer:
    def test_finds_a_port(self):
        server = _core.Server(store_with("a"), "localhost:0")
        assert server.port > 0
        assert server.running
        with socket.create_connection(("localhost", server.port), timeout=120):
            pass
        server.stop()

    def test_serves_the_health_page(self):
        server = _core.Server(store_with("a"), ["localhost:0"])
        url = f"http://localhost:{server.port}/healthz"
        assert urllib.request.urlopen(url, timeout=120).status == 200

    def test_stops_and_frees_its_port(self):
        server = _core.Server(store_with("a"), "localhost:0")
        server.stop()
        server.stop(5)
        assert not server.running
        again = _core.Server(store_with("a"), f"localhost:{server.port}")
        assert again.port == server.port

    def test_stops_when_it_is_dropped(self):
        server = _core.Server(store_with("a"), "localhost:0")
        port = server.port
        del server
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=120)

    def test_keeps_its_store(self):
        server = _core.Server(store_with("a"), "localhost:0")
        gc.collect()
        client = _core.Client(f"localhost:{server.port}")
        assert [t["name"] for t in client.tables(timeout=120)] == ["a"]

    def test_listens_on_a_unix_socket(self, tmp_path):
        path = str(tmp_path / "s")
        server = _core.Server(store_with("a"), "unix:" + path)
        assert server.port == 0
        assert os.path.exists(path)
        server.stop()
        assert not os.path.exists(path)

    @pytest.mark.parametrize("addresses", [[], ["localhost:0"] * 17])
    def test_counts_addresses(self, addresses):
        with pytest.raises(ValueError, match="1 to 16"):
            _core.Server(store_with("a"), addresses)

    @pytest.mark.parametrize("addresses", [[3], 3, None])
    def test_addresses_are_text(self, addresses):
        with pytest.raises(TypeError):
            _core.Server(store_with("a"), addresses)

    def test_needs_a_store(self):
        with pytest.raises(TypeError):
            _core.Server(None, "localhost:0")

    @pytest.mark.parametrize("address", ["localhost", "localhost:x", "localhost:70000"])
    def test_refuses_a_bad_address(self, address):
        with pytest.raises(ValueError):
            _core.Server(store_with("a"), address)

    def test_refuses_an_address_in_use(self):
        server = _core.Server(store_with("a"), "localhost:0")
        with pytest.raises(errors.StatusError, match="in use") as caught:
            _core.Server(store_with("a"), f"localhost:{server.port}")
        assert caught.value.code == "UNAVAILABLE"

    def test_refuses_the_network_without_credentials(self):
        with pytest.raises(errors.StatusError, match="credentials") as caught:
            _core.Server(store_with("a"), "0.0.0.0:0")
        assert caught.value.code == "FAILED_PRECONDITION"

    def test_takes_the_network_when_insecure(self):
        assert _core.Server(store_with("a"), "0.0.0.0:0", insecure=True).port > 0

    def test_takes_limits(self):
        limits = {"connections": 10, "ping_ms": 1000, "tables": 5}
        assert _core.Server(store_with("a"), "localhost:0", limits=limits).running

    @pytest.mark.parametrize(
        "limits, error",
        [
            ({"nothing": 1}, ValueError),
            ({"tables": -1}, OverflowError),
            ({"ping_ms": "x"}, TypeError),
            ([], TypeError),
            ({3: 3}, TypeError),
        ],
    )
    def test_refuses_other_limits(self, limits, error):
        with pytest.raises(error):
            _core.Server(store_with("a"), "localhost:0", limits=limits)

    @pytest.mark.parametrize("log", ["error", "warning", "info", "debug"])
    def test_logs(self, log, capfd):
        _core.Server(store_with("a"), "localhost:0", log=log).stop()
        lines = capfd.readouterr().err.splitlines()
        assert all(line.startswith("reprise: ") for line in lines)

    def test_refuses_an_unknown_level(self):
        with pytest.raises(ValueError, match="log must be"):
            _core.Server(store_with("a"), "localhost:0", log="loud")

    def test_is_not_running_in_a_forked_child(self):
        server = _core.Server(store_with("a"), "localhost:0")
        pid = os.fork()
        if pid == 0:
            ok = not server.running
            server.stop()  # must not wait for threads that do not exist here
            os._exit(7 if ok else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        assert server.running
        with socket.create_connection(("localhost", server.port), timeout=120):
            pass
