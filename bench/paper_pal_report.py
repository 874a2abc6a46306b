# SPDX-License-Identifier: Apache-2.0
"""Tables and plots of paper_pal.py, from its CSV files.

Each function takes the rows of one file and returns the lines of a section in Markdown and the panels of its
plot. Numbers of the paper are in paper_pal_values.py.
"""

import statistics

import paper_pal_values as paper
from line_plot import Panel


def number(value):
    """Three digits, without an exponent."""
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def pick(rows, **wanted):
    return [row for row in rows if all(row[k] == str(v) for k, v in wanted.items())]


def names(rows, column):
    return list(dict.fromkeys(row[column] for row in rows))


def latency(rows):
    """Figure 8."""
    trees, capacities = names(rows, "tree"), [int(c) for c in names(rows, "capacity")]
    found = {(r["tree"], int(r["capacity"])): (float(r["update_ms"]), float(r["sample_ms"])) for r in rows}
    lines = ["| tree | " + " | ".join(f"update, sample: {c:,}" for c in capacities) + " | at the largest: sum over ours |",
             "|---|" + "---|" * (len(capacities) + 1)]
    most = capacities[-1]

    def line(name, times, own):
        cells = [f"{times[c][0] * 1e3:,.1f}, {times[c][1] * 1e3:,.1f}" if c in times else "" for c in capacities]
        ratio = f"{sum(times[most]) / sum(own[most]):.1f}" if most in times and most in own else ""
        return f"| {name} | " + " | ".join(cells) + f" | {ratio} |"

    own = {c: found["ours", c] for c in capacities if ("ours", c) in found}
    for tree in trees:
        lines.append(line(tree, {c: found[tree, c] for c in capacities if (tree, c) in found}, own))
    for tree, times in paper.LATENCY.items():
        lines.append(line(f"paper: {'theirs' if tree == 'ours' else tree}", times, paper.LATENCY["ours"]))
    panels = [Panel(f"8  {what}, batch of 128", "capacity", "ms a call",
                    {t: [(c, found[t, c][i]) for c in capacities if (t, c) in found] for t in trees}, True, True)
              for i, what in enumerate(["update of priorities", "sample"])]
    return ["us a call of a batch of 128:", "", *lines], panels


def fanout(rows):
    """Figure 9."""
    theirs = {(int(r["k"]), int(r["capacity"])): (float(r["update_ns"]), float(r["draw_ns"]))
              for r in rows if r["tree"] == "authors"}
    ours = {(int(r["batch"]), int(r["capacity"])): (float(r["update_ns"]), float(r["draw_ns"]))
            for r in rows if r["tree"] == "ours"}
    capacities = sorted({c for _, c in theirs})
    ks, batches = sorted({k for k, _ in theirs}), sorted({b for b, _ in ours})
    at = 1000000 if 1000000 in capacities else capacities[-1]
    cell = lambda times: f"{number(times[0])}, {number(times[1])}" if times else ""
    lines = [f"update, draw in ns, {at:,} leaves:", "", "| K | here | in the paper |", "|---|---|---|"]
    lines += [f"| {k} | {cell(theirs[k, at])} | {cell(paper.BY_K.get(k)) if at == 1000000 else ''} |" for k in ks]
    lines += [f"| ours (8), batches of {b} | {cell(ours[b, at])} | |" for b in batches]
    best = min(ks, key=lambda k: sum(theirs[k, at]))
    lines += ["", f"Here the sum of both is smallest with K = {best}; in the paper with K = 16.", "",
              "update, draw in ns by capacity:", "",
              "| leaves | K = 16 here | K = 16 in the paper | ours, batches of 128 |", "|---|---|---|---|"]
    lines += [f"| {c:,} | {cell(theirs.get((16, c)))} | {cell(paper.BY_CAPACITY.get(c))} | {cell(ours.get((128, c)))} |"
              for c in capacities]
    panels = []
    for i, what in enumerate(["update", "draw"]):
        panels.append(Panel(f"9  {what} by K, one leaf at a time", "K", "ns",
                            {f"{c:,} leaves": [(k, theirs[k, c][i]) for k in ks] for c in capacities}, True, True))
        curves = {f"K = {k}": [(c, theirs[k, c][i]) for c in capacities] for k in ks}
        curves |= {f"ours, {b} at a time": [(c, ours[b, c][i]) for c in capacities] for b in batches if b in (32, 512)}
        panels.append(Panel(f"9  {what} by capacity", "leaves", "ns", curves, True, True))
    return lines, panels


