# SPDX-License-Identifier: Apache-2.0
"""The pages about running a server name every metric, every limit and every reason to refuse."""

import re

from tree import ROOT, expect_none

SERVER = ROOT / "src" / "server"
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
SECURITY = (ROOT / "docs" / "security.md").read_text()
LIMITS = (ROOT / "docs" / "limits.md").read_text()


def without_line_ends(path):
    return re.sub(r"\\\n\s*", " ", path.read_text())


def block(text, name):
    """Returns the rows of an X macro."""
    found = re.search(rf"#define {name}\(X\)(.*)", text)
    assert found, name
    return found.group(1)


def metrics():
    header = without_line_ends(SERVER / "metrics/metrics.h")
    source = without_line_ends(SERVER / "http/metrics_text.c")
    names = re.findall(r'X\(\w+,\s*"(\w+)",\s*"(?:counter|gauge)"', block(header, "RP_LOOP_COUNTERS"))
    names += ["table_" + n for n in re.findall(r'X\(\w+,\s*"(\w+)"', block(header, "RP_TABLE_COUNTERS"))]
    names += ["table_" + n for n in re.findall(r'X\("(\w+)"', block(source, "TABLE_METRICS"))]
    names += ["durable_" + n for n in re.findall(r'X\("(\w+)"', block(source, "DURABLE_METRICS"))]
    for prefix, name in re.findall(r'head\(out, "reprise_(\w*)",\s*"(\w+)"', source):
        names.append(prefix + name)
    assert len(names) > 50
    return {"reprise_" + name for name in names}


def test_every_metric_is_described():
    described = set(re.findall(r"`(reprise_\w+)(?:\{[\w,]+\})?`", OPERATIONS))
    expect_none(metrics() - described)
    expect_none(described - metrics())


def test_alerts_use_metrics_that_exist():
    used = {re.sub(r"_(bucket|sum|count)$", "", name) if "seconds_" in name else name
            for name in re.findall(r"\breprise_\w+", OPERATIONS)}
    expect_none(used - metrics())


def test_every_limit_is_described_with_its_default():
    header = (ROOT / "include" / "reprise" / "server.h").read_text()
    fields = re.search(r"typedef struct rp_server_limits \{(.*?)\} rp_server_limits;", header,
                       re.DOTALL).group(1)
    limits = re.findall(r"(?:size_t|int64_t) (\w+);", fields)
    assert len(limits) > 20
    expect_none(name for name in limits if not re.search(rf"^\| `{name}` \| \S", SECURITY, re.M))


def test_every_reason_to_refuse_is_described():
    rows = block(without_line_ends(SERVER / "bounds/refusal.h"), "RP_REFUSALS")
    words = re.findall(r'X\(\w+, "(\w+)"\)', rows)
    assert len(words) > 30
    expect_none(word for word in words if f"`{word}`" not in SECURITY)


def test_every_kind_of_abuse_is_described():
    words = re.findall(r'case RP_ABUSE_\w+: return "(\w+)"', (SERVER / "bounds/abuse.c").read_text())
    assert len(words) > 5
    expect_none(word for word in words if f"`{word}`" not in LIMITS)


def test_every_method_has_its_role_in_the_page():
    rows = re.findall(r'\{\w+, "(\w+)", RP_METHOD_\w+, RP_ROLE_(\w+)\}',
                      (SERVER / "auth/method.c").read_text())
    assert len(rows) > 15
    expect_none(f"{name}: {role}" for name, role in rows if role != "NONE"
                and not re.search(rf"^\| `{role.lower()}` \|.*\b{name}\b", SECURITY, re.M))
