# SPDX-License-Identifier: Apache-2.0
"""Lets reprise be imported under the name of Reverb.

With `sys.modules["reverb"] = reprise`, `import reverb` finds this package. Its modules must be
found under the name "reverb" too, and must not be loaded twice: `reverb.errors` must be
`reprise.errors`, not a second copy with its own classes. A finder does that. It finds modules below
"reverb" only, and only while `sys.modules["reverb"]` is this package.
"""

import importlib
import importlib.machinery
import sys
from types import ModuleType
from typing import Optional


class _Loader:
    """Loads a module below "reverb" by returning the module of this package."""

    def __init__(self, name: str):
        self.name = name
        self.spec = None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.name)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # the import has set it to the alias's


class _Finder:
    """Finds reverb.x as reprise.x if sys.modules["reverb"] is reprise."""

    def find_spec(self, fullname, path=None, target=None) -> Optional[
            importlib.machinery.ModuleSpec]:
        if not fullname.startswith("reverb."):
            return None
        package = sys.modules.get("reverb")
        if package is None or package is not sys.modules.get("reprise"):
            return None
        name = "reprise." + fullname[len("reverb."):]
        from importlib.util import find_spec  # slow to import, and rarely needed

        try:
            found = find_spec(name)
        except ModuleNotFoundError:
            return None
        return None if found is None else importlib.machinery.ModuleSpec(fullname, _Loader(name))


def install_finder() -> None:
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def install_as_reverb() -> ModuleType:
    """Makes every later `import reverb` in this process import reprise. Returns the package.

    RuntimeError if the real reverb was imported before.

    >>> import reprise
    >>> _ = reprise.install_as_reverb()
    >>> import reverb
    >>> reverb is reprise
    True
    """
    package = sys.modules["reprise"]
    there = sys.modules.get("reverb")
    if there is not None and there is not package:
        raise RuntimeError("reverb has been imported already, from "
                           f"{getattr(there, '__file__', None)}: call install_as_reverb() first")
    sys.modules["reverb"] = package
    return package
