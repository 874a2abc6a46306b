# SPDX-License-Identifier: Apache-2.0
"""reprise.rl: learning, predicting, files, callbacks, and what is refused."""

import inspect
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import reprise

pytest.importorskip("reprise._rl", reason="built with -Drl=disabled")

from reprise import _rl, rl  # noqa: E402
from reprise.rl import DQN, evaluate_policy  # noqa: E402
from rl_envs import Box, Broken, Corridor, Dict, Discrete, Numbered, Pictures  # noqa: E402

SMALL = dict(start=64, capacity=2000, hidden=16, layers=1, copies=4, n_step=2, steps_per_update=2)


def agent(env=Corridor, **settings):
    return DQN(env, **{"seed": 1, **SMALL, **settings})


def one(env, **settings):
    """An agent of an environment that is given as an object."""
    return agent(env, **{**settings, "copies": 1})


def test_learns():
    learned = agent().learn(2000)
    assert learned.num_timesteps == 2000 and learned.metrics()["train/n_updates"] > 500
    mean, deviation = evaluate_policy(learned, Corridor, 20)
    assert mean == pytest.approx(0.97) and deviation == pytest.approx(0)


@pytest.mark.parametrize("env", [Pictures, Numbered], ids=["images", "discrete observations"])
def test_learns_from_other_observations(env):
    # Convolutions take most of the time, and learning starts after 50 steps.
    steps = 80 if env is Pictures and os.environ.get("RP_SHORT") else 200
    learned = agent(env, start=50, hidden=8).learn(steps)
    assert learned.metrics()["train/n_updates"] > 0
    made = env()
    single, nothing = learned.predict(made.reset()[0])
    batch, _ = learned.predict(np.stack([made.reset()[0], made.step(1)[0]]))
    assert nothing is None and batch.shape == (2,) and batch[0] == single
    assert len(evaluate_policy(learned, env, 3, return_episode_rewards=True)[0]) == 3


def test_same_seed_same_parameters():
    params = [agent(seed=s).learn(400)._agent.parameters() for s in (1, 1, 2)]
    assert params[0] == params[1] != params[2]


def test_two_calls_are_one_long_call():
    parts = agent().learn(200)
    parts.learn(200, reset_num_timesteps=False)
    assert parts.num_timesteps == 400
    assert parts._agent.parameters() == agent().learn(400)._agent.parameters()


def test_equals_the_command(tmp_path):
    """Through Gymnasium's CartPole it learns what `reprise train` learns in ours, bit by bit."""
    pytest.importorskip("gymnasium")
    learned = DQN("CartPole-v1", seed=5).learn(2400)
    learned.save(tmp_path / "ours")
    done = subprocess.run([sys.executable, "-m", "reprise", "train", "dqn", "--env", "cartpole",
                           "--steps", "2400", "--seed", "5", "--one-thread", "--keep-going",
                           "--quiet", "--dir", tmp_path / "run"], capture_output=True, timeout=100)
    assert done.returncode in (0, 1), done.stderr
    files = [(tmp_path / "run" / "policy.safetensors").read_bytes(),
             (tmp_path / "ours.safetensors").read_bytes()]
    data = [file[8 + int.from_bytes(file[:8], "little"):] for file in files]
    assert data[0] == data[1]


def test_an_environment_a_name_a_callable():
    gymnasium = pytest.importorskip("gymnasium")
    for env in ("CartPole-v1", lambda: gymnasium.make("CartPole-v1")):
        assert DQN(env, **SMALL).learn(100).num_timesteps == 100
    made = gymnasium.make("CartPole-v1")
    single = DQN(made, start=64)
    assert single.settings["copies"] == 1 and single.get_env() is made
    assert single.learn(100).num_timesteps == 100


def test_gymnasium_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ImportError, match="pip install gymnasium"):
        DQN("CartPole-v1")


def test_a_build_without_rl_says_so(monkeypatch):
    script = ("import sys, importlib.abc\n"
              "class No(importlib.abc.MetaPathFinder):\n"
              "    def find_spec(self, name, path, target=None):\n"
              "        if name == 'reprise._rl':\n"
              "            raise ModuleNotFoundError('no', name=name)\n"
              "import reprise\n"
              "sys.meta_path.insert(0, No())\n"
              "try:\n"
              "    import reprise.rl\n"
              "except ImportError as error:\n"
              "    print(error)\n")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          timeout=120)
    assert "-Drl=disabled" in done.stdout, done.stderr


