# SPDX-License-Identifier: Apache-2.0
"""`reprise train apex-dqn`: threads, processes, and roles by hand."""

import csv
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest
from apex_kills import children, is_alive, kill_parts
from conftest import IS_SHORT, REPRISE, clean_environment, reprise

pytestmark = pytest.mark.skipif("  train " not in reprise("help").stdout, reason="built without rl")
LONG = 300  # seconds for anything, on a busy machine
EASY = ["--env", "catch", "--hidden", "32", "--start", "200", "--confirm-episodes", "50"]
CATCH = [*EASY, "--threshold", "0.9"]


def run(folder, *arguments, one_core=False):
    return subprocess.run([*one_of_the_cores(one_core), REPRISE, "train", "apex-dqn", *map(str, arguments)], cwd=folder,
                          capture_output=True, text=True, timeout=LONG, env=clean_environment())


def one_of_the_cores(wanted):
    """Begins a command line. A training that waits for a clock uses one core, not all."""
    return ["taskset", "-c", str(random.choice(sorted(os.sched_getaffinity(0))))] if wanted else []


class Part:
    """A command in the background, whose lines can be waited for."""

    def __init__(self, folder, *arguments, one_core=False, **environment):
        self.process = subprocess.Popen(
            [*one_of_the_cores(one_core), REPRISE, "train", "apex-dqn", *map(str, arguments)], cwd=folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=clean_environment(**environment))

    def until(self, pattern):
        """Reads lines until one matches."""
        seen = []
        for line in self.process.stdout:
            seen.append(line)
            if re.search(pattern, line):
                return line
        raise AssertionError("".join(seen))

    def end(self, number=signal.SIGINT):
        self.process.send_signal(number)
        self.process.communicate(timeout=LONG)
        return self.process.returncode


@pytest.fixture
def part(tmp_path):
    parts = []

    def start(*arguments, **options):
        parts.append(Part(tmp_path, *arguments, **options))
        return parts[-1]

    yield start
    for p in parts:
        if p.process.poll() is None:
            p.process.kill()
        p.process.communicate()


def port_of(line):
    return int(re.search(r"localhost:(\d+)/", line).group(1))


