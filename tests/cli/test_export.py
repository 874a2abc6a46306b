# SPDX-License-Identifier: Apache-2.0
"""`reprise train apex-dqn --export`: the job files of Slurm and Kubernetes.

`make test-slurm` runs the script on a real Slurm.
"""

import json
import os
import re
import shutil
import subprocess

import pytest
from conftest import clean_environment, reprise

pytestmark = pytest.mark.skipif("  train " not in reprise("help").stdout, reason="built without rl")
HOSTILE = ["two words", "it's \"quoted\"", "$(touch pwned)", "`touch pwned`", "a\nb", "$HOME ${x} $$",
           "back\\slash", "--help", "'; touch pwned; '", "#not a comment", "- list: {x}", "é\t*?[a]~",
           "$(ACTOR_INDEX)", ""]


def export(kind, *arguments):
    done = reprise("train", "apex-dqn", "--env", "catch", "--actors", 3, "--export", kind, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def play_slurm(folder, script):
    """Runs a script with commands of Slurm that only write down how they were called. Returns the
    arguments of each srun, and the output."""
    tools = folder / "bin"
    tools.mkdir()
    (folder / "job.sh").write_text(script)
    for name, text in {
        # it ends when all four have been called: the job ends with the learner or the evaluator
        "srun": f'cd "{folder}"; printf "%s\\0" "$@" > "call.$$"; mv "call.$$" "srun.$$"\n'
                'until [ "$(ls srun.* | wc -l)" -eq 4 ]; do sleep 0.05; done\n',
        "scontrol": 'printf "n0\\nn1\\n"\n',
    }.items():
        (tools / name).write_text(f"#!/bin/bash\n{text}")
        (tools / name).chmod(0o755)
    done = subprocess.run(
        ["bash", str(folder / "job.sh")], cwd=folder, capture_output=True, text=True, timeout=120,
        env=clean_environment(PATH=f"{tools}:{os.environ['PATH']}", SLURM_JOB_ID="7",
                              SLURM_JOB_NODELIST_HET_GROUP_0="n[0-1]"))
    calls = [p.read_bytes().decode().split("\0")[:-1] for p in folder.glob("srun.*")]
    return calls, done


def role(calls, name):
    [call] = [c for c in calls if f"--role={name}" in c]
    return call


def test_slurm_starts_each_part_with_its_addresses(tmp_path):
    calls, done = play_slurm(tmp_path, export("slurm", "--shards", 2, "--serve", ":9000"))
    assert (done.returncode, done.stderr) == (0, "")
    actor = role(calls, "actor")
    assert actor[:2] == ["--het-group=3", "--ntasks=3"] and "--no-kill" in actor
    assert {"--of=3", "--replay=n0:9000,n1:9000", "--env=catch"} <= set(actor)
    assert "--dir=" + str(tmp_path / "apex-dqn-catch-7") in role(calls, "evaluator")
    assert role(calls, "learner")[:2] == ["--het-group=1", "--ntasks=1"]
    [server] = [c for c in calls if "serve" in c]
    assert server[:2] == ["--het-group=0", "--ntasks=2"] and "--listen=:9000" in server
    folder = tmp_path / "apex-dqn-catch-7"
    token = (folder / "token").read_text()
    assert re.fullmatch("[0-9a-f]{64}", token) and token not in (tmp_path / "job.sh").read_text()
    assert (folder / "token").stat().st_mode & 0o77 == 0


def test_the_index_of_an_actor_is_that_of_its_task(tmp_path):
    calls, _ = play_slurm(tmp_path, export("slurm"))
    actor = role(calls, "actor")
    command = actor[actor.index("bash"):]
    at = command.index("--index=")
    done = subprocess.run(command[:at + 1] + ["echo", "actor"], capture_output=True, text=True,
                          timeout=120, env={**os.environ, "SLURM_PROCID": "2"})
    assert done.stdout == "actor --index=2\n"


def test_a_task_restarts_what_fails_but_not_misuse(tmp_path):
    calls, _ = play_slurm(tmp_path, export("slurm"))
    actor = role(calls, "actor")
    task = actor[actor.index("bash"):actor.index("--index=") + 1]
    fails_once = 'test -e once || { touch once; exit 1; }'
    for command, status, said in ((fails_once, 0, "--index=2 ended with status 1: again\n"),
                                  ("exit 2", 2, "")):
        done = subprocess.run([*task, "bash", "-c", command], capture_output=True, text=True,
                              timeout=120, cwd=tmp_path, env={**os.environ, "SLURM_PROCID": "2"})
        assert (done.returncode, done.stderr) == (status, said)


@pytest.mark.parametrize("value", HOSTILE)
def test_slurm_passes_any_text_on_unchanged(tmp_path, value):
    calls, done = play_slurm(tmp_path, export("slurm", f"--report-name={value}", f"--report-ca={value}"))
    assert done.returncode == 0, done.stderr
    for name in ("actor", "learner", "evaluator"):
        call = role(calls, name)
        assert f"--report-name={value}" in call and f"--report-ca={value}" in call
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="there is no shellcheck")
def test_shellcheck_accepts_the_script(tmp_path):
    (tmp_path / "job.sh").write_text(export("slurm", "--seconds", 100, "--report-name", HOSTILE[1]))
    done = subprocess.run(["shellcheck", str(tmp_path / "job.sh")], capture_output=True, text=True,
                          timeout=120)
    assert done.stdout == ""


