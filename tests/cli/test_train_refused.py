# SPDX-License-Identifier: Apache-2.0
"""Training that is refused: before anything starts, with the option named, and without a folder."""

import pytest
from conftest import reprise
from test_train import run


@pytest.mark.parametrize("arguments, message", [
    (["apex-dqn", "--env", "cartpole", "--then", "nothing"], "--then: unknown 'nothing'"),
    (["apex-dqn", "--env", "cartpole", "--then", "catch,,bricks"], "--then: expected names of environments"),
    (["apex-dqn", "--env", "cartpole", "--then", "pendulum"], "--then: dqn: needs discrete actions"),
    (["dqn", "--env", "catch", "--log", "foo,bar"], "--log: expected sb3 or cleanrl, got 'foo,bar'"),
    (["dqn", "--env", "catch", "--plot", "none/curve.svg"], "--plot: none/curve.svg: No such file or directory"),
    (["apex-dqn", "--env", "catch", "--plot", "none/curve.svg"],
     "--plot: none/curve.svg: No such file or directory"),
    (["dqn", "--env", "catch", "--serve", "http://localhost:1"],
     "address 'http://localhost:1': write host:port, without 'http://'"),
    (["apex-dqn", "--env", "catch", "--serve", "http://localhost:1"],
     "address 'http://localhost:1': write host:port, without 'http://'"),
    (["dqn", "--env", "catch", "--serve", "localhost:0", "--tokens", "none"], "none"),
    (["dqn", "--env", "catch", "--report", "nonsense"], "nonsense"),
    (["apex-dqn", "--env", "catch", "--actors", "0"],
     "--actors: expected a whole number from 1 to 4096, or auto, got '0'"),
    (["apex-dqn", "--env", "catch", "--actors", "99999"],
     "--actors: expected a whole number from 1 to 4096, or auto, got '99999'"),
    (["apex-dqn", "--env", "catch", "--role", "replay", "--dir", "a"], "--role replay needs --serve ADDR"),
    (["dqn", "--env", "catch", "--serve", "unix:x.sock,0.0.0.0:0"],
     "--serve: '0.0.0.0:0' can be reached from elsewhere, and there are no credentials, so every client would be an "
     "administrator: give --tokens, or --insecure to allow it"),
    (["dqn", "--env", "catch", "--async-learners"], "--async-learners: needs BOOL, one of: true false"),
    (["dqn", "--env", "catch", "--prioritized", "2"], "--prioritized: expected true or false, got '2'"),
])
def test_a_refused_run_names_the_option_and_leaves_no_folder(tmp_path, arguments, message):
    done = run(tmp_path, "train", *arguments)
    assert done.returncode in (1, 2) and done.stdout == "", done
    assert done.stderr.startswith("reprise train: ") and message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments, message", [
    (["--serve", "http://localhost:1"], "address 'http://localhost:1': write host:port, without 'http://'"),
    (["--serve", "localhost:0", "--tokens", "none"], "none"),
    (["--report", "nonsense"], "nonsense"),
])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_refused_part_ends_the_processes_and_leaves_no_folder(tmp_path, arguments, message, is_new):
    if not is_new:
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "notes").write_text("mine")
    done = run(tmp_path, "train", "apex-dqn", "--env", "catch", "--processes", "--actors", "1", "--dir", "a",
               *arguments)
    assert done.returncode == 1 and done.stdout == "", done
    assert message in done.stderr and "cannot begin\n" in done.stderr
    if is_new:
        assert list(tmp_path.iterdir()) == []
    else:
        assert (tmp_path / "a" / "notes").read_text() == "mine"
        assert not (tmp_path / "a" / "settings.txt").exists()
        assert not (tmp_path / "a" / "supervisor").exists()


def test_a_switch_among_the_settings_takes_what_settings_txt_has(tmp_path):
    for value, kept in (("1", "1"), ("0", "0"), ("true", "1"), ("false", "0")):
        done = run(tmp_path, "train", "dqn", "--env", "catch", "--dir", f"a{value}", "--double-q", value, "--steps", 100,
                   "--quiet")
        assert done.returncode == 0, done
        assert f"\ndouble-q {kept}\n" in (tmp_path / f"a{value}" / "settings.txt").read_text()


def test_a_refused_run_keeps_what_was_in_its_folder(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "notes").write_text("mine")
    done = run(tmp_path, "train", "dqn", "--env", "catch", "--dir", "a", "--plot", "none/curve.svg")
    assert done.returncode == 1
    assert (tmp_path / "a" / "notes").read_text() == "mine"
    assert not (tmp_path / "a" / "settings.txt").exists()


def test_a_folder_without_settings_is_no_run_to_resume(tmp_path):
    (tmp_path / "runs" / "dqn-catch-1").mkdir(parents=True)
    done = run(tmp_path, "train", "dqn", "--env", "catch", "--resume")
    assert (done.returncode, done.stderr) == (2, "reprise train: --resume: there is no run runs/dqn-catch-1\n")


def test_a_run_of_another_agent_is_named(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "settings.txt").write_text("agent dqn\nenv catch\nseed 1\n")
    done = run(tmp_path, "train", "sac", "--dir", "a", "--resume")
    assert (done.returncode, done.stderr) == (
        2, "reprise train: a: this run is of dqn, not of sac: train dqn --dir a --resume\n")


def test_help_says_what_a_resumed_run_keeps_and_which_names_a_log_has():
    text = " ".join(reprise("train", "--help").stdout.split())
    assert "event files of TensorBoard, named as by sb3 or cleanrl" in text
    assert "and so are --steps, --actors and --keep-going if they are not given again. All other options are not kept" in text
    assert "actor, evaluator, learner or replay" in text and "kubernetes or slurm" in text
