# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/frameworks.md run, also after the patches of that page, and that of docs/llm.md
with TransferQueue."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^## (?P<section>[^\n]*)$|^```(?P<language>python frameworks|diff)\n(?P<text>.*?)^```",
                   re.DOTALL | re.MULTILINE)


def blocks(language, page="frameworks.md"):
    """Yields the section and the text of each block in a language."""
    section = ""
    for found in BLOCK.finditer((DOCS / page).read_text()):
        section = found["section"] or section
        if found["language"] == language:
            yield section, found["text"]


def patched(program, patch):
    """Applies a patch, whose hunks are separated by "..."."""
    for hunk in re.split(r"^\.\.\.\n", patch, flags=re.MULTILINE):
        old, new = ("".join(line[1:] for line in hunk.splitlines(True) if line[0] == sign)
                    for sign in "-+")
        if program.count(old) != 1:
            raise ValueError(f"the program has these lines {program.count(old)} times:\n{old}")
        program = program.replace(old, new)
    return program


class Programs(unittest.TestCase):
    def run_program(self, program):
        for _ in range(5):  # on a busy machine, Ray may give up while it starts
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run([sys.executable, "-c", program], cwd=folder,
                                      capture_output=True, text=True, check=False)
            if "timed out during startup" not in done.stderr:
                break
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])

    def test_programs_run(self):
        for number, (section, program) in enumerate(blocks("python frameworks")):
            with self.subTest(section=section, number=number):
                self.run_program(program)

    def test_program_with_transfer_queue_runs(self):
        programs = list(blocks("python frameworks", "llm.md"))
        self.assertEqual([section for section, _ in programs], ["TransferQueue"])
        self.run_program(programs[0][1])

    def test_patched_programs_run(self):
        program = dict(blocks("python frameworks"))["CleanRL"]
        uniform, prioritized = (patch for section, patch in blocks("diff") if section == "CleanRL")
        self.assertLessEqual(len(prioritized.splitlines()), 10)
        self.run_program(patched(program, uniform) + "    assert rb._rows.added == 1000\n")
        self.run_program(patched(program, prioritized) + "    assert len(set(rb.sample(300)"
                         ".weights.flatten().tolist())) > 50\n")


if __name__ == "__main__":
    unittest.main()
