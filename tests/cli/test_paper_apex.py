# SPDX-License-Identifier: Apache-2.0
"""`make paper-apex`: its statistics, and a short run of two of its experiments."""

import csv
import math
import subprocess
import sys
import xml.etree.ElementTree

import pytest
from conftest import BUILD, ROOT

sys.path.insert(0, str(ROOT / "bench"))
import paper_apex  # noqa: E402

PROGRAM = BUILD / "bench" / "bench_paper_apex"
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="built without rl")


@pytest.mark.parametrize("freedom, level, expected", [
    (1, 0.95, 12.706205), (4, 0.95, 2.776445), (9, 0.95, 2.262157), (9, 0.99, 3.249836), (30, 0.95, 2.042272),
    (1e6, 0.95, 1.959966)])
def test_quantiles_are_those_of_tables(freedom, level, expected):
    assert paper_apex.t_quantile(freedom, level) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("freedom", [2.5, 7.3, 17.9])
def test_quantiles_of_fractions_bound_the_density(freedom):
    end, count = paper_apex.t_quantile(freedom), 2000
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    step = 2 * end / count
    area = sum(step * scale * (1 + (step * (i + 0.5) - end) ** 2 / freedom) ** (-(freedom + 1) / 2)
               for i in range(count))
    assert area == pytest.approx(0.95, abs=1e-5)


def test_intervals_are_those_of_student_and_welch():
    assert paper_apex.interval([1, 2, 3, 4, 5]) == pytest.approx((3, 2.776445 * math.sqrt(2.5 / 5)))
    assert paper_apex.interval([7, 7, 7]) == (7, 0)
    assert paper_apex.interval([7]) == (7, math.inf)
    # Equal variances: as many degrees of freedom as in both samples together.
    assert paper_apex.difference([0, 1, 2], [10, 11, 12]) == pytest.approx((-10, 2.776445 * math.sqrt(2 / 3)))
    # One sample is constant: those of the other one.
    assert paper_apex.difference([5, 5, 5], [1, 2, 3, 4, 5]) == pytest.approx((2, 2.776445 * math.sqrt(2.5 / 5)))
    assert paper_apex.difference([1, 1], [0, 0]) == (1, 0)


def test_verdicts_follow_from_the_interval():
    assert paper_apex.verdict(1, 0.9) == "yes"
    assert paper_apex.verdict(1, 1.1) == "not shown"
    assert paper_apex.verdict(-1, 0.9) == "the opposite"


def test_experiments_vary_one_thing():
    names = [e.name for e in paper_apex.EXPERIMENTS]
    assert len(set(names)) == len(names)
    for e in paper_apex.EXPERIMENTS:
        assert {e.better, e.worse} <= set(e.arms) and e.better != e.worse
        changed = [{a.partition("=")[0] for a in arguments.split()} for arguments in e.arms.values()]
        assert all(keys == changed[0] for keys in changed), e.name  # each arm sets the same things
        assert not changed[0] & {a.partition("=")[0] for a in e.common.split()}, e.name


def run(folder, *arguments):
    return subprocess.run([sys.executable, ROOT / "bench" / "paper_apex.py", "--program", PROGRAM, "--folder", folder,
                           *arguments], capture_output=True, text=True, timeout=300, check=True).stdout


def test_a_quick_run_fills_table_and_plot(tmp_path):
    out = run(tmp_path, "--quick", *paper_apex.QUICK)
    experiments = [e for e in paper_apex.EXPERIMENTS if e.name in paper_apex.QUICK]
    rows = list(csv.DictReader((tmp_path / "runs.csv").open()))
    arms = sum(len(e.arms) for e in experiments)
    assert len(rows) == arms * 2 * 2  # seeds and evaluations
    assert {row["updates"] for row in rows} == {"100", "200"}
    table = (tmp_path / "table.md").read_text()
    assert table in out and len(table.splitlines()) == 2 + arms
    e = experiments[0]
    scores = [statistics_of(rows, e.name, e.better, seed) for seed in ("1", "2")]
    mean, half = paper_apex.interval(scores)
    assert f"| {e.better} | {mean:.4g} ± {half:.2g} |" in table
    drawing = xml.etree.ElementTree.parse(tmp_path / "plot.svg").getroot()
    assert len(list(drawing.iter("{http://www.w3.org/2000/svg}polyline"))) == arms
    # The same again from the file.
    again = tmp_path / "again"
    run(again, "--csv", tmp_path / "runs.csv", *paper_apex.QUICK)
    assert (again / "table.md").read_text() == table


def statistics_of(rows, experiment, arm, seed):
    found = [float(r["score"]) for r in rows if (r["experiment"], r["arm"], r["seed"]) == (experiment, arm, seed)]
    return sum(found) / len(found)


def test_runs_are_equal_bit_by_bit_and_replicas_write_the_same_items():
    def lines(*arguments):
        return subprocess.run([PROGRAM, "catch", "updates=300", "every=100", "start=100", "hidden=16", *arguments],
                              capture_output=True, text=True, timeout=300, check=True).stdout.splitlines()

    first = lines("seed=5", "actors=3", "steps=2")
    assert first == lines("seed=5", "actors=3", "steps=2")
    assert first != lines("seed=6", "actors=3", "steps=2")
    three = [line.split(",") for line in lines("seed=5", "actors=3", "steps=2", "replicate=3")[1:]]
    assert all(int(items) == 3 * int(steps) for _, steps, items, _ in three)
    # As many steps as without replicas, but for those of one step of all actors.
    assert all(abs(int(a[1]) - int(b.split(",")[1])) <= 3 * 3 for a, b in zip(three, first[1:]))


@pytest.mark.parametrize("arguments, message", [
    ([], "usage"), (["nothing"], "no such environment: 'nothing'"), (["catch", "copies=2"], "no such setting: 'copies'"),
    (["catch", "actors=0"], "no such number: '0'"), (["catch:rows"], "expected NAME=VALUE: 'rows'"),
    (["catch:rows=1"], "rows")])
def test_misuse_of_the_program_is_named(arguments, message):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (1, 2) and message in done.stderr
