# SPDX-License-Identifier: Apache-2.0
"""`reprise train apex-dqn` in trouble: each case goes on, or ends with a sentence that says what to do."""

import hashlib
import json
import re
import shutil
import signal
import struct
import subprocess
import time

import pytest
from conftest import REPRISE, clean_environment, reprise
from test_apex import CATCH, LONG, Part, port_of, published, run

pytestmark = pytest.mark.skipif("  train " not in reprise("help").stdout, reason="built without rl")
NEVER = [*CATCH[:-4], "--threshold", "2", "--eval-episodes", "5"]  # a return that Catch does not have


@pytest.fixture
def part(tmp_path):
    parts = []

    def start(*arguments, **environment):
        parts.append(Part(tmp_path, *arguments, **environment))
        return parts[-1]

    yield start
    for p in parts:
        if p.process.poll() is None:
            p.process.kill()
        p.process.communicate()


@pytest.mark.parametrize("shards", [1, 2])
def test_processes_that_end_unsolved_leave_the_newest_policy(tmp_path, shards):
    done = run(tmp_path, *NEVER, "--actors", 2, "--processes", "--shards", shards, "--steps", 1000, "--dir", "a")
    assert done.returncode == 0, done
    assert re.search(r"^not solved in (\d+) steps\n\1 steps, \d+ updates in [\d.]+ s \(\d+ steps/s\)\na\n\Z", done.stdout,
                     re.MULTILINE), done.stdout
    assert (tmp_path / "a" / "policy.safetensors").exists()
    assert sorted(p.name for p in (tmp_path / "a").glob("replay*")) == ["replay", "replay-1"][:shards]
    done = subprocess.run([REPRISE, "eval", "a", "--episodes", "3", "--json"], cwd=tmp_path, capture_output=True,
                          text=True, timeout=LONG, env=clean_environment())
    assert -1 <= json.loads(done.stdout)["mean_return"] <= 1


def inserts(port, table, *more):
    done = reprise("info", table, "--json", "--server", f"localhost:{port}", *more)
    return json.loads(done.stdout)[0]["inserts"] if done.returncode == 0 else 0


def test_a_signal_ends_processes_with_a_policy_and_a_snapshot(tmp_path, part):
    line = ["--actors", 1, "--processes", "--dir", "a", "--serve", "localhost:0"]
    p = part(*NEVER, *line, "--capacity", 2000000)  # its parts must not get 2e+06
    port = port_of(p.until("look at"))
    deadline = time.monotonic() + LONG
    while published(port) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    before = inserts(port, "snapshot")  # there is one every 2,000 updates
    assert p.end(signal.SIGINT) == 130
    assert (tmp_path / "a" / "policy.safetensors").exists()
    again = part(*line, "--resume", "--threshold", 2)
    port = port_of(again.until("look at"))
    while published(port) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert inserts(port, "snapshot") > before  # the learner saved it before the replay ended
    assert again.end() == 130


def test_parts_without_a_snapshot_say_so(tmp_path, part):
    line = [*NEVER, "--role", "replay", "--serve", "localhost:0", "--dir", "r"]
    first = part(*line)
    assert "look at" in first.until("look at|no snapshot")
    assert first.end() == 0
    again = part(*line)
    assert again.until("look at|no snapshot") == (
        "reprise train: r/replay: no snapshot: a learner that starts now begins again\n")
    assert again.end() == 0


def test_processes_without_a_snapshot_say_so(tmp_path):
    line = ["--actors", 1, "--processes", "--dir", "a"]
    assert run(tmp_path, *NEVER, *line, "--steps", 1000).returncode == 0
    done = run(tmp_path, *line, "--resume", "--steps", 1500)
    assert done.returncode == 0 and "no snapshot" not in done.stderr, done
    shutil.rmtree(tmp_path / "a" / "replay")
    done = run(tmp_path, *line, "--resume")
    assert done.returncode == 0 and done.stderr.startswith("reprise train: a: no snapshot: starts again\n"), done


