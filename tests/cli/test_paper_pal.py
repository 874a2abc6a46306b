# SPDX-License-Identifier: Apache-2.0
"""`make paper-pal`: its trees, its tables and plots, and a short run of most steps."""

import csv
import os
import pathlib
import subprocess
import sys
import time
import xml.etree.ElementTree

import pytest
from conftest import BUILD, ROOT, SECONDS, clean_environment

sys.path.insert(0, str(ROOT / "bench"))
import line_plot  # noqa: E402
import paper_pal  # noqa: E402
import paper_pal_report  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
LIBRARY = BUILD / "bench" / "libbench_pal_trees.so"
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="built without benchmarks")

# What a run wrote, shortened and rounded.
RECORDED = {
    "fig8": """capacity,batch,tree,update_ms,sample_ms
1024,128,ours,0.005,0.004
1048576,128,ours,0.010,0.010
1048576,128,Python lists,0.400,0.600
""",
    "fig9": """capacity,batch,tree,k,draw_ns,update_ns
1000,1,authors,2,90,20
1000,1,authors,16,60,5
1000000,1,authors,2,250,40
1000000,1,authors,16,150,8
1000,128,ours,8,8,5
1000000,128,ours,8,20,16
""",
    "layout": """capacity,batch,tree,k,draw_ns,update_ns
1000000,1,aligned,16,100.0,10.0
1000000,1,shifted,16,110.0,9.0
""",
    "fig10": """cores,actors,learners,scheme,seconds
2,2,1,none,0.100
2,2,1,global,0.300
2,2,1,paper,0.150
2,2,1,table,0.120
2,2,1,buffer,0.100
""",
    "fig12": """env,cores,threads,actors,learners,measured,picked,kind,rate,machine_cores
cartpole,3,1,,,,,acting,1000,2
cartpole,3,2,,,,,acting,1900,2
cartpole,3,1,,,,,learning,500,2
cartpole,3,2,,,,,learning,900,2
cartpole,3,,1,2,800,1,split,900,2
cartpole,3,,2,1,1000,0,split,500,2
""",
    "scaling": """setting,kind,threads,rate,machine_cores
64 units,acting,1,100,2
64 units,acting,2,150,2
64 units,learning,1,50,2
64 units,learning,2,80,2
""",
    "rewards": """task,agent,threshold,learners,seed,seconds,steps,updates,return
cartpole,dqn,475,1,1,1.0,1000,200,100
cartpole,dqn,475,1,1,2.0,2000,450,480
cartpole,dqn,475,2,1,0.5,1000,200,90
cartpole,dqn,475,2,1,1.0,2000,450,300
""",
}
FRAMEWORKS = """# anything
ratio pal.sb3 1.50 (ours 4.00 s vs theirs 6.00 s for 10,000 steps)
#   cartpole: their buffer takes 33.0% of the time, ours 8.5%; load 1
ratio pal.torchrl.wide 1.20 (ours 5.00 s vs theirs 6.00 s for 10,000 steps)
"""


@pytest.fixture
def recorded(tmp_path):
    for step, text in RECORDED.items():
        (tmp_path / f"{step}.csv").write_text(text)
    paper_pal.write_csv(tmp_path / "fig11.csv", paper_pal.Measuring.framework_rows(FRAMEWORKS))
    paper_pal.write_csv(tmp_path / "steps.csv", [
        {"step": "fig9", "seconds": "3.0", "load_before": "0.1", "load_after": "1.0", "cores": 2, "quick": 0,
         "date": "2026-01-02"}])
    return tmp_path


def test_tables_have_our_values_beside_those_of_the_paper(recorded):
    text = "\n".join(paper_pal.evaluate(recorded))
    for line in [
            "| ours | 5.0, 4.0 | 10.0, 10.0 | 1.0 |", "| Python lists |  | 400.0, 600.0 | 50.0 |",
            "| paper: RLlib | 1,570.0, 644.0 | 3,130.0, 1,255.0 | 105.2 |",
            "2026-01-02, 2 cores, load average 0.1 before and 1.0 after, 3.0 s.",
            "| 16 | 8, 150 | 29.7, 161 |", "| 1,000,000 | 8, 150 | 29.7, 161 | 16, 20 |",
            "Here the sum of both is smallest with K = 16; in the paper with K = 16.",
            "| 1,000,000 | 100, 110 | +10.0 % | 10, 9 | -10.0 % |",
            "| 2 + 1 | 0.100 | 0.300 | 0.150 | 0.120 | 0.100 | 2.00 | 3.00 |",
            "| sb3 | 6.00 s | 4.00 s | 1.50 | 33.0 % | 8.5 % |", "| torchrl.wide | 6.00 s | 5.00 s | 1.20 |  |  |",
            "| 1 + 2 | 900 | 800 | the pick |",
            "The pick makes 80.0% of the steps of the best split that was measured, 2 + 1.",
            "| 64 units | 2 | 150 | 1.50 | 80 | 1.60 |", "| cartpole | 1 | 1 | 1,000 | 2.00 to 2.00 (1 of 1) | 480 |",
            "| cartpole | 2 | 1 | 2,000 |  (0 of 1) | 300 |"]:
        assert line in text.splitlines(), line


