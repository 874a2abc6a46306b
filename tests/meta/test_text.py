# SPDX-License-Identifier: Apache-2.0
"""Rules about the text of files: licences, TO-DO notes, links, commands."""

import re

from tree import ROOT, c_files, expect_none, files, name_of, text_of

SOURCES = files("*.c", "*.h", "*.py")
PAGES = files("*.md")
TEXTS = SOURCES + PAGES + files("meson.build", "meson_options.txt", "*.ini", "Makefile", ".ci/*",
                                "*.proto")


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
        top = text_of(path).splitlines()
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
    words = ("TO" "DO", "FIX" "ME", "X" "XX")
    note = re.compile(rf"\b({'|'.join(words)})\b(?!.*(#|issue )\d)")
    expect_none(lines_with(note, [p for p in TEXTS if any(word in text_of(p) for word in words)]))


def test_no_path_is_of_a_developer_machine():
    machine = re.compile(r"/(?<![^\s\"'`(=<]/)(?:work|home|root|Users|mnt)/")
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
        for code in re.findall(r"```.*?```|`[^`\n]+`", text_of(page), re.DOTALL):
            for name in re.findall(r"(?:^|`|&& )\s*make ([a-z]+)", code, re.MULTILINE):
                if name not in targets:
                    wrong.append(f"{name_of(page)}: make {name}")
    expect_none(wrong)


def test_links_in_pages_lead_somewhere():
    wrong = []
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
            target = link.split("#")[0]
            if not re.match(r"[a-z]+:", link) and not (page.parent / target).exists():
                wrong.append(f"{name_of(page)}: {link}")
    expect_none(wrong)


def anchors(page):
    """Returns the names to which a link into a page can lead: headings, as GitHub writes them."""
    text = re.sub(r"^```.*?^```$", "", text_of(page), flags=re.DOTALL | re.MULTILINE)
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        name = re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")
        found.add(name if name not in found else f"{name}-1")
    return found


def test_anchors_in_pages_exist():
    wrong = []
    for page in PAGES:
        for target, anchor in re.findall(r"\]\(([^)\s:#]*)#([^)\s]+)\)", text_of(page)):
            there = (page.parent / target).resolve() if target else page
            if there.suffix == ".md" and there.exists() and anchor not in anchors(there):
                wrong.append(f"{name_of(page)}: {target}#{anchor}")
    expect_none(wrong)


def test_every_page_is_in_the_index():
    index = ROOT / "docs" / "README.md"
    listed = {(index.parent / link).resolve() for link in re.findall(r"\]\(([^)\s#]+)\)", text_of(index))}
    expect_none(name_of(p) for p in PAGES
                if name_of(p).startswith("docs/") and p != index and p not in listed)


def test_every_program_of_the_gallery_is_in_its_index():
    folder = ROOT / "examples" / "gallery"
    listed = re.findall(r"^\| \[(\w+\.py)\]\(\1\) \|", text_of(folder / "README.md"), re.MULTILINE)
    assert sorted(listed) == sorted(p.name for p in folder.glob("*.py"))


def test_figures_of_the_first_page_are_those_of_the_benchmarks():
    rows = re.findall(r"^\| (`[\w.]+`)[^|]* \| ([^|]+) \| ([^|]+) \| ([\d.]+) \|", text_of(ROOT / "README.md"), re.MULTILINE)
    assert len(rows) >= 5
    figures = text_of(ROOT / "docs" / "benchmarks.md").splitlines()
    expect_none(f"{name} {ours} {theirs} {ratio}" for name, ours, theirs, ratio in rows
                if not any(line.startswith(f"| {name} | {ratio} |") and ours in line and theirs in line
                           for line in figures))


def test_names_of_c_in_pages_exist():
    known = set()
    for path in SOURCES:
        if path.suffix == ".h":
            known |= set(re.findall(r"\brp_\w+", text_of(path)))
    expect_none(f"{name_of(page)}: {name}" for page in PAGES if page.name not in ("style.md", "CHANGELOG.md")
                for name in set(re.findall(r"\brp_\w+", text_of(page))) - known)


def test_pages_named_in_sources_exist():
    wrong = []
    for path in SOURCES:
        for page in re.findall(r"\bdocs/\w+\.md\b", text_of(path)):
            if not (ROOT / page).exists():
                wrong.append(f"{name_of(path)}: {page}")
    expect_none(wrong)


def test_changelog_lines_start_with_an_area():
    lines = re.findall(r"^- (.*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert lines
    expect_none(x for x in lines if not re.match(r"[a-z]+: \S", x))
