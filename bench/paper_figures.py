# SPDX-License-Identifier: Apache-2.0
"""Figures 5, 6 and 7 of the Reverb paper (Cassirer et al. 2021), for our server.

Runs `bench_server figures`, with the load and the server on this machine, and writes
build/paper/figures.csv and build/paper/figures.svg. With --csv FILE it only draws that file.
"""

import argparse
import csv
import math
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
SERVER = ROOT / "build" / "release" / "bench" / "bench_server"
FOLDER = ROOT / "build" / "paper"

# Panels: title, figure, column of the CSV, unit, and the column by which curves differ.
PANELS = [
    ("5a  inserts", "5", "items_per_s", "items/s", "payload_bytes"),
    ("5b  inserts", "5", "bytes_per_s", "bytes/s", "payload_bytes"),
    ("6a  samples", "6", "items_per_s", "items/s", "payload_bytes"),
    ("6b  samples", "6", "bytes_per_s", "bytes/s", "payload_bytes"),
    ("7  inserts of 400 B", "7", "items_per_s", "items/s", "tables"),
]
COLOURS = ["#1b6ca8", "#d1495b", "#3a7d44", "#b07d12"]
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 440, 300, 62, 34, 92, 44


def measure(quick, path):
    command = [str(SERVER), "figures", *(["--quick"] * quick)]
    with open(path, "w", encoding="utf-8") as out, \
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            out.write(line)
            print(line, end="", flush=True)
    if process.returncode != 0:
        sys.exit(process.returncode)


def curves(rows, figure, column, key):
    """Returns {name of a curve: [(clients, value)]}, in the order of the file."""
    found = {}
    for row in rows:
        if row["figure"] == figure:
            point = int(row["clients"]), max(1.0, float(row[column]))
            found.setdefault(int(row[key]), []).append(point)
    return found


def short(value):
    """Formats a round number with a suffix: 1000 is 1k."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def label(key, value):
    if key == "payload_bytes":
        return f"{short(value)}B"
    return f"{value} table{'s' if value > 1 else ''}"


class Panel:
    """One plot. The x axis is the number of clients. The y axis is logarithmic; if all curves are
    within a factor of ten, it is linear and starts at 0."""

    def __init__(self, found, column, row):
        values = [v for points in found.values() for _, v in points]
        self.low = 10 ** math.floor(math.log10(min(values)))
        self.high = 10 ** math.ceil(math.log10(max(values)))
        self.step = 0  # between grid lines; 0: a factor of ten
        if self.high <= self.low * 10 or max(values) < 10 * min(values):
            self.low, self.step = 0, 10 ** math.floor(math.log10(max(values))) / 2
            self.high = math.ceil(max(values) / self.step) * self.step
        self.most = max(c for points in found.values() for c, _ in points)
        self.x0, self.y0 = column * WIDTH + LEFT, row * HEIGHT + TOP
        self.width, self.height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(self, clients):
        return self.x0 + self.width * clients / self.most

    def y(self, value):
        if self.step:
            share = value / self.high
        else:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.y0 + self.height * (1 - share)

    def axes(self, title, unit):
        bottom = self.y0 + self.height
        yield (f'<text x="{self.x0}" y="{self.y0 - 12}" class="title">{title}, {unit}</text>')
        value = self.low
        while value <= self.high * 1.01:
            y = self.y(value)
            yield (f'<line x1="{self.x0}" x2="{self.x0 + self.width}" y1="{y:.1f}" y2="{y:.1f}" '
                   f'class="grid"/><text x="{self.x0 - 6}" y="{y + 4:.1f}" class="up">'
                   f'{short(value)}</text>')
            value = value + self.step if self.step else value * 10
        for clients in range(0, self.most + 1, 50):
            yield (f'<text x="{self.x(clients):.1f}" y="{bottom + 16}" class="along">'
                   f'{clients}</text>')
        yield (f'<text x="{self.x0 + self.width / 2}" y="{bottom + 32}" class="along">'
               f'clients</text>')

    def curve(self, points, colour):
        path = " ".join(f"{self.x(c):.1f},{self.y(v):.1f}" for c, v in points)
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>'
        for c, v in points:
            yield f'<circle cx="{self.x(c):.1f}" cy="{self.y(v):.1f}" r="2.4" fill="{colour}"/>'

    def names(self, ends):
        """Draws the names of curves, (last value, colour, name), at their ends without overlap."""
        lowest = self.y0 - 100.0
        for value, colour, name in sorted(ends, reverse=True):
            lowest = max(lowest + 13, self.y(value) + 4)
            yield (f'<text x="{self.x(self.most) + 7:.1f}" y="{lowest:.1f}" fill="{colour}">'
                   f'{name}</text>')


def draw(rows):
    style = ("text{font:12px sans-serif}.title{font-weight:bold}.up{text-anchor:end}"
             ".along{text-anchor:middle}.grid{stroke:#ddd}")
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * WIDTH}" '
             f'height="{3 * HEIGHT}">', f"<style>{style}</style>",
             '<rect width="100%" height="100%" fill="white"/>']
    for i, (title, figure, column, unit, key) in enumerate(PANELS):
        found = curves(rows, figure, column, key)
        if not found:
            continue
        panel = Panel(found, i % 2, i // 2)
        lines += panel.axes(title, unit)
        ends = []
        for colour, (value, points) in zip(COLOURS, found.items()):
            lines += panel.curve(points, colour)
            ends.append((points[-1][1], colour, label(key, value)))
        lines += panel.names(ends)
    return "\n".join([*lines, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--csv", type=pathlib.Path)
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = options.csv or FOLDER / "figures.csv"
    if options.csv is None:
        measure(options.quick, path)
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    plot = path.with_suffix(".svg")
    plot.write_text(draw(rows), encoding="utf-8")
    print(f"wrote {path} and {plot}")


if __name__ == "__main__":
    main()
