# SPDX-License-Identifier: Apache-2.0
"""Clients with TLS and with tokens."""

import hashlib
import os
import pickle
import subprocess
import threading

import numpy as np
import pytest
from test_client import table

import reprise
from reprise import errors
from reprise.client import Client


@pytest.fixture
def certificate(tmp_path):
    """A self-signed certificate of localhost, and its key."""
    files = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    command = (
        f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        f"-subj /CN=localhost -addext subjectAltName=DNS:localhost -out {files[0]} "
        f"-keyout {files[1]}"
    )
    try:
        subprocess.run(command.split(), check=True, capture_output=True)
    except OSError:
        pytest.skip("there is no openssl")
    return files


def tokens_file(tmp_path, **roles):
    path = tmp_path / "tokens"
    with open(path, "w") as file:
        for role, token in roles.items():
            digest = hashlib.sha256(token.encode()).hexdigest()
            file.write(f"{role} {role}er sha256:{digest}\n")
    os.chmod(path, 0o600)
    return str(path)


def test_tls(certificate):
    cert, key = certificate
    with reprise.Server([table("t")], certificate_file=cert, key_file=key) as server:
        client = Client(f"localhost:{server.port}", ca_file=cert)
        client.insert(np.arange(5), {"t": 1.0}, timeout=120)
        assert next(client.sample("t", timeout=120))[0].data[0].tolist() == [0, 1, 2, 3, 4]
        stranger = Client(f"localhost:{server.port}", transport="tcp")
        with pytest.raises((errors.StatusError, errors.DeadlineExceededError)):
            stranger.server_info(1)
        doubter = Client(f"localhost:{server.port}", tls=True)
        with pytest.raises((errors.StatusError, errors.DeadlineExceededError)):
            doubter.server_info(1)


def trajectory(client, **options):
    with client.trajectory_writer(1, **options) as writer:
        writer.append({"x": 1})
        writer.create_item("t", 1.0, {"x": writer.history["x"][-1:]})
        writer.flush()


CALLS = {
    "server_info": lambda client: client.server_info(),
    "sample": lambda client: list(client.sample("t", 1)),
    "reset": lambda client: client.reset("t"),
    "mutate": lambda client: client.mutate_priorities("t", {1: 1.0}),
    "insert": lambda client: client.insert(1, {"t": 1.0}),
    "trajectory": trajectory,
    "unchecked": lambda client: trajectory(client, validate_items=False),
    "rollouts": lambda client: client.rollouts("r").put("g", 0, {"x": np.arange(2)}, version=0),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("refusal", ["wants TLS", "self-signed"])
def test_a_refused_client_does_not_wait(certificate, call, refusal):
    cert, key = certificate
    with reprise.Server([table("t")], certificate_file=cert, key_file=key) as server:
        client = Client(f"localhost:{server.port}", transport="tcp", tls=refusal == "self-signed")
        errors_seen = []

        def run():
            try:
                CALLS[call](client)
            except errors.StatusError as error:
                errors_seen.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(120)
        assert errors_seen and errors_seen[0].code == "UNAVAILABLE"
        assert refusal in str(errors_seen[0])
        assert str(errors_seen[0]).count("ca_file=") == 1


@pytest.mark.parametrize("given, said", [
    ({}, "TLS: the server asks for a client certificate, and none was sent"),
    ({"own": True}, "TLS: the server does not accept the client's certificate, whose CA is not in"),
    ({"ca": True}, "the server's certificate is not signed by what '"),
])
def test_the_error_of_a_refused_certificate_says_whose_it_is(certificate, tmp_path, given, said):
    cert, key = certificate
    other = [str(tmp_path / name) for name in ("other.pem", "other.key")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-subj", "/CN=elsewhere", "-out", other[0], "-keyout", other[1]], check=True, capture_output=True)
    with reprise.Server([table("t")], certificate_file=cert, key_file=key, client_ca_file=cert,
                        require_client_certificate=True) as server:
        options = {"certificate_file": other[0], "key_file": other[1]} if "own" in given else {}
        client = Client(f"localhost:{server.port}", transport="tcp", ca_file=other[0] if "ca" in given else cert,
                        **options)
        with pytest.raises(errors.StatusError) as caught:
            client.server_info(60)
        assert said in str(caught.value)
        assert ("ca_file=" in str(caught.value)) == ("ca" in given)


@pytest.mark.parametrize("option", ["token", "ca_file", "certificate_file"])
def test_an_empty_text_is_refused(option):
    with pytest.raises((ValueError, errors.StatusError)):
        Client("localhost:1", transport="tcp", **{option: ""})


def test_tokens(tmp_path):
    path = tokens_file(tmp_path, read="look", write="do", admin="all")
    with reprise.Server([table("t")], tokens_file=path) as server:
        address = f"localhost:{server.port}"
        with pytest.raises(errors.StatusError) as caught:
            Client(address, token="wrong").server_info(20)
        assert caught.value.code == "UNAUTHENTICATED" and str(caught.value).endswith("; check token=")
        with pytest.raises(errors.StatusError) as caught:
            Client(address, transport="tcp").server_info(20)
        assert caught.value.code == "UNAUTHENTICATED" and str(caught.value).endswith("; pass token=")
        reader, writer, admin = (Client(address, token=t) for t in ("look", "do", "all"))
        writer.insert(1, {"t": 1.0}, timeout=120)
        assert reader.server_info(20)["t"].current_size == 1
        with pytest.raises(errors.StatusError) as caught:
            reader.mutate_priorities("t", {1: 1.0}, timeout=120)
        assert caught.value.code == "PERMISSION_DENIED"
        with pytest.raises(errors.StatusError):
            writer.drop_table("t", timeout=120)
        admin.drop_table("t", timeout=120)
        mine = admin.rollouts("r", create={"max_groups": 5})
        for client, may in ((writer, False), (admin, True)):
            rollouts = client.rollouts("r")
            rollouts.put("g", 0, {"x": np.arange(2)}, version=0)
            if may:
                rollouts.configure(max_groups=7)
                continue
            with pytest.raises(errors.StatusError) as caught:
                rollouts.configure(max_groups=6)
            assert caught.value.code == "PERMISSION_DENIED"
        assert mine.info()["options"]["max_groups"] == 7
        travelled = pickle.loads(pickle.dumps(reader))
        assert list(travelled.server_info(20)) == []
