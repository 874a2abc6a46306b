# SPDX-License-Identifier: Apache-2.0
"""The package: its names, its imports, and its command."""

import ast
import os
import pathlib
import subprocess
import sys

import pytest
import reprise


def python(script, **env):
    """Runs a script in a new interpreter. Returns its output."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          timeout=120, env={**os.environ, **env})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", sorted(reprise.__all__))
def test_every_public_name_exists(name):
    if name == "TFClient":
        pytest.importorskip("tensorflow")
    assert getattr(reprise, name) is not None
    assert name in dir(reprise)


def test_no_other_name():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        reprise.nothing
    with pytest.raises(ImportError):
        from reprise import nothing  # noqa: F401


REVERB = """Client DeadlineExceededError PatternDataset ReplaySample ReverbError SampleInfo Server
    TFClient Table TimestepDataset TrajectoryColumn TrajectoryDataset TrajectoryWriter Writer
    checkpointers errors item_selectors rate_limiters replay_sample reverb_types selectors
    structured structured_writer pybind""".split()


def test_names_of_reverb():
    assert set(REVERB) <= set(reprise.__all__)


def test_modules_of_reverb_need_no_import():
    names = ["cc", "pattern_dataset", "tf_client", "timestep_dataset", "trajectory_dataset"]
    for name in names:
        assert name in dir(reprise)
    said = python("import reprise; print(*(m.__name__ for m in ("
                  + ", ".join(f"reprise.{name}" for name in names) + ")))")
    assert said.split() == [f"reprise.{name}" for name in names]


def test_importing_imports_little():
    """Counts imported modules, as a measure of the time that the import takes."""
    if "_reprise_editable_loader" in sys.modules:
        pytest.skip("an editable install checks whether it has to be built again")
    script = ("import numpy, sys; before = set(sys.modules); import reprise; "
              "print(*sys.modules); print(*set(sys.modules) - before)")
    all_modules, new = (set(line.split()) for line in python(script).splitlines())
    assert not all_modules & {"tensorflow", "torch", "jax", "asyncio", "multiprocessing", "tree",
                              "logging", "importlib.abc", "gymnasium", "dm_env"}
    ours = {name for name in new if name.partition(".")[0] == "reprise"}
    assert len(ours) <= 40 and len(new - ours) <= 20, sorted(new)


def test_signatures_do_not_import_tensorflow(tmp_path):
    (tmp_path / "tensorflow.py").write_text("raise RuntimeError('it was imported')\n")
    script = """
import sys
import reprise
from reprise import structured
spec = {"x": reprise.TensorSpec((), int)}
table = reprise.Table.queue("queue", 10, signature=spec)
server = reprise.Server([table])
pattern = structured.pattern_from_transform(spec, lambda step: {"x": step["x"][-1]})
made = structured.infer_signature([structured.create_config(pattern, "queue")], spec)
print(table.info.signature, server.localhost_client().server_info()["queue"].signature, made)
assert "tensorflow" not in sys.modules
"""
    said = python(script, PYTHONPATH=os.pathsep.join(
        [str(tmp_path)] + os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    assert said == ("{'x': TensorSpec((), int64)} {'x': TensorSpec((), int64)} "
                    "{'x': TensorSpec((), int64, 'x')}\n")


def test_version():
    from importlib.metadata import PackageNotFoundError, version
    try:
        assert reprise.__version__ == version("reprise-rl")
    except PackageNotFoundError:
        pytest.skip("not installed by pip")


def test_reverb_is_an_alias_when_asked_for():
    print_all = """
import sys, reprise
%s
import reverb
import reverb.errors, reverb.specs as specs
from reverb import tree
from reverb.errors import ReverbError
assert reverb is reprise
assert reverb.errors is reprise.errors and sys.modules["reverb.errors"] is reprise.errors
assert specs is reprise.specs and tree is reprise.tree and ReverbError is reprise.ReverbError
assert reprise.errors.__spec__.name == reprise.errors.__name__ == "reprise.errors"
try:
    import reverb.no_such_module
except ModuleNotFoundError as error:
    print(error)
"""
    for how in ("reprise.install_as_reverb()", "sys.modules['reverb'] = reprise"):
        assert "no_such_module" in python(print_all % how)


def test_the_real_reverb_is_not_replaced(tmp_path):
    (tmp_path / "reverb.py").write_text("real = True\n")
    script = """
import reverb, reprise
try:
    reprise.install_as_reverb()
except RuntimeError as error:
    print(error)
assert reverb.real
"""
    said = python(script, PYTHONPATH=os.pathsep.join(
        [str(tmp_path)] + os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    assert "imported already" in said and str(tmp_path) in said


def test_the_command_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "reprise", "--version"], capture_output=True,
                          text=True, timeout=120)
    assert done.stdout == f"reprise {reprise.__version__}\n" and done.returncode == 0
    wrong = subprocess.run([sys.executable, "-m", "reprise", "no-such-command"],
                           capture_output=True, text=True, timeout=120)
    assert wrong.returncode != 0 and "no-such-command" in wrong.stderr


def test_modules_have_docstrings():
    for path in sorted(pathlib.Path(reprise.__file__).parent.glob("*.py")):
        assert ast.get_docstring(ast.parse(path.read_text())), f"{path.name} has no docstring"
