# SPDX-License-Identifier: Apache-2.0
"""A server as a process: signals, sockets that were passed, notifications, logs."""

import hashlib
import json
import pathlib
import re
import resource
import signal
import socket
import ssl
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from conftest import REPRISE, SECONDS, Server, answer, clean_environment, fields_of, reprise

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def get(port, page, token=None):
    """A page of the server: its status and its text."""
    request = urllib.request.Request(f"http://localhost:{port}{page}")
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def get_over_unix(path, page):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(SECONDS)
        connection.connect(str(path))
        connection.sendall(f"GET {page} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    return answer.decode()


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value):
    """A header field as HPACK writes it without any table."""
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def answers_a_ping(connection):
    """Waits for the answer: the server has then seen everything that was sent before."""
    connection.sendall(frame(6, 0, 0, b"barrier!"))
    answer = b""
    while b"barrier!" not in answer:
        chunk = connection.recv(65536)
        assert chunk, "the server closed the connection"
        answer += chunk


def open_call(port):
    """A connection with one call on it that stays open: its requests have not ended."""
    connection = socket.create_connection(("localhost", port), timeout=SECONDS)
    headers = b"".join(literal(*pair) for pair in (
        (":method", "POST"), (":scheme", "http"), (":authority", "localhost"),
        (":path", "/deepmind.reverb.ReverbService/SampleStream"),
        ("content-type", "application/grpc"), ("te", "trailers")))
    connection.sendall(PREFACE + frame(4, 0, 0) + frame(1, 4, 1, headers))
    answers_a_ping(connection)
    return connection


def test_serve_logs_its_address_tables_and_a_first_command(serve, stop):
    server = serve("--port=0")
    line = server.serving

    assert line["level"] == "info"
    assert line["addresses"] == f"localhost:{server.port}" and server.port > 0
    assert line["tables"] == "replay (prioritized exponent 0.6, 1000000 items)"
    assert "no table is configured" in line["note"]
    assert line["try"] == f"curl http://localhost:{server.port}/healthz"
    assert get(server.port, "/healthz") == (200, "serving\n")
    info = json.loads(get(server.port, "/v1/info")[1])
    assert [t["name"] for t in info["tables"]] == ["replay"]

    stop(server)
    assert server.events() == ["serving", "stopped"]  # quiet in between
    last = fields_of(server.lines[-1])
    assert (last["inserts"], last["samples"], last["items"]) == ("0", "0", "0")
    assert server.process.stdout.read() == ""


def test_settings_reach_the_server(serve, tmp_path):
    path = tmp_path / "reprise.sock"
    config = tmp_path / "reprise.yaml"
    config.write_text(f"listen: [localhost:0, 'unix:{path}']\ntables: {{a: queue:7, b: uniform}}\n"
                      "max_bytes: 1MiB\nlimits: {streams: 77}\n")
    server = serve("--config", config, "--table=b:lifo:5", "--limit=items=99", "--loops=3")

    info = json.loads(get(server.port, "/v1/info")[1])
    assert info["server"]["loops"] == 3
    assert info["server"]["limits"]["streams"] == 77
    assert info["server"]["limits"]["items"] == 99
    assert {t["name"]: t["max_size"] for t in info["tables"]} == {"a": 7, "b": 5}
    assert server.serving["tables"] == "a (queue, 7 items), b (lifo, 5 items)"
    assert server.serving["max_bytes"] == "1 MiB"
    assert "note" not in server.serving
    assert get_over_unix(path, "/healthz").endswith("serving\n")


def test_a_unix_socket_is_enough_and_goes_with_the_server(serve, stop, tmp_path):
    path = tmp_path / "reprise.sock"
    server = serve(f"--listen=unix:{path}")
    assert server.serving["try"] == f"curl --unix-socket {path} http://localhost/healthz"
    assert get_over_unix(path, "/healthz").endswith("serving\n")
    stop(server)
    assert not path.exists()


