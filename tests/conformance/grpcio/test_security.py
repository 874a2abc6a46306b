# SPDX-License-Identifier: Apache-2.0
"""TLS, client certificates, tokens and roles: every call with every role."""

import hashlib
import shutil
import socket
import ssl
import time

import grpc
import pytest

import harness
from certificates import Authority
from messages import Reverb, insertion, item, numbers, wish
from stubs import (health, health_service, own, own_service, reflection, reflection_service, rpc,
                   runs, runs_service, service)

Code = grpc.StatusCode
ROLES = ["none", "read", "write", "admin"]
TABLES = [harness.table("fifo", sampler="fifo"), harness.table("other")]
REFUSALS = (Code.UNAUTHENTICATED, Code.PERMISSION_DENIED)


def mirrored(version):
    def call(channel, **options):
        stub = reflection_service[version].ServerReflectionStub(channel)
        request = reflection[version].ServerReflectionRequest(list_services="")
        return list(stub.ServerReflectionInfo(iter([request]), **options))

    return call


def reverb_unary(name, **fields):
    def call(channel, **options):
        request = getattr(rpc, f"{name}Request")(**fields)
        return getattr(service.ReverbServiceStub(channel), name)(request, **options)

    return call


def reverb_stream(name, *requests):
    def call(channel, **options):
        return list(getattr(service.ReverbServiceStub(channel), name)(iter(requests), **options))

    return call


def own_unary(name, **fields):
    def call(channel, **options):
        request = getattr(own, f"{name}Request")(**fields)
        return getattr(own_service.ReplayStub(channel), name)(request, **options)

    return call


def runs_unary(name, **fields):
    def call(channel, **options):
        request = getattr(runs, f"{name}Request")(**fields)
        return getattr(runs_service.RunsStub(channel), name)(request, **options)

    return call


def one_insert():
    data = numbers()
    return insertion([data], [item("fifo", data)])


def watch(channel, **options):
    call = health_service.HealthStub(channel).Watch(health.HealthCheckRequest(), **options)
    answer = next(call)
    call.cancel()
    return answer


# Every call, the role it needs, and how to make it.
CALLS = {
    "InsertStream": ("write", reverb_stream("InsertStream", one_insert())),
    "SampleStream": ("read", reverb_stream("SampleStream", wish("fifo", 1, 1))),
    "MutatePriorities": ("write", reverb_unary("MutatePriorities", table="fifo")),
    "Reset": ("admin", reverb_unary("Reset", table="other")),
    "Checkpoint": ("admin", reverb_unary("Checkpoint")),
    "ServerInfo": ("read", reverb_unary("ServerInfo")),
    "InitializeConnection": ("read", reverb_stream(
        "InitializeConnection", rpc.InitializeConnectionRequest(pid=1, table_name="fifo"))),
    "CreateTable": ("admin", own_unary(
        "CreateTable", options=own.TableOptions(name="made", max_size=1))),
    "DropTable": ("admin", own_unary("DropTable", table="made")),
    "AlterTable": ("admin", own_unary("AlterTable", table="other", max_size=10)),
    "PauseTable": ("admin", own_unary("PauseTable", table="other")),
    "ResumeTable": ("admin", own_unary("ResumeTable", table="other")),
    "WhyBlocked": ("read", own_unary("WhyBlocked")),
    "Clients": ("read", own_unary("Clients")),
    "Status": ("read", own_unary("Status")),
    "Peek": ("read", own_unary("Peek", table="fifo", keys=[1])),
    "Update": ("write", own_unary("Update", table="fifo")),
    "Delete": ("write", own_unary("Delete", table="fifo", keys=[1])),
    "Sample": ("read", own_unary("Sample", table="fifo", count=1, timeout_ms=0)),
    "SampleShared": ("read", lambda channel, **options: list(
        own_service.ReplayStub(channel).SampleShared(
            iter([own.SampleSharedRequest(table="fifo", num_samples=1)]), **options))),
    "LogScalars": ("write", runs_unary("LogScalars", run="a", scalars=[runs.Scalar(name="x")])),
    "ReadRuns": ("read", runs_unary("ReadRuns", run="a", format=runs.RUN_FORMAT_CSV)),
    "Check": ("none", lambda channel, **options: health_service.HealthStub(channel).Check(
        health.HealthCheckRequest(), **options)),
    "Watch": ("none", watch),
    "ServerReflectionInfo v1": ("none", mirrored("v1")),
    "ServerReflectionInfo v1alpha": ("none", mirrored("v1alpha")),
}