def test_a_folder_in_use_is_named(tmp_path, part):
    first = part(*NEVER, "--actors", 1, "--processes", "--dir", "a")
    first.until("evaluator +return")  # so the replay runs
    done = run(tmp_path, "--actors", 1, "--processes", "--dir", "a", "--resume")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (f"reprise train: a: process {first.process.pid} trains in this folder: end it, or give "
                           "another --dir\n")
    done = run(tmp_path, "--actors", 1, "--dir", "a", "--resume")
    assert done.returncode == 1
    assert re.fullmatch(r"reprise train: a/replay: process \d+ has this directory: end that process, or use another directory\n", done.stderr)
    done = run(tmp_path, *NEVER, "--role", "replay", "--serve", "localhost:0", "--dir", "a")
    assert done.returncode == 1
    assert re.fullmatch(r"reprise train: a/replay: process \d+ has this directory: end that process, or use another directory\n", done.stderr)


def test_options_of_a_server_need_one(tmp_path):
    for option in (["--tokens", "x"], ["--tls-cert", "x"], ["--insecure"]):
        done = run(tmp_path, *NEVER, *option)
        assert (done.returncode, done.stderr) == (2, f"reprise train: {option[0]} needs --serve ADDR\n")
    done = run(tmp_path, *NEVER, "--shards", 2)
    assert (done.returncode, done.stderr) == (2, "reprise train: --shards needs --processes or --export\n")
    done = run(tmp_path, *NEVER, "--role", "replay", "--serve", "0.0.0.0:0")
    assert done.returncode == 2 and done.stderr == (
        "reprise train: --serve: '0.0.0.0:0' can be reached from elsewhere, and there are no credentials, so every "
        "client would be an administrator: give --tokens, or --insecure to allow it\n")


def test_roles_use_tls_and_tokens(tmp_path, part):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout",
                    tmp_path / "key.pem", "-out", tmp_path / "cert.pem"], check=True, capture_output=True, timeout=LONG)
    tokens = {"admin": "token-of-the-parts", "write": "a-weaker-token"}
    (tmp_path / "tokens").write_text("".join(
        f"{role} {role} sha256:{hashlib.sha256(token.encode()).hexdigest()}\n" for role, token in tokens.items()))
    replay = part(*NEVER, "--role", "replay", "--serve", "localhost:0", "--tokens", "tokens", "--tls-cert", "cert.pem",
                  "--tls-key", "key.pem", "--dir", "r")
    port = port_of(replay.until("look at"))
    address = f"localhost:{port}"
    line = [*NEVER, "--of", 1, "--replay", address]
    more = f": {address} refuses the token in the environment, REPRISE_TOKEN, which is"

    for role, token, why in (
            ("actor", None, f"actor 0: this needs the role admin: send 'authorization: Bearer <token>'{more} not set"),
            ("learner", "wrong", f"learner: the token is not known{more} set"),
            ("evaluator", "wrong", f"evaluator: the token is not known{more} set"),
            ("learner", tokens["write"], f"learner: 'write' has the role write, and this needs admin{more} set")):
        environment = {} if token is None else {"REPRISE_TOKEN": token}
        done = subprocess.run([REPRISE, "train", "apex-dqn", *map(str, line), "--role", role, "--report-ca", "cert.pem"],
                              cwd=tmp_path, capture_output=True, text=True, timeout=LONG,
                              env=clean_environment(**environment))
        assert done.returncode == 1
        assert done.stderr == f"reprise train: {why}. The parts need one with the role admin\n"

    plain = part(*line, "--role", "actor", REPRISE_TOKEN=tokens["admin"])
    plain.until("for the replay: .*: the server wants TLS")
    advice = "this client sets neither `tls` nor `ca_file`; --report-ca FILE uses TLS and trusts the authority in FILE"
    plain.until(f"waiting for .*: actor 0 needs the replay: {address}: the server wants TLS, and {advice}$")
    assert plain.end() == 130
    done = run(tmp_path, *line, "--role", "actor", "--seconds", 3, "--quiet")
    assert done.returncode == 1 and done.stderr.endswith(f"{advice}\n"), done
    done = run(tmp_path, *NEVER, "--actors", 1, "--report", address, "--seconds", 3, "--quiet", "--dir", "t")
    assert done.returncode == 0, done
    assert f"reports did not reach {address}: " in done.stderr and done.stderr.endswith(f"{advice}\n"), done
    parts = [part(*line, "--role", role, "--report-ca", "cert.pem", REPRISE_TOKEN=tokens["admin"])
             for role in ("learner", "actor", "evaluator")]
    deadline = time.monotonic() + LONG
    while inserts(port, "variables", "--ca", tmp_path / "cert.pem", "--token", tokens["admin"]) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert [p.end() for p in (*parts, replay)] == [130, 130, 130, 0]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_data_of_a_newer_version_is_named(tmp_path):
    line = ["--actors", 1, "--dir", "a", "--steps", 300, "--keep-going", "--quiet"]
    assert run(tmp_path, *NEVER, *line).returncode == 0
    path = tmp_path / "a" / "replay" / "CURRENT"
    data = bytearray(path.read_bytes())
    data[8:12] = struct.pack("<I", 999)  # version and checksum of its header (docs/checkpoint.md)
    data[60:64] = struct.pack("<I", crc32c(data[:60]))
    path.write_bytes(data)
    done = run(tmp_path, *line, "--resume")
    assert done.returncode == 1
    assert re.fullmatch(r"reprise train: a/replay: .*version 999 of the format is newer than \d+.*\n", done.stderr)


