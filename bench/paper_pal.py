# SPDX-License-Identifier: Apache-2.0
"""The figures of the paper on parallel actors and learners (Zhang et al. 2021), measured here.

    paper_pal.py [STEP...]            measure, and print the tables beside the paper's values
    paper_pal.py --quick              the same, much shorter: to see that all works
    paper_pal.py --evaluate           measure nothing: tables and plots from the CSV files

Writes STEP.csv, STEP.svg and tables.md in build/paper-pal; tables.md is in the form of
docs/agents/pal.md. The steps are fig8, fig9, layout, fig10, fig11, fig12, scaling and rewards. A step that fails is
named, the others go on, and the status is 1.
"""

import argparse
import csv
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import line_plot
import paper_pal_report as report

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "paper-pal"
BUFFERS = ROOT / "build" / "peers" / "buffers"
# Task, agent, steps, threshold, other settings.
TASKS = [
    ("cartpole", "dqn", 30_000, 475, []), ("acrobot", "dqn", 30_000, -100, []), ("catch", "dqn", 8_000, 0.95, []),
    ("pendulum", "dpg", 15_000, -200, []), ("mountain_car_continuous", "dpg", 20_000, 90, []),
    ("lunarlander", "dqn", 100_000, 200, []),
    ("cartpole, 2 x 256 units, batch 512", "dqn", 15_000, 475, ["--hidden", "256", "--batch", "512"]),
]
EVALUATIONS = 15  # of a run
SETTINGS = [("64 units, batch 64", ["--hidden", "64", "--batch", "64"]),
            ("256 units, batch 512", ["--hidden", "256", "--batch", "512"])]


class Failed(Exception):
    """A step that cannot be measured; says why."""