def test_first_action():
    shifted = agent(lambda: Corridor(first_action=3)).learn(100)
    assert shifted.predict(Corridor().reset()[0])[0] in (3, 4)
    assert evaluate_policy(shifted, lambda: Corridor(first_action=3), 2)[0] < 2


def test_predict():
    new = agent()
    rows = np.random.default_rng(0).random((300, 5))
    actions, nothing = new.predict(rows)
    assert nothing is None and actions.dtype == np.int64
    assert [new.predict(row)[0] for row in rows[:20]] == list(actions[:20])
    explored = agent(ladder=False).predict(rows, deterministic=False)[0]
    assert set(explored) == {0, 1}
    for wrong in (np.zeros(4), np.zeros((2, 4)), np.zeros((1, 2, 5))):
        with pytest.raises(ValueError, match=r"expected one observation of shape \(5,\)"):
            new.predict(wrong)


def test_settings_of_the_docstring():
    """The docstring lists every setting with its default and its line."""
    text = inspect.getdoc(DQN)
    for name, _, default, _, _, about in _rl.dqn_settings():
        line = next(x for x in text.splitlines() if x.strip().startswith(f"{name}={default!r} "))
        assert about in line
    assert set(agent().settings) == {row[0] for row in _rl.dqn_settings()}


@pytest.mark.parametrize("settings, text", [
    (dict(learning_rate=1), "did you mean 'rate'"), (dict(hiden=1), "did you mean 'hidden'"),
    (dict(wings=1), "no setting 'wings'$"), (dict(rate="fast"), "rate must be a number"),
    (dict(hidden=0), "hidden must be an integer from 1"), (dict(batch=1.5), "batch must be an int"),
    (dict(discount=float("nan")), "discount must be a number from 0 to 1"),
    (dict(start=3000), "start must be <= capacity"), (dict(seed=-1), "seed must be"),
    (dict(workers=-1), "workers must be")])
def test_settings_that_are_refused(settings, text):
    with pytest.raises((TypeError, ValueError), match=text):
        agent(**settings)


class Vector(Corridor):
    num_envs, single_action_space = 2, None


@pytest.mark.parametrize("change, text", [
    (dict(action_space=Box((2,))), r"needs a Discrete action space, not Box\(2,\)"),
    (dict(observation_space=Dict()), r"not Dict\(\)"),
    (dict(observation_space=Box((2,), object)), "Box of numbers")])
def test_spaces_that_are_refused(change, text):
    env = Corridor()
    vars(env).update(change)
    with pytest.raises(ValueError, match=text):
        one(env)


@pytest.mark.parametrize("env, text", [
    (3, "the name of an environment"), ("MlpPolicy", "first argument is the environment"),
    (Vector(), "instead of a vector environment"), (lambda: 3, "has no reset")])
def test_environments_that_are_refused(env, text):
    with pytest.raises(TypeError, match=text):
        DQN(env)
    assert Discrete(2).n == 2


def test_one_environment_has_no_copies():
    with pytest.raises(ValueError, match="one environment, 'Corridor', for 4 copies"):
        DQN(Corridor(), copies=4)
    with pytest.raises(ValueError, match="pass a name or a callable"):
        DQN(Corridor(), workers=2)


@pytest.mark.parametrize("how, text", [
    ("raise", r"copy 0: step\(\) raised ZeroDivisionError: a planted error"),
    ("nan", "element 2 of the observation is nan"),
    ("shape", r"observation of shape \(1,\), not \(5,\)"),
    ("dtype", "observation of dtype <U"), ("reward", "the reward is inf"),
    ("words", "the reward 'much'"), ("four", "no 5 values")])
def test_environments_that_break(how, text):
    """A sentence names what is wrong, and the agent goes on when the environment does."""
    learner = one(Broken(how))
    with pytest.raises(RuntimeError, match=f"environment 'Broken', copy 0.*{text}" if
                       not text.startswith("copy") else text):
        learner.learn(200)
    assert learner.num_timesteps == 29
    assert learner.learn(100).num_timesteps == 100
    assert learner.predict(np.zeros(5))[0] in (0, 1)