def test_an_address_in_use_is_a_failure_with_advice(serve):
    server = serve("--port=0")
    done = reprise("serve", f"--port={server.port}")
    assert done.returncode == 1
    fields = fields_of(done.stderr.strip())
    assert (fields["event"], fields["level"]) == ("start_failed", "error")
    assert fields["status"] == "RP_UNAVAILABLE"
    assert str(server.port) in fields["error"]
    assert "--port 0" in fields["try"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_and_the_status_is_0(serve, number):
    server = serve("--port=0", "--drain-seconds=1h")
    connection = open_call(server.port)

    server.signal(number)
    fields = server.wait_for("draining")  # which says that it waits, and for how many (issue 26)
    assert fields["signal"] == number.name[3:] and float(fields["seconds"]) == 3600
    assert fields["level"] == "info" and fields["calls"] == "1"
    assert "a second signal stops at once" in fields["note"]
    with pytest.raises(subprocess.TimeoutExpired):  # the call is still open
        server.process.wait(0.3)
    connection.close()

    assert server.wait() == 0
    assert server.events()[-1] == "stopped"


def test_open_calls_are_ended_after_the_drain_time(serve):
    server = serve("--port=0", "--drain-seconds=300ms")
    with open_call(server.port):
        begin = time.monotonic()
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        assert time.monotonic() - begin > 0.25
    assert server.events() == ["serving", "draining", "stopped"]


def test_a_second_signal_stops_at_once(serve):
    server = serve("--port=0", "--drain-seconds=1h")
    with open_call(server.port):
        server.signal(signal.SIGTERM)
        server.wait_for("draining")
        server.signal(signal.SIGINT)
        assert server.wait() == 1
    assert server.events()[-1] == "stopped_at_once"


def test_other_signals_do_no_harm(serve, stop):
    server = serve("--port=0")
    for number in (signal.SIGPIPE, signal.SIGUSR1, signal.SIGUSR1):
        server.signal(number)
    assert get(server.port, "/healthz") == (200, "serving\n")
    stop(server)


def test_the_limit_of_open_files_is_raised(serve):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    server = serve("--port=0",
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard)))
    soft = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)[0]
    assert soft == hard


def test_a_reload_takes_limits_and_the_log_level(serve, tmp_path):
    config = tmp_path / "reprise.yaml"
    config.write_text("limits: {streams: 7}\nlog_level: info\n")
    server = serve("--port=0", "--config", config, "--limit=items=5")

    config.write_text("limits: {streams: 8, items: 6}\nlog_level: debug\n")
    server.signal(signal.SIGHUP)
    assert server.wait_for("reloaded")["level"] == "info"

    limits = json.loads(get(server.port, "/v1/info")[1])["server"]["limits"]
    assert (limits["streams"], limits["items"]) == (8, 5)  # flags still win
    server.signal(signal.SIGTERM)
    assert server.wait_for("draining")["level"] == "debug"  # no call is open
    assert server.wait() == 0


def test_a_reload_of_an_invalid_config_changes_nothing(serve, stop, tmp_path):
    config = tmp_path / "reprise.yaml"
    config.write_text("limits: {streams: 7}\n")
    server = serve("--port=0", "--config", config)

    config.write_text("limits: {streams: 8, items: -1}\n")
    server.signal(signal.SIGHUP)
    fields = server.wait_for("reload_failed")
    assert fields["level"] == "error"
    assert fields["error"].startswith(f"{config}:1:29: limits.items: expected a whole number")
    config.unlink()
    server.signal(signal.SIGHUP)
    assert "No such file" in server.wait_for("reload_failed")["error"]

    assert json.loads(get(server.port, "/v1/info")[1])["server"]["limits"]["streams"] == 7
    stop(server)


def test_a_reload_names_settings_that_need_a_restart(serve, tmp_path):
    config = tmp_path / "reprise.yaml"
    config.write_text("tables: {a: fifo, b: fifo, d: fifo}\nno_reset: true\n")
    server = serve("--port=0", "--config", config)

    config.write_text("tables: {a: lifo, c: fifo, d: fifo}\nlimits: {streams: 9}\n")
    server.signal(signal.SIGHUP)
    fields = server.wait_for("reloaded")

    assert fields["level"] == "warning"
    assert fields["note"] == ("changes of tables, budget, addresses and paths need a restart: these "
                              "were not applied: tables.a, tables.c, no_reset, tables.b")
    assert json.loads(get(server.port, "/v1/info")[1])["server"]["limits"]["streams"] == 9


