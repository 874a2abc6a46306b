# SPDX-License-Identifier: Apache-2.0
"""`reprise train`, `eval`, `play` and `export`: short runs in folders of their own."""

import csv
import json
import re
import signal
import struct
import subprocess
import time
import xml.etree.ElementTree

import pytest
from conftest import IS_SHORT, REPRISE, clean_environment, reprise
from test_examples import examples

pytestmark = pytest.mark.skipif("  train " not in reprise("help").stdout, reason="built without rl")
LONG = 120  # seconds for a run, on a busy machine
SMALL = ["--hidden", "16", "--batch", "16", "--start", "100", "--one-thread", "--keep-going"]


def run(folder, *arguments):
    """Runs the command to its end in a folder."""
    return subprocess.run([REPRISE, *map(str, arguments)], cwd=folder, capture_output=True,
                          text=True, timeout=LONG, env=clean_environment())


def train(folder, *arguments):
    """Trains; returns what is printed."""
    done = run(folder, "train", "dqn", *arguments)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82f63b78 & -(crc & 1))
    crc ^= 0xffffffff
    return (((crc >> 15) | (crc << 17)) + 0xa282ead8) & 0xffffffff


def events(path):
    """Yields the records of an event file, whose checksums are right."""
    data = path.read_bytes()
    while data:
        length, check = struct.unpack("<QI", data[:12])
        assert crc32c(data[:8]) == check
        record = data[12:12 + length]
        assert crc32c(record) == struct.unpack("<I", data[12 + length:16 + length])[0]
        yield record
        data = data[16 + length:]


RESUMED = 6000 if IS_SHORT else 20000  # steps of the run that an example resumes


def test_examples_of_train_eval_play_and_export(tmp_path):
    for line in examples("train") + examples("eval") + examples("play") + examples("export"):
        # In a short run, these end before the task is solved; those of Catch solve it.
        is_cut = IS_SHORT and re.search(r"train (dpg|sac|\S*dqn --env cartpole|apex-dqn .*--processes)", line)
        line = line.replace("--steps 20000", f"--steps {RESUMED}")
        done = run(tmp_path, *line.split()[1:], *(["--steps", "1200"] if is_cut else []))
        assert (done.returncode, done.stderr) == (0, ""), line
        if "--json" in line:
            assert json.loads(done.stdout)["mean_return"] > (8 if IS_SHORT else 400)
    xml.etree.ElementTree.parse(tmp_path / "curve.svg")
    model = (tmp_path / "cartpole.onnx").read_bytes()
    assert model == (tmp_path / "runs" / "dqn-cartpole-1" / "policy.onnx").read_bytes()
    assert model.startswith(b"\x08\x08\x12\x07reprise")  # IR version 8, the producer
    rows = list(csv.DictReader((tmp_path / "catch" / "progress.csv").open()))
    assert float(rows[-1]["steps"]) >= RESUMED
    assert [float(r["steps"]) for r in rows] == sorted(float(r["steps"]) for r in rows)
    log, = (tmp_path / "catch").glob("events.out.tfevents.*")
    records = list(events(log))
    assert b"brain.Event:2" in records[0]
    tags = {tag for r in records for tag in re.findall(rb"[a-z]+/[A-Za-z_]+", r)}
    assert {b"rollout/ep_rew_mean", b"train/loss", b"time/fps", b"eval/mean_reward"} <= tags