SCHEMES = {"none": "no lock (wrong)", "global": "global lock", "paper": "the paper's two locks", "table": "our table",
           "buffer": "our replay buffer"}


def locks(rows):
    """Figure 10."""
    times = {(int(r["actors"]), r["scheme"]): float(r["seconds"]) for r in rows}
    counts = sorted({a for a, _ in times})
    learners = {int(r["actors"]): r["learners"] for r in rows}
    lines = ["| threads | " + " | ".join(SCHEMES.values()) + " | global over the paper's | global over our buffer |",
             "|---|" + "---|" * (len(SCHEMES) + 2)]
    for a in counts:
        cells = [f"{times[a, s]:.3f}" if (a, s) in times else "" for s in SCHEMES]
        ratios = [f"{times[a, 'global'] / times[a, s]:.2f}" for s in ("paper", "buffer")]
        lines.append(f"| {a} + {learners[a]} | " + " | ".join(cells + ratios) + " |")
    lines += ["", f"In the paper: over a global lock {paper.OVER_GLOBAL} times as fast, and {paper.OVER_NONE} times the "
              "time without a lock."]
    cores = rows[0]["cores"]
    return ([f"Seconds of the whole work, {cores} cores:", "", *lines],
            [Panel(f"10  whole work on {cores} cores", "actors, with half as many learners", "s",
                   {n: [(a, times[a, s]) for a in counts if (a, s) in times] for s, n in SCHEMES.items()})])


def frameworks(rows):
    """Figure 11."""
    lines = ["| framework, task | theirs | ours | speedup | share of their buffer | share of ours |",
             "|---|---|---|---|---|---|"]
    for r in rows:
        share = [f"{float(r[c]):.1f} %" if r[c] else "" for c in ("their_share", "our_share")]
        lines.append(f"| {r['name']} | {float(r['theirs_s']):.2f} s | {float(r['ours_s']):.2f} s | {r['ratio']} | "
                     + " | ".join(share) + " |")
    lines += ["", f"In the paper: {paper.PLUG_IN}, in RLlib."]
    return ["Seconds of processor time for 10,000 steps of a training:", "", *lines], []


def exploration(rows):
    """Figure 12."""
    env, cores, own = rows[0]["env"], rows[0]["cores"], rows[0]["machine_cores"]
    curve = {kind: [(int(r["threads"]), float(r["rate"])) for r in rows if r["kind"] == kind]
             for kind in ("acting", "learning")}
    splits = [r for r in rows if r["kind"] == "split"]
    lines = [f"{env}, one update a step; {cores} cores to split, {own} in the machine:", "",
             "| threads | f_a: steps/s | f_l: updates/s |", "|---|---|---|"]
    lines += [f"| {x} | {number(dict(curve['acting']).get(x, 0))} | {number(dict(curve['learning']).get(x, 0))} |"
              for x in sorted({x for c in curve.values() for x, _ in c})]
    lines += ["", "| actors + learners | steps/s by the curves | measured | |", "|---|---|---|---|"]
    for r in sorted(splits, key=lambda r: -float(r["rate"])):
        measured = number(float(r["measured"])) if r["measured"] else ""
        lines.append(f"| {r['actors']} + {r['learners']} | {number(float(r['rate']))} | {measured} | "
                     f"{'the pick' if r['picked'] == '1' else ''} |")
    best = [r for r in splits if r["measured"]]
    if best:
        top = max(best, key=lambda r: float(r["measured"]))
        share = [float(r["measured"]) / float(top["measured"]) for r in best if r["picked"] == "1"]
        if share:
            lines += ["", f"The pick makes {share[0]:.1%} of the steps of the best split that was measured, "
                      f"{top['actors']} + {top['learners']}."]
    picked = [r for r in splits if r["picked"] == "1"]
    marks = {f"x_a = {r['actors']}": int(r["actors"]) for r in picked} | {
        f"   x_l = {r['learners']}": int(r["learners"]) for r in picked if r["learners"] != r["actors"]}
    return lines, [Panel(f"12  {env}: curves and the pick", "threads", "steps/s, updates/s",
                         {"f_a": curve["acting"], "f_l": curve["learning"]}, marks=marks)]


