#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a site of the documents, the headers and the docstrings: `make site`.

The sources of the site are written to build/site-source, and the site to build/site. It consists of
README.md and docs/ as they are, a page for each public header (its comments as text, its declarations as
code), a page for each public module of the Python package (mkdocstrings), the examples, and a page for each
other file of this tree to which a page links. A link or an anchor that leads nowhere ends the script with
status 1. The interpreter must be that of `tools/peers.py site`.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "build" / "site-source"
SITE = ROOT / "build" / "site"
MODULES = ["", "aio", "checkpointers", "client", "dataset", "errors", "frameworks.rllib",
           "frameworks.stable_baselines3", "frameworks.tianshou", "frameworks.torchrl",
           "frameworks.transfer_queue", "rate_limiters", "ray", "replay_buffer", "rl", "runs", "selectors", "server", "specs", "storage", "structured", "table",
           "trajectory_writer", "tree"]
LANGUAGES = {".c": "c", ".h": "c", ".py": "python", ".yaml": "yaml", ".proto": "protobuf", ".json": "json",
             ".sh": "sh"}
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
FENCE = re.compile(r"^(```\w+) [^\n]*$", re.MULTILINE)
SETTINGS = {
    "site_name": "reprise",
    "docs_dir": "docs",
    "site_dir": str(SITE),
    "theme": {"name": "material", "font": False, "features": ["navigation.sections", "content.code.copy",
                                                              "navigation.top", "search.suggest"],
              "palette": [{"media": "(prefers-color-scheme: light)", "scheme": "default"},
                          {"media": "(prefers-color-scheme: dark)", "scheme": "slate"}]},
    "plugins": ["search", {"mkdocstrings": {"handlers": {"python": {
        "paths": [str(ROOT / "python")],
        "options": {"show_source": False, "show_root_heading": False, "docstring_style": "google",
                    "members_order": "source", "filters": ["!^_"], "inherited_members": False,
                    "extensions": [str(ROOT / "tools" / "site_docstrings.py")],
                    # One line of "Args:" may describe several parameters.
                    "docstring_options": {"warn_unknown_params": False, "warn_missing_types": False},
                    "show_signature_annotations": True, "separate_signature": True}}}}}],
    "markdown_extensions": ["admonition", "tables", "sane_lists", "pymdownx.superfences", "pymdownx.highlight",
                            "pymdownx.tasklist", {"toc": {"permalink": True}}],
    "validation": {"omitted_files": "ignore", "absolute_links": "warn", "unrecognized_links": "warn",
                   "anchors": "warn"},
}


class Site:
    """The pages of the site, by their path below docs/ of build/site-source."""

    def __init__(self):
        self.where = {}  # file of the tree -> page
        self.others = []  # files to which pages link, and that have no page yet
        self.pages = {}  # page -> text

    def add(self, path, page):
        self.where[path] = page

    def place(self, target):
        """Returns the page of a file or folder of the tree, which it gets if it has none."""
        if target not in self.where:
            name = str(target.relative_to(ROOT)).replace(".md", "_md")
            self.where[target] = f"source/{name}.md"
            self.others.append(target)
        return self.where[target]

    def linked(self, text, path, page):
        """Returns the text of a page with its links to files of the tree changed into links of the site."""
        def change(found):
            link = found.group(2)
            if re.match(r"[a-z]+:", link) or link.startswith("#"):
                return found.group(0)
            target, _, anchor = link.partition("#")
            there = (path.parent / target).resolve()
            if not there.exists() or ROOT not in there.parents:
                raise SystemExit(f"{path.relative_to(ROOT)}: there is no {link}")
            new = os.path.relpath(self.place(there), os.path.dirname(page) or ".")
            return f"{found.group(1)}{new}{'#' + anchor if anchor else ''}{found.group(3)}"

        parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
        return "".join(FENCE.sub(r"\1", part) if part.startswith("```") else LINK.sub(change, part)
                       for part in parts)

    def write(self):
        shutil.rmtree(SOURCE, ignore_errors=True)
        for page, text in self.pages.items():
            file = SOURCE / "docs" / page
            file.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(text, bytes):
                file.write_bytes(text)
            else:
                file.write_text(text)