@pytest.mark.parametrize("arguments, message", [
    ([], "--env is missing: for example --env cartpole"),
    (["--resume"], "--resume: --dir FOLDER is missing: the folder of the run"),
    (["--env", "catch", "--seconds", "1"], "--seconds is an option of apex-dqn, apex-dpg and apex-sac; --steps N limits this agent"),
    (["--env", "catch", "--target-entropy", "1"], "--target-entropy: dqn has no such setting; it is a setting of sac"),
    (["--env", "catch", "--noise", "1"], "--noise: dqn has no such setting; it is a setting of dpg"),
    (["--env", "catch", "--learning-rate", "0.1"], "unknown option --learning-rate, did you mean --rate?"),
    (["--env", "catch", "--total_timesteps", "9"], "unknown option --total_timesteps, did you mean --steps?"),
    (["--env", "catch", "--gamma=0.9"], "unknown option --gamma, did you mean --discount?"),
    (["--env", "cartpol"], "--env: unknown 'cartpol', did you mean 'cartpole'?"),
    (["--env", "catch", "--rate", "0"], "--rate: expected a number from 1e-12 to 1e+12, got '0'"),
    (["--env", "catch", "--capacity", "5"], "dqn: start must be <= capacity, 5, got 500"),
    (["--env", "catch", "--resume"], "--resume: there is no run runs/dqn-catch-1"),
    (["--dir", "x", "--resume"],
     "x: there is no run: no such folder; give the folder of a run, which reprise train prints at its end"),
])
def test_misuse_is_named(tmp_path, arguments, message):
    done = run(tmp_path, "train", "dqn", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"reprise train: {message}\n")
    assert list(tmp_path.iterdir()) == []


def test_environments_with_discrete_actions_are_named(tmp_path):
    done = run(tmp_path, "train", "dqn", "--env", "pendulum")
    assert "the environment has a box of 1; these have: acrobot, bricks, cartpole" in done.stderr, done
    assert (done.returncode, done.stdout, list(tmp_path.iterdir())) == (2, "", [])


@pytest.mark.parametrize("agent, message", [
    ("dnq", "unknown agent 'dnq', did you mean 'dqn'? (dqn dpg sac apex-dqn apex-dpg apex-sac)"),
    ("muzero", "unknown agent 'muzero'; there are dqn dpg sac apex-dqn apex-dpg apex-sac"),
])
def test_agents_are_named(tmp_path, agent, message):
    done = run(tmp_path, "train", agent, "--env", "catch")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"reprise train: {message}\n")


@pytest.mark.parametrize("arguments, message", [
    (["--env", "cartpole"], "sac: needs continuous actions, and the environment has 2 discrete ones; these have: mountain_car_continuous, pendulum"),
    (["--env", "pendulum", "--noise", "1"], "--noise: sac has no such setting; it is a setting of dpg"),
    (["--env", "pendulum", "--temperature", "0"], "--temperature: expected a number from 1e-09 to 1e+09, got '0'"),
])
def test_misuse_of_sac_is_named(tmp_path, arguments, message):
    done = run(tmp_path, "train", "sac", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"reprise train: {message}\n")


@pytest.mark.parametrize("arguments, message", [
    (["--env", "cartpole"], "dpg: needs continuous actions, and the environment has 2 discrete ones; these have: mountain_car_continuous, pendulum"),
    (["--env", "pendulum", "--dueling", "true"], "--dueling: dpg has no such setting; it is a setting of dqn"),
    (["--env", "pendulum", "--evict-exponent", "1"],
     "--evict-exponent: expected a number from -10 to 0, got '1'"),
    (["--env", "pendulum", "--resume"], "--resume: there is no run runs/dpg-pendulum-1"),
])
def test_misuse_of_dpg_is_named(tmp_path, arguments, message):
    done = run(tmp_path, "train", "dpg", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"reprise train: {message}\n")
    assert list(tmp_path.iterdir()) == []


