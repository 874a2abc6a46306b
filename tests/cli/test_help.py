# SPDX-License-Identifier: Apache-2.0
"""What the command says of itself."""

import functools
import json
import re
import shlex
import shutil
import subprocess

import pytest
from conftest import REPRISE, ROOT, answer, clean_environment, reprise

COMMANDS = ["serve", "info", "top", "clients", "watch", "why", "sample", "insert", "tables", "checkpoint", "data", "runs",
            "rollouts", "shell", "bench", "train", "eval", "play", "export", "tune", "version", "help"]


@functools.cache
def help_of(*arguments):
    return reprise("help", *arguments).stdout


def test_help_lists_the_commands(golden):
    done = reprise("help")
    assert (done.returncode, done.stderr) == (0, "")
    golden("help.txt", done.stdout)
    for same in (["--help"], ["-h"]):
        assert reprise(*same).stdout == done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command, golden):
    done = reprise("help", command)
    assert (done.returncode, done.stderr) == (0, "")
    golden(f"help_{command}.txt", done.stdout)
    assert reprise(command, "--help").stdout == done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 96


@pytest.mark.parametrize("command", [[], *([c] for c in COMMANDS)])
def test_help_names_no_file_that_is_not_installed(command):
    """A wheel has the command without the documents."""
    for text in (help_of(*command), help_of("--man", *command)):
        assert "docs/" not in text and ".md" not in text


def test_commands_are_listed_in_their_order():
    listed = re.findall(r"^  ([a-z]+) +[A-Z]", reprise("help").stdout, re.MULTILINE)
    assert listed == COMMANDS


def test_man_pages_are_good_roff_and_all_installed():
    """groff says nothing about them; the build makes one for each command."""
    makes = (ROOT / "src" / "cli" / "manual" / "meson.build").read_text()
    for command in [[], *([c] for c in COMMANDS)]:
        page = reprise("help", "--man", *command)
        assert (page.returncode, page.stderr) == (0, "")
        assert page.stdout.startswith(".TH REPRISE")
        assert not command or f"'{command[0]}'" in makes
        assert "share/doc/reprise" in page.stdout  # where the build installs docs/
        assert "A Python wheel has no documents" in page.stdout
        for name in re.findall(r"\bdocs/[\w/.]+\w", page.stdout):
            assert (ROOT / name).exists(), name
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-z"], input=page.stdout,
                                  capture_output=True, text=True)
            assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_know_every_command_and_option(shell):
    script = reprise("help", "--completion", shell).stdout
    for command in COMMANDS:
        assert re.search(rf"\b{command}\b", script)
        for option in re.findall(r"^  --([a-z-]+)", help_of(command), re.MULTILINE):
            assert re.search(rf"(--|-l ){option}\b", script), (command, option)
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize("line, expected", [
    ("reprise ta", {"tables"}),
    ("reprise tables ", {"list", "create", "drop", "alter", "reset", "pause", "resume"}),
    ("reprise top --inter", {"--interval"}),
    ("reprise serve --policy ", {"evict", "block", "reject"}),
    ("reprise help --completion ", {"bash", "zsh", "fish"}),
    ("reprise help sam", {"sample"}),
    ("reprise sample --count ", set()),
])
def test_bash_completes(line, expected, tmp_path):
    script = help_of("--completion", "bash") + f"""
COMP_LINE={shlex.quote(line)}; COMP_WORDS=({line}); [ "${{COMP_LINE% }}" = "$COMP_LINE" ] ||
COMP_WORDS+=(""); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _reprise; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert set(done.stdout.split()) == expected


def test_bash_completes_tables(serve, tmp_path):
    """Names of tables are other people's: nothing in them is run."""
    server = serve("--port", "0", "--table", "replay:fifo:1", "--table", "replay_eval:fifo:1")
    answer(server, "tables", "create", "$(touch made):fifo:1")
    answer(server, "tables", "create", "--", "--json:fifo:1")  # would be read as an option
    (tmp_path / "a.npy").touch()
    script = help_of("--completion", "bash") + r"""
COMP_WORDS=($COMP_LINE); [ "${COMP_LINE% }" = "$COMP_LINE" ] || COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _reprise; printf '%s\n' "${COMPREPLY[@]}"
"""
    address = f"localhost:{server.port}"
    for line, expected in [
            ("info re", ["replay", "replay_eval"]),
            ("tables drop ", [r"\$\(touch\ made\)", "replay", "replay_eval"]),
            ("tables drop x replay_", ["replay_eval"]),
            ("tables create re", [""]),
            (f"sample --json --server={address} --count 5 replay_", ["replay_eval"]),
            ("sample --server localhost:1 re", [""]),
            ("insert replay_", ["replay_eval"]),
            ("insert replay a", ["a.npy"]),
            ("sample replay re", [""])]:
        env = clean_environment(REPRISE_SERVER=address, COMP_LINE=f"{REPRISE} {line}")
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True,
                              cwd=tmp_path, env=env)
        assert sorted(done.stdout.split("\n")[:-1]) == sorted(expected), line
    assert not (tmp_path / "made").exists()


