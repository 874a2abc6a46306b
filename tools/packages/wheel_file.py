# SPDX-License-Identifier: Apache-2.0
"""Writes a wheel: a zip file with the files of a package, its metadata and a list with hashes.

The metadata is that of pyproject.toml, as meson-python writes it. The same files give the same
bytes: all have the time of SOURCE_DATE_EPOCH, or 1980.
"""

import base64
import hashlib
import os
import re
import time
import tomllib
import zipfile

from debian import ROOT

PROGRAMS = (".so", "reprise-command")  # ends of the names of files that may be run


def project():
    """Returns the table [project] of pyproject.toml, with the version of meson.build."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version = re.search(r"^    version: '([^']+)'", (ROOT / "meson.build").read_text(), re.MULTILINE)
    return {**table, "version": version.group(1)}


def metadata(table):
    """Returns the text of METADATA."""
    lines = ["Metadata-Version: 2.1", f"Name: {table['name']}", f"Version: {table['version']}",
             f"Summary: {table['description']}", f"Keywords: {','.join(table['keywords'])}",
             f"License: {table['license']['text']}",
             *(f"Classifier: {c}" for c in table["classifiers"]),
             *(f"Project-URL: {name}, {url}" for name, url in table.get("urls", {}).items()),
             f"Requires-Python: {table['requires-python']}",
             *(f"Requires-Dist: {d}" for d in table["dependencies"]),
             "Description-Content-Type: text/markdown"]
    return "\n".join(lines) + "\n\n" + (ROOT / table["readme"]).read_text()


def entry_points(table):
    lines = ["[console_scripts]", *(f"{name} = {f}" for name, f in table["scripts"].items())]
    return "\n".join(lines) + "\n"


def line_of_record(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def write_wheel(folder, tag, files):
    """Writes a wheel with files by name, of which the first part INFO or DATA stands for the folder of
    metadata, or of files for the root of the environment. Returns its path."""
    table = project()
    stem = f"{table['name'].replace('-', '_')}-{table['version']}"
    info, data = f"{stem}.dist-info", f"{stem}.data/data"
    named = {re.sub("^INFO/", f"{info}/", re.sub("^DATA/", f"{data}/", name)): content
             for name, content in files.items()}
    named[f"{info}/METADATA"] = metadata(table).encode()
    named[f"{info}/entry_points.txt"] = entry_points(table).encode()
    named[f"{info}/WHEEL"] = ("Wheel-Version: 1.0\nGenerator: reprise tools/wheel.py\n"
                              f"Root-Is-Purelib: false\nTag: {tag}\n").encode()
    record = "".join(line_of_record(name, content) for name, content in named.items())
    named[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}-{tag}.whl"
    date = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), 315532800))[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in named.items():
            entry = zipfile.ZipInfo(name, date)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if name.endswith(PROGRAMS) else 0o100644) << 16
            archive.writestr(entry, content)
    return path
