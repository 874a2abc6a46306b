# SPDX-License-Identifier: Apache-2.0
"""Tests the code blocks of the pages: tests/runner/blocks.py lists the kinds of blocks."""

import ast
import configparser
import functools
import pathlib
import re
import shlex
import tempfile

from runner.blocks import ROOT, blocks, commands, pages
from runner.checks import compile_fragment, use_installed
from runner.package import package_environment
from runner.process import STAGE, Result, describe, run

SESSION = ROOT / "tests" / "docs" / "session.py"
RUN = re.compile(r"^(ok|not ok) ", re.MULTILINE)


def wrong_of_c(block):
    """Compiles a block of C as it is typed; a whole program also runs."""
    with tempfile.NamedTemporaryFile("w", suffix=".c") as source:
        source.write(block.text)
        source.flush()
        return (use_installed(source.name, False) if "int main" in block.text
                else compile_fragment(source.name))


@functools.cache
def help_of(*words):
    """Returns what `reprise WORDS --help` prints, or "" if there is no such command."""
    status, output = run([STAGE / "bin" / "reprise", *words, "--help"],
                         env={"LD_LIBRARY_PATH": str(STAGE / "lib")})
    return output if status == 0 else ""


def wrong_of_command(line):
    """Checks the name and the options of each `reprise` in a command line."""
    wrong = []
    for part in re.split(r"[|;&]+|\$\(", line):
        words = shlex.split(part.strip(" )"), comments=True)
        while words and re.fullmatch(r"\w+=.*", words[0]):  # a variable
            del words[0]
        if not words or pathlib.Path(words[0]).name != "reprise":
            continue
        names = [w for w in words[1:3] if not w.startswith("-")]
        text = "".join(filter(None, (help_of(*names[:n]) for n in range(1, len(names) + 1))))
        if not help_of(*names[:1]):
            wrong.append(f"there is no command '{' '.join(names[:1])}'")
        wrong += [f"{' '.join(names)} has no option '{option}'" for option in
                  re.findall(r"(?:^|\s)(--[a-z][a-z-]*)", " ".join(words))
                  if not re.search(rf"{option}\b", text + help_of())]
    return wrong


def wrong_of_shell(block):
    """Checks the commands of a block that is not executed here."""
    return "\n".join(w for line in commands(block.text) for w in wrong_of_command(line))


def wrong_of_python(block):
    try:
        ast.parse(block.text)
    except SyntaxError as error:
        return str(error)
    return ""


def wrong_of_yaml(block):
    """Has `reprise serve` check a configuration. tests/grafana checks those of Prometheus."""
    if block.word == "prometheus":
        return ""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        # Its own folder stands for /var/lib, which the user of a test may not write to.
        file.write(block.text.replace("/var/lib/", tempfile.gettempdir() + "/"))
        file.flush()
        status, output = run([STAGE / "bin" / "reprise", "serve", "--config", file.name, "--check-config"],
                             env={"LD_LIBRARY_PATH": str(STAGE / "lib")})
    return "" if status == 0 else output


def wrong_of_unit(block):
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read_string(block.text)
    wrong = [] if unit.has_section("Install") else ["a unit has a section [Install]"]
    return "\n".join(wrong + [w for _, line in unit.items(unit.sections()[0]) for w in wrong_of_command(line)])


CHECKS = {"c": wrong_of_c, "yaml": wrong_of_yaml, "ini": wrong_of_unit}
OTHERWISE = {"sh": wrong_of_shell, "python": wrong_of_python}  # blocks that no session executes


def static_job():
    """Checks all blocks that are not executed, and compiles those of C."""
    result = Result()
    for page in pages():
        try:
            found = blocks(page)
        except ValueError as error:
            result.add(False, str(error))
            continue
        for block in found:
            if block.language in CHECKS:
                wrong = CHECKS[block.language](block)
            elif block.language in OTHERWISE and block.word not in ("", "client", "server"):
                wrong = OTHERWISE[block.language](block)
            else:
                continue
            result.add(not wrong, f"{block.name}: {wrong}")
    return result


def session_job(page, is_long):
    """Executes the blocks of a page that a session executes."""
    python, env, wrong = package_environment()
    if python is None:
        return Result(0, 1, wrong)
    status, output = run([python, SESSION, *(["--long"] if is_long else []), page], 1800 if is_long else 600,
                         {**env, "RP_STAGE": str(STAGE)})
    if status == 0 and output.startswith("skipped: "):
        return Result(0, 0, output, sum(b.language in OTHERWISE for b in blocks(page)))
    result = Result(text=output)
    for word in RUN.findall(output):
        result.add(word == "ok")
    if status != 0 and result.failed == 0:
        result.add(False, describe(status))
    return result


def docs_jobs(is_long):
    words = ("", "client", "server", "slow") if is_long else ("", "client", "server")
    jobs = [(2, "docs", "other blocks", static_job)]
    for page in pages():
        try:
            found = any(b.language in ("python", "sh") and b.word in words for b in blocks(page))
        except ValueError:  # static_job reports it
            continue
        if found:
            name = str(page.relative_to(ROOT).with_suffix(""))
            jobs.append((1, "docs", name, lambda page=page: session_job(page, is_long)))
    return jobs
