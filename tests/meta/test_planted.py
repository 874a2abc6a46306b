# SPDX-License-Identifier: Apache-2.0
"""The patches that plant bugs apply to the sources; `make test ONLY=planted` tries the bugs."""

import sys

from tree import ROOT

sys.path.insert(0, str(ROOT / "tests" / "durability"))
import plant  # noqa: E402: beside its patches


def test_patches_apply():
    assert plant.planted_files()
