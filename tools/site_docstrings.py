# SPDX-License-Identifier: Apache-2.0
"""An extension of griffe, for tools/site.py: examples in docstrings (>>>) become code."""

import re
import textwrap

import griffe

EXAMPLE = re.compile(r"^(?: {4})?>>> .*?(?=\n[ \t]*\n|\Z)", re.DOTALL | re.MULTILINE)


def fenced(text):
    """Returns a docstring with its examples between fences."""
    return EXAMPLE.sub(lambda found: f"```pycon\n{textwrap.dedent(found[0])}\n```", text)


class Examples(griffe.Extension):
    def on_object(self, *, obj, **_):
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