def test_tokens_without_tls_are_warned_of_at_addresses_that_others_reach(serve, tmp_path):
    tokens = tmp_path / "tokens"
    digest = hashlib.sha256(b"hush").hexdigest()
    tokens.write_text(f"admin somebody sha256:{digest}\n")
    tokens.chmod(0o600)

    warned = serve("--listen=127.0.0.1:0", "--listen=0.0.0.0:0", f"--tokens={tokens}")
    lines = [fields_of(line) for line in warned.lines]
    [line] = [line for line in lines if line["event"] == "plain_tokens"]
    assert (line["level"], line["address"]) == ("warning", "0.0.0.0:0")
    assert "--tls-cert" in line["note"]

    local = serve("--listen=127.0.0.1:0", f"--tokens={tokens}")
    assert "plain_tokens" not in [fields_of(line)["event"] for line in local.lines]


def test_a_directory_of_tokens_is_named(tmp_path):
    done = reprise("serve", "--port=0", f"--tokens={tmp_path}")
    assert f"tokens: '{tmp_path}' cannot be read: Is a directory" in done.stderr, done
    assert "--port 8001" not in done.stderr and done.returncode == 1, done


def test_a_reload_takes_tokens(serve, tmp_path):
    tokens = tmp_path / "tokens"

    def admit(token):
        digest = hashlib.sha256(token.encode()).hexdigest()
        tokens.write_text(f"admin somebody sha256:{digest}\n")

    admit("first-token-of-the-test")
    server = serve("--port=0", f"--tokens={tokens}")
    assert get(server.port, "/v1/info", "first-token-of-the-test")[0] == 200
    assert get(server.port, "/v1/info", "second-token-of-the-test")[0] == 401

    admit("second-token-of-the-test")
    server.signal(signal.SIGHUP)
    server.wait_for("reloaded")
    assert get(server.port, "/v1/info", "first-token-of-the-test")[0] == 401
    assert get(server.port, "/v1/info", "second-token-of-the-test")[0] == 200

    tokens.write_text("rubbish\n")
    server.signal(signal.SIGHUP)
    assert "line 1" in server.wait_for("reload_failed")["error"]
    assert get(server.port, "/v1/info", "second-token-of-the-test")[0] == 200


def issue(folder, name):
    """A certificate that signs itself, and its key."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                    "-keyout", folder / "server.key", "-out", folder / "server.pem"],
                   check=True, capture_output=True, timeout=SECONDS)
    return (folder / "server.pem").read_text()


def test_a_reload_takes_certificates_and_leaves_open_connections_alone(serve, stop, tmp_path):
    first = issue(tmp_path, "first")
    server = serve("--port=0", f"--tls-cert={tmp_path}/server.pem",
                   f"--tls-key={tmp_path}/server.key")
    assert server.serving["try"] == f"curl https://localhost:{server.port}/healthz"
    address = ("localhost", server.port)
    assert ssl.get_server_certificate(address) == first
    context = ssl.create_default_context(cadata=first)
    context.check_hostname = False
    context.set_alpn_protocols(["h2"])
    with socket.create_connection(address, timeout=SECONDS) as plain:
        with context.wrap_socket(plain) as open_before:
            second = issue(tmp_path, "second")
            server.signal(signal.SIGHUP)
            server.wait_for("reloaded")
            assert ssl.get_server_certificate(address) == second
            open_before.sendall(PREFACE + frame(4, 0, 0))
            answers_a_ping(open_before)

    (tmp_path / "server.pem").write_text("rubbish")
    server.signal(signal.SIGHUP)
    assert "server.pem" in server.wait_for("reload_failed")["error"]
    assert ssl.get_server_certificate(address) == second
    stop(server)


LAUNCHER = """
import fcntl, os, sys
passed = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 100) for fd in sys.argv[1].split(",")]
for i, fd in enumerate(passed):
    os.dup2(fd, 3 + i)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(passed)))