def test_settings_of_another_run_are_named(tmp_path, part):
    replay = part(*NEVER, "--role", "replay", "--serve", "localhost:0", "--dir", "r")
    port = port_of(replay.until("look at"))
    line = ["--of", 1, "--replay", f"localhost:{port}", "--role"]
    learner = part(*NEVER, *line, "learner")
    deadline = time.monotonic() + LONG
    while published(port) < 1:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    other = [33 if a == "32" else a for a in NEVER]  # --hidden
    done = run(tmp_path, *other, *line, "actor")
    assert done.returncode == 1
    why = r"table 'variables' has no item of \d+ numbers: they are of a network with other settings"
    assert re.fullmatch(rf"reprise train: actor 0: has no parameters: {why}\nreprise train: actor 0: {why}\n", done.stderr)
    assert learner.end() == 130  # leaves a snapshot
    done = run(tmp_path, *other, *line, "learner")
    assert done.returncode == 1
    assert "it is of other settings, or of another version of reprise. Give the settings of that run" in done.stderr
    assert replay.end() == 0


FOREIGN = r"reprise train: learner: table 'replay' of localhost:\d+ {}; name another server\n"


def refused(server, why):
    done = reprise("train", "apex-dqn", "--env", "cartpole", "--role", "learner", "--replay", f"localhost:{server.port}")
    assert done.returncode == 1, done
    assert re.fullmatch(FOREIGN.format(why), done.stderr), done.stderr


def foreign(server, *lines):
    done = reprise("insert", "replay", "-", "--server", f"localhost:{server.port}", input="\n".join(lines) + "\n")
    assert done.returncode == 0, done
    return lambda: json.loads(reprise("info", "replay", "--json", "--server", f"localhost:{server.port}").stdout)[0]


def test_a_learner_deletes_nothing_of_another_program(serve):
    server = serve("--port=0", "--table", "replay:prioritized:1000,samples_per_insert=4,min_size=5,error_buffer=100")
    info = foreign(server, *['{"data": [1]}'] * 12)
    refused(server, r"has items that are not of this agent: column 0 is int64 \[\], expected float32 \[4\]")
    assert (info()["items"], info()["deletes"]) == (12, 0)


def test_a_learner_draws_nothing_of_a_foreign_queue(serve):
    server = serve("--port=0", "--table", "replay:queue:100")
    info = foreign(server, *['{"data": [1]}'] * 12)
    refused(server, "has no signature, so its items may not be of apex-dqn with cartpole, and sampling would remove them")
    assert tuple(info()[key] for key in ("items", "samples", "deletes")) == (12, 0, 0)


def test_a_learner_refuses_a_table_with_another_signature(serve):
    server = serve("--port=0", "--table", "other:fifo:100")
    done = reprise("tables", "create", "replay:fifo:100", "--column", "obs=float32 [4]", "--server", f"localhost:{server.port}")
    assert done.returncode == 0, done
    refused(server, r"is not of apex-dqn with cartpole: column 0 is 'obs' float32 \[4\], expected 'observation' float32 \[4\]")
