#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Corrects the links of the installed documents that lead out of docs/; `meson install` runs it.

    tools/installed_docs.py share/doc/reprise include

A link to a header leads to the installed one. A link to another file of the sources becomes its text and "in the
sources". Links that work are left as they are, so a second run changes nothing.
"""

import os
import pathlib
import re
import sys

LINK = re.compile(r"\[([^][]*)\]\(([^()\s]+)\)")


def place(folder):
    """An installed folder, below DESTDIR if that is set."""
    if os.path.isabs(folder):
        return pathlib.Path(os.environ.get("DESTDIR", "") + folder)
    return pathlib.Path(os.environ["MESON_INSTALL_DESTDIR_PREFIX"], folder)


def correct(page, docs, headers):
    def link(match):
        text, target = match.groups()
        path = target.partition("#")[0]
        if not path or ":" in path or (page.parent / path).exists():
            return match[0]
        there = os.path.relpath(page.parent / path, docs)
        header = headers / os.path.relpath(there, "include")
        if there.startswith("include/") and header.exists():
            return f"[{text}]({os.path.relpath(header, page.parent)})"
        return f"{text} (in the sources)" if text.strip("`") == there else f"{text} (in the sources: {there})"

    before = page.read_text(encoding="utf-8")
    after = LINK.sub(link, before)
    if after != before:
        page.write_text(after, encoding="utf-8")


def main():
    docs, headers = map(place, sys.argv[1:])
    if docs.is_dir() and not os.environ.get("MESON_INSTALL_DRY_RUN"):
        for page in [docs / "README.md", *(docs / "docs").rglob("*.md")]:
            correct(page, docs, headers)


if __name__ == "__main__":
    main()
