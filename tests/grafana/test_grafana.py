# SPDX-License-Identifier: Apache-2.0
"""The files of docs/grafana in a real Prometheus that scrapes a server with load."""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "page"))
from conftest import Server, free_port  # noqa: E402: a server process is the same there

ALERTS = ROOT / "docs" / "grafana" / "alerts.yaml"
DASHBOARD = ROOT / "docs" / "grafana" / "reprise.json"
ITEM = {"observation": [0.5, 0.25], "action": 1}
SECONDS = 60


def promtool(*words):
    return subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True, timeout=SECONDS)


def test_promtool_accepts_the_alert_rules():
    done = promtool("check", "rules", ALERTS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_evaluates_the_expressions_of_the_page(loaded):
    _, prometheus = loaded
    page = (ROOT / "docs" / "operations.md").read_text()
    table = page.split("| alert | expression | why |")[1].split("\n\n")[0]
    expressions = re.findall(r"^\| [^|`]+ \| `(.*?)` \|", table, re.MULTILINE)
    assert len(expressions) == table.count("\n| ")
    [limit] = [x for x in expressions if "reprise_limit" in x]
    prometheus.wait(limit, lambda: prometheus.ask("query", query=limit.replace("> 0.9", "< 0.9"))["result"])
    for expression in expressions:
        prometheus.ask("query", query=expression.replace("\\|", "|"))


def test_promtool_accepts_the_configuration_of_the_page(tmp_path):
    page = (ROOT / "docs" / "operations.md").read_text()
    [block] = re.findall(r"^```yaml prometheus\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "prometheus.yml").write_text(block)
    done = promtool("check", "config", "--syntax-only", tmp_path / "prometheus.yml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_fire_when_they_should():
    done = promtool("test", "rules", ROOT / "tests" / "grafana" / "alerts_test.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def queries(dashboard):
    """Yields (panel, query) of every target, with the variables of Grafana replaced."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            text = re.sub(r"\$\{?(instance|table)\}?", ".*", target["expr"])
            yield panel["title"], text.replace("$__rate_interval", "10s")


class Prometheus:
    def __init__(self, folder, target):
        self.port = free_port()
        config = folder / "prometheus.yml"
        config.write_text(json.dumps({  # JSON is YAML
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "1s"},
            "rule_files": [str(ALERTS)],
            "scrape_configs": [{"job_name": "reprise", "static_configs": [{"targets": [target]}]}]}))
        done = promtool("check", "config", config)
        assert done.returncode == 0, done.stdout + done.stderr
        self.log = folder / "prometheus.log"
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'series'}",
             f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=error"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log.open("wb"),
            env={**os.environ, "GOMAXPROCS": "1"})

    def ask(self, path, **parameters):
        address = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(address, timeout=SECONDS) as response:
            return json.loads(response.read())["data"]

    def wait(self, what, condition):
        until = time.monotonic() + SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            try:
                found = condition()
                if found:
                    return found
            except (OSError, socket.timeout):
                pass
            time.sleep(0.1)
        raise AssertionError(f"no {what}: {self.log.read_text()}")

    def close(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """A server with everything that the dashboard shows: a table that moves, calls that wait, a
    journal, and a call that fails."""
    folder = tmp_path_factory.mktemp("grafana")
    server = Server("--data", folder / "data", "--durability", "interval",
                    tables=["replay:prioritized:100,samples_per_insert=4,min_size=1,error_buffer=1000000", "queue:queue:1"])
    prometheus = Prometheus(folder, f"127.0.0.1:{server.port}")
    server.insert("queue", [ITEM] * 2, timeout=0)
    yield server, prometheus
    prometheus.close()
    server.close()


def has_numbers(prometheus, query):
    found = prometheus.ask("query", query=query)
    return [r for r in found["result"] if r["value"][1] != "NaN"]


def test_every_query_of_the_dashboard_returns_data(loaded):
    server, prometheus = loaded
    dashboard = json.loads(DASHBOARD.read_text())
    asked = list(queries(dashboard))
    assert len(asked) > 30
    prometheus.wait("scrape", lambda: has_numbers(prometheus, "reprise_uptime_seconds"))
    left = asked
    until = time.monotonic() + SECONDS
    while left and time.monotonic() < until:
        assert server.insert("replay", [ITEM] * 8).wait(120) == 0
        assert server.sample("replay", 8).wait(120) == 0
        assert server.command("why", "none").wait(120) == 1
        left = [(title, query) for title, query in left if not has_numbers(prometheus, query)]
    assert not left, left


def test_the_variables_of_the_dashboard_have_values(loaded):
    _, prometheus = loaded
    dashboard = json.loads(DASHBOARD.read_text())
    asked = {v["name"]: v["query"]["query"] for v in dashboard["templating"]["list"] if v["type"] == "query"}
    assert set(asked) == {"instance", "table"}
    for name, query in asked.items():
        series, label = re.fullmatch(r"label_values\((.*), (\w+)\)", query).groups()
        found = prometheus.ask(f"label/{label}/values", **{"match[]": series.replace("$instance", ".*")})
        assert found and (name != "table" or found == ["queue", "replay"]), (name, found)


def test_panels_have_units_and_do_not_overlap():
    dashboard = json.loads(DASHBOARD.read_text())
    taken = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
        if panel["type"] != "row":
            assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]


def test_prometheus_has_loaded_the_rules(loaded):
    _, prometheus = loaded
    groups = prometheus.wait("rules", lambda: prometheus.ask("rules")["groups"])
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) == 9
    prometheus.wait("evaluation", lambda: all(
        rule["health"] == "ok" for group in prometheus.ask("rules")["groups"] for rule in group["rules"]))
