# SPDX-License-Identifier: Apache-2.0
"""--check-config: what would run, and what is wrong."""

import pathlib
import re

import pytest
from conftest import ROOT, reprise

HERE = pathlib.Path(__file__).parent
PAGE = (ROOT / "docs" / "serve.md").read_text()
SAMPLE = ROOT / "docs" / "reprise.yaml"

# A setting whose default depends on the machine, made equal on all.
FIXED = ["--max-bytes=4GiB"]


def check(*arguments):
    done = reprise("serve", "--check-config", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("name, arguments", [
    ("check_default", FIXED),
    ("check_flags", [
        "--table=replay:prioritized:1000000,exponent=0.6,remover=fifo,min_size=1,"
        "samples_per_insert=4,error_buffer=100,max_times_sampled=1,max_bytes=4GiB",
        "--table=soft:uniform:1_000,soft_limit=true",
        "--table=q:queue:1000", "--table=s:stack:100", "--port=9000", "--listen=unix:/tmp/x.sock",
        "--policy=block", "--seed=7", "--loops=2", "--insecure", "--no-reset", "--log-level=debug",
        "--log-format=json", "--drain-seconds=2.5", "--limit=streams=9", *FIXED]),
    ("check_storage", [
        "--data=/nowhere/data", "--durability=interval", "--sync-every=250ms",
        "--checkpoint-every=10m", "--keep-checkpoints=5", "--no-final-checkpoint",
        "--max-memory=1GiB", "--salvage", "--accept-changes"]),
    ("check_file", [f"--config={HERE / 'tables.yaml'}", "--table=second:lifo:5", *FIXED]),
])
def test_check_config_prints_the_resulting_config(name, arguments, golden, tmp_path):
    text = check(*arguments)
    golden(f"{name}.yaml", text[: text.index("\nlimits:\n") + 1])  # of those the sample has all

    again = tmp_path / "again.yaml"
    again.write_text(text)
    assert check(f"--config={again}") == text


BAD = [
    ("tables:\n  replay:\n    sampler: prioritized\n    max_sise: 3\n",
     "4:5: tables.replay.max_sise: unknown key, did you mean 'max_size'?"),
    ("prot: 8000\n", "1:1: prot: unknown key, did you mean 'port'?"),
    ("port: 8000\nport: 8001\n", "2:1: port: given twice, first in line 1"),
    ("port: 80000\n", "1:7: port: expected a whole number from 0 to 65535, got '80000'"),
    ("port: '8000'\n",
     "1:7: port: expected a whole number from 0 to 65535, got the string '8000'"),
    ("insecure: yes\n", "1:11: insecure: expected true or false, got 'yes'"),
    ("policy: evcit\n",
     "1:9: policy: unknown value 'evcit', did you mean 'evict'? (evict, block or reject)"),
    ("max_bytes: much\n",
     "1:12: max_bytes: expected a size such as 4GiB, or a part of the memory, at most 100%, "
     "got 'much'"),
    ("drain_seconds: -1\n",
     "1:16: drain_seconds: expected a time from 0 to 86400 s, such as 30 or 30s, got '-1'"),
    ("storage:\n  dta: /x\n", "2:3: storage.dta: unknown key, did you mean 'storage.data'?"),
    ("storage: /x\n", "1:10: storage: expected a map, got a value"),
    ("storage:\n  durability: sync\n", "2:15: storage.durability: needs storage.data as well"),
    ("storage:\n  data: /dev/null\n", "2:9: storage.data: '/dev/null': Not a directory"),
    ("storage:\n  data: /x\n  keep_checkpoints: 0\n",
     "3:21: storage.keep_checkpoints: expected a whole number from 1 to 1000, got '0'"),
    ("limits:\n  conections: 5\n",
     "2:15: limits.conections: unknown limit, did you mean 'connections'?"),
    ("limits: {header_bytes: 100}\n",
     "1:24: limits.header_bytes: must be from 256 to 1048576, or 0 for the default; got '100'"),
    ("listen: localhost\n",
     "1:9: listen: 'localhost': there is no port: expected host:port, :port or unix:/path"),
    ("listen: 0.0.0.0:8000\n",
     "1:9: listen: '0.0.0.0:8000' can be reached from elsewhere, and there are no credentials, so "
     "every client would be an administrator: give tokens or tls_client_ca, or insecure: true to "
     "allow it"),
    ("tls_cert: /dev/null\n", "1:11: tls_cert: needs tls_key as well"),
    ("tokens: /nonexistent\n", "1:9: tokens: '/nonexistent': No such file or directory"),
    ("tables: {a: {sampler: fifo, signature: {x: 'float33 [?]'}}}\n",
     "1:44: tables.a.signature.x: unknown dtype 'float33', did you mean 'float32'?"),
    ("tables: {a: {sampler: uniform, samples_per_insert: 4, error_buffer: 1}}\n",
     "1:10: tables.a: table 'a': limiter: inserts and samples would both wait for ever once "
     "inserts * 4 - samples is 2: max_diff - min_diff is 2, make it at least 5; error_buffer: at least 2.5"),
    ("data: /x\n", "1:1: data: unknown key, did you mean 'storage.data'?"),
    ("checkpoint_every: 5s\n", "1:1: checkpoint_every: unknown key, did you mean 'storage.checkpoint_every'?"),
    ("tables:\n\ta: fifo\n", "2:1: not YAML: a tab: indent with spaces"),
    ("max_bytes: 120%\n",
     "1:12: max_bytes: expected a size such as 4GiB, or a part of the memory, at most 100%, got '120%'"),
    ("a: [1\n", "2:1: not YAML: did not find expected ',' or ']'"),
    ("a: &b 1\n", "1:4: anchors are not supported"),
    ("a: 1\n---\nb: 1\n", "2:1: a second document: only one is allowed"),
]


@pytest.mark.parametrize("text, message", BAD, ids=[m.split(": ")[1][:30] for _, m in BAD])
def test_config_errors_have_line_and_column(text, message, tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text(text)

    done = reprise("serve", "--config", path, "--check-config")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"reprise: {path}:{message}\n"
    assert reprise("serve", "--config", path).stderr == done.stderr  # it does not start either


@pytest.mark.parametrize("arguments, message", [
    (["--config", "/nonexistent/x.yaml"], "/nonexistent/x.yaml: No such file or directory"),
    (["--config", "/tmp"], "/tmp: Is a directory"),
    (["--table", "replay"],
     "--table: expected NAME:SAMPLER[:MAX_SIZE][,key=value...], such as "
     "replay:prioritized:1000000, got 'replay'"),
    (["--table", "r:prioritised:5"],
     "--table r: sampler: unknown value 'prioritised', did you mean 'prioritized'? "
     "(fifo, lifo, uniform, prioritized, min_heap, max_heap, queue or stack)"),
    (["--table", "a:fifo", "--table", "a:fifo"], "--table a: given twice"),
    (["--durability", "sync"], "--durability: needs --data as well"),
    (["--data", "/x", "--durability", "snyc"],
     "--durability: unknown value 'snyc', did you mean 'sync'? (checkpoint, interval or sync)"),
    (["--limit", "streams"], "--limit: expected NAME=VALUE, got 'streams'"),
    (["--limit", "streems=3"],
     "--limit streems: unknown limit, did you mean 'streams'?"),
    (["--log-level", "inof"],
     "--log-level: unknown value 'inof', did you mean 'info'? (error, warning, info or debug)"),
])
def test_invalid_arguments_are_named(arguments, message):
    done = reprise("serve", "--check-config", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"reprise: {message}\n")


def test_an_open_address_has_the_text_that_troubleshooting_explains():
    """The server has the same text; the command checks its addresses before."""
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    [text] = re.findall(r"^\| `ADDRESS (can be reached from [^`]+)`", page, re.MULTILINE)
    done = reprise("serve", "--listen", "0.0.0.0:0")
    assert done.returncode == 2 and f"--listen: '0.0.0.0:0' {text}" in done.stderr


def test_the_sample_config_equals_the_defaults():
    assert check(f"--config={SAMPLE}") == check()


def test_every_line_of_the_sample_can_be_used(tmp_path):
    for name in ("server.pem", "server.key", "clients.pem", "tokens"):
        (tmp_path / name).touch()
    text = re.sub(r"^( *)#(?=[a-z -])(?! )", r"\1", SAMPLE.read_text(), flags=re.MULTILINE)
    text = re.sub(r"^( *)#(  \w+: )", r"\1\2", text, flags=re.MULTILINE)  # of the signature
    text = text.replace("/etc/reprise", str(tmp_path))
    path = tmp_path / "all.yaml"
    path.write_text(text)

    printed = check(f"--config={path}")

    keys = set(re.findall(r"^ *(\w+):", printed, re.MULTILINE))
    for key in ("samples_per_insert", "error_buffer", "seed", "core_state", "trajectories", "newest",
                "tls_key", "tls_require_client_cert", "tokens", "storage", "keep_checkpoints"):
        assert key in keys, printed
    assert "unix:/run/reprise/reprise.sock" in printed
    assert "localhost:9000" in printed


def options():
    """Every option of `reprise serve`, from its help."""
    return re.findall(r"^  --([a-z-]+)", reprise("help", "serve").stdout, re.MULTILINE)


def test_pages_name_every_option():
    assert len(options()) == 30
    sample = SAMPLE.read_text()
    for name in options():
        assert f"`--{name}" in PAGE, name
        if name not in ("config", "check-config"):
            key = {"table": "tables", "limit": "limits"}.get(name, name.replace("-", "_"))
            assert re.search(rf"^(#?|#  ){key}:", sample, re.MULTILINE), key


def test_pages_name_every_limit_and_every_key_of_a_table():
    limits = check().split("\nlimits:\n")[1]
    names = re.findall(r"^  (\w+):", limits, re.MULTILINE)
    assert len(names) == 32
    keys = reprise("help", "serve").stdout.split("Keys of a table: ")[1].split(". ")[0]
    keys = re.findall(r"\w+", keys)
    assert len(keys) == 13
    for name in names + keys + ["signature", "sampler"]:
        assert f"`{name}`" in PAGE, name
        assert re.search(rf"^ +#? ?{name}:", SAMPLE.read_text(), re.MULTILINE), name


def test_the_page_has_the_defaults_of_the_limits():
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ([^|]+) \|", PAGE.split("## Limits")[1], re.MULTILINE)
    pairs = [(name.strip("`"), value) for names, values in rows
             for name, value in zip(names.split(", "), values.split(", "))]
    limits = re.findall(r"^  (\w+):", check().split("\nlimits:\n")[1], re.MULTILINE)
    pairs = [p for p in pairs if p[0] in limits]
    assert len(pairs) == 32
    assert check(*(f"--limit={name}={value}" for name, value in pairs)) == check()


def test_tables_and_files_of_the_page_are_right(tmp_path):
    specs = re.findall(r"\| `(\w+:\w+:[^` ]+)` \|", PAGE)
    assert len(specs) == 5
    for spec in specs:
        check(f"--table={spec}")
    for number, block in enumerate(re.findall(r"^```yaml\n(.*?)^```", PAGE,
                                              re.DOTALL | re.MULTILINE)):
        path = tmp_path / f"{number}.yaml"
        path.write_text(block)
        check(f"--config={path}")
