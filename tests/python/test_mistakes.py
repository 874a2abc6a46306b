# SPDX-License-Identifier: Apache-2.0
"""Mistakes of a first hour: each error says what to write instead."""

import numpy as np
import pytest

import reprise


def table(**options):
    return reprise.Table("t", reprise.selectors.Uniform(), reprise.selectors.Fifo(),
                         **{"max_size": 10, "rate_limiter": reprise.rate_limiters.MinSize(1),
                            **options})


@pytest.mark.parametrize("address, text", [
    ("http://localhost:8000", "without 'http://'"),
    ("grpc://localhost:8000", "without 'grpc://'"),
    ("localhost", "as in 'localhost:8000'"),
    ("::1:8000", r"\[v6\]:port"),
])
def test_an_address_of_another_form(address, text):
    with pytest.raises(ValueError, match=text):
        reprise.Client(address).server_info(timeout=1)


def test_a_server_instead_of_its_address():
    with reprise.Server([table()]) as server:
        with pytest.raises(TypeError, match=r"server\.localhost_client\(\)"):
            reprise.Client(server)


def test_a_table_instead_of_a_list():
    with pytest.raises(TypeError, match=r"Server\(\[table\]\)"):
        reprise.Server(table())
    with pytest.raises(TypeError, match="got 'replay' in it"):
        reprise.Server(["replay"])


def test_a_table_that_is_never_full_enough(caplog):
    table(rate_limiter=reprise.rate_limiters.MinSize(10))
    assert not caplog.records
    table(rate_limiter=reprise.rate_limiters.MinSize(11))
    assert "need 11 items" in caplog.text and "at most 10" in caplog.text


def test_a_history_that_is_too_short():
    with reprise.Server([table()]) as server:
        with server.localhost_client().trajectory_writer(num_keep_alive_refs=2) as writer:
            for i in range(4):
                writer.append({"x": np.float32(i)})
            with pytest.raises(ValueError, match="num_keep_alive_refs steps"):
                writer.create_item("t", 1.0, {"x": writer.history["x"][-3:]})


def test_a_checkpoint_without_storage():
    with reprise.Server([table()]) as server:
        with pytest.raises(ValueError, match="storage= in Python"):
            server.localhost_client().checkpoint()
        with pytest.raises(ValueError, match="--data DIR, or with storage="):
            reprise.Client(f"localhost:{server.port}", transport="tcp").checkpoint()