def outcome(call, channel, **options):
    """Returns the status with which a call ends."""
    try:
        call(channel, timeout=120, **options)
    except grpc.RpcError as error:
        return error.code()
    return Code.OK


def expected(needed, role):
    """Returns the status of a refusal, or None if the role is sufficient."""
    if ROLES.index(role) >= ROLES.index(needed):
        return None
    return Code.UNAUTHENTICATED if role == "none" else Code.PERMISSION_DENIED


def judge(code, needed, role):
    refusal = expected(needed, role)
    if refusal is None:
        assert code not in REFUSALS
    else:
        assert code == refusal


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def server_files(authority):
    return authority.issue("localhost", "server")


def tokens_file(path, *lines):
    path.write_text("# roles, names, and what they show\n\n" + "\n".join(lines) + "\n")
    return path


def token_line(role, token):
    return f"{role} {role}-by-token sha256:{hashlib.sha256(token.encode()).hexdigest()}"


def serve(tmp_path_factory, name, config):
    """A server for the tests of this module."""
    return harness.Reprise({"tables": TABLES, **config}, tmp_path_factory.mktemp(name))


def bearer(token):
    return [("authorization", f"Bearer {token}")]


@pytest.fixture(scope="module")
def token_server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokens")
    path = tokens_file(folder / "tokens", *(
        token_line(role, f"secret of {role}") for role in ROLES[1:]))
    with serve(tmp_path_factory, "token-server", {"tokens": str(path)}) as server:
        yield server.start()


@pytest.fixture
def token_channel(token_server):
    with grpc.insecure_channel(token_server.address) as channel:
        yield channel


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", CALLS)
def test_calls_by_token(token_channel, name, role):
    needed, call = CALLS[name]
    options = {} if role == "none" else {"metadata": bearer(f"secret of {role}")}
    judge(outcome(call, token_channel, **options), needed, role)


@pytest.mark.parametrize("header", [
    "Bearer wrong", "Bearer", "Basic c2VjcmV0", "secret of admin", "Bearer secret of admi",
    "Bearer secret of admin2"])
def test_a_wrong_token_opens_nothing(token_channel, header):
    code = outcome(CALLS["ServerInfo"][1], token_channel, metadata=[("authorization", header)])
    assert code == Code.UNAUTHENTICATED


def test_an_unknown_method_is_unimplemented_for_every_token(token_channel):
    call = token_channel.unary_unary("/deepmind.reverb.ReverbService/Nothing",
                                     lambda b: b, lambda b: b)
    with pytest.raises(grpc.RpcError) as failure:
        call(b"", timeout=120)
    assert failure.value.code() == Code.UNIMPLEMENTED


def test_a_refusal_does_not_say_too_much(token_channel):
    with pytest.raises(grpc.RpcError) as failure:
        CALLS["Reset"][1](token_channel, timeout=120, metadata=bearer("secret of read"))
    assert "secret" not in failure.value.details()


def test_guessing_tokens_is_rate_limited(tmp_path_factory):
    """After too many wrong tokens even the correct one is refused for a while. Calls without a
    token do not count."""
    own = [("grpc.use_local_subchannel_pool", 1)]  # each channel has its own connection
    folder = tmp_path_factory.mktemp("guessing")
    path = tokens_file(folder / "tokens", token_line("read", "right"))
    with serve(tmp_path_factory, "guessing-server", {"tokens": str(path)}) as server:
        with grpc.insecure_channel(f"127.0.0.1:{server.start().port}", own) as channel:
            info = CALLS["ServerInfo"][1]
            for _ in range(30):
                assert outcome(info, channel) == Code.UNAUTHENTICATED
            assert outcome(info, channel, metadata=bearer("right")) == Code.OK
            for guess in range(20):
                assert outcome(info, channel, metadata=bearer(str(guess))) == Code.UNAUTHENTICATED
        with grpc.insecure_channel(f"127.0.0.1:{server.port}", own) as channel:
            assert outcome(info, channel, metadata=bearer("right")) == Code.UNAUTHENTICATED