def test_a_run_that_diverges_says_so():
    with pytest.raises(reprise.errors.StatusError, match="has diverged.*rate of 1e.09") as caught:
        agent(rate=1e9, max_norm=0).learn(5000)
    assert caught.value.code == "FAILED_PRECONDITION"


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals")
def test_ctrl_c_stops_and_leaves_a_usable_agent(tmp_path):
    learner = one(Broken("interrupt"))
    with pytest.raises(KeyboardInterrupt):
        learner.learn(10_000)
    assert learner.num_timesteps == 30, "the step in progress is finished"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    learner.save(tmp_path / "agent")
    assert learner.learn(50, reset_num_timesteps=False).num_timesteps == 80


def test_save_and_load(tmp_path):
    learner = agent().learn(500)
    learner.save(tmp_path / "agent")
    again = DQN.load(tmp_path / "agent", env=Corridor)
    rows = np.random.default_rng(0).random((50, 5))
    assert (again.predict(rows)[0] == learner.predict(rows)[0]).all()
    assert again.settings == learner.settings
    again.learn(200)
    alone = DQN.load(tmp_path / "agent.safetensors", rate=0.5)
    assert alone.settings["rate"] == 0.5 and alone.get_env() is None
    assert (alone.predict(rows)[0] == learner.predict(rows)[0]).all()
    with pytest.raises(ValueError, match="no environment"):
        alone.learn(10)
    alone.set_env(Corridor)
    assert alone.learn(100).num_timesteps == 100
    assert os.listdir(tmp_path) == ["agent.safetensors"]


def test_files_that_are_refused(tmp_path):
    path = tmp_path / "x.safetensors"
    with pytest.raises(FileNotFoundError):
        DQN.load(path)
    for content, text in ((b"", "not a safetensors file"), (b"PK" * 50, "not a safetensors file"),
                          (b"\2" + b"\0" * 7 + b"{]", "header is not JSON"),
                          (b"\2" + b"\0" * 7 + b"{}", r"DQN.save\(\) did not write it")):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=text):
            DQN.load(path)
    agent().save(path)
    content = path.read_bytes()
    path.write_bytes(content[:-4])
    with pytest.raises(reprise.errors.StatusError, match="x.safetensors|data"):
        DQN.load(path)
    path.write_bytes(content.replace(b'"dqn.hidden": "16.0"', b'"dqn.hidden": "much"'))
    with pytest.raises(ValueError, match="settings of the agent are damaged"):
        DQN.load(path)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"observations .*shape \(7,\); the agent has"):
        DQN.load(path, env=lambda: Corridor(7))
    with pytest.raises(reprise.errors.StatusError, match="no-such-folder"):
        agent().save(tmp_path / "no-such-folder" / "x")


def test_the_file_is_safetensors(tmp_path):
    agent().save(tmp_path / "x")
    content = (tmp_path / "x.safetensors").read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + size])
    assert size % 8 == 0 and header.pop("__metadata__")["reprise.agent"] == "dqn"
    assert sum(end - start for start, end in (t["data_offsets"] for t in header.values())) == len(
        content) - 8 - size


def test_set_env():
    learner = one(Corridor()).learn(105)
    before = learner._agent.metrics()["item_size"]
    second = Corridor()
    learner.set_env(second)
    learner.learn(50)
    assert second.seeds[0] is not None and learner.get_env() is second
    assert learner._agent.metrics()["item_size"] > before, "the replay is kept"
    assert not second.closed, "the user's environment is his"
    with pytest.raises(ValueError, match="actions from 1 on"):
        learner.set_env(Corridor(first_action=1))


def test_copies_are_closed():
    made = []

    def make():
        made.append(Corridor())
        return made[-1]
    learner = agent(make).learn(50)
    learner.close()
    assert len(made) == 4 and all(env.closed for env in made)


