# SPDX-License-Identifier: Apache-2.0
"""`python -m reprise`: the command line. It runs the program `reprise` inside the package."""

import importlib.resources
import os
import sys


def command() -> str:
    """The path of the program `reprise` that came with the package."""
    return str(importlib.resources.files("reprise").joinpath("reprise-command"))


def main() -> None:
    """Replaces this process by the program, with the same arguments. Never returns."""
    sys.stdout.flush()
    path = command()
    os.execv(path, ["reprise"] + sys.argv[1:])


if __name__ == "__main__":
    main()
