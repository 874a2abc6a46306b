# SPDX-License-Identifier: Apache-2.0
"""Every source file is built: it has a line in its meson.build."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from tree import ROOT, c_files, expect_none


def listed(folder):
    """Every quoted word of a folder's meson.build, without its comments."""
    text = re.sub(r"#.*", "", (ROOT / folder / "meson.build").read_text())
    return set(re.findall(r"'([^']+)'", text))


def sources(*folders):
    return [p for p in c_files(*folders) if p.suffix == ".c"]


def test_sources_are_listed():
    names = {p.relative_to(ROOT / "src").as_posix() for p in sources("src")}
    own = {f"{p.parent.name}/{name}" for p in (ROOT / "src").glob("*/meson.build")
           for name in listed(f"src/{p.parent.name}")}
    expect_none(names - listed("src") - own)


def test_sources_of_rl_are_listed():
    expect_none({p.relative_to(ROOT / "rl").as_posix() for p in sources("rl")} - listed("rl"))


def test_sources_of_the_extensions_are_listed():
    expect_none({f"{p.parent.name}/{p.name}" for p in sources("python/core", "python/rl")}
                - listed("python"))


def test_protos_are_listed():
    names = {p.relative_to(ROOT / "proto").as_posix() for p in (ROOT / "proto").rglob("*.proto")}
    assert names
    expect_none(names - listed("src/wire"))


def test_unit_tests_are_listed():
    text = (ROOT / "tests" / "meson.build").read_text()
    names = {module: set(re.findall(r"'(\w+)'", names))
             for module, names in re.findall(r"^    '(\w+)': \[$(.*?)^    \],$", text,
                                             re.DOTALL | re.MULTILINE)}
    expect_none(f"tests/unit/{p.parent.name}/{p.name}" for p in sources("tests/unit")
                if p.stem.removeprefix("test_") not in names.get(p.parent.name, ()))


def test_other_tests_are_listed():
    names = {p.stem.removeprefix("test_") for p in sources("tests/durability", "tests/fault",
                                                       "tests/property")}
    support = {f"support/{p.name}" for p in sources("tests/support")}
    expect_none((names | support) - listed("tests"))


def test_programs_are_listed():
    for folder in ("bench", "examples"):
        programs = {p.stem for p in sources(folder) if "\nint main(" in p.read_text()}
        expect_none(programs - listed(folder))


def test_fuzz_targets_are_listed_and_have_a_corpus():
    targets = {p.stem.removeprefix("fuzz_") for p in (ROOT / "fuzz").glob("fuzz_*.c")}
    expect_none(targets - listed("fuzz"))
    expect_none(t for t in targets if not list((ROOT / "fuzz" / "corpus" / t).glob("*")))


def test_make_install_builds_what_is_installed():
    build = pathlib.Path(os.environ.get("RP_BUILD", ROOT / "build" / "test" / "release"))
    targets = subprocess.run([sys.executable, ROOT / "tools" / "installed.py", build], check=True,
                             capture_output=True, text=True).stdout.split()
    assert {"src/cli/reprise:executable", "src/reprise:shared_library", "src/reprise:static_library"} <= set(targets)
    assert "src/cli/manual/reprise-serve.1:custom" in targets
    expect_none(t for t in targets if t.startswith(("bench/", "examples/", "tests/", "fuzz/")))
    recipe = subprocess.run(["make", "-n", "install"], cwd=ROOT, check=True, capture_output=True,
                            text=True).stdout
    assert "tools/installed.py build/release" in recipe and "install -C build/release --no-rebuild" in recipe
    assert not re.search(r"compile -C build/release$", recipe, re.MULTILINE), recipe


def broken_links(docs):
    """The links of the pages that lead to no file."""
    for page in [docs / "README.md", *(docs / "docs").rglob("*.md")]:
        for path in re.findall(r"\]\(([^()#\s]+)", page.read_text()):
            if ":" not in path and not (page.parent / path).exists():
                yield f"{page.name}: {path}"


def test_links_of_the_installed_documents_lead_to_installed_files(tmp_path):
    docs = tmp_path / "share" / "doc" / "reprise"
    docs.mkdir(parents=True)
    shutil.copy(ROOT / "README.md", docs)
    shutil.copytree(ROOT / "docs", docs / "docs")
    shutil.copytree(ROOT / "include" / "reprise", tmp_path / "include" / "reprise")
    assert "client.md: ../examples/actor_learner.c" in list(broken_links(docs))
    command = [sys.executable, ROOT / "tools" / "installed_docs.py", "share/doc/reprise", "include"]
    for _ in range(2):
        subprocess.run(command, check=True, env={"MESON_INSTALL_DESTDIR_PREFIX": str(tmp_path)})
        expect_none(broken_links(docs))
        text = (docs / "docs" / "client.md").read_text()
        assert "`examples/actor_learner.c` (in the sources)" in text
        assert "](../../../../include/reprise/sampler.h)" in text
    assert "tools/installed_docs.py" in (ROOT / "meson.build").read_text()
