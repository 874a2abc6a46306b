# SPDX-License-Identifier: Apache-2.0
"""Rules about the files of the page (web/)."""

import hashlib
import re

from tree import ROOT, expect_none

WEB = ROOT / "web"
OWN = sorted(p for p in WEB.iterdir() if p.is_file())
SCRIPTS = [p for p in OWN if p.suffix == ".js"]
# uPlot 1.6.32 as npm has it: dist/uPlot.iife.min.js, dist/uPlot.min.css and LICENSE.
VENDORED = {"uplot.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f", "uplot.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04", "uplot.LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd"}
MOST_BYTES = 130_000  # of our own files
MOST_LINES = 300


def test_every_file_is_embedded():
    text = (ROOT / "src" / "server" / "meson.build").read_text()
    listed = set(re.findall(r"'([\w./]+\.(?:js|css|html))'", text))
    names = {p.relative_to(WEB).as_posix() for p in WEB.rglob("*") if p.suffix in (".js", ".css", ".html")}
    assert names == listed


def test_files_name_their_licence():
    expect_none(p.name for p in OWN if "SPDX-License-Identifier: Apache-2.0" not in "".join(p.read_text().splitlines(True)[:2]))


def test_nothing_is_parsed_as_html_or_as_code():
    """Names and data come from peers: they reach the page as text nodes."""
    ways = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|"
                      r"srcdoc|\beval\(|new Function|setTimeout\(\s*[\"'`]|setInterval\(\s*[\"'`]")
    expect_none(f"{p.name}:{i}" for p in SCRIPTS for i, line in enumerate(p.read_text().splitlines(), 1) if ways.search(line))


def test_the_document_has_no_inline_script_or_style():
    text = (WEB / "index.html").read_text()
    expect_none(re.findall(r"<script(?![^>]*src=)[^>]*>|<style|\sstyle=|\son\w+=", text))


def test_no_file_names_another_host():
    expect_none(f"{p.name}: {found}" for p in OWN for found in re.findall(r"(?:https?:)?//[\w-]+\.\w[^\s'\")]*", p.read_text())
                if "www.w3.org/2000/svg" not in found)


def test_imports_lead_to_files():
    expect_none(f"{p.name}: {name}" for p in SCRIPTS
                for name in re.findall(r"(?:from|import\() ?\"\./([^\"]+)\"", p.read_text()) if not (WEB / name).exists())


def test_files_are_within_their_budget():
    expect_none(f"{p.name}: {len(p.read_text().splitlines())} lines" for p in SCRIPTS if len(p.read_text().splitlines()) > MOST_LINES)
    assert sum(p.stat().st_size for p in OWN) <= MOST_BYTES


def test_vendored_files_are_those_of_the_release():
    found = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in (WEB / "vendor").iterdir()}
    assert found == VENDORED


def test_no_tabs_and_no_trailing_space():
    expect_none(f"{p.name}:{i}" for p in OWN for i, line in enumerate(p.read_text().splitlines(), 1)
                if line != line.rstrip() or "\t" in line)
