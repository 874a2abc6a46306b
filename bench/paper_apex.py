# SPDX-License-Identifier: Apache-2.0
"""The findings of the Ape-X paper (Horgan et al. 2018) in small: actors, priorities, capacity, recency.

Each experiment changes one thing, and compares the scores of several seeds at equal numbers of updates. Every
run is one call of bench_paper_apex, on one thread and reproducible bit by bit. Writes, in build/paper-apex,
runs.csv (every evaluation), table.md and plot.svg. With --csv FILE it only evaluates that file.
docs/agents/apex-paper.md has the results.
"""

import argparse
import csv
import dataclasses
import math
import os
import pathlib
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from curves import COLOURS  # noqa: E402

PROGRAM = ROOT / "build" / "release" / "bench" / "bench_paper_apex"
FOLDER = ROOT / "build" / "paper-apex"
LEVEL = 0.95
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 420, 280, 56, 34, 90, 44


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Arms that differ in one thing. `arms` are names and arguments of bench_paper_apex beside `common`; the
    expectation is that the arm `better` has a higher score than the arm `worse`."""
    name: str
    title: str
    task: str
    common: str
    arms: dict
    better: str
    worse: str


# The tasks, and how many updates they take, were chosen on seeds from 101 on.
CARTPOLE = ("cartpole", "cartpole", "updates=3000 every=150")
CATCH = ("catch", "catch:rows=20,columns=10", "updates=2000 every=100")
DEEP_SEA = ("deep sea", "deep_sea:size=5", "updates=2000 every=100 episodes=1 start=500")
COUNTS = {f"{n} actor{'s' * (n > 1)}": n for n in (1, 4, 16, 64)}


def with_own_steps(name, task, common):
    """More actors, each of which adds its own steps: figure 4 of the paper."""
    return Experiment(f"actors-{name}", f"{name}: actors, 1 step each", task, common,
                      {arm: f"actors={n} steps={n}" for arm, n in COUNTS.items()}, "16 actors", "1 actor")


def with_equal_steps(name, task, common):
    """More actors, but as many steps in all: only the trajectories and epsilons are more."""
    return Experiment(f"equal-{name}", f"{name}: actors, 16 steps in all", task, f"{common} steps=16",
                      {arm: f"actors={n}" for arm, n in COUNTS.items()}, "16 actors", "1 actor")


def with_priorities(name, task, common):
    """Prioritized and uniform replay."""
    return Experiment(f"priorities-{name}", f"{name}: priorities", task, f"{common} actors=8 n-step=1",
                      {"prioritized": "prioritized=1", "uniform": "prioritized=0"}, "prioritized", "uniform")


def with_capacities(name, task, common):
    """Sizes of the replay: figure 5."""
    return Experiment(f"capacity-{name}", f"{name}: items in the replay", task, f"{common} actors=8 start=250",
                      {f"{n:,}": f"capacity={n}" for n in (250, 1000, 4000, 16000)}, "16,000", "250")


def with_replicas(name, task, common):
    """Data as recent as that of more actors: each transition is added eight times, figure 6."""
    return Experiment(f"recency-{name}", f"{name}: recency", task, common,
                      {"2 actors": "actors=2 steps=2 replicate=1", "2 actors, x 8": "actors=2 steps=2 replicate=8",
                       "16 actors": "actors=16 steps=16 replicate=1"}, "16 actors", "2 actors, x 8")


EXPERIMENTS = [
    with_own_steps(*CARTPOLE), with_own_steps(*CATCH), with_equal_steps(*CARTPOLE), with_equal_steps(*CATCH),
    with_priorities(*CARTPOLE), with_priorities(*CATCH), with_capacities(*CARTPOLE), with_capacities(*CATCH),
    with_replicas(*CARTPOLE), with_replicas(*CATCH), with_priorities(*DEEP_SEA),
]
QUICK = ("priorities-catch", "recency-catch")  # what the test runs


def beta_share(a, b, x):
    """The regularized incomplete beta function, by its continued fraction (DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_share(b, a, 1 - x)
    fraction = 1.0
    for m in range(150, -1, -1):
        fraction = 1 + (m + 1) * (b - m - 1) * x / ((a + 2 * m + 1) * (a + 2 * m + 2)) / fraction
        fraction = 1 - (a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)) / fraction
    log = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(1 - x)
    return math.exp(log) / a / fraction