def layout(rows):
    """Section VI-G."""
    lines = ["| leaves | draw: aligned, shifted | gain | update: aligned, shifted | gain |", "|---|---|---|---|---|"]
    for c in names(rows, "capacity"):
        a, s = pick(rows, capacity=c, tree="aligned")[0], pick(rows, capacity=c, tree="shifted")[0]
        cells = [f"{int(c):,}"]
        for column in ("draw_ns", "update_ns"):
            x, y = float(a[column]), float(s[column])
            cells += [f"{number(x)}, {number(y)}", f"{(y / x - 1) * 100:+.1f} %"]
        lines.append("| " + " | ".join(cells) + " |")
    return ["ns, K = 16, float32; groups of children at cache lines, and 4 bytes behind:", "", *lines, "",
            f"In the paper: {paper.LAYOUT} at 1e6."], []


def scaling(rows):
    """Actors and learners alone, by their number."""
    lines = ["| setting | threads | steps/s that act | over one | updates/s that learn | over one |",
             "|---|---|---|---|---|---|"]
    panels = []
    for setting in names(rows, "setting"):
        curves = {what: {int(r["threads"]): float(r["rate"]) for r in pick(rows, setting=setting, kind=what)}
                  for what in ("acting", "learning")}
        for x in sorted(set(curves["acting"]) | set(curves["learning"])):
            cells = [setting, str(x)]
            for curve in curves.values():
                cells += [number(curve[x]), f"{curve[x] / curve[1]:.2f}"] if x in curve else ["", ""]
            lines.append("| " + " | ".join(cells) + " |")
        for what, label in (("acting", "actors: steps/s"), ("learning", "learners: updates/s")):
            panels.append(Panel(f"{label}; {setting}", "threads", "a second",
                                {"measured": sorted(curves[what].items()),
                                 "ideal": [(x, x * curves[what][1]) for x in sorted(curves[what])]}))
    return [f"{rows[0]['machine_cores']} cores in the machine:", "", *lines], panels


def rewards(rows):
    """Returns against wall clock."""
    lines = ["| task | learners | seeds | steps/s | seconds until the threshold | return at the end |",
             "|---|---|---|---|---|---|"]
    panels = []
    for task in names(rows, "task"):
        of = pick(rows, task=task)
        threshold, curves = float(of[0]["threshold"]), {}
        for learners in names(of, "learners"):
            runs = {seed: [(float(r["seconds"]), float(r["return"]), float(r["steps"]))
                           for r in pick(of, learners=learners, seed=seed)] for seed in names(of, "seed")}
            runs = {seed: run for seed, run in runs.items() if run}
            reached = [min((s for s, value, _ in run if value >= threshold), default=None) for run in runs.values()]
            good = sorted(s for s in reached if s is not None)
            when = (f"{good[0]:.2f} to {good[-1]:.2f}" if good else "") + f" ({len(good)} of {len(runs)})"
            speed = statistics.median(run[-1][2] / run[-1][0] for run in runs.values())
            late = statistics.mean(statistics.mean(v for _, v, _ in run[len(run) // 2:]) for run in runs.values())
            lines.append(f"| {task} | {learners} | {len(runs)} | {number(speed)} | {when} | {number(late)} |")
            label = f"{learners} learner{'s' * (learners != '1')}"
            curves |= {f"{label}#{seed}": [(s, v) for s, v, _ in run] for seed, run in runs.items()}
        panels.append(Panel(f"{task}: greedy returns", "seconds", "mean of 20 episodes", curves, levels=[threshold]))
    return [*lines, "", "The return at the end is the mean of all evaluations in the second half of the steps."], panels


# Name of the CSV file, of the section, and the function.
SECTIONS = [
    ("fig8", "Figure 8: latency by capacity", latency), ("fig9", "Figure 9: K", fanout),
    ("layout", "Section VI-G: layout", layout), ("fig10", "Figure 10: locks", locks),
    ("fig11", "Figure 11: inside other frameworks", frameworks),
    ("fig12", "Figure 12: design space exploration", exploration),
    ("scaling", "Scaling of actors and learners", scaling), ("rewards", "Returns against wall clock", rewards),
]