@pytest.fixture(scope="module")
def tls_server(tmp_path_factory, server_files):
    certificate, key = server_files
    with serve(tmp_path_factory, "tls-server",
               {"tls_cert": str(certificate), "tls_key": str(key)}) as server:
        yield server.start()


def secure_channel(server, authority, person=None):
    names = [p.read_bytes() for p in person] if person else [None, None]
    credentials = grpc.ssl_channel_credentials(
        authority.certificate.read_bytes(), private_key=names[1], certificate_chain=names[0])
    return grpc.secure_channel(server.address, credentials)


def test_calls_over_tls(tls_server, authority):
    with secure_channel(tls_server, authority) as channel:
        reverb = Reverb(channel)
        key = reverb.insert("fifo", 7)
        assert reverb.sample("fifo")[0].key == key


def test_a_plain_client_cannot_use_a_tls_port(tls_server):
    with grpc.insecure_channel(tls_server.address) as channel:
        assert outcome(CALLS["ServerInfo"][1], channel) == Code.UNAVAILABLE


def test_a_tls_client_cannot_use_a_plain_port(token_server, authority):
    with secure_channel(token_server, authority) as channel:
        assert outcome(CALLS["ServerInfo"][1], channel) == Code.UNAVAILABLE


def handshake(server, authority, **settings):
    """Returns (protocol, ALPN) of a handshake."""
    context = ssl.create_default_context(cafile=str(authority.certificate))
    for name, value in settings.items():
        setattr(context, name, value)
    context.set_alpn_protocols(["h2"])
    with socket.create_connection(("localhost", server.port), timeout=120) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as link:
            return link.version(), link.selected_alpn_protocol()


@pytest.mark.parametrize("version, name", [
    (ssl.TLSVersion.TLSv1_2, "TLSv1.2"), (ssl.TLSVersion.TLSv1_3, "TLSv1.3")])
def test_tls_versions(tls_server, authority, version, name):
    found = handshake(tls_server, authority, minimum_version=version, maximum_version=version)
    assert found == (name, "h2")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_old_tls_is_refused(tls_server, authority):
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    with socket.create_connection(("localhost", tls_server.port), timeout=120) as plain:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            context.wrap_socket(plain, server_hostname="localhost")


def serial(server, authority):
    context = ssl.create_default_context(cafile=str(authority.certificate))
    with socket.create_connection(("localhost", server.port), timeout=120) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as link:
            return link.getpeercert()["serialNumber"]


def test_certificates_are_changed_without_dropping_streams(tmp_path_factory, authority):
    folder = tmp_path_factory.mktemp("reload")
    certificate, key = folder / "server.pem", folder / "server.key"

    def put(issued):
        shutil.copy(issued[0], certificate)
        shutil.copy(issued[1], key)

    put(authority.issue("localhost", "first"))
    with serve(tmp_path_factory, "reload-server",
               {"tls_cert": str(certificate), "tls_key": str(key)}) as server:
        with secure_channel(server.start(), authority) as channel:
            reverb = Reverb(channel)
            with reverb.samples() as stream:
                stream.send(wish("fifo"))
                assert stream.silent(0.1)
                before = serial(server, authority)
                put(authority.issue("localhost", "second"))
                server.reload()
                harness.wait_until(lambda: serial(server, authority) != before, 10,
                                   "the new certificate")
                reverb.insert("fifo", 1)
                assert len(stream.samples()) == 1
        put((authority.certificate, authority.certificate))  # not a key: the old files stay in use
        before = serial(server, authority)
        server.reload()
        time.sleep(0.3)
        assert serial(server, authority) == before


@pytest.fixture(scope="module")
def people(authority):
    return {name: authority.issue(name) for name in ("reader", "writer", "boss", "stranger")}