def t_quantile(freedom, level=LEVEL):
    """Returns the number that |t| of Student's distribution exceeds with probability 1 - level."""
    low, high = 0.0, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        outside = beta_share(freedom / 2, 0.5, freedom / (freedom + middle * middle))
        low, high = (middle, high) if outside > 1 - level else (low, middle)
    return high


def interval(values):
    """Returns the mean of values and half the width of its interval (Student's)."""
    if len(values) < 2:
        return statistics.fmean(values), math.inf
    error = statistics.stdev(values) / math.sqrt(len(values))
    return statistics.fmean(values), t_quantile(len(values) - 1) * error


def difference(a, b):
    """Returns mean(a) - mean(b) and half the width of its interval (Welch's)."""
    mean = statistics.fmean(a) - statistics.fmean(b)
    if min(len(a), len(b)) < 2:
        return mean, math.inf
    x, y = statistics.variance(a) / len(a), statistics.variance(b) / len(b)
    if x + y == 0:
        return mean, 0.0
    freedom = (x + y) ** 2 / (x * x / (len(a) - 1) + y * y / (len(b) - 1))
    return mean, t_quantile(freedom) * math.sqrt(x + y)


def collect(rows):
    """Returns {(experiment, arm): {seed: [(updates, score)]}}."""
    found = {}
    for row in rows:
        curve = found.setdefault((row["experiment"], row["arm"]), {}).setdefault(int(row["seed"]), [])
        curve.append((int(row["updates"]), float(row["score"])))
    return found


def scores(curves):
    """Returns the score of each seed: the mean of all its evaluations, the area under its curve."""
    return [statistics.fmean(score for _, score in curve) for _, curve in sorted(curves.items())]


def verdict(mean, half):
    """Says in a word whether an expected difference shows."""
    if mean - half > 0:
        return "yes"
    return "the opposite" if mean + half < 0 else "not shown"


def table(experiments, found):
    """Returns the lines of a table in Markdown: one row an arm, and one a comparison."""
    yield "| experiment | arm | score, 95 % interval | last evaluation | difference | does it show? |"
    yield "|---|---|---|---|---|---|"
    for e in experiments:
        for arm in e.arms:
            curves = found[e.name, arm]
            mean, half = interval(scores(curves))
            last, last_half = interval([curve[-1][1] for curve in curves.values()])
            line = f"| {e.title} | {arm} | {mean:.4g} ± {half:.2g} | {last:.4g} ± {last_half:.2g} |"
            if arm == e.better:
                gain, around = difference(scores(curves), scores(found[e.name, e.worse]))
                yield f"{line} {gain:+.3g} ± {around:.2g} over {e.worse} | {verdict(gain, around)} |"
            else:
                yield f"{line} | |"


def means(curves):
    """Returns (updates, mean, half of the interval) over all seeds, for each evaluation."""
    for points in zip(*curves.values()):
        yield (points[0][0], *interval([score for _, score in points]))


def ticks(low, high):
    """Returns some five round numbers between two numbers."""
    scale = 10 ** math.floor(math.log10((high - low) / 4))
    step = next(scale * m for m in (1, 2, 2.5, 5, 10) if (high - low) / (scale * m) <= 5)
    first = math.ceil(low / step)
    return [step * i for i in range(first, math.floor(high / step) + 1)]