def output_of(command, limit=None, **more):
    """Runs a command to its end and returns what it printed. With a limit, in seconds, the command and all that it
    started end then."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen([str(c) for c in command], stdout=out, stderr=err, start_new_session=True, **more)
        is_late = False
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            is_late = True
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read())
    if process.returncode != 0 and not is_late:
        raise Failed(f"{pathlib.Path(command[0]).name}: {(texts[1] or texts[0]).strip()[-500:]}")
    return texts[0]


def write_csv(path, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)


def read_csv(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


class Measuring:
    """The steps. Each returns the rows of its CSV file."""

    def __init__(self, options):
        self.quick, self.folder = options.quick, options.folder
        self.bench = options.build / "bench"
        self.reprise = options.build / "src" / "cli" / "reprise"

    def program(self, *command):
        return list(csv.DictReader(output_of([self.bench / command[0], *command[1:]]).splitlines()))

    def fig8(self):
        """Of the interpreters that have NumPy, one with the other frameworks if there is any."""
        pythons = [BUFFERS / "bin" / "python", pathlib.Path("/usr/bin/python3"), pathlib.Path(sys.executable)]
        has_numpy = [p for p in pythons if p.exists()
                     and subprocess.run([p, "-c", "import numpy"], capture_output=True, check=False).returncode == 0]
        if not has_numpy:
            raise Failed("needs NumPy: tools/need.sh test, or tools/peers.py buffers for all peers")
        command = [has_numpy[0], ROOT / "bench" / "paper_pal_python.py", self.bench / "libbench_pal_trees.so"]
        command += ["--seconds", "0.05", "--capacities", "1024,16384"] if self.quick else []
        out = output_of(command, env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1",
                                      "PYTHONWARNINGS": "ignore"})
        return list(csv.DictReader(out.splitlines()))

    def fig9(self):
        """1e8 leaves take 5 GB at most."""
        pages = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        most = "1e4" if self.quick else "1e8" if pages > 8e9 else "1e7"
        return self.program("bench_paper_pal_trees", "fanout", f"most={most}", f"rounds={1 if self.quick else 5}")

    def layout(self):
        return self.program("bench_paper_pal_trees", "layout", f"most={'1e4' if self.quick else '1e7'}",
                            f"rounds={2 if self.quick else 100}")

    def fig10(self):
        short = ["items=1e4", "batches=300", "rounds=1", "most=2"] if self.quick else ["most=20"]
        return self.program("bench_paper_pal_locks", *short)

    def fig11(self):
        """The ratios of bench/frameworks.py: those in frameworks.txt, or of a short run if the frameworks are
        here."""
        text = self.folder / "frameworks.txt"
        if not text.exists():
            if self.quick or not BUFFERS.exists():
                raise Failed("run `make bench BENCH=frameworks | tee build/paper-pal/frameworks.txt` (fetches some "
                             "5 GB), then this again")
            out = output_of([sys.executable, ROOT / "bench" / "frameworks.py", "--quick", "--steps", "1500"], limit=240)
            text.write_text(out, encoding="utf-8")
        return self.framework_rows(text.read_text(encoding="utf-8"))

    @staticmethod
    def framework_rows(text):
        rows = []
        for line in text.splitlines():
            ratio = re.match(r"ratio pal\.(\S+) (\S+) \(ours (\S+) s vs theirs (\S+) s", line)
            share = re.match(r"#.*buffer takes (\S+)% of the time, ours (\S+)%", line)
            if ratio:
                rows.append(dict(zip(["name", "ratio", "ours_s", "theirs_s"], ratio.groups()))
                            | {"their_share": "", "our_share": ""})
            elif share and rows:
                rows[-1]["their_share"], rows[-1]["our_share"] = share.groups()
        if not rows:
            raise Failed("no framework was measured in time; `make bench BENCH=frameworks | tee "
                         "build/paper-pal/frameworks.txt` takes longer")
        return rows

    def tune(self, *arguments):
        command = [self.reprise, "tune", "--agent", "apex-dqn", "--seconds", "0.02" if self.quick else "1", "--json"]
        return json.loads(output_of([*command, *arguments]))

    @staticmethod
    def curve_rows(found):
        return [{"kind": kind, "threads": p["threads"], "rate": p["per_second"], "machine_cores": os.cpu_count()}
                for kind in ("acting", "learning") for p in found[kind]["rates"] if p["measured"]]

    def fig12(self):
        """The task of the paper, or CartPole in a build without Box2D. Two cores have one split: for the figure
        there are four, more threads than cores."""
        common = ["--steps-per-update", "1", "--cores", str(max(4, min(16, os.cpu_count()))), "--all", "--plot",
                  self.folder / "fig12-tune.svg"]
        try:
            found = self.tune("--env", "cartpole" if self.quick else "lunarlander", *common)
        except Failed:
            found = self.tune("--env", "cartpole", *common)
        empty = {"env": found["env"], "cores": found["cores"], "threads": "", "actors": "", "learners": "",
                 "measured": "", "picked": ""}
        rows = [empty | row for row in self.curve_rows(found)]
        pick = found["pick"]
        rows += [empty | {"kind": "split", "actors": s["actors"], "learners": s["learners"],
                          "rate": s["steps_per_second"], "measured": s.get("measured_steps_per_second", ""),
                          "machine_cores": os.cpu_count(),
                          "picked": int((s["actors"], s["learners"]) == (pick["actors"], pick["learners"]))}
                 for s in found["splits"]]
        return rows

    def scaling(self):
        rows = []
        for setting, arguments in SETTINGS[:1] if self.quick else SETTINGS:
            found = self.tune("--env", "cartpole", "--cores", str(max(5, min(17, os.cpu_count() + 1))), *arguments)
            rows += [{"setting": setting} | row for row in self.curve_rows(found)]
        return rows

    def rewards(self):
        rows = []
        for task, agent, steps, threshold, arguments in TASKS[:1] if self.quick else TASKS:
            env = task.split(",")[0]
            seeds = range(1, 2 if self.quick or env == "lunarlander" else 4)
            for learners, seed in [(n, s) for s in seeds for n in (1, 2)]:
                run = self.folder / "run"
                shutil.rmtree(run, ignore_errors=True)
                steps = 2_000 if self.quick else steps
                try:
                    output_of([self.reprise, "train", agent, "--env", env, "--seed", str(seed), "--steps", str(steps),
                               "--eval-every", str(steps // EVALUATIONS), "--one-thread", "--keep-going", "--save-every",
                               "0", "--learners", str(learners), "--dir", run, "--json", *arguments])
                except Failed as failure:
                    if env != "lunarlander":  # a build without Box2D has none
                        raise
                    print(f"  {task}: {failure}", flush=True)
                    break
                for row in read_csv(run / "progress.csv"):
                    if row["eval_return"]:
                        rows.append({"task": task, "agent": agent, "threshold": threshold, "learners": learners,
                                     "seed": seed, "seconds": row["seconds"], "steps": row["eval_steps"],
                                     "updates": row["updates"], "return": row["eval_return"]})
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        return rows


def measure(options, steps):
    """Measures the steps. Returns the number of those that failed."""
    measuring, failed, log = Measuring(options), 0, []
    for step in steps:
        print(f"# {step}: ", end="", flush=True)
        began, load = time.monotonic(), os.getloadavg()[0]
        try:
            write_csv(options.folder / f"{step}.csv", getattr(measuring, step)())
        except Failed as failure:
            failed += step != "fig11"
            print(failure, flush=True)
            continue
        seconds = time.monotonic() - began
        log.append({"step": step, "seconds": f"{seconds:.1f}", "load_before": f"{load:.1f}",
                    "load_after": f"{os.getloadavg()[0]:.1f}", "cores": os.cpu_count(), "quick": int(options.quick),
                    "date": time.strftime("%Y-%m-%d")})
        print(f"{seconds:.0f} s", flush=True)
    path = options.folder / "steps.csv"
    earlier = read_csv(path) if path.exists() else []
    done = {row["step"] for row in log}
    if log:
        write_csv(path, [row for row in earlier if row["step"] not in done] + log)
    return failed


def evaluate(folder):
    """Draws all plots, and returns the lines of the tables, of the CSV files that are there."""
    lines, steps = [], {}
    if (folder / "steps.csv").exists():
        steps = {row["step"]: row for row in read_csv(folder / "steps.csv")}
    for step, title, section in report.SECTIONS:
        path = folder / f"{step}.csv"
        if not path.exists():
            continue
        table, panels = section(read_csv(path))
        if panels:
            path.with_suffix(".svg").write_text(line_plot.draw(panels), encoding="utf-8")
        lines += [f"### {title}", ""]
        if step in steps:
            s = steps[step]
            lines += [f"{s['date']}, {s['cores']} cores, load average {s['load_before']} before and "
                      f"{s['load_after']} after, {s['seconds']} s{' (quick)' * (s['quick'] == '1')}.", ""]
        lines += [*table, ""]
    return lines


def main():
    names = [name for name, _, _ in report.SECTIONS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a test, no result")
    parser.add_argument("--evaluate", action="store_true", help="use the CSV files of the folder, and run nothing")
    parser.add_argument("--folder", type=pathlib.Path, default=FOLDER)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("steps", nargs="*", metavar="STEP", help=", ".join(names))
    options = parser.parse_args()
    for step in options.steps:
        if step not in names:
            parser.error(f"no such step: {step}")
    options.folder.mkdir(parents=True, exist_ok=True)
    failed = 0 if options.evaluate else measure(options, options.steps or names)
    lines = evaluate(options.folder)
    (options.folder / "tables.md").write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(["", *lines]))
    print(f"wrote CSV files, plots and tables.md in {options.folder}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