def test_help_has_the_defaults_of_dpg_and_sac(tmp_path):
    """The settings that dpg and sac share with dqn are listed once, with the defaults of dqn. The text
    below them names those of dpg and of sac that differ: all of them."""
    text = " ".join(run(tmp_path, "train", "--help").stdout.split())
    listed = {}
    for agent, env in (("dqn", "cartpole"), ("dpg", "pendulum"), ("sac", "pendulum")):
        done = run(tmp_path, "train", agent, "--env", env, "--dir", agent, "--steps", 8)
        assert done.returncode == 0, done
        lines = (tmp_path / agent / "settings.txt").read_text().splitlines()[3:]
        listed[agent] = {name: float(value) for name, value in map(str.split, lines)}
    for agent, end in (("dpg", ". sac has"), ("sac", ". Some environments")):
        part = text[text.index(f"{agent} has the"):]
        part = part[part.index("with other defaults than dqn:"):].split(end)[0]
        stated = {name: float({"true": 1, "false": 0}.get(value, value))
                  for name, value in re.findall(r"([a-z-]+) \(([-0-9.e]+|true|false)\)", part)}
        assert stated == {name: value for name, value in listed[agent].items()
                          if name in listed["dqn"] and listed["dqn"][name] != value}
        for name in listed[agent].keys() - listed["dqn"].keys():
            assert f"--{name} " in text


@pytest.mark.parametrize("agent", ["dpg", "sac"])
def test_an_agent_of_continuous_actions_is_resumed_bit_by_bit_evaluated_drawn_and_exported(tmp_path, agent):
    small = [*SMALL, "--seed", "3", "--noise-memory", "0.5"]
    whole = run(tmp_path, "train", agent, "--env", "pendulum", "--dir", "a", "--steps", 1600, *small)
    assert whole.returncode == 0, whole
    run(tmp_path, "train", agent, "--env", "pendulum", "--dir", "b", "--steps", 800, *small)
    done = run(tmp_path, "train", agent, "--dir", "b", "--resume", "--steps", 1600, "--one-thread",
               "--keep-going")
    assert done.returncode == 0, done
    assert "1600 steps, 8 episodes" in done.stdout
    policies = [(tmp_path / d / "policy.safetensors").read_bytes() for d in "ab"]
    assert policies[0] == policies[1]
    done = run(tmp_path, "eval", "a", "--episodes", 5, "--json")
    assert -2000 < json.loads(done.stdout)["mean_return"] < 0
    assert "the time limit was reached after 200 steps" in run(tmp_path, "play", "a").stdout
    done = run(tmp_path, "export", "a")
    assert done.stdout == "a/policy.onnx: observations float [3], actions of 1 number\n", done
    done = run(tmp_path, "train", "dqn", "--dir", "a", "--resume")
    assert done.returncode == 2 and f"this run is of {agent}, not of dqn" in done.stderr


def test_a_run_is_not_overwritten_and_keeps_its_settings(tmp_path):
    train(tmp_path, "--env", "catch", "--dir", "a", "--steps", 400, *SMALL)
    for arguments, message in (
            (["--env", "catch", "--dir", "a"], "a: there is a run already; --resume continues it"),
            (["--dir", "a", "--resume", "--rate", "1"], "--rate: a resumed run keeps its settings"),
            (["--dir", "a", "--resume", "--seed", "1"], "--seed: a resumed run keeps its seed"),
            (["--dir", "a", "--resume", "--env", "cartpole"],
             "--env: the run in a is of catch")):
        done = run(tmp_path, "train", "dqn", *arguments)
        assert (done.returncode, done.stderr) == (2, f"reprise train: {message}\n")
    (tmp_path / "a" / "settings.txt").write_text("agent dqn\nenv chess\n")
    done = run(tmp_path, "eval", "a")
    assert done.returncode == 1
    assert done.stderr == "reprise eval: a/settings.txt:2:1: 'env chess' is no setting of a run\n"


@pytest.mark.parametrize("agent", ["dqn", "apex-dqn"])
@pytest.mark.parametrize("threshold", ["0", "-0.0"])
def test_a_threshold_of_zero_is_zero(tmp_path, agent, threshold):
    # The threshold of the environment is 475, which a policy of so few steps does not reach.
    done = run(tmp_path, "train", agent, "--env", "cartpole", "--threshold", threshold, "--steps", 2000,
               "--eval-episodes", 3, "--confirm-episodes", 10, "--hidden", 16)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert done.stdout.startswith("solved: "), done