os.execv(sys.argv[2], sys.argv[2:])
"""


def passing(sockets, *arguments):
    """A command that passes sockets from descriptor 3 on, as systemd does."""
    fds = ",".join(str(s.fileno()) for s in sockets)
    return [sys.executable, "-c", LAUNCHER, fds, REPRISE, "serve", *arguments]


def test_sockets_that_were_passed_are_served(serve, stop, tmp_path):
    path = tmp_path / "passed.sock"
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as local:
        port = tcp.getsockname()[1]
        local.bind(str(path))
        local.listen()
        fds = [s.fileno() for s in (tcp, local)]
        server = serve(command=passing([tcp, local]), pass_fds=fds)

        assert server.serving["addresses"] == "fd:3, fd:4"  # and not the default
        assert get(port, "/healthz") == (200, "serving\n")
        assert get_over_unix(path, "/healthz").endswith("serving\n")
        stop(server)


def test_addresses_are_added_to_sockets_that_were_passed(serve):
    with socket.create_server(("127.0.0.1", 0)) as tcp:
        port = tcp.getsockname()[1]
        server = serve(command=passing([tcp], "--listen=localhost:0"), pass_fds=[tcp.fileno()])
        assert get(port, "/healthz") == (200, "serving\n")
        assert server.serving["addresses"].startswith("localhost:")
        assert server.serving["addresses"].endswith(", fd:3")


def test_sockets_for_another_process_are_left_alone(serve):
    server = serve("--port=0", env=clean_environment(LISTEN_PID="1", LISTEN_FDS="2"))
    assert server.serving["addresses"] == f"localhost:{server.port}"


def test_a_wrong_count_of_sockets_is_misuse():
    done = subprocess.run(["sh", "-c", 'LISTEN_PID=$$ LISTEN_FDS=many exec "$0" serve', REPRISE],
                          capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 2
    assert done.stderr == ("reprise: LISTEN_FDS: expected a whole number from 0 to 16, "
                           "got 'many'\n")


def test_missing_sockets_are_misuse():
    done = subprocess.run(["sh", "-c", 'LISTEN_PID=$$ LISTEN_FDS=2 exec "$0" serve 3<&- 4<&-',
                           REPRISE], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 2
    assert done.stderr == "reprise: LISTEN_FDS: 2, but descriptor 3 is not open\n"


@pytest.mark.parametrize("abstract", [False, True])
def test_the_service_manager_is_notified(serve, abstract, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(SECONDS)
        name = f"{tmp_path}/notify"
        manager.bind(f"\0{name}" if abstract else name)
        server = serve("--port=0",
                       env=clean_environment(NOTIFY_SOCKET=f"@{name}" if abstract else name))

        def heard():
            return dict(x.split("=", 1) for x in manager.recv(65536).decode().splitlines())

        assert heard() == {"READY": "1", "STATUS": f"serving on localhost:{server.port}"}
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        server.signal(signal.SIGHUP)
        said = heard()
        assert said["RELOADING"] == "1"
        assert before <= int(said["MONOTONIC_USEC"]) <= before + SECONDS * 1000000
        assert heard() == {"READY": "1"}
        server.signal(signal.SIGTERM)
        said = heard()
        assert said["STOPPING"] == "1"
        assert int(said["EXTEND_TIMEOUT_USEC"]) == 15000000
        assert server.wait() == 0


def test_a_failed_notification_of_the_manager_is_a_warning(serve, stop):
    server = serve("--port=0", env=clean_environment(NOTIFY_SOCKET="/nonexistent/notify"))
    stop(server)
    assert server.events() == ["notify_failed", "serving", "stopped"]


def test_text_lines_are_logfmt(serve, stop):
    server = serve("--port=0", "--table=a b=c:fifo:3")
    stop(server)
    for line in server.lines:
        assert re.fullmatch(rf'time={TIME} level=\w+ event=\w+( \w+=("([^"\\]|\\.)*"|[^" =]+))*',
                            line), line
    assert 'tables="a b=c (fifo, 3 items)"' in server.lines[0]


def test_json_lines_are_objects(serve, stop):
    server = serve("--port=0", "--log-format=json", '--table=a"b\\\n\x01:fifo:3')
    stop(server)
    assert len(server.lines) == 2
    first, last = [json.loads(line) for line in server.lines]
    assert list(first)[:3] == ["time", "level", "event"]
    assert re.fullmatch(TIME, first["time"])
    assert first["tables"] == 'a"b\\\n\x01 (fifo, 3 items)'
    assert last["event"] == "stopped" and isinstance(last["seconds"], float)
    assert last["inserts"] == 0


def test_log_level_filters_lines(serve):
    server = Server([REPRISE, "serve", "--port=0", "--log-level=error"], env=clean_environment())
    try:
        deadline = time.monotonic() + SECONDS
        while not ignores_sigpipe(server.process.pid):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        assert server.events() == []
    finally:
        server.kill()


def ignores_sigpipe(pid):
    """True once it has set its signals up."""
    with open(f"/proc/{pid}/status") as file:
        ignored = int(re.search(r"^SigIgn:\s*(\w+)", file.read(), re.MULTILINE).group(1), 16)
    return ignored & (1 << (signal.SIGPIPE - 1)) != 0


def test_many_tables_are_listed_in_part(serve):
    server = serve("--port=0", *(f"--table=t{i}:fifo:1" for i in range(10)))
    assert server.serving["tables"].endswith("t7 (fifo, 1 item), and 2 more")


def test_log_lines_of_one_event_are_limited(serve, stop):
    server = serve("--port=0", "--loops=1")
    for _ in range(20):
        server.signal(signal.SIGHUP)
        server.wait_for("reloaded")
        assert get(server.port, "/healthz")[0] == 200  # its loop has been round since
    server.signal(signal.SIGHUP)  # of two that wait, it is taken before SIGTERM
    stop(server)

    assert server.events().count("reloaded") == 21  # 20, and one that says what was left out
    last = fields_of(server.lines[-1])
    assert (last["event"], last["suppressed"]) == ("reloaded", "1")


def end(server):
    server.signal(signal.SIGTERM)
    assert server.wait() == 0, server.lines


def max_sizes(server):
    tables = json.loads(get(server.port, "/v1/info")[1])["tables"]
    return {table["name"]: table["max_size"] for table in tables}


def test_every_checkpoint_is_logged(serve, tmp_path):
    server = serve("--port=0", f"--data={tmp_path / 'data'}")
    asked = [re.search(r"\d+", pathlib.Path(answer(server, "checkpoint").strip()).name)[0]
             for _ in range(4)]
    end(server)
    server.events()  # reads the rest of the lines
    logged = [int(re.search(r"number=(\d+)", line)[1]) for line in server.lines
              if "event=checkpoint " in line]
    assert logged == list(range(logged[0], logged[0] + len(logged))), server.lines
    assert set(map(int, asked)) < set(logged) and logged[-1] > int(asked[-1]), server.lines  # the last one too


@pytest.mark.parametrize("mode", ["checkpoint", "interval"])
def test_the_default_table_is_for_directories_without_tables(serve, tmp_path, mode):
    storage = ("--port=0", f"--data={tmp_path / 'data'}", f"--durability={mode}")
    first = serve(*storage)
    assert "so this one was created" in first.serving["note"]
    assert max_sizes(first) == {"replay": 1000000}
    end(first)
    again = serve(*storage)
    assert again.serving["tables"] == "replay (prioritized exponent 0.6, 1000000 items)"
    assert max_sizes(again) == {"replay": 1000000}


@pytest.mark.parametrize("spec, listed", [
    ("replay:prioritized:20,exponent=0.6", "replay (prioritized exponent 0.6, 20 items)"),
    ("replay:uniform:20,min_size=3", "replay (uniform, 20 items)"),
    ("other:queue:7", "other (queue, 7 items)"),
    ("other:stack:1", "other (stack, 1 item)"),
])
def test_saved_tables_are_used_as_they_are_if_none_is_configured(serve, tmp_path, spec, listed):
    storage = ("--port=0", f"--data={tmp_path / 'data'}")
    first = serve(*storage, f"--table={spec}")
    saved = max_sizes(first)
    end(first)
    again = serve(*storage)
    assert (again.serving["tables"], max_sizes(again)) == (listed, saved)
    assert again.serving["note"] == "no table is configured: the saved tables are used as they are"
    assert not {"storage", "saved_options"} & set(again.events())


def test_saved_options_that_differ_are_logged(serve, tmp_path):
    storage = ("--port=0", f"--data={tmp_path / 'data'}")
    end(serve(*storage, "--table=t:fifo:20,min_size=3", "--table=u:fifo:5", "--table=v:fifo:5"))
    again = serve(*storage, "--table=t:fifo:10,min_size=4", "--table=u:fifo:9", "--table=v:fifo:5")
    assert again.serving["tables"] == "t (fifo, 20 items), u (fifo, 9 items), v (fifo, 5 items)"
    lines = [fields_of(line) for line in again.lines]
    [kept] = [line for line in lines if line["event"] == "saved_options"]
    assert (kept["table"], kept["saved"], kept["configured"]) == (
        "t", "max_size 20, min_size 3", "max_size 10, min_size 4")
    [raised] = [line["note"] for line in lines if line["event"] == "storage"]
    assert raised == ("table 'u': the configured max_size 9 is used, not the saved one, 5, "
                      "which is smaller")


def test_a_saved_limiter_that_differs_is_logged(serve, tmp_path):
    storage = ("--port=0", f"--data={tmp_path / 'data'}")
    end(serve(*storage, "--table=t:fifo:20"))
    again = serve(*storage, "--table=t:fifo:20,samples_per_insert=2,error_buffer=4")
    [kept] = [line for line in map(fields_of, again.lines) if line["event"] == "saved_options"]
    assert kept["saved"] == "samples_per_insert 1, min_diff no bound, max_diff no bound"
    assert kept["configured"] == "samples_per_insert 2, min_diff -2, max_diff 6"


def test_another_exponent_than_saved_is_named(serve, tmp_path):
    storage = ("--port=0", f"--data={tmp_path / 'data'}")
    end(serve(*storage, "--table=t:prioritized:20,exponent=0.6"))
    done = reprise("serve", *storage, "--table=t:prioritized:20,exponent=0.7")
    assert done.returncode == 1
    assert ("saved with sampler prioritized with exponent 0.6 and remover fifo, not prioritized "
            "with exponent 0.7 and fifo") in done.stderr


def test_info_names_a_checkpoint_that_was_loaded(serve, tmp_path):
    storage = ("--port=0", f"--data={tmp_path / 'data'}", "--table=t:fifo:5,max_times_sampled=1")
    end(serve(*storage))
    server = serve(*storage)
    line = re.search("^storage .*$", reprise("info", "--server", f"localhost:{server.port}").stdout, re.MULTILINE).group()
    assert re.search(r": checkpoint \d+, loaded at the start, with \S+ B in data files", line), line


def test_info_says_when_the_bytes_on_disk_were_counted(serve, tmp_path):
    server = serve("--port=0", f"--data={tmp_path / 'data'}", "--durability=interval",
                   "--table=t:fifo:5,max_times_sampled=1")
    ask = lambda *words, **options: reprise(*words, "--server", f"localhost:{server.port}", **options)  # noqa: E731
    assert ask("insert", "t", "-", input='{"data": [1]}\n').returncode == 0
    line = re.search("^storage interval: .*$", ask("info").stdout, re.MULTILINE).group()
    assert re.search(r"checkpoint 1 \S+ \S+ ago with 0 B in data files, later changes in the journal", line), line
    assert "at most 1 time\n" in ask("info", "t").stdout
    assert ask("checkpoint").returncode == 0
    assert "in 1 segment, " in ask("info", "--storage").stdout