def test_callbacks():
    seen = []

    def function(values, _):
        seen.append((values["self"].num_timesteps, values["num_timesteps"], len(values["dones"])))
        return len(seen) < 5
    assert agent().learn(1000, callback=function).num_timesteps == 20
    assert seen == [(4 * i, 4 * i, 4) for i in range(1, 6)]

    class Object:
        calls = []

        def init_callback(self, model):
            self.calls.append(model)

        def on_training_start(self, values, _):
            self.calls.append("start")

        def on_step(self):
            self.calls.append("step")
            return True

        def on_training_end(self):
            self.calls.append("end")
    learner = agent()
    learner.learn(8, callback=[Object(), lambda a, b: None])
    assert Object.calls == [learner, "start", "step", "step", "end"]
    with pytest.raises(TypeError, match="callback must be"):
        learner.learn(8, callback=3)
    with pytest.raises(ValueError, match="total_timesteps"):
        learner.learn(-1)


def test_what_is_printed(capsys):
    agent(verbose=1).learn(400, log_interval=8, progress_bar=True)
    said = capsys.readouterr()
    assert "rollout/ep_rew_mean" in said.out and "train/loss" in said.out
    assert "400 of 400 steps" in said.err and said.err.endswith("\n")
    agent().learn(100)
    said = capsys.readouterr()
    assert said.out == said.err == ""


def test_threads_may_predict_while_one_learns():
    learner, rows = agent(), np.random.default_rng(0).random((64, 5))
    done = threading.Event()

    def predict():
        while not done.is_set():
            learner.predict(rows)
    threads = [threading.Thread(target=predict) for _ in range(2)]
    for thread in threads:
        thread.start()
    learner.learn(400)
    done.set()
    for thread in threads:
        thread.join()
    assert learner._agent.parameters() == agent().learn(400)._agent.parameters()


def test_the_extension_refuses_wrong_arrays():
    inner = _rl.Dqn({"copies": 2, "start": 10}, name="x", shape=(3,), pixels=False, actions=2,
                    seed=0)
    rows, actions = np.zeros((2, 3), np.float32), np.zeros(2, np.int32)
    flags = np.zeros(2, bool)
    with pytest.raises(ValueError, match="expected an array of 24 bytes, got 48"):
        inner.begin(rows.astype(np.float64))
    with pytest.raises((ValueError, BufferError)):
        inner.act(rows, actions.view().__class__(0, np.int32))
    with pytest.raises(reprise.errors.StatusError, match=r"begin\(\) comes before"):
        inner.step(rows, actions, rows, rows, np.zeros(2), flags, flags)
    inner.begin(rows)
    inner.begin(rows)
    with pytest.raises(ValueError, match="action is out of range"):
        inner.step(rows, actions + 2, rows, rows, np.zeros(2), flags, flags)
    inner.step(rows, actions, rows, rows, np.zeros(2), flags, flags)
    for wrong in (dict(shape=(0,)), dict(shape=(1,) * 40), dict(actions=0), dict(shape="3")):
        given = dict(name="x", shape=(3,), pixels=False, actions=2, seed=0)
        with pytest.raises((TypeError, ValueError)):
            _rl.Dqn({}, **{**given, **wrong})


def test_the_python_of_the_page(tmp_path):
    pytest.importorskip("gymnasium")
    page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "rl.md"
    program = "".join(part.split("```")[0] for part in page.read_text().split("```python slow\n")[1:])
    assert "50_000" in program
    program = program.replace("50_000", "200").replace("n_eval_episodes=100", "n_eval_episodes=2")
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True,
                          text=True, timeout=100)
    assert done.returncode == 0, done.stderr


def test_the_example(tmp_path):
    pytest.importorskip("gymnasium")
    example = pathlib.Path(__file__).resolve().parents[2] / "examples" / "dqn_lunar_lander.py"
    done = subprocess.run([sys.executable, example, "--env", "CartPole-v1", "--steps", "320",
                           "--every", "160", "--workers", "2", "--threshold", "1"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "300 other episodes" in done.stdout and "solved after 160 steps" in done.stdout
    assert DQN.load(tmp_path / "lunar_lander").settings["copies"] == 16


def test_stubs():
    import ast

    from test_stubs import members, of_object, of_stub, public
    stubs = ast.parse((pathlib.Path(rl.__file__).parents[1] / "_rl.pyi").read_text())
    [node] = [n for n in stubs.body if isinstance(n, ast.ClassDef)]
    methods = members(node)
    assert public(methods) == public(n for n in vars(_rl.Dqn))
    for name in public(methods):
        assert of_object(vars(_rl.Dqn)[name]) == of_stub(methods[name], True), name
    assert of_object(_rl.Dqn) == of_stub(methods["__init__"], True)
