# SPDX-License-Identifier: Apache-2.0
"""Rules about the text of files: licences, TO-DO notes, links, commands."""

import functools
import re

from tree import ROOT, c_files, expect_none, files, name_of

SOURCES = files("*.c", "*.h", "*.py")
PAGES = files("*.md")
TEXTS = SOURCES + PAGES + files("meson.build", "meson_options.txt", "*.ini", "Makefile", ".ci/*",
                                "*.proto")


@functools.cache
def text_of(path):
    return path.read_text()


def lines_with(pattern, paths=TEXTS):
    """Yields the place and the text of each line of the files in which the pattern is found."""
    for path in paths:
        if pattern.search(text_of(path)):
            for number, line in enumerate(text_of(path).splitlines(), 1):
                if pattern.search(line):
                    yield f"{name_of(path)}:{number}: {line.strip()}"


def test_sources_name_their_licence():
    wrong = []
    for path in SOURCES:
        top = path.read_text().splitlines()
        if not top and path.name == "__init__.py":
            continue
        tag = "SPDX-License-Identifier: Apache-2.0"
        if path.suffix == ".py":
            found = f"# {tag}" in top[:2]
        else:
            found = top[:1] == [f"/* {tag} */"]
        if not found:
            wrong.append(name_of(path))
    expect_none(wrong)


def test_notes_carry_the_number_of_their_issue():
    note = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b(?!.*(#|issue )\d)")
    expect_none(lines_with(note))


def test_no_path_is_of_a_developer_machine():
    machine = re.compile(r"(?:^|(?<=[\s\"'`(=<]))/(?:work|home|root|Users|mnt)/", re.MULTILINE)
    expect_none(lines_with(machine))


def test_no_tabs_and_no_trailing_space():
    expect_none(lines_with(re.compile(r"[ \t]$", re.MULTILINE)))
    expect_none(lines_with(re.compile(r"\t"), [p for p in TEXTS if p.name != "Makefile"]))


def test_no_file_is_left_of_a_merge():
    expect_none(map(name_of, files("*.orig", "*.rej")))


def test_file_names_are_unique():
    for folder in ("include", "src", "rl"):
        names = [p.name for p in c_files(folder)]
        expect_none({n for n in names if names.count(n) > 1})


def test_make_targets_in_pages_exist():
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    wrong = []
    for page in PAGES:
        for code in re.findall(r"```.*?```|`[^`\n]+`", page.read_text(), re.DOTALL):
            for name in re.findall(r"(?:^|`|&& )\s*make ([a-z]+)", code, re.MULTILINE):
                if name not in targets:
                    wrong.append(f"{name_of(page)}: make {name}")
    expect_none(wrong)


def test_links_in_pages_lead_somewhere():
    wrong = []
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            target = link.split("#")[0]
            if not re.match(r"[a-z]+:", link) and not (page.parent / target).exists():
                wrong.append(f"{name_of(page)}: {link}")
    expect_none(wrong)


def test_pages_named_in_sources_exist():
    wrong = []
    for path in SOURCES:
        for page in re.findall(r"\bdocs/\w+\.md\b", path.read_text()):
            if not (ROOT / page).exists():
                wrong.append(f"{name_of(path)}: {page}")
    expect_none(wrong)


def test_changelog_lines_start_with_an_area():
    lines = re.findall(r"^- (.*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert lines
    expect_none(x for x in lines if not re.match(r"[a-z]+: \S", x))
