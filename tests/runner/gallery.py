# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of examples/gallery and the cells of examples/notebooks, with the package of the release build."""

import json
import pathlib
import tempfile

from runner.package import package_environment
from runner.process import ROOT, Result, describe, run

EXAMPLES = ROOT / "examples"


def cells(notebook):
    """Returns the code of a notebook as one program."""
    return "\n\n".join("".join(cell["source"]) for cell in json.loads(notebook.read_text())["cells"]
                       if cell["cell_type"] == "code") + "\n"


def program_job(path):
    python, env, wrong = package_environment()
    if python is None:
        return Result(0, 1, wrong)
    with tempfile.TemporaryDirectory() as folder:
        program = path
        if path.suffix == ".ipynb":
            program = pathlib.Path(folder) / f"{path.stem}.py"
            program.write_text(cells(path))
        status, output = run([python, "-X", "faulthandler", program], 300, env, cwd=folder)
    return Result(int(status == 0), int(status != 0), f"{output}\n{describe(status, 300)}")


def gallery_jobs():
    programs = sorted([*EXAMPLES.glob("gallery/*.py"), *EXAMPLES.glob("notebooks/*.ipynb")])
    return [(1, "examples", f"{path.parent.name} {path.stem}", lambda path=path: program_job(path)) for path in programs]
