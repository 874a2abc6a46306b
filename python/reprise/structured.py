# SPDX-License-Identifier: Apache-2.0
"""Writers that make items by patterns: `reprise.structured_writer` under its public name."""

from reprise.structured_writer import *  # noqa: F403
from reprise.structured_writer import __all__  # noqa: F401
