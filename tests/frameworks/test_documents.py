# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/frameworks.md run."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "frameworks.md"
PROGRAMS = re.findall(r"^## (.*?)$|^```python\n(.*?)^```", PAGE.read_text(),
                      re.DOTALL | re.MULTILINE)


class Programs(unittest.TestCase):
    def test_programs_run(self):
        section, count = "", 0
        for heading, program in PROGRAMS:
            section, count = (heading, 0) if heading else (section, count + 1)
            if program:
                with self.subTest(section=section, number=count), \
                        tempfile.TemporaryDirectory() as folder:
                    done = subprocess.run([sys.executable, "-c", program], cwd=folder,
                                          capture_output=True, text=True, check=False)
                    self.assertEqual(done.returncode, 0, done.stderr[-3000:])


if __name__ == "__main__":
    unittest.main()