def test_version_is_that_of_the_project():
    version = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text()).group(1)
    assert json.loads(reprise("version", "--json").stdout) == {"version": version}
    for arguments in (["version"], ["--version"]):
        done = reprise(*arguments)
        assert (done.returncode, done.stdout) == (0, f"reprise {version}\n")


@pytest.mark.parametrize("arguments, message", [
    (["sevre"], "unknown command 'sevre', did you mean 'serve'?"),
    (["frobnicate"], "unknown command 'frobnicate'; reprise help lists them"),
    (["help", "sevre"], "unknown command 'sevre', did you mean 'serve'?"),
    (["version", "x"], "'x' is not expected here: version takes options only; usage: reprise version [--json]"),
    (["serve", "--tabel", "x"], "unknown option --tabel, did you mean --table?"),
    (["serve", "--max_size", "10"], "unknown option --max_size: the argument of --table has it: "
     "NAME:SAMPLER:MAX_SIZE (reprise serve --help explains SPEC)"),
    (["serve", "--samples-per-insert", "4"], "unknown option --samples-per-insert: the argument of --table has it: "
     "NAME:SAMPLER:MAX_SIZE,samples_per_insert=X (reprise serve --help explains SPEC)"),
    (["serve", "--signature", "x"], "unknown option --signature: the file of --config has it, as signature of a table"),
    (["tables", "alter", "t", "--max_size", "10"], "unknown option --max_size, did you mean --max-size?"),
    (["serve", "--port"], "--port: needs N"),
    (["serve", "-p", "1"], "unknown option -p: options are long, did you mean --port?"),
    (["serve", "-q", "1"], "unknown option -q: options are long"),
    (["serve", "8000"], "'8000' is not expected here, did you mean --port 8000?"),
    (["sample", "y", "-n", "3"], "unknown option -n: options are long, did you mean --count?"),
    (["checkpoint", "replay"], "'replay' is not expected here: checkpoint takes options only; usage: reprise checkpoint [OPTION...]"),
    (["clients", "NAME"], "'NAME' is not expected here: clients takes options only; usage: reprise clients [OPTION...]"),
    (["info", "t", "u"], "'u' is not expected here; usage: reprise info [OPTION...] [TABLE]"),
    (["sample"], "TABLE is missing; usage: reprise sample [OPTION...] TABLE; --help explains it"),
    (["data", "dump"], "DIR is missing; usage: reprise data ACTION [OPTION...] DIR [PATH]; --help explains it"),
    (["insert", "t"], "FILE... is missing; usage: reprise insert [OPTION...] TABLE FILE...; --help explains it"),
    (["info", "replay", "extra"], "'extra' is not expected here; usage: reprise info [OPTION...] [TABLE]"),
    (["tables", "alter", "t", "--sampler", "fifo"],
     "unknown option --sampler: the sampler of a table cannot be altered: create another table, whose SPEC "
     "has it (reprise serve --help explains SPEC)"),
    (["tables", "create", "t:uniform:9", "--signature", "x"],
     "unknown option --signature: --column NAME=SPEC gives a column, such as --column 'obs=float32 [4]' "
     "--column done=bool"),
    (["tables", "create", "t:uniform:9", "--remover", "fifo"],
     "unknown option --remover: the argument of create has it: NAME:SAMPLER:MAX_SIZE,remover=KIND "
     "(reprise serve --help explains SPEC)"),
    (["tables", "create", "t:uniform:9", "--max-size", "3"],
     "--max-size has no effect on create: its argument has it: NAME:SAMPLER:MAX_SIZE"),
    (["tables", "create", "t:uniform:9", "--samples-per-insert", "3"],
     "--samples-per-insert has no effect on create: its argument has it: "
     "NAME:SAMPLER:MAX_SIZE,samples_per_insert=X"),
    (["tables", "create", "t:uniform:9", "--recenter"], "--recenter has no effect on create"),
    (["top", "--interval", "0"], "--interval: expected at least 0.05 seconds, got '0'"),
    (["watch", "t", "--interval", "0.01"], "--interval: expected at least 0.05 seconds, got '0.01'"),
    (["serve", "--port", "1", "--port", "2"], "--port: given twice"),
    (["tables", "crate", "x"], "unknown action 'crate', did you mean 'create'? (list create drop alter reset pause resume)"),
    (["tables"], "ACTION is missing; usage: reprise tables ACTION [OPTION...] [TABLE...]; --help explains it"),
    (["help", "--completion", "csh"], "--completion: expected bash, zsh or fish, got 'csh'"),
])
def test_misuse_is_named(arguments, message):
    done = reprise(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    name = f"reprise {arguments[0]}" if arguments[0] not in ("serve", "sevre", "frobnicate", "help") else "reprise"
    assert done.stderr == f"{name}: {message}\n"  # one prefix for all errors of a command (issue 26)


def test_without_a_command_there_is_help_and_status_2():
    done = reprise()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == reprise("help").stdout


def test_output_that_cannot_be_written_is_a_failure():
    with open("/dev/full", "w") as full:
        done = subprocess.run([REPRISE, "version"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "standard output" in done.stderr
