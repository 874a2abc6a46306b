# SPDX-License-Identifier: Apache-2.0
"""The page in Chromium, on servers with load: what it shows is compared with /v1/info."""

import json
import ssl
import subprocess

import pytest

from conftest import AXE, TOKENS, number

ITEM = {"observation": [0.5, 0.25, -1.0], "action": 1, "reward": 2.5}
CARD = """[...document.querySelectorAll(".card")].find((c) => c.querySelector("h3").textContent === %s)"""


def card(page, table):
    """The facts of a table's card: {"size": "3 of 10 items", "Inserts": "3", ...}."""
    found = CARD % json.dumps(table)
    return page.evaluate(f"""(() => {{
        const card = {found};
        if (!card) return null;
        const facts = Object.fromEntries([...card.querySelectorAll(".fact")].map((f) =>
            [f.querySelector("dt").textContent, f.querySelector("dd").textContent]));
        return {{...facts, size: card.querySelector(".size").textContent,
                 chip: card.querySelector(".chip")?.textContent ?? "",
                 limiter: card.querySelector(".limiter").textContent}};
    }})()""")


def wait_for_fact(page, table, key, value):
    found = CARD % json.dumps(table)
    page.wait(f"""[...({found})?.querySelectorAll(".fact") ?? []].some((f) =>
        f.querySelector("dt").textContent === {json.dumps(key)} &&
        f.querySelector("dd").textContent === {json.dumps(value)})""", f"{key} {value} of {table}")


def test_the_overview_equals_the_info_of_the_server(serve, show):
    server = serve(tables=["replay:prioritized:5", "other:uniform:1000"])
    page = show(server)
    assert server.insert("replay", [ITEM] * 8).wait(120) == 0
    assert server.sample("replay", 12).wait(120) == 0

    wait_for_fact(page, "replay", "Inserts", "8")
    wait_for_fact(page, "replay", "Samples", str(server.table("replay")["samples"]))
    table, shown = server.table("replay"), card(page, "replay")
    assert shown["size"].startswith(f"{table['size']} of {table['max_size']} items"), shown
    assert shown["Evictions"] == str(table["evictions"]) == "3"
    assert shown["Samples per insert"] == f"{table['samples'] / table['inserts']:.3g}"
    assert table["median_age_seconds"] > 0
    assert any(c.isdigit() for c in shown["Median age of items"]), shown
    other = card(page, "other")
    assert other["size"].startswith("0 of 1,000 items") and other["Median age of items"] == "–"
    health = page.text(".tiles")
    assert "Serving" in health or "serving" in health


def test_rates_and_counters_move_under_load(serve, show):
    server = serve(tables=["replay:uniform:100000"])
    assert server.insert("replay", [ITEM] * 50).wait(120) == 0
    page = show(server)
    page.wait_for_text("Tables")
    low = server.table("replay")["samples"]
    load = server.sample("replay", 20000)
    page.wait("""Number(document.querySelectorAll(".tile-value")[4].textContent.replace(/[^0-9.]/g, "")) > 0""",
              "samples a second")
    drawn = page.wait("""document.querySelector(".plot")?.getAttribute("aria-label")?.match(/samples ([1-9].*?),/)""",
                      "a plot of the samples")
    assert drawn
    assert load.wait(60) == 0
    high = server.table("replay")["samples"]
    assert high >= low + 20000
    wait_for_fact(page, "replay", "Samples", f"{high / 1000:.1f}k")


def test_a_writer_that_hangs_is_explained(serve, show):
    """The learner is gone: the page says which call waits, for how long, why, and what to look for."""
    server = serve(tables=["queue:queue:2", "replay:uniform:10"])
    page = show(server)
    writer = server.insert("queue", [ITEM] * 3, timeout=0)

    page.wait_for_text("insert into “queue” waits", ".verdict")
    page.wait_for_text("Is the learner running?", ".verdict")
    shown = page.text(".verdict")
    assert "The queue is full" in shown and "max_diff 2" in shown, shown
    assert page.evaluate("document.querySelector('.verdict').getBoundingClientRect().top") < 120
    assert "1 insert waits" in card(page, "queue")["limiter"]
    assert server.table("queue")["waiting"]["inserts"]["now"] == 1

    assert server.sample("queue", 1).wait(120) == 0
    assert writer.wait(120) == 0
    page.wait("!document.querySelector('.verdict').innerText.includes('waits')", "a verdict without waiting calls")


