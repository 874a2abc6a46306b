# SPDX-License-Identifier: Apache-2.0
"""The files of the image, of the hosted CI and of CITATION.cff, by the linters in build/peers/linters."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(sys.executable).parent
DOCKERFILE = ROOT / "packages" / "docker" / "Dockerfile"
COMPOSE = ROOT / "packages" / "docker" / "compose.yaml"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))


def lint(program, *arguments):
    done = subprocess.run([str(BIN / program), *map(str, arguments)], cwd=ROOT, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def instructions():
    """Returns the instructions of the Dockerfile, with joined lines and without comments."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [re.sub(r"\s+", " ", line).strip() for line in text.splitlines() if line.strip()]


def last_stage():
    lines = instructions()
    start = max(i for i, line in enumerate(lines) if line.startswith("FROM "))
    return lines[start:]


def test_hadolint_finds_nothing_in_the_dockerfile():
    lint("hadolint", "--failure-threshold", "style", DOCKERFILE)


def test_the_image_has_no_root_no_compiler_and_a_health_check():
    stage = last_stage()
    users = [line.split()[1] for line in stage if line.startswith("USER ")]
    assert users == ["65532:65532"]  # that of the manifests of `reprise train --image`
    assert any(line.startswith("HEALTHCHECK ") for line in stage)
    installed = " ".join(line for line in stage if line.startswith("RUN "))
    assert not re.search(r"\b(g\+\+|gcc|make|\w+-dev)\b", installed)


def test_the_image_has_the_libraries_of_the_build():
    """The last stage has the library for each development package of the build."""
    control = (ROOT / "packages" / "debian" / "control").read_text()
    development = re.findall(r"^ (lib\w+)-dev\b", control, re.MULTILINE)
    installed = re.findall(r"\b(lib[a-z][\w-]*)", " ".join(last_stage()))
    headers_alone = {"libprotobuf", "libxxhash"}
    for name in set(development) - headers_alone | {"zlib"}:
        stem = re.sub(r"\d+$", "", name)
        assert any(package.startswith(stem) for package in installed) or name == "zlib", name
    assert "zlib1g" in " ".join(last_stage())


def test_copied_files_exist():
    for line in instructions():
        if line.startswith("COPY ") and "--from" not in line:
            assert (ROOT / line.split()[1]).exists(), line


def test_the_compose_file_keeps_its_schema():
    lint("check-jsonschema", "--builtin-schema", "vendor.compose-spec", COMPOSE)


def test_the_compose_file_publishes_on_this_machine_alone():
    service = yaml.safe_load(COMPOSE.read_text())["services"]["server"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert (COMPOSE.parent / service["build"]["context"]).resolve() == ROOT
    assert (ROOT / service["build"]["dockerfile"]) == DOCKERFILE


def test_flags_of_the_image_are_known(tmp_path):
    """The command's own check of its configuration accepts them; it needs a build."""
    build = pathlib.Path(os.environ.get("RP_BUILD", ROOT / "build" / "release"))
    program = build / "src" / "cli" / "reprise"
    if not program.exists():
        pytest.skip(f"{program} does not exist: run make")
    [image] = [line for line in last_stage() if line.startswith("CMD ")]
    commands = [yaml.safe_load(image.removeprefix("CMD ")),
                yaml.safe_load(COMPOSE.read_text())["services"]["server"]["command"]]
    for command in commands:
        words = [str(tmp_path) if word == "/var/lib/reprise" else word for word in command]
        done = subprocess.run([program, *words, "--check-config"], capture_output=True, text=True,
                              timeout=60)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_keep_their_schema(path):
    lint("check-jsonschema", "--builtin-schema", "vendor.github-workflows", path)


def test_the_hosted_ci_runs_what_every_change_has_to_pass():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yaml").read_text())["jobs"]
    [job] = jobs.values()
    assert {"ubuntu-24.04", "ubuntu-24.04-arm"} == set(job["strategy"]["matrix"]["runner"])
    assert [s["run"] for s in job["steps"] if s.get("run", "").startswith(".ci/")] == [".ci/install", ".ci/run"]
    assert all("timeout-minutes" in job for path in WORKFLOWS
               for job in yaml.safe_load(path.read_text())["jobs"].values())


def test_the_citation_is_valid():
    lint("check-jsonschema", "--builtin-schema", "vendor.citation-file-format", "CITATION.cff")