def test_a_run_that_diverges_says_so(tmp_path):
    done = run(tmp_path, "train", "dqn", "--env", "cartpole", "--dir", "a", "--rate", "1e9", *SMALL)
    assert done.returncode == 1
    assert re.fullmatch(r"reprise train: dqn: the run has diverged: at update \d+ the loss is .*: try a lower rate\n",
                        done.stderr)
    assert run(tmp_path, "eval", "a").returncode == 1


def test_a_file_that_is_no_policy_is_named(tmp_path):
    train(tmp_path, "--env", "catch", "--dir", "a", "--steps", 200, *SMALL)
    (tmp_path / "a" / "policy.safetensors").write_bytes(b"not a policy")
    done = run(tmp_path, "eval", "a")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("reprise eval: ")


def test_a_run_without_a_policy_has_a_next_step(tmp_path):
    train(tmp_path, "--env", "catch", "--dir", "a", "--steps", 200, *SMALL)
    (tmp_path / "a" / "policy.safetensors").unlink()
    (tmp_path / "empty").mkdir()
    for command in "eval", "play", "export":
        done = run(tmp_path, command, "a")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"reprise {command}: a: no policy was saved yet: there is no policy.safetensors")
        assert "reprise train dqn --dir a --resume" in done.stderr
        done = run(tmp_path, command, "empty")
        assert (done.returncode, done.stdout) == (1, "")
        assert "empty: there is no run in it: no settings.txt; give the folder of a run" in done.stderr


def test_export_says_what_it_wrote_or_why_not(tmp_path):
    train(tmp_path, "--env", "catch", "--dir", "a", "--steps", 200, *SMALL)
    done = run(tmp_path, "export", "a")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"a/policy.onnx: observations \w+ \[10,5\], 3 actions\n", done.stdout)
    done = run(tmp_path, "export", "a", "--onnx", "none/x.onnx")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == ("reprise export: 'none/x.onnx.new' cannot be written: "
                           "No such file or directory\n")
    done = run(tmp_path, "export", "b")
    assert done.returncode == 1 and done.stderr.startswith("reprise export: b: there is no run: no such folder; ")


def start(folder, *arguments):
    return subprocess.Popen([REPRISE, "train", "dqn", *map(str, arguments)], cwd=folder,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=clean_environment())


def wait_for_snapshot(folder, process):
    """Waits until a snapshot is written, or the run has ended."""
    deadline = time.monotonic() + LONG
    while process.poll() is None and time.monotonic() < deadline:
        manifests = list((folder / "replay").rglob("*"))
        rows = (folder / "progress.csv").read_text().count("\n") if (folder / "progress.csv").exists() else 0
        if len(manifests) > 3 and rows > 3:
            return
        time.sleep(0.005)


