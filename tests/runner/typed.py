# SPDX-License-Identifier: Apache-2.0
"""The programs whose types are checked: the Python blocks of the documents, and the examples.

The blocks of a page are one module, since later ones use names of earlier ones. The blocks of
docs/frameworks.md are programs of their own. Libraries that the tests do not have are taken to have no
types.
"""

import json
import os
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BLOCK = re.compile(r"^```python\b[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
APART = {"frameworks.md"}  # pages whose blocks are programs of their own
OTHERS_BLOCK = re.compile(r"^(import|from) grpc\b|\bgrpc\.", re.MULTILINE)  # it does not use the package

# Relaxed: what comes from libraries without types or from NumPy before 2.2 (whose arrays have type
# parameters), and names that two programs of a page define. gymnasium takes longer to read than all else.
MYPY = """
[mypy]
strict = True
allow_redefinition = True
allow_subclassing_any = True
follow_imports = silent
disable_error_code = import-not-found, import-untyped, no-any-return, no-redef, type-arg

[mypy-gymnasium.*]
follow_imports = skip
"""


def pages():
    return [ROOT / "README.md",
            *sorted(p for folder in ("docs", "examples") for p in (ROOT / folder).rglob("*.md"))]


def modules(page):
    """Returns the modules of a page as lists of blocks: (lines before the block, text)."""
    text, found = page.read_text(), []
    for block in BLOCK.finditer(text):
        if OTHERS_BLOCK.search(block.group(1)):
            continue
        part = (text.count("\n", 0, block.start(1)), block.group(1))
        if found and page.name not in APART:
            found[0].append(part)
        else:
            found.append([part])
    return found


def write(folder):
    """Writes the modules of all pages to a folder. Lines keep their numbers. Returns all files to check:
    those, and the examples."""
    files = []
    for page in pages():
        name = re.sub(r"\W", "_", str(page.relative_to(ROOT).with_suffix("")))
        for number, blocks in enumerate(modules(page)):
            program = ""
            for before, text in blocks:
                program += "\n" * (before - program.count("\n")) + text
            files.append(folder / f"page_{name}{f'_{number}' if number else ''}.py")
            files[-1].write_text(program)
    return files + sorted((ROOT / "examples").rglob("*.py"))


def pyright(node, program, python, folder):
    """Returns a command that checks all programs with pyright."""
    files = write(folder)
    (folder / "pyrightconfig.json").write_text(json.dumps({
        "include": [os.path.relpath(f, folder) for f in files],
        "extraPaths": [str(ROOT / "python")],
        "reportMissingImports": False,
        "reportMissingModuleSource": False,
    }))
    return [node, program, "-p", folder / "pyrightconfig.json", "--pythonpath", python]


def mypy(python, folder, cache):
    """Returns a command that checks all programs with mypy."""
    (folder / "mypy.ini").write_text(MYPY)
    return [python, "-m", "mypy", "--config-file", folder / "mypy.ini", "--cache-dir", cache,
            "--no-error-summary", *write(folder)]