def test_plots_have_a_curve_for_each_series(recorded):
    paper_pal.evaluate(recorded)
    counts = {}
    for path in recorded.glob("*.svg"):
        drawing = xml.etree.ElementTree.parse(path).getroot()
        assert all(0 <= float(n) <= float(drawing.get("width")) + float(drawing.get("height"))
                   for line in drawing.iter(f"{SVG}polyline") for n in line.get("points").replace(",", " ").split())
        counts[path.stem] = len(list(drawing.iter(f"{SVG}polyline")))
    # fig9: two capacities, and two K, each of updates and draws.
    assert counts == {"fig8": 4, "fig9": 8, "fig10": 5, "fig12": 2, "scaling": 4, "rewards": 2}


def test_axes_have_round_ticks_around_all_values():
    linear, powers = line_plot.Axis([3, 97], False), line_plot.Axis([5, 40000], True)
    assert linear.ticks == [0, 20, 40, 60, 80, 100] and linear.at(0) == 0
    assert powers.ticks == [1, 10, 100, 1000, 10000, 100000]
    assert 0 < powers.at(5) < powers.at(40000) < 1
    assert line_plot.Axis([2, 64], True).ticks == [2, 4, 8, 16, 32, 64]
    assert line_plot.Axis([7, 7], False).at(7) <= 1


def test_trees_find_the_leaf_on_which_a_target_falls():
    np = pytest.importorskip("numpy")
    import paper_pal_python

    rng = np.random.default_rng(1)
    library = paper_pal_python.open_library(str(LIBRARY))
    for capacity in (1, 16, 17, 1000, 4097):
        weights = rng.integers(1, 100, capacity).astype(float)  # sums are exact in float32
        ends = np.cumsum(weights)
        targets = rng.integers(0, int(ends[-1]), 128) + 0.5  # never on the border of two leaves
        expected = np.searchsorted(ends, targets)
        trees = [paper_pal_python.CTree(library, kind, capacity) for kind in range(3)]
        for tree in [*trees, paper_pal_python.ListTree(capacity), paper_pal_python.NumPyTree(capacity)]:
            tree.update(np.arange(capacity), np.ones(capacity))
            tree.update(np.arange(capacity), weights)
            assert tree.total() == ends[-1], type(tree)
            assert list(tree.find(targets)) == list(expected), (type(tree), capacity)
        for tree in trees:
            tree.free()


def test_a_quick_run_measures_and_draws(tmp_path):
    """Without what depends on other packages."""
    steps = ["fig9", "layout", "fig10", "rewards"]
    done = subprocess.run([sys.executable, ROOT / "bench" / "paper_pal.py", "--quick", "--folder", tmp_path, "--build",
                           BUILD, *steps], capture_output=True, text=True, timeout=300, check=False,
                          env=clean_environment())
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {step: list(csv.DictReader((tmp_path / f"{step}.csv").open())) for step in [*steps, "steps"]}
    assert [row["step"] for row in rows["steps"]] == steps
    assert {(r["k"], r["capacity"]) for r in rows["fig9"] if r["tree"] == "authors"} == {
        (str(1 << s), c) for s in range(1, 7) for c in ("1000", "10000")}
    assert [r["batch"] for r in rows["fig9"] if r["tree"] == "ours"] == ["32", "64", "128", "256", "512"] * 2
    assert {(r["actors"], r["scheme"]) for r in rows["fig10"]} == {
        (a, s) for a in ("1", "2") for s in paper_pal_report.SCHEMES}
    assert {r["learners"] for r in rows["rewards"]} == {"1", "2"}
    assert all(float(r[c]) > 0 for r in rows["fig9"] + rows["layout"] for c in ("draw_ns", "update_ns"))
    tables = (tmp_path / "tables.md").read_text()
    assert tables.count("### ") == len(steps) and tables in done.stdout
    # The same again from the files.
    before = os.stat(tmp_path / "fig9.csv").st_mtime_ns
    again = subprocess.run([sys.executable, ROOT / "bench" / "paper_pal.py", "--evaluate", "--folder", tmp_path],
                           capture_output=True, text=True, timeout=120, check=True)
    assert tables in again.stdout and os.stat(tmp_path / "fig9.csv").st_mtime_ns == before


def test_a_step_that_fails_is_named_and_others_go_on(tmp_path):
    done = subprocess.run([sys.executable, ROOT / "bench" / "paper_pal.py", "--quick", "--folder", tmp_path, "--build",
                           tmp_path, "fig11"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and "make bench BENCH=frameworks" in done.stdout  # optional: not a failure
    broken = tmp_path / "bench" / "bench_paper_pal_trees"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho no memory >&2\nexit 3\n")
    broken.chmod(0o755)
    done = subprocess.run([sys.executable, ROOT / "bench" / "paper_pal.py", "--quick", "--folder", tmp_path, "--build",
                           tmp_path, "layout", "fig11"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1 and "layout: bench_paper_pal_trees: no memory" in done.stdout
    assert "make bench BENCH=frameworks" in done.stdout


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_command_over_its_limit_ends_with_what_it_started():
    script = "import subprocess; p = subprocess.Popen(['sleep', '1000']); print(p.pid, flush=True); p.wait()"
    started = paper_pal.output_of([sys.executable, "-c", script], limit=1)
    deadline = time.monotonic() + SECONDS
    while is_running(int(started)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("program, arguments", [
    ("bench_paper_pal_trees", []), ("bench_paper_pal_trees", ["fanout", "most=x"]),
    ("bench_paper_pal_trees", ["layout", "rounds=0"]), ("bench_paper_pal_locks", ["items=0"]),
    ("bench_paper_pal_locks", ["nothing"])])
def test_misuse_of_the_programs_is_named(program, arguments):
    done = subprocess.run([BUILD / "bench" / program, *arguments], capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == 2 and done.stderr.startswith("usage: ")
