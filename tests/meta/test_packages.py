# SPDX-License-Identifier: Apache-2.0
"""The files from which packages are made agree with each other."""

import re

from tree import ROOT, expect_none


def text(name):
    return (ROOT / name).read_text()


def test_versions_are_equal():
    version = re.search(r"^    version: '([^']+)'", text("meson.build"), re.MULTILINE).group(1)
    assert f"\nversion: {version}\n" in text("CITATION.cff")
    numbers = re.findall(r"#define RP_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text("include/reprise/version.h"))
    assert ".".join(numbers) == version


def test_pip_installs_it_by_its_own_name():
    """Another project has the name reprise on PyPI."""
    assert re.search(r'^name = "reprise-rl"$', text("pyproject.toml"), re.MULTILINE)
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    expect_none(f"{page.name}: {line}" for page in pages for line in page.read_text().splitlines()
                if re.search(r"pip install ([\w-]+ )*reprise(?!-rl)\b", line))


def test_debian_builds_with_the_libraries_of_need_sh():
    rows = re.findall(r"^(?:build|deb) +\| .*?\|.*?\| *(.*?) *\|", text("tools/need.sh"), re.MULTILINE)
    wanted = {p for row in rows for p in row.split() if p.startswith("lib") or p.startswith("zlib")}
    wanted -= {"libc6-dev"}
    control = text("packages/debian/control")
    expect_none(p for p in wanted if not re.search(rf"^ {re.escape(p)}[ ,]", control, re.MULTILINE))


def test_the_static_library_depends_on_the_libraries_of_the_build():
    control = text("packages/debian/control")
    static = re.search(r"^STATIC = (.*)", text("packages/debian/rules"), re.MULTILINE).group(1)
    built = set(re.findall(r"^ (\w+-dev)\b", control, re.MULTILINE))
    assert {"libnghttp2-dev", "libssl-dev"} <= built
    expect_none(built - set(static.split(", ")) - {"libprotobuf-dev", "libyaml-dev"})


def test_wheels_are_built_for_all_supported_versions():
    oldest = re.search(r'requires-python = ">=3\.(\d+)"', text("pyproject.toml")).group(1)
    versions = re.search(r"VERSIONS = \[(.*)\]", text("tools/packages/headers.py")).group(1)
    minors = [int(m) for m in re.findall(r'"3\.(\d+)"', versions)]
    assert minors == list(range(int(oldest), max(minors) + 1))