def test_threads_solve_catch_and_leave_a_policy(tmp_path):
    done = run(tmp_path, *CATCH, "--actors", 2, "--plot", "curve.svg")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.match(r"solved: the mean return of 50 fresh episodes is (1|0\.9)", done.stdout)
    assert done.stdout.endswith("runs/apex-dqn-catch-1\n")
    assert (tmp_path / "curve.svg").read_text().startswith("<svg")
    done = subprocess.run([REPRISE, "eval", "runs/apex-dqn-catch-1", "--json"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=LONG, env=clean_environment())
    assert json.loads(done.stdout)["mean_return"] > 0.7


@pytest.mark.parametrize("agent, how", [("dpg", []), ("dpg", ["--processes"]), ("sac", ["--learners", "2"])])
def test_continuous_actions_run_as_threads_and_as_processes(tmp_path, agent, how):
    done = subprocess.run([REPRISE, "train", f"apex-{agent}", "--env", "pendulum", "--actors", "2", "--copies", "4",
                           "--start", "100", "--batch", "16", "--threshold", "-3000", "--eval-episodes", "3",
                           "--confirm-episodes", "3", *how],
                          cwd=tmp_path, capture_output=True, text=True, timeout=LONG, env=clean_environment())
    assert done.returncode == 0, done
    assert "solved: the mean return of 3 fresh episodes is -" in done.stdout
    assert done.stdout.endswith(f"runs/apex-{agent}-pendulum-1\n")
    done = subprocess.run([REPRISE, "eval", f"runs/apex-{agent}-pendulum-1", "--episodes", "3", "--json"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=LONG, env=clean_environment())
    assert -2000 < json.loads(done.stdout)["mean_return"] < 0


def test_one_task_follows_another(tmp_path):
    done = run(tmp_path, *CATCH, "--actors", 2, "--then", "cartpole", "--steps", 1000)
    assert (done.returncode, done.stderr) == (0, "")
    assert "runs/apex-dqn-catch-1\n" in done.stdout
    assert done.stdout.endswith("runs/apex-dqn-cartpole-1\n")


def test_a_resumed_run_goes_on(tmp_path):
    line = ["--dir", "a", "--actors", 2, "--json"]
    first = json.loads(run(tmp_path, *CATCH, *line, "--keep-going", "--steps", 3000).stdout)
    again = json.loads(run(tmp_path, *line, "--resume", "--keep-going", "--steps", 4000).stdout)
    assert 4000 > first["steps"] >= 3000 and again["steps"] >= 4000
    for total in "updates", "episodes", "seconds":
        assert again[total] > first[total], (total, first, again)


def test_a_learner_that_waits_for_its_replay_has_no_loss(part):
    line = part("--env", "catch", "--role", "learner", "--replay", "127.0.0.1:1").until("waits")
    assert "0 updates, no loss yet, 0 items" in line and "127.0.0.1:1" in line


@pytest.mark.parametrize("role", ["actor", "evaluator"])
def test_a_part_that_waits_says_for_what_and_why(part, role):
    waits = part("--env", "catch", "--role", role, "--replay", "127.0.0.1:1")
    for _ in range(2):  # after 2 and 6 seconds
        line = waits.until("^reprise train: waiting for ")
        assert re.search(rf"waiting for [\d.]+ s: {role}( 0)? needs the replay: 127.0.0.1:1: .*refused", line), line
    replay = part("--env", "catch", "--role", "replay", "--serve", "localhost:0")
    address = f"localhost:{port_of(replay.until('look at'))}"
    line = part("--env", "catch", "--role", role, "--replay", address).until("^reprise train: waiting for ")
    assert re.search(rf"needs (the first )?parameters of the learner; the replay is {address}, and a --role learner", line)


def skip_the_wait(process):
    """Stops a training for a while. What it writes every 5 s is due when it goes on, without 5 s of training."""
    process.send_signal(signal.SIGSTOP)
    time.sleep(4.5)
    process.send_signal(signal.SIGCONT)


def rows_of(path):
    return [{k: row[k] for k in ("steps", "seconds", "episodes", "updates")} for row in csv.DictReader(path.open())]


def test_threads_that_were_killed_continue_with_their_snapshot_and_their_curve(tmp_path, part):
    killed = part(*CATCH, "--keep-going", "--dir", "a", "--actors", 2, one_core=True)
    curve, until = tmp_path / "a" / "progress.csv", time.monotonic() + LONG
    while not (curve.exists() and any(int(row["updates"] or 0) > 2000 for row in rows_of(curve))):
        assert killed.process.poll() is None and time.monotonic() < until
        time.sleep(0.05)
    skip_the_wait(killed.process)
    while '"snapshot"' not in (listed := reprise("data", "dump", tmp_path / "a" / "replay", "--items", 0, "--json").stdout):
        assert killed.process.poll() is None and time.monotonic() < until, listed
        time.sleep(0.1)
    killed.process.kill()
    killed.process.wait()
    before = rows_of(curve)
    done = run(tmp_path, "--dir", "a", "--resume", "--seconds", 1 if IS_SHORT else 3, "--keep-going", one_core=True)
    assert (done.returncode, done.stderr) == (0, "")
    after = rows_of(curve)
    same = [a for a, b in zip(after, before, strict=False) if a == b]
    assert same and after[:len(same)] == same
    steps = [int(row["steps"]) for row in after]
    assert len(after) > len(same) and steps == sorted(steps)
    for column in ("seconds", "episodes"):  # they go on from the last row that is kept
        values = [float(row[column]) for row in after]
        assert values == sorted(values) and values[-1] > values[len(same) - 1] > 0, column
    assert int(after[len(same)]["updates"]) >= 2000
    assert [p.name for p in (tmp_path / "a").glob("progress*")] == ["progress.csv"]
    [total, since] = map(int, re.findall(r"(\d+) steps and", done.stdout))
    assert 0 < since < total, done.stdout


def test_threads_whose_replay_cannot_be_saved_say_so(tmp_path, part):
    training = part(*CATCH, "--keep-going", "--dir", "a", "--actors", 2, "--quiet", one_core=True)
    manifests, until = tmp_path / "a" / "replay" / "manifest", time.monotonic() + LONG
    while not (manifests.exists() and list(manifests.iterdir())):
        assert training.process.poll() is None and time.monotonic() < until
        time.sleep(0.05)
    manifests.rename(tmp_path / "manifest")
    skip_the_wait(training.process)
    assert "a/replay: " in training.until("training goes on, and the replay keeps trying to save it")


def test_threads_without_a_snapshot_start_again_and_keep_the_curve(tmp_path):
    line = ["--dir", "a", "--keep-going", "--actors", 2]
    assert run(tmp_path, *CATCH, *line, "--steps", 1500).returncode == 0
    shutil.rmtree(tmp_path / "a" / "replay")
    curve = (tmp_path / "a" / "progress.csv").read_text()
    done = run(tmp_path, *line, "--resume")
    assert (done.returncode, done.stderr) == (
        0, "reprise train: a: no snapshot: starts again; progress-1.csv is the curve until now\n")
    assert (tmp_path / "a" / "progress-1.csv").read_text() == curve


@pytest.mark.parametrize("how", [[], ["--processes"]])
def test_a_resumed_run_keeps_its_steps_and_actors(tmp_path, how):
    line = ["--dir", "a", *how]
    assert run(tmp_path, *CATCH, *line, "--keep-going", "--actors", 2, "--steps", 1000).returncode == 0
    assert "\nsteps 1000\nactors 2\nkeep-going 1\n" in (tmp_path / "a" / "settings.txt").read_text()
    done = run(tmp_path, *line, "--resume")  # it ends by itself, since it has its steps
    assert done.returncode == 0 and "actor 2" not in done.stderr, done


@pytest.mark.parametrize("arguments, message", [
    ([], "--env is missing: for example --env cartpole"),
    (["--env", "catch", "--actors", "0"],
     "--actors: expected a whole number from 1 to 4096, or auto, got '0'"),
    (["--env", "catch", "--actors", "5000"], "--actors: expected a whole number from 1 to 4096, or auto, got '5000'"),
    (["--env", "catch", "--one-thread"], "--one-thread is an option of dqn, dpg and sac"),
    (["--env", "catch", "--processes", "--then", "cartpole"],
     "--processes does not go with --then"),
    (["--env", "catch", "--stay"], "--stay needs --serve ADDR"),
    (["--env", "catch", "--role", "critic"],
     "--role: expected actor, evaluator, learner or replay, got 'critic'"),
    (["--env", "catch", "--role", "actor"], "--role actor needs --replay ADDR"),
    (["--env", "catch", "--role", "replay"], "--role replay needs --serve ADDR"),
    (["--env", "catch", "--role", "actor", "--index", "3", "--of", "3", "--replay", "localhost:1"],
     "--index: there are 3 actors, from 0"),
    (["--env", "catch", "--role", "learner", "--index", "1", "--replay", "localhost:1"],
     "--index: there is one learner, which takes no index: leave it out"),
    (["--env", "catch", "--role", "evaluator", "--index", "9", "--replay", "localhost:1"],
     "--index: there is one evaluator, which takes no index: leave it out"),
    (["--env", "catch", "--replay", "localhost:1"], "--replay needs --role ROLE"),
    (["--env", "catch", "--processes", "--replay", "localhost:1"], "--replay needs --role ROLE"),
    (["--env", "catch", "--index", "0"], "--index needs --role ROLE"),
    (["--env", "catch", "--of", "3"], "--of needs --role ROLE"),
    (["--env", "catch", "--report-name", "n"], "--report-name needs --report ADDR"),
    (["--env", "catch", "--report-ca", "ca.pem"], "--report-ca needs --report ADDR"),
    (["--env", "catch", "--token", "t"],
     "unknown option --token: set the environment variable REPRISE_TOKEN to the token for --replay and --report"),
    (["--env", "catch", "--token-file=t"],
     "unknown option --token-file: set the environment variable REPRISE_TOKEN to the token for --replay and --report"),
    (["--env", "catch", "--ca", "t"], "unknown option --ca, did you mean --report-ca?"),
])
def test_misuse_is_named(tmp_path, arguments, message):
    done = run(tmp_path, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"reprise train: {message}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("role", ["learner", "actor", "evaluator"])
def test_a_part_that_never_reached_its_replay_fails(tmp_path, role):
    done = run(tmp_path, "--env", "catch", "--role", role, "--replay", "localhost:1", "--seconds", 1, "--quiet")
    assert done.returncode == 1
    assert re.fullmatch(rf"reprise train: {role}: the replay was not reached in \d s: localhost:1: .*refused.*\n", done.stderr)


def test_options_of_apex_are_no_options_of_dqn(tmp_path):
    done = subprocess.run([REPRISE, "train", "dqn", "--env", "catch", "--actors", "2"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=LONG, env=clean_environment())
    assert (done.returncode, done.stderr) == (
        2, "reprise train: --actors is an option of apex-dqn, apex-dpg and apex-sac\n")


def test_an_address_in_use_is_named(tmp_path, part):
    first = part(*CATCH, "--role", "replay", "--serve", "localhost:0")
    port = port_of(first.until("look at"))
    done = run(tmp_path, *CATCH, "--serve", f"localhost:{port}")
    assert done.returncode == 1
    assert f"localhost:{port}" in done.stderr and done.stderr.count("\n") == 1
    for more in (["--seconds", 3], ["--shards", 2]):  # processes: at once, not after some attempts
        done = run(tmp_path, *CATCH, "--actors", 1, "--processes", "--serve", f"localhost:{port}", "--dir", "p", *more)
        assert (done.returncode, done.stdout) == (1, ""), done
        assert f"address 'localhost:{port}' is in use\n" in done.stderr and "again in" not in done.stderr, done
        assert re.search(r"^reprise train: replay( 0)? cannot begin$", done.stderr, re.MULTILINE), done
        assert not (tmp_path / "p").exists()
    done = run(tmp_path, *CATCH, "--role", "replay", "--serve", f"localhost:{port}")
    assert (done.returncode, done.stderr) == (1, f"reprise train: address 'localhost:{port}' is in use\n")
    assert first.end() == 0


def test_a_signal_stops_threads_and_saves(tmp_path, part):
    p = part("--env", "cartpole", "--actors", 3, "--keep-going", "--dir", "a", "--serve",
             "localhost:0")
    p.until("look at")
    assert p.end(signal.SIGTERM) == 128 + signal.SIGTERM
    assert run(tmp_path, "--dir", "a", "--resume", "--steps", 2000, "--keep-going").returncode == 0


def test_roles_start_in_any_order_and_outlive_the_replay(tmp_path, part):
    replay = part(*CATCH, "--role", "replay", "--serve", "localhost:0", "--dir", "r")
    address = f"localhost:{port_of(replay.until('look at'))}"
    replay.end(signal.SIGKILL)
    task = [*EASY, "--threshold", "-0.9"] if IS_SHORT else CATCH
    roles = [part(*task, "--role", "evaluator", "--replay", address),
             part(*task, "--role", "actor", "--index", 1, "--of", 2, "--replay", address),
             part(*task, "--role", "learner", "--of", 2, "--replay", address)]
    for p in roles:  # there is no replay yet
        p.until("waits .*for the replay")
    replay = part(*task, "--role", "replay", "--serve", address, "--dir", "r")
    roles[0].until("solved: the mean return of 50 fresh episodes")
    assert roles[0].process.wait(LONG) == 0
    assert [p.end() for p in roles[1:]] == [130, 130]
    assert replay.end() == 0


def published(port):
    """How often parameters were published."""
    done = reprise("info", "variables", "--json", "--server", f"localhost:{port}")
    return json.loads(done.stdout)[0]["inserts"] if done.returncode == 0 else 0


def test_a_lost_shard_does_not_end_the_training(part):
    shards = [part(*CATCH, "--role", "replay", "--serve", "localhost:0") for _ in range(2)]
    ports = [port_of(p.until("look at")) for p in shards]
    line = [*CATCH, "--of", 2, "--replay", ",".join(f"localhost:{port}" for port in ports)]
    parts = [part(*line, "--role", "learner"),
             *(part(*line, "--role", "actor", "--index", i) for i in range(2))]
    deadline = time.monotonic() + LONG
    for shard in (None, shards[1]):
        if shard is not None:
            shard.end(signal.SIGKILL)
        first = published(ports[0])
        while published(ports[0]) < first + 4:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert [p.end() for p in (*parts, shards[0])] == [130, 130, 130, 0]


def test_processes_survive_kills(tmp_path):
    kills = 1 if IS_SHORT else 3
    task = {"task": "catch", "threshold": 0} if IS_SHORT else {"task": "cartpole"}  # who guesses has -0.6
    killed = kill_parts(REPRISE, tmp_path, kills=kills, seed=39, actors=2, **task)
    assert len(killed) == kills and killed[0] == "learner"  # then an actor and the replay, most of the time


def test_no_process_outlives_the_supervisor(part):
    p = part("--env", "cartpole", "--actors", 2, "--processes", "--keep-going", "--dir", "a")
    deadline = time.monotonic() + LONG
    pids = []
    while len(pids) < 5 and time.monotonic() < deadline:
        pids = list(children(p.process.pid))
        time.sleep(0.02)
    p.process.kill()
    p.process.wait()
    while any(is_alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(is_alive(pid) for pid in pids)
