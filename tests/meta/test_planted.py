# SPDX-License-Identifier: Apache-2.0
"""The patches that plant bugs apply to the sources. `make test ONLY=planted` runs the bugs."""

import sys

from tree import ROOT

sys.path.insert(0, str(ROOT / "tests" / "durability"))
import plant  # noqa: E402: it is in the folder of the patches


def test_patches_apply():
    assert plant.planted_files()