def documents(text):
    """The documents of a manifest."""
    yaml = pytest.importorskip("yaml")
    found = list(yaml.safe_load_all(text))
    return {f"{d['kind']} {d['metadata']['name']}": d for d in found}


def container(document):
    [only] = document["spec"]["template"]["spec"]["containers"]
    return only


def test_kubernetes_describes_each_part():
    found = documents(export("kubernetes", "--shards", 2, "--report-name", "Run_1", "--seconds", 60))
    assert sorted(found) == ["Job run-1-actor", "Job run-1-evaluator", "Job run-1-learner",
                             "PersistentVolumeClaim run-1-run", "Service run-1-replay",
                             "StatefulSet run-1-replay"]
    actors = found["Job run-1-actor"]["spec"]
    assert (actors["completions"], actors["completionMode"]) == (3, "Indexed")
    assert actors["activeDeadlineSeconds"] == 60
    arguments = container(found["Job run-1-actor"])["args"]
    assert "--index=$(ACTOR_INDEX)" in arguments and "--of=3" in arguments
    assert "--replay=run-1-replay-0.run-1-replay:8000,run-1-replay-1.run-1-replay:8000" in arguments
    assert found["StatefulSet run-1-replay"]["spec"]["replicas"] == 2


@pytest.mark.parametrize("value", HOSTILE)
def test_kubernetes_passes_any_text_on_unchanged(value):
    arguments = []
    for name, document in documents(export("kubernetes", f"--report-name={value}")).items():
        if name.startswith("Job"):
            arguments += [a for a in container(document)["args"] if "--report-name" in a]
    # Kubernetes makes "$" of "$$" before it starts a container
    assert [a.replace("$$", "$") for a in arguments] == [f"--report-name={value}"] * 3
    assert not any("$" in a.replace("$$", "") for a in arguments)


@pytest.mark.parametrize("name", ["true", "1234", "-", "UPPER_case.x", "x" * 300])
def test_kubernetes_gets_names_that_it_accepts(name):
    for title, document in documents(export("kubernetes", f"--report-name={name}")).items():
        assert re.fullmatch("[A-Za-z]+ [a-z][-a-z0-9]{0,50}[a-z0-9]", title)
        assert all(isinstance(v, str) for v in document["metadata"]["labels"].values())


def test_the_schema_of_kubernetes_accepts_the_manifest():
    validate = pytest.importorskip("kubernetes_validate")
    for document in documents(export("kubernetes", "--image", HOSTILE[1])).values():
        validate.validate(json.loads(json.dumps(document)), validate.latest_version(), strict=True)


@pytest.mark.parametrize("arguments, message", [
    (["--export", "nomad"], "--export"),
    (["--export", "slurm", "--role", "actor"], "--export does not go with --role"),
    (["--export", "slurm", "--dir", "x"], "--export does not go with --dir"),
    (["--export", "slurm", "--shards", "300"], "--shards: expected 1 to 256, got 300"),
    (["--export", "slurm", "--serve", "host:http"], "--serve: "),
])
def test_misuse_is_named(tmp_path, arguments, message):
    done = reprise("train", "apex-dqn", "--env", "catch", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr and done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_manifest_cannot_have_bytes_that_are_not_text():
    done = reprise("train", "apex-dqn", "--env", "catch", "--export", "kubernetes",
                   b"--report-name=\xff".decode(errors="surrogateescape"))
    assert done.returncode == 2 and "is not UTF-8: a manifest cannot contain it" in done.stderr
