# SPDX-License-Identifier: Apache-2.0
"""`reprise.ray` on a real Ray cluster of three nodes, which are processes of this host.

`make test-ray` makes the environment with Ray, and runs this file in it.
"""

import os
import pathlib
import re
import signal
import time

import pytest
import reprise

# Ray's own patience, on a busy machine. A raylet whose agents take longer than 15 s to start ends itself,
# and nothing can be set about that: such a node is added again.
os.environ.setdefault("RAY_raylet_start_wait_time_s", "90")
STARTS = 10
ray = pytest.importorskip("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")

PATIENCE = 900  # seconds for anything, on a busy machine
CATCH = {"hidden": 32, "start": 200, "threshold": 0.9, "confirm_episodes": 50, "seed": 3}
# What only some nodes have decides where the parts are.
AT_HEAD, ELSEWHERE = {"resources": {"head": 0.01}}, {"resources": {"others": 0.01}}


def again(start):
    """Calls start() until a node has started."""
    for attempt in range(STARTS):
        try:
            return start()
        except Exception as reason:  # Ray raises several kinds
            print(f"start {attempt + 1}: {reason}", flush=True)
            if attempt + 1 == STARTS:
                raise
    return None


@pytest.fixture(scope="module")
def cluster():
    made = again(lambda: cluster_utils.Cluster(
        initialize_head=True, connect=True,
        head_node_args={"num_cpus": 4, "resources": {"head": 1}, "include_dashboard": False}))
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture
def nodes(cluster):
    """Two more nodes, for one test."""
    made = [again(lambda: cluster.add_node(num_cpus=4, resources={"others": 1})) for _ in range(2)]
    cluster.wait_for_nodes()
    yield made
    for node in made:
        if node in cluster.worker_nodes:
            cluster.remove_node(node)


class Lines(list):
    """The log of a run."""

    def __call__(self, name, text):
        self.append((name, text))
        print(name, text, flush=True)

    def until(self, name, pattern):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = [t for n, t in list(self) if n.startswith(name) and re.search(pattern, t)]
            if found:
                return found[-1]
            time.sleep(0.1)
        raise AssertionError(f"{name}: no line with {pattern!r} in {self}")


def processes_with(argument):
    """The ids of the processes that have an argument that begins so."""
    found = []
    for line in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"\0{argument}".encode() in line.read_bytes():
                found.append(int(line.parent.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def test_a_program_goes_on_when_a_node_is_killed(cluster, nodes, tmp_path):
    log = Lines()
    program = reprise.ray.Program(
        "catch", actors=4, options={**CATCH, "threshold": 2, "keep_going": True},
        resources={"replay": AT_HEAD, "learner": AT_HEAD, "evaluator": AT_HEAD, "actor": ELSEWHERE},
        data=str(tmp_path))
    with reprise.ray.launch(program, log=log) as run:
        address = run.address
        log.until("learner", r"[1-9]\d* updates")
        cluster.remove_node(nodes[0], allow_graceful=False)  # kills its raylet and its workers
        log.until("actor", "was started again by Ray")
        moved = [name for name, state in run.status().items() if state["moves"]]
        assert moved and all(name.startswith("actor") for name in moved)
        assert run.address == address
        log.clear()
        log.until(moved[0], r"[1-9]\d* steps")  # it acts again, elsewhere
    assert not processes_with(f"--replay={address}")


def test_the_program_ends_solved_though_the_node_of_the_replay_is_killed(cluster, nodes, tmp_path):
    log = Lines()
    program = reprise.ray.Program(
        "cartpole", actors=2, options={"seed": 3, "confirm_episodes": 50},
        resources={"replay": ELSEWHERE, "learner": AT_HEAD, "evaluator": AT_HEAD, "actor": AT_HEAD},
        data=str(tmp_path))
    with reprise.ray.launch(program, log=log) as run:
        [server] = [p for p in run._parts if p.role == "replay"]
        home = ray.get(server.actor.__ray_call__.remote(lambda _: ray.get_runtime_context().get_node_id()))
        [node] = [n for n in nodes if n.node_id == home]
        log.until("replay", "event=serving")  # the training is over in seconds: there is no time to lose
        cluster.remove_node(node, allow_graceful=False)
        assert not run.wait(0)  # it is in the middle
        log.until("replay", "was started again by Ray")
        assert run.wait(PATIENCE)
        assert run.policy
        assert run.status()["evaluator"]["status"] == 0
    log.until("evaluator", "solved: the mean return of 50 fresh episodes")
    assert not processes_with(f"--data={tmp_path}")


def test_a_process_that_is_killed_is_restarted(cluster):
    log = Lines()
    program = reprise.ray.Program("catch", actors=2, options={**CATCH, "keep_going": True},
                                  resources={"replay": AT_HEAD})
    with reprise.ray.launch(program, log=log) as run:
        log.until("actor 1", r"[1-9]\d* steps")
        for pid in processes_with(f"--replay={run.address}"):
            os.kill(pid, signal.SIGKILL)
        for name in ("learner", "evaluator", "actor 0", "actor 1"):
            log.until(name, "ended with status -9: again in 0.1 s")
        assert not run.wait(0.01)
        address = run.address
    assert not processes_with(f"--replay={address}")


def test_misuse_ends_the_program(cluster):
    log = Lines()
    program = reprise.ray.Program("catch", actors=1, options={"hidden": -1})
    with reprise.ray.launch(program, log=log) as run:
        with pytest.raises(RuntimeError, match="failed with status 2"):
            run.wait(PATIENCE)
    assert any("--hidden" in text for _, text in log)


@pytest.mark.parametrize("arguments, message", [
    ({"actors": 0}, "actors and shards must be >= 1, got 0 and 1"),
    ({"resources": {"worker": {}}}, "there is no role 'worker'"),
])
def test_a_wrong_program_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        reprise.ray.Program("catch", **arguments)


def test_a_program_is_read_from_a_file(tmp_path):
    file = tmp_path / "program.yaml"
    file.write_text("agent: apex-dqn\nenv: catch\nseed: 7\nreplay: {addresses: [a:1, b:2]}\nlearner: {steps: 1_000}\n"
                    "actors: {count: 3}\nevaluator: {episodes: 4, threshold: 0.5, keep_going: true}\n"
                    "settings: {n_step: 2, dueling: false}\n")
    program = reprise.ray.Program.read(file, actors=5, options={"hidden": 16})
    assert (program.env, program.agent, program.actors, program.shards) == ("catch", "apex-dqn", 5, 2)
    line = program.arguments()
    for argument in ("--seed=7", "--steps=1000", "--eval-episodes=4", "--threshold=0.5", "--keep-going=true",
                     "--n-step=2", "--dueling=false", "--hidden=16", "--batch=32", "--of=5"):
        assert argument in line
    assert len(line) == len(set(a.partition("=")[0] for a in line))
    file.write_text("agent: apex-dqn\nenv: catch\nactors: {count: 0}\n")
    with pytest.raises(ValueError, match="program.yaml:3:17: actors.count: expected a whole number from 1 to 4096"):
        reprise.ray.Program.read(file)
