# SPDX-License-Identifier: Apache-2.0
"""`reprise tune` measures and picks. What it measures depends on the machine: only what holds on
every machine is asserted."""

import json
import pathlib
import re
import shlex
import signal
import subprocess
import time
import xml.etree.ElementTree

import pytest
from conftest import REPRISE, SECONDS, clean_environment, reprise

SHORT = ["--seconds", "0.01", "--hidden", "8", "--batch", "8", "--start", "50"]


def tune(*arguments):
    done = reprise("tune", *arguments, *SHORT)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def check_pick(found):
    """The pick is the best of the curves that were measured: the same search, written again."""
    acting, learning = ([p["per_second"] for p in found[name]["rates"]] for name in ("acting", "learning"))
    interval, cores = found["steps_per_update"], found["cores"]
    best = 0
    for a, fast in enumerate(acting, 1):
        for l, updates in enumerate(learning, 1):
            if found["in_turn"] and l <= cores:
                best = max(best, 1 / (1 / fast + 1 / (updates * interval)))
            elif not found["in_turn"] and a + l <= cores:
                best = max(best, min(fast, updates * interval))
    assert best * 0.99 <= found["pick"]["steps_per_second"] <= best * 1.000001


def test_apex_splits_the_cores():
    found = json.loads(tune("--env", "catch", "--agent", "apex-dqn", "--cores", 4, "--json"))
    assert [p["threads"] for p in found["acting"]["rates"]] == [1, 2, 3]
    assert len(found["splits"]) == 6
    assert all(s["actors"] + s["learners"] <= 4 for s in found["splits"])
    check_pick(found)
    pick = found["pick"]
    assert found["command"].startswith(
        f"reprise train apex-dqn --env catch --actors {pick['actors']} --learners {pick['learners']} --hidden 8")


def test_dqn_acts_and_learns_in_turn():
    found = json.loads(tune("--env", "cartpole", "--agent", "dqn", "--cores", 2, "--json"))
    assert found["in_turn"]
    assert [s["actors"] for s in found["splits"]] == [1, 1]
    check_pick(found)
    assert "--actors" not in found["command"]


def test_all_splits_can_be_measured():
    found = json.loads(tune("--env", "catch", "--cores", 3, "--all", "--json"))
    measured = [s["measured_steps_per_second"] for s in found["splits"]]
    assert measured == sorted(measured, reverse=True) and measured[-1] > 0
    assert found["best"]["measured_steps_per_second"] == measured[0]
    assert found["share_of_best"] == pytest.approx(
        found["pick"]["measured_steps_per_second"] / measured[0])


def test_the_text_ends_with_a_command_that_trains(tmp_path):
    text = tune("--env", "catch", "--cores", 2, "--all", "--plot", tmp_path / "curves.svg")
    assert "catch on 2 cores" in text and "<- pick" in text and "no other split" in text
    xml.etree.ElementTree.parse(tmp_path / "curves.svg")
    command = shlex.split(text.splitlines()[-1])
    assert command[:4] == ["reprise", "train", "apex-dqn", "--env"]
    done = subprocess.run([REPRISE, *command[1:], "--steps", "200", "--quiet", "--dir", tmp_path / "run"],
                          capture_output=True, text=True, timeout=SECONDS, env=clean_environment())
    assert done.returncode == 0, done.stderr


def blocks_interrupts(pid):
    """Whether the thread that waits for signals is about to be started: before, Ctrl-C ends the process."""
    [mask] = re.findall(r"^SigBlk:\s*([0-9a-f]+)$", pathlib.Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(mask, 16) >> (signal.SIGINT - 1) & 1 == 1


def test_ctrl_c_stops_it():
    child = subprocess.Popen([REPRISE, "tune", "--env", "catch", "--seconds", "1000"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=clean_environment())
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
    ([], "--env is missing: for example --env cartpole"),
    (["--env", "cach"], "catch"),
    (["--env", "catch", "--agent", "foo"], "--agent: expected dqn, dpg, sac, apex-dqn, apex-dpg or apex-sac, got 'foo'"),
    (["--env", "catch", "--cores", "0"], "--cores: expected a whole number from 1 to 1024, got '0'"),
    (["--env", "catch", "--seconds", "0"], "--seconds: expected at least 0.001"),
    (["--env", "catch", "--learners", "2"], "--learners: tune finds their number"),
    (["--env", "catch", "--noise", "1"], "--noise: dqn has no such setting"),
    (["--env", "catch", "--agent", "dqn", "--async-learners", "true"],
     "--async-learners: dqn acts and learns at the same time then, which tune cannot measure; leave it out, or use "
     "--agent apex-dqn"),
])
def test_misuse_is_named(arguments, message):
    done = reprise("tune", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_an_agent_that_does_not_fit_is_refused():
    done = reprise("tune", "--env", "catch", "--agent", "dpg")
    assert (done.returncode, done.stdout) == (1, "")
    assert "needs continuous actions" in done.stderr