@pytest.fixture(scope="module")
def mutual_server(tmp_path_factory, authority, server_files):
    certificate, key = server_files
    folder = tmp_path_factory.mktemp("mutual")
    path = tokens_file(folder / "tokens", "read reader cert:reader", "write writer cert:writer",
                       "admin boss cert:boss", token_line("admin", "secret of admin"))
    with serve(tmp_path_factory, "mutual-server", {
            "tls_cert": str(certificate), "tls_key": str(key),
            "tls_client_ca": str(authority.certificate), "tls_require_client_cert": True,
            "tokens": str(path)}) as server:
        yield server.start()


@pytest.mark.parametrize("person, role", [
    ("reader", "read"), ("writer", "write"), ("boss", "admin")])
@pytest.mark.parametrize("name", CALLS)
def test_calls_by_certificate(mutual_server, authority, people, name, person, role):
    needed, call = CALLS[name]
    with secure_channel(mutual_server, authority, people[person]) as channel:
        judge(outcome(call, channel), needed, role)


def test_an_unlisted_certificate_is_refused(mutual_server, authority, people):
    with secure_channel(mutual_server, authority, people["stranger"]) as channel:
        assert outcome(CALLS["ServerInfo"][1], channel) in REFUSALS
        assert outcome(CALLS["Check"][1], channel) == Code.OK


def test_a_token_may_raise_the_role_of_a_certificate(mutual_server, authority, people):
    with secure_channel(mutual_server, authority, people["reader"]) as channel:
        reset = CALLS["Reset"][1]
        assert outcome(reset, channel) == Code.PERMISSION_DENIED
        assert outcome(reset, channel, metadata=bearer("secret of admin")) == Code.OK
        assert outcome(reset, channel, metadata=bearer("wrong")) == Code.UNAUTHENTICATED


def test_without_a_certificate_there_is_no_connection(mutual_server, authority):
    with secure_channel(mutual_server, authority) as channel:
        assert outcome(CALLS["Check"][1], channel) == Code.UNAVAILABLE


def test_a_certificate_of_another_authority_is_refused(mutual_server, authority, tmp_path):
    other = Authority(tmp_path / "other", "other").issue("boss")
    with secure_channel(mutual_server, authority, other) as channel:
        assert outcome(CALLS["Check"][1], channel) == Code.UNAVAILABLE


def test_tokens_are_changed_without_dropping_streams(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokens-reload")
    path = tokens_file(folder / "tokens", token_line("admin", "old"))
    info = CALLS["ServerInfo"][1]
    with serve(tmp_path_factory, "tokens-reload-server", {"tokens": str(path)}) as server:
        with grpc.insecure_channel(server.start().address) as channel:
            reverb = Reverb(channel, metadata=bearer("old"))
            with reverb.samples() as stream:
                stream.send(wish("fifo"))
                assert stream.silent(0.1)
                tokens_file(path, token_line("admin", "new"))
                server.reload()
                harness.wait_until(
                    lambda: outcome(info, channel, metadata=bearer("new")) == Code.OK, 10,
                    "the new token")
                assert outcome(info, channel, metadata=bearer("old")) == Code.UNAUTHENTICATED
                Reverb(channel, metadata=bearer("new")).insert("fifo", 1)
                assert len(stream.samples()) == 1


def test_no_reset_refuses_reset(tmp_path_factory):
    with serve(tmp_path_factory, "no-reset", {"no_reset": True}) as server:
        with grpc.insecure_channel(server.start().address) as channel:
            assert outcome(CALLS["Reset"][1], channel) in (
                Code.PERMISSION_DENIED, Code.FAILED_PRECONDITION)
            assert outcome(CALLS["CreateTable"][1], channel) == Code.OK


def test_without_credentials_other_machines_are_not_served(tmp_path):
    """The server does not even start."""
    server = harness.Reprise(
        {"tables": TABLES, "listen": [f"0.0.0.0:{harness.free_port()}"]}, tmp_path).launch()
    harness.wait_until(lambda: server.process.poll() is not None, 10, "an end")
    assert server.stop() not in (0, None)
    assert "insecure" in server.log()
