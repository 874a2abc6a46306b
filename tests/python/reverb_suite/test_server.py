# SPDX-License-Identifier: Apache-2.0
"""Server: starting, stopping, and invalid arguments."""

import socket

import pytest

from reverb_suite.helpers import values
from reverb_suite.implementation import build, reverb, table


def test_no_tables():
    with pytest.raises(ValueError, match="At least one table must be provided"):
        reverb.Server([])


def test_no_tables_at_all():
    with pytest.raises(ValueError, match="At least one table must be provided"):
        reverb.Server()


def test_two_tables_of_one_name():
    with pytest.raises(ValueError, match="Multiple items in tables have the same name: a"):
        reverb.Server([build(table("a")), build(table("b")), build(table("a"))])


def test_all_names_that_occur_twice_are_listed():
    names = ["a", "b", "a", "c", "c"]
    with pytest.raises(ValueError, match="same name: a, c"):
        reverb.Server([build(table(name)) for name in names])


def test_a_port_is_picked():
    server = reverb.Server([build(table())])
    assert 1024 <= server.port <= 65535
    server.stop()


def test_two_servers_have_two_ports():
    one, two = reverb.Server([build(table())]), reverb.Server([build(table())])
    assert one.port != two.port
    one.localhost_client().insert(1.0, {"t": 1.0})
    assert two.localhost_client().server_info()["t"].current_size == 0
    one.stop()
    two.stop()


def test_a_port_that_is_given():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    server = reverb.Server([build(table())], port=port)
    assert server.port == port
    server.localhost_client().insert(1.0, {"t": 1.0})
    server.stop()


def test_localhost_client():
    server = reverb.Server([build(table())])
    client = server.localhost_client()
    assert isinstance(client, reverb.Client)
    assert client.server_address == f"localhost:{server.port}"
    server.stop()


def test_stop_twice():
    server = reverb.Server([build(table())])
    server.stop()
    server.stop()


def test_stop_returns_nothing():
    assert reverb.Server([build(table())]).stop() is None


def test_wait_ends_when_it_is_stopped(background):
    server = reverb.Server([build(table())])
    call = background(server.wait)
    assert call.waits()
    server.stop()
    assert call.result() is None


def test_a_port_can_be_used_again():
    server = reverb.Server([build(table())])
    port = server.port
    server.stop()
    del server
    again = reverb.Server([build(table())], port=port)
    assert again.localhost_client().server_info()["t"].current_size == 0
    again.stop()


def test_a_server_ends_with_its_last_reference():
    server = reverb.Server([build(table())])
    address = f"localhost:{server.port}"
    del server
    with pytest.raises(reverb.DeadlineExceededError):
        reverb.Client(address).server_info(timeout=1)


def test_repr_has_the_tables():
    server = reverb.Server([build(table("red")), build(table("blue"))])
    assert "red" in repr(server) and "blue" in repr(server)
    server.stop()


def test_tables_as_a_tuple():
    server = reverb.Server(tables=(build(table("a")), build(table("b"))))
    assert set(server.localhost_client().server_info()) == {"a", "b"}
    server.stop()


def test_many_tables(serve):
    names = [f"table-{i}" for i in range(40)]
    client = serve(*[table(name) for name in names])
    assert set(client.server_info()) == set(names)


@pytest.mark.parametrize("name", ["with space", "a/b", "ünïcode", "x" * 200, "日本"])
def test_names_of_tables(serve, name):
    client = serve(table(name))
    client.insert(1.0, {name: 1.0})
    assert values(client, name) == [1.0]
    assert set(client.server_info()) == {name}


def test_tables_are_separate(serve):
    client = serve(table("a"), table("b"))
    client.insert(1.0, {"a": 1.0})
    client.insert(2.0, {"b": 1.0})
    assert (values(client, "a"), values(client, "b")) == ([1.0], [2.0])


def test_two_clients_see_one_table(start):
    service = start(table())
    service.client.insert(1.0, {"t": 1.0})
    assert values(service.new_client()) == [1.0]


@pytest.mark.parametrize("base", ["Server", "Table"])
def test_server_types_are_classes(base):
    assert isinstance(getattr(reverb, base), type)