def panel(experiment, found, column, row):
    """Draws one experiment: a curve and its interval for each arm."""
    x0, y0 = column * WIDTH + LEFT, row * HEIGHT + TOP
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    arms = {arm: list(means(found[experiment.name, arm])) for arm in experiment.arms}
    most = max(points[-1][0] for points in arms.values())
    values = [m for points in arms.values() for _, m, _ in points]
    low, high = min(values), max(values)
    low, high = low - (high - low or 1) * 0.06, high + (high - low or 1) * 0.06
    x = lambda updates: x0 + width * updates / most
    y = lambda score: y0 + height * min(1.0, max(0.0, (high - score) / (high - low)))
    yield f'<text x="{x0}" y="{y0 - 12}" class="title">{experiment.title}</text>'
    for value in ticks(low, high):
        yield (f'<line x1="{x0}" x2="{x0 + width}" y1="{y(value):.1f}" y2="{y(value):.1f}" class="grid"/>'
               f'<text x="{x0 - 6}" y="{y(value) + 4:.1f}" class="up">{value:g}</text>')
    for value in ticks(0, most):
        yield f'<text x="{x(value):.1f}" y="{y0 + height + 16}" class="along">{value:,.0f}</text>'
    yield f'<text x="{x0 + width / 2}" y="{y0 + height + 32}" class="along">updates</text>'
    ends = []
    for colour, (arm, points) in zip(COLOURS, arms.items()):
        band = [f"{x(u):.1f},{y(m + h):.1f}" for u, m, h in points]
        band += [f"{x(u):.1f},{y(m - h):.1f}" for u, m, h in reversed(points)]
        yield f'<polygon points="{" ".join(band)}" fill="{colour}" opacity="0.13"/>'
        line = " ".join(f"{x(u):.1f},{y(m):.1f}" for u, m, _ in points)
        yield f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.8"/>'
        ends.append((y(points[-1][1]) + 4, colour, arm))
    lowest = y0 - 100.0
    for place, colour, arm in sorted(ends):
        lowest = max(lowest + 13, place)
        yield f'<text x="{x0 + width + 6}" y="{lowest:.1f}" fill="{colour}">{arm}</text>'


def draw(experiments, found):
    rows = -(-len(experiments) // 2)
    style = ("text{font:12px sans-serif}.title{font-weight:bold}.up{text-anchor:end}"
             ".along{text-anchor:middle}.grid{stroke:#ddd}")
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * WIDTH}" height="{rows * HEIGHT}">',
             f"<style>{style}</style>", '<rect width="100%" height="100%" fill="white"/>']
    for i, experiment in enumerate(experiments):
        lines += panel(experiment, found, i % 2, i // 2)
    return "\n".join([*lines, "</svg>", ""])


def arguments(experiment, arm, seed):
    """Returns the arguments of one run, in an order that is the same for equal runs."""
    return experiment.task, *sorted([f"seed={seed}", *experiment.common.split(), *experiment.arms[arm].split()])


def run(program, line):
    """Makes one run; returns the rows of its evaluations."""
    done = subprocess.run([program, *line], capture_output=True, text=True, check=False,
                          env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
    if done.returncode != 0:
        raise RuntimeError(f"{program} {' '.join(line)}\n{done.stderr}")
    return list(csv.DictReader(done.stdout.splitlines()))


def measure(program, experiments, seeds, limit, path):
    """Runs all seeds of all arms, as many at once as there are cores, and writes the CSV file. A run that is in
    several experiments is made once."""
    jobs = [(e, arm, seed) for e in experiments for arm in e.arms for seed in seeds]
    lines = list(dict.fromkeys(arguments(*job) for job in jobs))
    names = ["experiment", "arm", "seed", "updates", "steps", "items", "score"]
    results = {}
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for line, rows in zip(lines, pool.map(lambda line: run(program, (*line, *limit)), lines)):
            results[line] = rows
            if sys.stderr.isatty():
                print(f"\r{len(results)} of {len(lines)} runs", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    with open(path, "w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, names, lineterminator="\n")
        out.writeheader()
        for e, arm, seed in jobs:
            for row in results[arguments(e, arm, seed)]:
                out.writerow({"experiment": e.name, "arm": arm, "seed": seed, **row})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two seeds of 200 updates: a test, no result")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--csv", type=pathlib.Path, help="evaluate this file, and run nothing")
    parser.add_argument("--program", type=pathlib.Path, default=PROGRAM)
    parser.add_argument("--folder", type=pathlib.Path, default=FOLDER)
    parser.add_argument("only", nargs="*", help="names of experiments; by default all")
    options = parser.parse_args()
    experiments = [e for e in EXPERIMENTS if not options.only or e.name in options.only]
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.csv or options.folder / "runs.csv"
    if options.csv is None:
        seeds, limit = (range(1, 3), ["updates=200", "every=100"]) if options.quick else \
            (range(1, options.seeds + 1), [])
        measure(options.program, experiments, seeds, limit, path)
    with open(path, encoding="utf-8", newline="") as file:
        found = collect(csv.DictReader(file))
    lines = list(table(experiments, found))
    (options.folder / "table.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    (options.folder / "plot.svg").write_text(draw(experiments, found), encoding="utf-8")
    print("\n".join(lines))
    print(f"wrote {path}, and table.md and plot.svg in {options.folder}")


if __name__ == "__main__":
    main()