def test_a_reader_that_hangs_is_explained(serve, show):
    server = serve(tables=["replay:uniform:10,min_size=4"])
    page = show(server)
    assert server.insert("replay", [ITEM]).wait(120) == 0
    server.sample("replay", 1)
    page.wait_for_text("sample from “replay” waits", ".verdict")
    page.wait_for_text("it has 1 of the 4 items that it needs before the first sample", ".verdict")


def test_a_lost_server_is_noticed_and_found_again(serve, show):
    server = serve(tables=["replay:uniform:10"])
    page = show(server, lost=True)
    page.wait_for_text("Live", "#status")
    assert server.insert("replay", [ITEM] * 2).wait(120) == 0
    wait_for_fact(page, "replay", "Inserts", "2")

    server.kill()
    page.wait("/Not live since \\d\\d:\\d\\d:\\d\\d/.test(document.querySelector('#status').innerText)", "the time of the loss")
    page.wait("/Not live since .*, for .*: .* tries again/.test(document.querySelector('#alarm').innerText)", "a reason")
    assert card(page, "replay")["Inserts"] == "2"  # the last state stays, and is marked as old
    assert page.evaluate("document.querySelector('main').classList.contains('stale')")

    server.start()
    page.wait("document.querySelector('#status').innerText === 'Live'", "the server again")
    wait_for_fact(page, "replay", "Inserts", "0")
    assert page.text("#alarm") == ""
    assert not page.evaluate("document.querySelector('main').classList.contains('stale')")


HOSTILE = ["<script>window.hit=1</script>", "<img src=x onerror='window.hit=1'>", "\"><svg onload=window.hit=1>",
           "{{7*7}} ${7*7} %3Cb%3E &lt;b&gt;", "a/b?c#d", "..", "\u202egnp.exe\u2066", "n" * 255]


def test_hostile_names_are_shown_as_text(serve, show, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps({"tables": {name: "uniform:10" for name in HOSTILE}}))
    server = serve("--config", config)
    page = show(server)
    page.wait_for_text("Tables")
    assert {t["name"] for t in server.info()["tables"]} == set(HOSTILE)
    shown = page.wait("""document.querySelectorAll(".card h3").length === %d &&
        [...document.querySelectorAll(".card h3")].map((x) => x.textContent)""" % len(HOSTILE), "all cards")
    for name in HOSTILE[:6]:
        assert name in shown
    assert "\\u202egnp.exe\\u2066" in shown  # spelt out: it cannot turn the text around it
    assert any(x.startswith("n" * 120) and "255 characters" in x for x in shown)

    for name in HOSTILE:
        page.evaluate(f"location.hash = '#/table/' + encodeURIComponent({json.dumps(name)})")
        wanted = name.replace("\u202e", "\\u202e").replace("\u2066", "\\u2066")[:100]
        page.wait_for_text(wanted, "h1")
        page.wait_for_text("Options", "main")
        assert not page.text("main").startswith("There is no table")
    assert page.evaluate("[window.hit, document.querySelectorAll('main img, main script, main b b').length]") == [None, 0]


def test_a_token_is_asked_for_once_and_kept_in_the_session(serve, show, tokens):
    server = serve("--tokens", tokens, tables=["replay:uniform:10"], token=TOKENS["read"])
    page = show(server, lost=True)  # Chromium logs the status 401 as an error
    page.wait_for_text("This server asks for a token")
    assert "replay" not in page.text()

    page.click("#token-input")
    page.type("a wrong token")
    page.press("Enter")
    page.wait_for_text("The token was refused")
    page.evaluate("document.querySelector('#token-input').value = ''")
    page.click("#token-input")
    page.type(TOKENS["read"])
    page.press("Enter")
    page.wait_for_text("Tables")
    assert card(page, "replay") is not None

    assert not [a for a in page.requests() if "token-of" in a]
    assert page.evaluate("location.href") == server.address()
    assert page.evaluate("[document.cookie, localStorage.length, Object.values(sessionStorage).join()]") == [
        "", 0, TOKENS["read"]]
    page.go(server.address())  # the same tab again: it is not asked again
    page.wait_for_text("Tables")
    page.click("#token")
    page.wait_for_text("This server asks for a token")
    assert page.evaluate("sessionStorage.length") == 0