def add_documents(site):
    """Adds README.md, docs/, the examples and CONTRIBUTING.md."""
    site.add(ROOT / "README.md", "index.md")
    site.add(ROOT / "CONTRIBUTING.md", "contributing.md")
    site.add(ROOT / "CHANGELOG.md", "changelog.md")
    site.add(ROOT / "docs" / "README.md", "documents.md")
    site.add(ROOT / "docs", "documents.md")
    site.add(ROOT / "include" / "reprise", "c/index.md")
    for path in sorted((ROOT / "docs").rglob("*")):
        if path.is_file() and path not in site.where:
            page = str(path.relative_to(ROOT / "docs"))
            if path.suffix in (".md", ".png", ".svg"):
                site.add(path, page)
    site.add(ROOT / "examples", "examples/index.md")
    for path in sorted((ROOT / "examples").rglob("README.md")):
        folder = path.parent.relative_to(ROOT)
        site.add(path, f"{folder}/index.md")
        site.add(path.parent, f"{folder}/index.md")


def prose(comment):
    """Returns a comment of C as Markdown: indented lines become code."""
    lines = [re.sub(r"^ ?\* ?", "", line) for line in comment.strip().splitlines()]
    paragraphs = re.split(r"\n\s*\n", "\n".join(lines).strip())
    out = []
    for paragraph in paragraphs:
        if re.search(r"^\s{2,}\S", paragraph, re.MULTILINE):
            out.append("```text\n" + paragraph.strip("\n") + "\n```")
        else:
            out.append(re.sub(r"(?<!`)([*<\[\]])(?!`)", r"\\\1", paragraph))
    return "\n\n".join(out)


def header_page(path):
    """Returns the page of a header: the comment at its top, then its declarations with theirs."""
    text = path.read_text()
    name = path.relative_to(ROOT / "include")
    top = re.search(r"\*/\s*/\*(.*?)\*/", text, re.DOTALL)
    out = [f"# {name}", prose(top.group(1)) if top else "", f"```c\n#include <{name}>\n```"]
    body = text.split("RP_BEGIN_DECLS", 1)[-1] if "RP_BEGIN_DECLS" in text else text[top.end() if top else 0:]
    body = re.sub(r"^#(?:include|ifndef|endif|ifdef).*$|^RP_(?:BEGIN|END)_DECLS$", "", body, flags=re.MULTILINE)
    for block in re.split(r"\n\s*\n(?=\S)", body.strip("\n")):
        comment = re.match(r"\s*/\*(.*?)\*/\s*(?=\n|$)", block, re.DOTALL)
        code = (block[comment.end():] if comment else block).strip("\n")
        titles = re.findall(r"^(?:RP_API[^(]*?|typedef \w+ |static inline[^(]*?|#define )\*?(\w+)", code, re.MULTILINE)
        titles += re.findall(r"\bRP_API\b[^;(]*?\b(rp_\w+)\(", code)
        titles = [t for t in dict.fromkeys(titles) if t.startswith(("rp_", "RP_")) and t not in ("RP_API", "RP_NODISCARD")]
        if titles:
            out.append("## " + ", ".join(f"`{t}`" for t in titles[:3]) + (", ..." if len(titles) > 3 else ""))
        if comment:
            out.append(prose(comment.group(1)))
        if code.strip():
            out.append(f"```c\n{code}\n```")
    return "\n\n".join(part for part in out if part) + "\n"


def add_headers(site):
    rows = []
    for path in sorted((ROOT / "include" / "reprise").rglob("*.h")):
        page = f"c/{path.relative_to(ROOT / 'include' / 'reprise').with_suffix('.md')}"
        site.add(path, page)
        site.pages[page] = header_page(path)
        about = re.search(r"\*/\s*/\* ?(.*?)[.:;\n]", path.read_text(), re.DOTALL)
        rows.append(f"| [{path.relative_to(ROOT / 'include')}]({page[2:]}) | {about.group(1).strip() if about else ''} |")
    site.pages["c/index.md"] = ("# The headers\n\nEach page is made from a header of [the C library](../client.md), whose comments are "
                                "the manual.\n\n| header | |\n|---|---|\n" + "\n".join(rows) + "\n")
    rl = ROOT / "include" / "reprise" / "rl"
    site.add(rl, "c/index.md")


