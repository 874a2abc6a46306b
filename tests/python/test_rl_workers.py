# SPDX-License-Identifier: Apache-2.0
"""reprise.rl with environments in processes of their own."""

import functools
import gc
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("reprise._rl", reason="built with -Drl=disabled")

from reprise.rl import DQN  # noqa: E402
from rl_envs import Broken, Corridor, Pictures  # noqa: E402

SMALL = dict(start=64, capacity=2000, hidden=16, layers=1, copies=4, n_step=2, seed=1)


def processes(agent):
    return [worker.process for worker in agent._group._workers]


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0] != "Z"


@pytest.mark.parametrize("env, workers", [(Corridor, 1), (Corridor, 2), (Corridor, 3),
                                          (Corridor, 9), (Pictures, 2)])
def test_workers_change_nothing(env, workers):
    # Convolutions take most of the time, and learning starts after 64 steps.
    steps = 80 if env is Pictures and os.environ.get("RP_SHORT") else 300
    here = DQN(env, **SMALL).learn(steps)._agent.parameters()
    agent = DQN(env, workers=workers, **SMALL).learn(steps)
    assert agent._agent.parameters() == here
    assert len(processes(agent)) == min(workers, 4)
    pids = [process.pid for process in processes(agent)]
    agent.close()
    assert not any(is_alive(pid) for pid in pids)


@pytest.mark.parametrize("how, text", [
    ("kill", r"worker [12] of 2, which steps copies [02] to [13], has ended: signal 9"),
    ("exit", r"worker [12] of 2, which steps copies [02] to [13], has ended: exit status 3"),
    ("raise", r"copy [0-3]: step\(\) raised ZeroDivisionError: a planted error"),
    ("nan", "element 2 of the observation is nan"),
    ("shape", r"copy [0-3]: step\(\) returned an observation of shape")])
def test_a_worker_that_breaks_is_a_sentence(how, text):
    agent = DQN(functools.partial(Broken, how), workers=2, **SMALL)
    with pytest.raises(RuntimeError, match=text):
        agent.learn(2000)
    assert agent.learn(50).num_timesteps == 52, "new workers go on"
    assert agent.predict(np.zeros(5))[0] in (0, 1)
    agent.close()


def test_a_worker_that_was_killed_between_steps():
    agent = DQN(Corridor, workers=2, **SMALL).learn(50)
    os.kill(processes(agent)[1].pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="worker 2 of 2, which steps copies 2 to 3"):
        agent.learn(50)
    assert agent.learn(50).num_timesteps == 52
    agent.close()


def test_workers_end_with_the_agent():
    agent = DQN(Corridor, workers=2, **SMALL).learn(50)
    pids = [process.pid for process in processes(agent)]
    del agent
    gc.collect()
    assert not any(is_alive(pid) for pid in pids)


SCRIPT = """
import os, sys, time
sys.path.insert(0, {tests!r})
from reprise.rl import DQN
from rl_envs import Corridor
agent = DQN(Corridor, workers=2, start=64, copies=4, seed=1)
def callback(values, _):
    if values["num_timesteps"] == 40:
        print(*(w.process.pid for w in agent._group._workers), flush=True)
try:
    agent.learn(10**9, callback=callback)
except KeyboardInterrupt:
    steps = agent.num_timesteps
    agent.learn(40, reset_num_timesteps=False)
    print("usable", agent.num_timesteps - steps, flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_workers_do_not_outlive_their_parent(number):
    """Ctrl-C goes to the whole group of processes, as a terminal sends it."""
    script = SCRIPT.format(tests=os.path.dirname(__file__))
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True,
                             start_new_session=True)
    pids = [int(pid) for pid in child.stdout.readline().split()]
    assert len(pids) == 2
    if number == signal.SIGINT:
        os.killpg(child.pid, number)
    else:
        child.kill()
    said, _ = child.communicate(timeout=120)
    if number == signal.SIGINT:
        assert said == "usable 40\n" and child.returncode == 0
    until = time.monotonic() + 30
    while any(is_alive(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(is_alive(pid) for pid in pids)
