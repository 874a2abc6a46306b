# SPDX-License-Identifier: Apache-2.0
"""`reprise train` with --actors auto and --learners auto. What is picked depends on the machine: only what holds
on every machine is asserted."""

import json
import re
import signal
import subprocess
import time

import pytest
from conftest import IS_SHORT, REPRISE, SECONDS, clean_environment, reprise
from test_tune import blocks_interrupts

pytestmark = pytest.mark.skipif("  train " not in reprise("help").stdout, reason="built without rl")
SMALL = ["--env", "catch", "--hidden", "8", "--batch", "8", "--start", "50", "--keep-going"]


def train(folder, *arguments):
    return subprocess.run([REPRISE, "train", *map(str, arguments)], cwd=folder, capture_output=True, text=True,
                          timeout=SECONDS, env=clean_environment())


def result(folder, *arguments):
    done = train(folder, *arguments, *SMALL, "--json")
    assert (done.returncode, done.stderr) == (0, ""), done
    return json.loads(done.stdout)


def test_apex_picks_a_split_of_the_cores_and_says_why(tmp_path):
    done = train(tmp_path, "apex-dqn", *SMALL, "--actors", "auto", "--learners", "auto", "--cores", 3, "--steps", 1000)
    assert done.returncode == 0, done
    first = done.stderr.splitlines()[0]
    found = re.fullmatch(r"reprise train: (\d) actors? and (\d) learners? on 3 cores: \d+ steps/s predicted; "
                         r"\1 actors? alone makes? \d+ steps/s, \2 learners? \d+ updates/s", first)
    assert found and int(found[1]) + int(found[2]) <= 3, first


@pytest.mark.skipif(IS_SHORT, reason="a measurement takes 2 s of each core")
def test_a_number_that_is_given_stays(tmp_path):
    done = result(tmp_path, "apex-dqn", "--actors", 2, "--learners", "auto", "--cores", 4, "--steps", 1000)
    assert done["actors"] == 2 and done["learners"] <= 2
    done = result(tmp_path, "apex-dqn", "--actors", "auto", "--learners", 3, "--cores", 5, "--steps", 1000)
    assert done["actors"] <= 2 and done["learners"] == 3
    assert "learners" not in result(tmp_path, "apex-dqn", "--actors", 2, "--steps", 1000)


def test_dqn_picks_its_learners_and_a_resumed_run_picks_again(tmp_path):
    how = [] if IS_SHORT else ["--learners", "auto", "--cores", 2]  # a short run measures once
    done = result(tmp_path, "dqn", *how, "--steps", 500, "--dir", "a")
    assert done.get("learners", 1) in (1, 2) and done["steps"] >= 500
    assert "learners 1\n" in (tmp_path / "a" / "settings.txt").read_text()
    done = train(tmp_path, "dqn", "--dir", "a", "--resume", "--learners", "auto", "--cores", 2, "--steps", 900, "--keep-going")
    assert done.returncode == 0 and re.match(r"reprise train: [12] learners? on 2 cores: ", done.stderr), done
    assert "learners 1\n" in (tmp_path / "a" / "settings.txt").read_text()


@pytest.mark.skipif(IS_SHORT, reason="a measurement takes 2 s of each core")
@pytest.mark.parametrize("agent", ["dpg", "sac"])
def test_agents_of_continuous_actions_pick_as_well(tmp_path, agent):
    small = ["--env", "pendulum", "--hidden", "8", "--batch", "8", "--start", "50", "--keep-going", "--json"]
    done = train(tmp_path, agent, *small, "--learners", "auto", "--cores", 2, "--steps", 200)
    assert done.returncode == 0 and json.loads(done.stdout)["learners"] in (1, 2), done
    done = train(tmp_path, f"apex-{agent}", *small, "--actors", "auto", "--learners", "auto", "--cores", 3, "--steps", 500)
    assert done.returncode == 0, done
    numbers = json.loads(done.stdout)
    assert numbers["actors"] >= 1 and numbers["learners"] >= 1 and numbers["actors"] + numbers["learners"] <= 3


def test_ctrl_c_stops_the_measurement(tmp_path):
    child = subprocess.Popen([REPRISE, "train", "apex-dqn", "--env", "catch", "--actors", "auto", "--cores", "1000"], cwd=tmp_path,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environment())
    try:
        deadline = time.monotonic() + SECONDS
        while not blocks_interrupts(child.pid):
            assert child.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=SECONDS)
    finally:
        child.kill()
    assert (child.returncode, out, err) == (130, "", "")


@pytest.mark.parametrize("arguments, message", [
    (["dqn", "--cores", "2"], "--cores needs --actors auto or --learners auto"),
    (["apex-dqn", "--actors", "auto", "--processes"], "--actors auto does not go with --processes"),
    (["apex-dqn", "--learners", "auto", "--role", "learner"], "--learners auto does not go with --role"),
    (["apex-dqn", "--actors", "auto", "--print-program"], "--actors auto does not go with --print-program"),
    (["apex-dqn", "--actors", "auto", "--export", "slurm"], "--actors auto does not go with --export"),
    (["apex-dqn", "--actors", "auto", "--cores", "2000"], "--cores: expected 1 to 1024, got 2000"),
    (["apex-dqn", "--actors", "automatic"], "--actors: expected a whole number from 1 to 4096, or auto, got 'automatic'"),
    (["dqn", "--actors", "auto"], "--actors is an option of apex-dqn, apex-dpg and apex-sac"),
])
def test_misuse_is_named(tmp_path, arguments, message):
    done = train(tmp_path, *arguments, "--env", "catch")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"reprise train: {message}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments, message", [
    (["--async-learners", "true"], "--async-learners: their number is not picked: give --learners"),
    (["--actors", "9", "--cores", "4"], "9 actors and 1 learner need at least 10 cores: --cores is 4"),
    (["--actors", "2", "--cores", "1"], "2 actors and 1 learner need at least 3 cores: --cores is 1"),
])
def test_what_cannot_be_picked_is_named(tmp_path, arguments, message):
    done = train(tmp_path, "apex-dqn", *SMALL, "--learners", "auto", *arguments)
    assert done.returncode == 1 and message in done.stderr and done.stderr.count("\n") == 1, done