def add_modules(site):
    rows = []
    for module in MODULES:
        name = "reprise" + (f".{module}" if module else "")
        options = "    options:\n      members: false\n" if not module else ""
        site.pages[f"python-api/{name}.md"] = f"# {name}\n\n::: {name}\n{options}"
        rows.append(f"| [{name}]({name}.md) |")
    site.pages["python-api/index.md"] = ("# The modules\n\nEach page is made from the docstrings of a module of "
                                         "[the Python package](../python.md).\n\n| module |\n|---|\n" + "\n".join(rows) + "\n")


def notebook_page(path):
    """Returns the cells of a notebook as Markdown, with what they print."""
    out = []
    for cell in json.loads(path.read_text())["cells"]:
        text = "".join(cell["source"])
        out.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for output in cell.get("outputs", []):
            said = output.get("text") or output.get("data", {}).get("text/plain", [])
            out.append("```text\n" + "".join(said).rstrip() + "\n```")
    return "\n\n".join(out) + "\n"


def add_others(site):
    """Adds a page for each file and folder to which a page links."""
    while site.others:
        path = site.others.pop()
        page = site.where[path]
        title = f"# {path.relative_to(ROOT)}\n\n"
        if path.is_dir():
            files = sorted(p for p in path.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
            site.pages[page] = title + "\n".join(f"- `{p.relative_to(path)}`" for p in files) + "\n"
        elif path.suffix in (".png", ".svg"):
            site.pages[page] = path.read_bytes()
        elif path.suffix == ".ipynb":
            site.pages[page] = notebook_page(path)
        else:
            language = LANGUAGES.get(path.suffix, "text")
            site.pages[page] = f"{title}````{language}\n{path.read_text()}\n````\n"


def navigation(site):
    """Returns the table of contents: the sections of docs/README.md, in their order."""
    index, entries, section = ROOT / "docs" / "README.md", [{"Home": "index.md"}], None
    for line in index.read_text().splitlines():
        if line.startswith("## "):
            section = []
            entries.append({line[3:]: section})
        elif section is not None and line.startswith("| ["):
            for title, link in re.findall(r"\[([^\]]+)\]\(([^)]+)\)", line.split(" | ")[0] + " "):
                page = site.where.get((index.parent / link).resolve())
                if page is not None and page.endswith(".md") and not page.startswith(("source/", "c/")):
                    section.append(page)
    entries.append({"Python modules": ["python-api/index.md"] + [
        f"python-api/reprise{'.' + m if m else ''}.md" for m in MODULES]})
    entries.append({"C headers": ["c/index.md"] + sorted(p for p in site.pages if p.startswith("c/") and p != "c/index.md")})
    entries.append({"Changes": ["changelog.md"]})
    return entries


def main():
    parser = argparse.ArgumentParser(description="Makes a site; see the top of the file.")
    parser.parse_args()
    site = Site()
    add_documents(site)
    add_headers(site)
    add_modules(site)
    for path, page in list(site.where.items()):
        if path.is_file() and page not in site.pages:
            site.pages[page] = (site.linked(path.read_text(), path, page) if path.suffix == ".md"
                                else path.read_bytes())
    add_others(site)
    site.write()
    (SOURCE / "mkdocs.yml").write_text(json.dumps({**SETTINGS, "nav": navigation(site)}, indent=1))  # JSON is YAML
    status = subprocess.call([sys.executable, "-m", "mkdocs", "build", "--strict", "-f", SOURCE / "mkdocs.yml"],
                             env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"})
    if status != 0:
        sys.exit("the site has not been made: a page, a link or an anchor is wrong; see above")
    count = len(list(SITE.rglob("index.html")))
    print(f"{SITE.relative_to(ROOT)}: {count} pages; python3 -m http.server -d build/site shows them")


if __name__ == "__main__":
    main()
