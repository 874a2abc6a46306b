# SPDX-License-Identifier: Apache-2.0
"""Every error text in docs/troubleshooting.md is one that the sources have."""

import re

from tree import ROOT, expect_none, files, text_of

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
# A format of C, a replacement of Python, and what stands for them on the page.
VARIABLE = re.compile(r"%[-#0-9.*]*(?:ll|z|l)?[a-zA-Z]|\{[^{}]*\}|\b(?:N|[A-Z]{4,})\b")


def literals(text):
    """Returns the literals of a source; those that only white space (or a macro of inttypes.h)
    separates are one."""
    text = re.sub(r'"\s*(?:PRI[a-z]\d+\s*)?f?"', "", text)
    return [re.sub(r"\\(.)", r"\1", x) for x in LITERAL.findall(text)]


def pieces(text):
    """Returns the fixed parts of a message. A %s behind a letter is the ending of a plural."""
    text = re.sub(r"(?<=[a-z])%s", "s", text)
    return [p for p in (part.strip() for part in VARIABLE.split(text)) if re.search(r"[a-z]{3}", p)]


def messages():
    """Returns the text of each row of the page. Of the section about installing, only the second table
    has texts of ours."""
    before, after = PAGE.split("These texts are not ours", 1)
    return re.findall(r"^\| `([^`]+)`", before + after.split("| text of ours", 1)[1], re.MULTILINE)


def test_every_text_is_in_the_sources():
    sources = [p for p in files("*.c", "*.py") if p.parts[len(ROOT.parts)] in ("src", "python", "rl")]
    corpus = {x for path in sources for x in literals(text_of(path)) if len(x) > 5}
    spans = ["\0".join(pieces(x)) for x in corpus]
    found = messages()
    assert len(found) > 50

    def exists(message):
        parts = pieces(message)
        return parts and any(in_order(parts, span) for span in spans)

    expect_none(m for m in found if not exists(m))


def in_order(parts, span):
    """Whether the fixed parts of a message follow each other in a literal."""
    at = 0
    for part in parts:
        at = span.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True
