# SPDX-License-Identifier: Apache-2.0
"""The code blocks of README.md, CONTRIBUTING.md and docs/, and how each of them is tested.

The first line of a block names its language, and at most one word more: how it is tested. Without a
word, a block is executed as it is typed there. tests/runner/documents.py does it.
"""

import pathlib
import re
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# Language and word of the first line -> what is tested.
KINDS = {
    ("python", ""): "executed, after the blocks of the page before it",
    ("python", "client"): "executed, while `reprise serve` runs",
    ("python", "slow"): "executed by make test-long, compiled by make test",
    ("python", "conformance"): "executed by tests/conformance/grpcio",
    ("python", "frameworks"): "executed by make test-frameworks",
    ("python", "hosts"): "compiled: it needs other machines, or a program that tests do not have",
    ("sh", ""): "executed by bash, after the blocks of the page before it",
    ("sh", "client"): "executed, while `reprise serve` runs",
    ("sh", "server"): "executed in the background, until the next such block or the end of the page",
    ("sh", "slow"): "executed by make test-long; make test checks commands and options",
    ("sh", "endless"): "runs until it is stopped; commands and options are checked",
    ("sh", "build"): "builds, installs or fetches, for minutes or as root; targets of make are checked",
    ("sh", "hosts"): "needs other machines or their files; commands and options are checked",
    ("c", ""): "compiled; executed if it is a whole program",
    ("yaml", ""): "a configuration of `reprise serve`, checked by --check-config",
    ("yaml", "prometheus"): "checked by promtool, in tests/grafana",
    ("ini", ""): "a systemd unit: parsed, and the options of its command are checked",
    ("diff", ""): "executed by make test-frameworks, applied to the program above it",
    ("text", ""): "a drawing, a formula, a file or what a command prints",
}
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(typing.NamedTuple):
    page: pathlib.Path
    line: int  # of the first line of the text
    language: str
    word: str
    text: str

    @property
    def name(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages():
    """Returns the pages whose blocks are tested."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md",
            *sorted(p for folder in ("docs", "examples") for p in (ROOT / folder).rglob("*.md"))]


def blocks(page):
    """Returns the blocks of a page, in order. Raises ValueError for one whose kind is not known."""
    text, found = page.read_text(), []
    for block in FENCE.finditer(text):
        line = text.count("\n", 0, block.start(2)) + 1
        language, _, word = block.group(1).partition(" ")
        if (language, word) not in KINDS:
            raise ValueError(f"{page.relative_to(ROOT)}:{line - 1}: a block of kind '{block.group(1)}'; "
                             f"the kinds are {', '.join(' '.join(k).strip() for k in KINDS)}")
        found.append(Block(page, line, language, word, block.group(2)))
    if len(found) * 2 != len(re.findall(r"^ *```", text, re.MULTILINE)):
        raise ValueError(f"{page.relative_to(ROOT)}: a block is indented or has no end")
    return found


def commands(text):
    """Returns the command lines of a shell block, without comments, with continued lines joined."""
    lines = text.replace("\\\n", " ").splitlines()
    lines = [re.sub(r"(^|\s)#.*", "", line).strip() for line in lines]
    return [line for line in lines if line]