def test_the_page_works_over_tls_and_http2(serve, show, tokens, tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost"], cwd=tmp_path, check=True, capture_output=True)
    server = serve("--tls-cert", tmp_path / "cert.pem", "--tls-key", tmp_path / "key.pem", "--tokens", tokens,
                   tables=["replay:uniform:10"], token=TOKENS["admin"], scheme="https",
                   context=ssl.create_default_context(cafile=tmp_path / "cert.pem"))
    page = show(server, lost=True, certificates=False)
    page.wait_for_text("This server asks for a token")
    page.click("#token-input")
    page.type(TOKENS["admin"])
    page.press("Enter")
    page.wait_for_text("Tables")
    assert set(page.evaluate("performance.getEntriesByType('resource').filter((r) => r.name.includes('v1/info')).map((r) => r.nextHopProtocol)")) == {"h2"}


def test_the_page_fits_a_phone_and_a_wall_screen(serve, show):
    server = serve(tables=["replay:uniform:10,samples_per_insert=2,min_size=2", "x" * 200 + ":uniform:10"])
    page = show(server)
    page.wait_for_text("Tables")
    for width in (320, 390, 1280, 3840):
        page.resize(width, 800)
        for view in ("#/", "#/table/replay", "#/storage", "#/clients", "#/runs"):
            page.evaluate(f"location.hash = {view!r}")
            page.wait("document.querySelector('main h1')", "a view")
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, (view, width, wide)
    assert page.evaluate("parseFloat(getComputedStyle(document.documentElement).fontSize)") > 18


def test_the_keyboard_reaches_everything(serve, show):
    server = serve(tables=["replay:uniform:10"])
    page = show(server)
    page.wait_for_text("Tables")
    page.evaluate("document.activeElement.blur()")
    reached = []
    for _ in range(16):
        page.press("Tab")
        reached.append(page.evaluate("document.activeElement.innerText ?? ''"))
    assert reached[0] == "Skip to the content"
    for wanted in ("Overview", "Runs", "Storage", "Clients", "replay"):
        assert wanted in reached, reached
    page.evaluate("[...document.querySelectorAll('#nav a')].find((a) => a.innerText === 'Storage').focus()")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.press("Enter")
    page.wait_for_text("Storage", "h1")
    assert page.evaluate("document.activeElement.id") == "view"  # a screen reader begins at the new view
    assert page.evaluate("document.querySelector('[aria-current=page]').innerText") == "Storage"


def test_light_and_dark(serve, show):
    server = serve(tables=["replay:uniform:10"])
    page = show(server, dark=True)
    page.wait_for_text("Tables")
    back = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(back)
    page.click("#theme")
    light = page.evaluate(back)
    assert page.text("#theme") == "Theme: light" and light != dark
    page.go(server.address())
    assert page.evaluate(back) == light  # the choice is kept
    page.click("#theme")
    assert page.evaluate(back) == dark
    page.click("#theme")
    page.dark(False)
    assert page.text("#theme") == "Theme: system" and page.evaluate(back) == light


VIEWS = ["#/", "#/table/replay", "#/storage", "#/clients", "#/runs", "#/runs/dqn"]


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing(serve, show, dark):
    server = serve(tables=["replay:prioritized:1000,samples_per_insert=2,min_size=2", "queue:queue:1"])
    assert server.insert("replay", [ITEM] * 3).wait(120) == 0
    server.insert("queue", [ITEM] * 2, timeout=0)
    for seed in range(2):
        report(server, f"dqn-seed{seed}")
    page = show(server, dark=dark)
    page.wait_for_text("waits", ".verdict")
    page.evaluate(AXE.read_text() + "; 1")
    for view in VIEWS:
        page.evaluate(f"location.hash = {view!r}")
        page.wait("document.querySelector('main h1') && document.querySelector('#nav [aria-current]')", "a view")
        found = page.evaluate("""axe.run(document, {resultTypes: ["violations"]}).then((r) =>
            r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html.slice(0, 200)).join(" ")))""")
        assert found == [], (view, found)


def report(server, run, count=20):
    states = [[0.1 * i, 0, 0.05 * i, 0] for i in range(10)]
    scalars = [{"name": name, "step": 10 * i, "time": 1.7e9 + i, "value": float(i)} for i in range(count)
               for name in ("eval_return", "loss")]
    server.ask(f"/v1/runs/{run}", {
        "scalars": scalars, "actors": [{"name": "actor0", "epsilon": 0.1, "return": 19.5, "version": 7, "version_lag": 2}],
        "episode": {"env": "cartpole", "states": states}}, confirm=run)


def test_runs_are_drawn_with_all_seeds(serve, show):
    server = serve()
    for seed in range(3):
        report(server, f"dqn-seed{seed}")
    page = show(server, "/#/runs")
    page.wait_for_text("dqn")
    assert page.text("tbody tr td:nth-child(2)") == "3"
    page.click("tbody a")
    page.wait_for_text("3 seeds", "figure")
    label = page.wait("document.querySelector('.plot')?.getAttribute('aria-label')", "a curve")
    assert label == "eval_return: mean of all 19"
    page.wait_for_text("actor0", "table")
    page.wait("document.querySelector('.episode canvas')", "an episode")
    drawn = """(() => { const c = document.querySelector(".episode canvas"), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
        let n = 0; for (let i = 3; i < d.length; i += 4) if (d[i]) n++; return n; })()"""
    assert page.evaluate(drawn) > 1000
    page.click(".player button")
    page.wait_for_text("9 / 9", ".player")
    page.evaluate("window.saved = []; URL.createObjectURL = (blob) => { blob.text().then((t) => saved.push(t)); return 'blob:'; }; HTMLAnchorElement.prototype.click = function () { saved.push(this.download); }")
    page.click("main .segments .segments button")
    page.wait("saved.length === 2", "a file")
    file, text = sorted(page.evaluate("saved"), key=len)
    assert file == "dqn-seed0.csv" and text.startswith("name,step,time,value\n"), (file, text[:100])

    for env, state in {"mountain_car": [-0.5, 0.01], "acrobot": [1, 0, 1, 0, 0, 0], "pendulum": [1, 0, 0], "catch": [2, 3, 1]}.items():
        server.ask(f"/v1/runs/{env}", {"episode": {"env": env, "states": [state]}}, confirm=env)
        page.evaluate(f"location.hash = '#/runs/{env}'")
        page.wait_for_text(f"{env}, 1 step", ".episode")
        assert page.evaluate(drawn) > 300


def test_a_run_that_picks_its_threads_says_how_it_moved_them(serve, show):
    server, scalars = serve(), []
    for i, (actors, learners, steps, predicted, waits) in enumerate(
            [(4, 4, 20000, 21000, 0.55), (4, 4, 20500, 21000, 0.56), (6, 2, 29000, 30000, 0.02), (6, 2, 31000, 30000, 0.01)]):
        values = {"actors": actors, "learners": learners, "steps_per_second": steps, "predicted_steps_per_second": predicted,
                  "updates_per_second": steps / 4, "actors_wait": 0.03, "learner_waits": waits}
        scalars += [{"name": name, "step": 100 * i, "time": 1000 + i, "value": value} for name, value in values.items()]
    server.ask("/v1/runs/apex", {"scalars": scalars}, confirm="apex")
    server.ask("/v1/runs/plain", {"scalars": [s for s in scalars if "predicted" not in s["name"]]}, confirm="plain")
    page = show(server, "/#/runs/apex")
    page.wait_for_text("Threads", "caption")
    rows = page.evaluate("""[...document.querySelectorAll("tbody tr")].map((r) => [...r.children].slice(1).map((c) => c.textContent))""")
    assert rows == [["6", "2", "31.0k", "30.0k", "7,750", "3 %", "1 %"], ["4", "4", "20.5k", "21.0k", "5,125", "3 %", "56 %"]]
    page.evaluate("location.hash = '#/runs/plain'")
    page.wait_for_text("plain", "h1")
    page.wait("document.querySelector('.plot')", "a curve")
    assert "Threads" not in page.text("main")


def test_the_mean_of_seeds_needs_no_common_steps(serve, show):
    page = show(serve())
    means = page.evaluate("""import("./curves.js").then((curves) => {
        const { x, values } = curves.aligned([{ step: [0, 10], value: [0, 10] }, { step: [5, 15], value: [1, 1] },
                                              { step: [0, 15], value: [4, 4] }], "step");
        return [x, curves.mean(x, values)];
    })""")
    assert means == [[0, 5, 10, 15], [2, 10 / 3, 5, 2.5]]


def test_hostile_runs_are_shown_as_text(serve, show):
    server = serve()
    run, scalar = "<img src=x onerror=window.hit=1>", "<b onmouseover=window.hit=1>loss"
    server.ask("/v1/runs/" + "%3Cimg%20src%3Dx%20onerror%3Dwindow.hit%3D1%3E", {
        "scalars": [{"name": scalar, "step": 1, "time": 1.0, "value": 2.0}, {"name": scalar, "step": 2, "time": 2.0, "value": 3.0}],
        "episode": {"env": "<script>", "states": [[1.0]]}}, confirm=run)
    page = show(server, "/#/runs")
    page.wait_for_text(run)
    page.click("tbody a")
    page.wait_for_text(scalar, "figure")
    assert page.evaluate("[window.hit, document.querySelectorAll('main img, main script').length]") == [None, 0]


def test_hostile_numbers_do_not_stop_the_page(serve, show):
    """Each of these once kept the page busy for minutes, or for ever."""
    server = serve()
    server.ask("/v1/runs/board", {"scalars": [{"name": "x", "step": 1, "value": 1.0}],
                                  "episode": {"env": "catch", "states": [[1e30, 0.0, 0.0]]}}, confirm="board")
    server.ask("/v1/runs/far", {"scalars": [{"name": "x", "step": 10**17 + i, "value": 1.0 + i} for i in (0, 32)]},
               confirm="far")
    page = show(server, "/#/runs/board")
    page.wait("document.querySelector('.episode canvas')", "the drawing of the episode")
    page.go(server.address("/#/runs/far"))
    page.wait("document.querySelector('.plot')", "the curve")
    groups = page.evaluate("""import("./runs.js").then(({ groupOf }) => [
        "dqn-cartpole-seed3", "dqn/3", "dqn_s3", "xseed 4", "a-1-2", "dqn", "class3", "3",
        "-".repeat(50000) + "1x"].map((name) => groupOf(name).slice(0, 20)))""")
    assert groups == ["dqn-cartpole", "dqn", "dqn", "x", "a-1", "dqn", "class3", "3", "-" * 20]


def test_names_of_properties_are_names_of_series(serve, show):
    """Every object of JavaScript has properties such as constructor and toString."""
    server = serve()
    names = ["constructor", "toString", "__proto__", "hasOwnProperty", "loss"]
    server.ask("/v1/runs/props", {
        "scalars": [{"name": name, "step": i, "time": 1.0 + i, "value": float(i)} for i in range(3) for name in names],
        "episode": {"env": "constructor", "states": [[1.0, 2.0]]}}, confirm="props")
    page = show(server, "/#/runs/props")
    for name in names:
        page.wait_for_text(name, "section.charts")
    labels = page.wait("(() => { const all = [...document.querySelectorAll('.plot')].map((p) => p.getAttribute('aria-label')); return all.length === 5 && all; })()", "five curves")
    assert sorted(labels) == sorted(f"{name}: {name} 2" for name in names)
    assert page.evaluate("document.querySelector('.episode canvas')") is None


def test_a_run_that_began_anew_is_read_again(serve, show):
    server = serve()
    page = show(server)
    page.wait_for_text("Tables")
    found = page.evaluate("""import("./runs.js").then(({ join }) => {
        const one = (started, next, value) => ({ started, next, last_seen: next, series: { x: { step: [next], time: [1], value: [value] } } });
        const first = join(one(5, 3, 1), null), more = join(one(5, 4, 2), first);
        const again = join(one(9, 1, 7), more), names = Object.keys(again.series), all = join(one(9, 1, 7), again);
        return [more.series.x.value, again.next, names, all.series.x.value];
    })""")
    assert found == [[1, 2], 0, [], [7]]


def test_the_page_moves_no_byte_for_a_file_that_it_has(serve, show):
    server = serve()
    page = show(server)
    page.wait_for_text("Tables")
    sizes = page.evaluate("performance.getEntriesByType('resource').filter((r) => !r.name.includes('/v1/')).map((r) => [r.name, r.encodedBodySize])")
    assert 60000 < sum(size for _, size in sizes) < 150000, sizes
    page.go(server.address())
    page.wait_for_text("Tables")
    again = page.evaluate("performance.getEntriesByType('resource').filter((r) => !r.name.includes('/v1/')).map((r) => [r.name, r.transferSize])")
    had = {name for name, _ in sizes}  # a file may come after the page has shown its tables
    assert [(name, size) for name, size in again if name in had and size > 400] == []  # headers of 304
    assert had & {name for name, _ in again}


def test_words_about_what_moves(serve, show):
    """The verdict as a function of the state."""
    server = serve(tables=["replay:uniform:10,samples_per_insert=1,min_size=1"])
    page = show(server)
    page.wait_for_text("Tables")
    info = server.info()

    def verdict(change, rates=None):
        return page.evaluate(f"""(async () => {{
            const {{ verdict, titleOf }} = await import("./why.js");
            const info = {json.dumps(info)}, table = info.tables[0];
            const keys = ["inserts", "samples", "updates", "evictions", "inBytes", "outBytes", "insertWaits", "sampleWaits"];
            const series = {{t: [1, 2, 3]}}, rates = {json.dumps(rates or {})};
            for (const key of keys) series[key] = Array(3).fill(rates[key] ?? 0);
            ({change})(info, table);
            const found = verdict(info, series, new Map([[table.name, series]]));
            return [found.level, found.title, found.text, ...found.stuck.map(titleOf)];
        }})()""")

    assert verdict("() => {}")[:2] == ["note", "Nothing moves: no client calls the server."]
    assert verdict("() => {}", {"inserts": 5})[:2] == ["good", "Everything moves."]
    paused = verdict("(_, t) => { t.inserts_paused = true; }")
    assert paused[:2] == ["bad", "Nothing moves: tables are paused."] and "Inserts into “replay” are paused." in paused
    held = "(_, t) => { t.waiting.samples = {now: 2, longest_seconds: 75}; t.waiting.calls = [{kind: 'sample', why: 'w'}]; }"
    assert verdict(held)[1] == "Nothing moves: calls wait."
    assert verdict(held, {"inserts": 5})[:2] == ["note", "1 table of 1 is held."]
    assert verdict(held)[3] == "2 samples from “replay” wait, the first for 1 min 15 s."
    drawing = ("(i) => { i.rollouts = [{name: 'train', waiting: {inserts: {now: 0}, samples: {now: 1, longest_seconds: %s}, "
               "calls: [{kind: 'sample', why: 'w'}]}}]; }")
    assert verdict(drawing % 8)[:2] == ["note", "Calls wait for rollouts."]
    assert verdict(drawing % 8)[3] == "1 draw from “train” waits, for 8.0 s."
    assert verdict(drawing % 1) == ["good", "Calls wait for rollouts.", "None has waited for long."]
    loading = verdict("(i) => { i.server.health = 'loading'; i.server.why = 'reading the journal'; }")
    assert loading[:3] == ["bad", "The server is loading.", "reading the journal"]
    brief = "(_, t) => { t.waiting.inserts = {now: 1, longest_seconds: 0.2}; }"
    assert verdict(brief, {"inserts": 9})[:2] == ["good", "Everything moves."]


def dialog(page, button):
    """Opens the dialog of an action, and returns its text."""
    page.click(button)
    page.wait("document.querySelector('dialog[open]')", "a dialog")
    return page.text("dialog")


def test_a_pause_is_made_and_undone(serve, show):
    server = serve(tables=["replay:uniform:10", "other:uniform:10"])
    page = show(server, "/#/table/replay")
    assert "Pause the table “replay”?" in dialog(page, "#pause")
    page.press("Escape")
    page.wait("!document.querySelector('dialog')", "no dialog")
    assert not server.table("replay")["inserts_paused"]

    dialog(page, "#pause")
    page.click("dialog label:nth-of-type(2) input")  # inserts alone
    page.click("dialog button[type=submit]")
    page.wait_for_text("table 'replay' is paused: inserts", "dialog")
    page.press("Enter")
    page.wait_for_text("inserts paused", "h1")
    assert [server.table("replay")[x] for x in ("inserts_paused", "samples_paused")] == [True, False]
    assert not server.table("other")["inserts_paused"]

    server.insert("replay", [ITEM], timeout=0)
    page.evaluate("location.hash = '#/'")
    page.wait_for_text("Inserts into “replay” are paused; 1 insert into “replay” waits", ".verdict")
    page.wait_for_text("An administrator has paused this side", ".verdict")
    page.evaluate("location.hash = '#/table/replay'")
    assert "Resume the table “replay”?" in dialog(page, "#resume")
    page.click("dialog button[type=submit]")
    page.wait_for_text("is resumed", "dialog")
    page.press("Enter")
    page.wait("!document.querySelector('h1 .chip')", "a table that is not paused")
    assert not server.table("replay")["inserts_paused"]


def test_options_change_and_a_reset_asks_for_the_name(serve, show, tmp_path):
    server = serve("--data", tmp_path / "data", tables=["replay:uniform:10"])
    assert server.insert("replay", [ITEM] * 4).wait(120) == 0
    page = show(server, "/#/table/replay", lost=True)  # Chromium logs the refusal below as an error
    dialog(page, "#alter")
    page.evaluate("document.querySelector('dialog input').select()")
    page.type("2")
    page.click("dialog button[type=submit]")
    page.wait_for_text("is altered", "dialog")
    page.press("Enter")
    assert server.table("replay")["max_size"] == 2

    dialog(page, "#alter")
    page.evaluate("document.querySelector('dialog input').select()")
    page.type("-1")
    page.click("dialog button[type=submit]")
    page.wait_for_text("max_size", "dialog .wrong")
    page.press("Escape")

    dialog(page, "#reset")
    assert page.evaluate("document.querySelector('dialog button[type=submit]').disabled")
    page.click("dialog label input")
    page.type("replay")
    page.click("dialog button[type=submit]")
    page.wait_for_text("it has no items", "dialog")
    assert server.table("replay")["size"] == 0

    page.press("Enter")
    page.evaluate("location.hash = '#/storage'")
    before = server.info()["durable"]["checkpoints"]
    dialog(page, "#checkpoint")
    page.click("dialog button[type=submit]")
    page.wait_for_text("checkpoint is", "dialog .done")
    page.press("Enter")
    # On a slow disk the response does not wait for the end of the checkpoint.
    durable = server.wait_for(lambda info: info["durable"]["checkpoints"] > before)["durable"]
    assert durable["checkpoints"] == before + 1
    page.wait_for_text(f"number {durable['last_checkpoint']['number']}", "main")


def test_a_reader_may_look_and_not_change(serve, show, tokens):
    server = serve("--tokens", tokens, tables=["replay:uniform:10"], token=TOKENS["read"])
    page = show(server, "/#/table/replay", lost=True)
    page.click("#token-input")
    page.type(TOKENS["read"])
    page.press("Enter")
    page.wait_for_text("Options")
    dialog(page, "#pause")
    page.click("dialog button[type=submit]")
    page.wait_for_text("a token with the role admin is needed", "dialog .wrong")
    assert not server.table("replay")["inserts_paused"]


def save_npy(path, descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header.encode() + data)


def test_the_items_of_a_table(serve, show, tmp_path):
    """Histograms, the newest items, and the columns of an item: pictures, a plot, and texts."""
    pixels = bytes(range(256)) * (2 * 16 * 16 * 3 // 256)
    save_npy(tmp_path / "camera.npy", "|u1", (2, 16, 16, 3), pixels)
    save_npy(tmp_path / "grey.npy", "|u1", (2, 4, 8, 8), bytes(2 * 4 * 8 * 8))
    save_npy(tmp_path / "state.npy", "<f4", (2, 5), b"".join(int(x).to_bytes(4, "little") for x in [0x3F800000] * 10))
    server = serve(tables=["replay:prioritized:10"])
    assert server.command("insert", "replay", tmp_path / "camera.npy", tmp_path / "grey.npy", tmp_path / "state.npy").wait(120) == 0
    assert server.insert("replay", [{"word": "<i>text</i>"}]).wait(120) == 0
    page = show(server, "/#/table/replay")
    page.wait_for_text("a random sample of 3")
    assert page.evaluate("[...document.querySelectorAll('.histogram')].length") == 4
    keys = page.wait("""(() => { const found = [...document.querySelectorAll("td a.mono")].map((a) => a.textContent);
        return found.length === 3 && found; })()""", "three items")
    assert keys == [item["key"] for item in server.ask("/v1/tables/replay")["recent"]]

    page.evaluate(f"location.hash = '#/table/replay/item/{keys[0]}'")
    page.wait_for_text("<i>text</i>", ".values")
    page.evaluate(f"location.hash = '#/table/replay/item/{keys[1]}'")
    frames = page.wait("""document.querySelectorAll(".frame canvas").length === 5 &&
        [...document.querySelectorAll(".frame canvas")].map((c) => [c.width, c.height, ...c.getContext("2d").getImageData(1, 0, 1, 1).data])""",
                       "a picture in colour and four in grey")
    first = 16 * 16 * 3  # the second item's picture begins here
    assert frames[0] == [16, 16, *pixels[first + 3:first + 6], 255]
    assert frames[1:] == [[8, 8, 0, 0, 0, 255]] * 4
    page.wait_for_text("1  1  1  1  1", ".values")
    assert page.wait("document.querySelector('.plot')?.getAttribute('aria-label')", "a plot") == "Values: value 1"


def test_clients_and_what_they_wait_for(serve, show):
    server = serve(tables=["queue:queue:1"])
    server.insert("queue", [ITEM] * 2, timeout=0)
    page = show(server, "/#/clients")
    page.wait_for_text("to insert into 'queue'", "table")
    listed = server.ask("/v1/clients")["clients"]
    [waiting] = [c for c in listed if c["waits_for"]]
    assert waiting["address"] in page.text("table")
    page.evaluate("location.hash = '#/'")
    page.wait_for_text(f"Waiting client: {waiting['address']}", ".verdict")


def test_storage_tells_what_info_tells(serve, show, tmp_path):
    server = serve("--data", tmp_path / "data", "--durability", "interval", tables=["replay:uniform:10"])
    assert server.insert("replay", [ITEM] * 4).wait(120) == 0
    page = show(server, "/#/storage")
    page.wait_for_text("Durability “interval”")
    durable = server.info()["durable"]
    page.wait_for_text(f"number {durable['last_checkpoint']['number']}", "main")
    page.wait("document.querySelector('main').innerText.includes('Changes logged')", "the journal")
    logged = page.evaluate("[...document.querySelectorAll('.fact')].find((f) => f.querySelector('dt').textContent === 'Changes logged').querySelector('dd').textContent")
    assert number(logged) == durable["lsn"] > 0