PARTED = ["--env", "cartpole", "--steps", 12000, "--save-every", 1000, *SMALL]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The policy of a run that nothing has stopped."""
    folder = tmp_path_factory.mktemp("whole")
    train(folder, *PARTED, "--dir", "whole")
    return (folder / "whole" / "policy.safetensors").read_bytes()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_continues_bit_by_bit(tmp_path, whole, number):
    if IS_SHORT and number == signal.SIGTERM:
        pytest.skip("SIGINT runs the same code")
    process = start(tmp_path, *PARTED, "--dir", "parts")
    wait_for_snapshot(tmp_path / "parts", process)
    process.send_signal(number)
    out, err = process.communicate(timeout=LONG)
    if process.returncode != 0 and number != signal.SIGKILL:
        assert (process.returncode, err) == (128 + number, "")
        assert "stopped and saved; reprise train dqn --dir parts --resume continues" in out
    train(tmp_path, "--dir", "parts", "--resume", "--steps", 12000, "--save-every", 1000,
          "--one-thread", "--keep-going")
    assert (tmp_path / "parts" / "policy.safetensors").read_bytes() == whole
    steps = [int(r["steps"]) for r in csv.DictReader((tmp_path / "parts" / "progress.csv").open())]
    assert steps == sorted(set(steps)) and steps[-1] == 12000


def test_a_run_without_a_snapshot_begins_again(tmp_path):
    line = ["--env", "catch", "--steps", 600, *SMALL]
    train(tmp_path, *line, "--dir", "whole")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "settings.txt").write_text((tmp_path / "whole" / "settings.txt").read_text())
    (tmp_path / "parts" / "progress.csv").write_text("steps,seconds\n100,1\n20")
    done = run(tmp_path, "train", "dqn", "--dir", "parts", "--resume", "--steps", 600, "--one-thread", "--keep-going")
    assert (done.returncode, done.stderr) == (
        0, "reprise train: parts: no snapshot: starts again; progress-1.csv is the curve until now\n")
    assert (tmp_path / "parts" / "progress-1.csv").read_text() == "steps,seconds\n100,1\n20"
    whole, parts = (tmp_path / d / "policy.safetensors" for d in ("whole", "parts"))
    assert whole.read_bytes() == parts.read_bytes()


def test_a_resumed_run_keeps_its_steps_unless_they_are_given(tmp_path):
    folder = tmp_path / "a"
    train(tmp_path, "--env", "catch", "--dir", "a", "--steps", 400, *SMALL)
    kept = (folder / "settings.txt").read_text()
    assert "\nsteps 400\n" in kept and "actors" not in kept
    result = json.loads(train(tmp_path, "--dir", "a", "--resume", "--keep-going", "--json"))
    assert result["steps"] == 400 and (folder / "settings.txt").read_text() == kept
    for arguments in (["--steps", 600], []):
        result = json.loads(train(tmp_path, "--dir", "a", "--resume", "--keep-going", "--json", *arguments))
        assert result["steps"] == 600
    assert (folder / "settings.txt").read_text() == kept.replace("steps 400", "steps 600")
    assert not (folder / "settings.new").exists()
    assert run(tmp_path, "eval", "a", "--episodes", 1).returncode == 0


def test_a_resumed_run_keeps_keep_going_unless_it_is_given(tmp_path):
    """It ended at once, since its first evaluation had solved it."""
    easy = ["--threshold", -100, "--eval-every", 100, "--eval-episodes", 1, "--confirm-episodes", 1,
            "--json"]
    train(tmp_path, "--env", "catch", "--dir", "a", "--steps", 400, *SMALL, *easy)
    assert "\nsteps 400\nkeep-going 1\n" in (tmp_path / "a" / "settings.txt").read_text()
    result = json.loads(train(tmp_path, "--dir", "a", "--resume", "--one-thread", "--steps", 800, *easy))
    assert result["steps"] == 800
    result = json.loads(train(tmp_path, "--dir", "a", "--resume", "--one-thread", "--steps", 1200,
                              "--keep-going=false", *easy))
    assert result["steps"] < 1200
    assert "keep-going" not in (tmp_path / "a" / "settings.txt").read_text()


def test_a_resumed_run_has_the_agent_of_its_folder(tmp_path):
    train(tmp_path, "--env", "catch", "--dir", "a", "--steps", 400, *SMALL)
    done = run(tmp_path, "train", "--resume", "--dir", "a", "--steps", 600, "--json")
    assert (done.returncode, done.stderr) == (0, "") and json.loads(done.stdout)["steps"] == 600, done
    done = run(tmp_path, "train", "--resume", "--dir", "b")
    assert done.returncode == 2 and done.stderr.startswith("reprise train: b: there is no run: no such folder; "), done


def test_folders_are_numbered_and_the_latest_is_resumed(tmp_path):
    for _ in range(2):
        train(tmp_path, "--env", "catch", "--steps", 200, *SMALL)
    out = train(tmp_path, "--env", "catch", "--resume", "--steps", 400, "--keep-going", "--quiet")
    assert out.endswith("runs/dqn-catch-2\n")
    result = json.loads(train(tmp_path, "--env", "catch", "--resume", "--steps", 600, "--keep-going",
                              "--json"))
    assert result["dir"] == "runs/dqn-catch-2" and result["steps"] == 600
