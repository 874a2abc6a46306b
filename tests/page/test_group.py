# SPDX-License-Identifier: Apache-2.0
"""The work of the page for a group of runs is bounded, whatever the runs report. Each bound is judged by a
count: of rows, of steps, of curves and plots that were made."""

COUNT = """Promise.all([import("./curves.js"), import("./charts.js")]).then(([curves, charts]) => {
    window.made = () => [curves.work.curves, curves.work.points, charts.work.plots]; })"""


def report(server, run, scalars=(), actors=()):
    server.ask(f"/v1/runs/{run}", {"scalars": list(scalars), "actors": list(actors)}, confirm=run)


def points(name, steps):
    return [{"name": name, "step": step, "time": 1.7e9 + step, "value": float(step)} for step in steps]


def polls(page, count):
    """Waits until the page has drawn the state of the server several times."""
    page.evaluate("import('./live.js').then((m) => { window.polled = 0; m.onChange(() => window.polled++); })")
    page.wait(f"window.polled >= {count}", "the state of the server")


def test_few_of_many_actors_are_shown(serve, show):
    server = serve()
    for seed in range(3):
        report(server, f"many-{seed}", actors=[{"name": f"a{i}", "version": i} for i in range(256)])
    report(server, "many-0", actors=[{"name": "a7", "version": 1000}])
    page = show(server, "/#/runs/many")
    page.wait_for_text("and 704 more; these 64 reported last")
    assert page.evaluate("document.querySelectorAll('tbody tr').length") == 64
    rows = page.evaluate("""[...document.querySelectorAll("tbody tr")].map((row) => row.innerText.split("\\t"))""")
    assert [row[4] for row in rows if row[:2] == ["many-0", "a7"]] == ["1,000"]


def test_the_table_of_actors_is_made_when_it_changes(serve, show):
    page = show(serve())
    same = page.evaluate("""import("./runs.js").then(({ actorsTable, latestActors }) => {
        let now = 5000;
        Date.now = () => now;
        const seed = (run, last_seen) => [run, { actors: [{ name: "a", last_seen }] }];
        const table = actorsTable(), seeds = [seed("x", 1), seed("y", 2)], first = table(seeds);
        const again = table([...seeds]) === first, other = table([seeds[0], seed("y", 3)]) === first;
        now += 1000;
        const many = [["x", { actors: Array.from({ length: 100 }, (_, i) => ({ name: String(i), last_seen: i })) }]];
        const { rows, more } = latestActors(many);
        return [again, other, table(seeds) === first, rows.length, more, rows[0].actor.name];
    })""")
    assert same == [True, False, False, 64, 36, "36"]


def test_seeds_share_a_grid_of_few_steps(serve, show):
    page = show(serve())
    found = page.evaluate("""import("./curves.js").then(({ aligned, mean, work }) => {
        const seed = (s, step) => ({ step: Array.from({ length: 2048 }, (_, i) => step(i, s)), value: new Array(2048).fill(s) });
        const before = work.points, grids = [(i, s) => (i * 32 + s) * 7, (i, s) => 1e17 + 16 * (i % 8), () => 5,
            (i, s) => (i % 2 ? 1.7e308 : -1.7e308), (i) => i * 7].map((step) => {
                const all = Array.from({ length: 32 }, (_, s) => seed(s, step)), { x, values } = aligned(all, "step");
                const ascends = x.every((a, i) => i === 0 || x[i - 1] < a), kept = values.every((row, s) => row.every((v) => v === null || v === s));
                return [x.length, ascends, kept, Math.max(...mean(x, values))];
            });
        return [grids, work.points - before];
    })""")
    assert found == [[[200, True, True, 15.5], [2, True, True, 15.5], [1, True, True, 15.5], [200, True, True, 15.5],
                      [200, True, True, 15.5]], 5 * 32 * 2048], found


def test_a_curve_is_made_again_when_its_points_change(serve, show):
    server = serve()
    for seed in range(2):
        report(server, f"dqn-{seed}", points("loss", range(seed, 600, 2)) + points("grad", range(3)))
    page = show(server, "/#/runs/dqn")
    page.wait("document.querySelectorAll('canvas').length === 2", "two curves")
    page.wait_for_text("2 seeds", "figure")
    polls(page, 2)
    page.evaluate(COUNT)
    curves, read, plots = page.evaluate("made()")
    polls(page, 3)
    assert page.evaluate("made()") == [curves, read, plots]
    report(server, "dqn-1", points("loss", [700]))
    page.wait(f"made()[0] > {curves}", "a new curve")
    polls(page, 2)
    assert page.evaluate("made()") == [curves + 1, read + 601, plots + 1]


def test_curves_are_drawn_where_somebody_looks(serve, show):
    server = serve()
    for seed in range(2):
        report(server, f"wide-{seed}", [p for i in range(100) for p in points(f"s{i:02}", range(3))])
    page = show(server, "/#/runs/wide")
    page.wait("document.querySelectorAll('figure canvas').length > 0", "a curve")
    last = "[...document.querySelectorAll('figure .plot')].at(-1)"
    assert page.wait(f"{last}?.getAttribute('aria-label') === 's99: mean of all 2'", "the text of the last curve")
    polls(page, 2)
    assert page.evaluate("document.querySelectorAll('figure').length") == 100
    assert page.evaluate("document.querySelectorAll('figure canvas').length") < 40
    page.evaluate(f"{last}.scrollIntoView()")
    page.wait(f"{last}.querySelector('canvas')", "the last curve")


def test_a_group_has_at_most_128_curves(serve, show):
    server = serve()
    for seed in range(2):
        report(server, f"names-{seed}", [{"name": f"s{seed}-{i}", "step": 1, "value": 1.0} for i in range(100)])
    page = show(server, "/#/runs/names")
    page.wait_for_text("and 72 more series; the exports have all.")
    assert page.evaluate("document.querySelectorAll('figure').length") == 128
