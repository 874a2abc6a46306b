# SPDX-License-Identifier: Apache-2.0
"""`python -m reprise`: the command line, which is a program of its own inside the package."""

import importlib.resources
import os
import sys


def command() -> str:
    """The path of the program `reprise` that came with the package."""
    return str(importlib.resources.files("reprise").joinpath("reprise-command"))


def main() -> None:
    """Becomes the program, with the same arguments; returns never."""
    sys.stdout.flush()
    path = command()
    os.execv(path, ["reprise"] + sys.argv[1:])


if __name__ == "__main__":
    main()
