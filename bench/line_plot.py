# SPDX-License-Identifier: Apache-2.0
"""Draws panels of curves as an SVG, for the figures of papers."""

import dataclasses
import math
import pathlib
import sys
from html import escape

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
from curves import COLOURS  # noqa: E402

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 460, 290, 58, 34, 130, 44


@dataclasses.dataclass
class Panel:
    """One plot: curves are {name: [(x, y), ...]}. Curves of one name but for what is after a "#"
    have one colour and one label. `marks` are vertical lines, {label: x}; `levels` horizontal ones,
    [y, ...]."""
    title: str
    x_label: str
    y_label: str
    curves: dict
    x_log: bool = False
    y_log: bool = False
    marks: dict = dataclasses.field(default_factory=dict)
    levels: list = dataclasses.field(default_factory=list)


def short(value):
    """Formats a number with a suffix: 1000 is 1k."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.4g}{letter}"
    return f"{value:.4g}"


class Axis:
    """Maps numbers to 0 .. 1, linearly or by their logarithm, with ticks at round numbers."""

    def __init__(self, values, is_log):
        self.is_log = is_log
        low, high = min(values), max(values)
        if is_log:
            self.ticks = self.powers(low, high)
            self.low, self.high = math.log(min(low, self.ticks[0])), math.log(max(high, self.ticks[-1]))
        else:
            margin = (high - low or abs(high) or 1) * 0.05
            self.low = low - margin if low < 0 or low > high / 2 else 0
            self.high = high + margin
            self.ticks = self.rounds(self.low, self.high)

    @staticmethod
    def powers(low, high):
        """Powers of ten; of two, if the numbers are within two powers of ten."""
        base = 10 if high / low > 200 else 2
        first, last = (math.floor(math.log(low, base) + 1e-9), math.ceil(math.log(high, base) - 1e-9))
        return [base ** i for i in range(first, max(last, first + 1) + 1)]

    @staticmethod
    def rounds(low, high):
        scale = 10 ** math.floor(math.log10((high - low) / 4))
        step = next(scale * m for m in (1, 2, 2.5, 5, 10) if (high - low) / (scale * m) <= 6)
        return [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)]

    def at(self, value):
        place = math.log(value) if self.is_log else value
        return (place - self.low) / (self.high - self.low or 1)


def name_labels(x, ends):
    """Names of curves, (y, colour, name), beside their ends and without overlap."""
    lowest = -1e9
    for y, colour, name in sorted(ends):
        lowest = max(lowest + 13, y + 4)
        yield f'<text x="{x:.1f}" y="{lowest:.1f}" fill="{colour}">{escape(name)}</text>'


def lines_of(panel, column, row):
    x0, y0 = column * WIDTH + LEFT, row * HEIGHT + TOP
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    points = [p for curve in panel.curves.values() for p in curve]
    across = Axis([x for x, _ in points] + list(panel.marks.values()), panel.x_log)
    up = Axis([y for _, y in points] + panel.levels, panel.y_log)
    x = lambda value: x0 + width * across.at(value)
    y = lambda value: y0 + height * (1 - up.at(value))
    yield f'<text x="{x0}" y="{y0 - 12}" class="title">{escape(panel.title)}</text>'
    for value in up.ticks:
        yield (f'<line x1="{x0}" x2="{x0 + width}" y1="{y(value):.1f}" y2="{y(value):.1f}" class="grid"/>'
               f'<text x="{x0 - 6}" y="{y(value) + 4:.1f}" class="up">{short(value)}</text>')
    for value in across.ticks:
        yield f'<text x="{x(value):.1f}" y="{y0 + height + 16}" class="along">{short(value)}</text>'
    yield f'<text x="{x0 + width / 2}" y="{y0 + height + 32}" class="along">{escape(panel.x_label)}</text>'
    yield (f'<text x="{x0 - 44}" y="{y0 + height / 2}" class="along" transform="rotate(-90 {x0 - 44} '
           f'{y0 + height / 2})">{escape(panel.y_label)}</text>')
    for value in panel.levels:
        yield f'<line x1="{x0}" x2="{x0 + width}" y1="{y(value):.1f}" y2="{y(value):.1f}" class="level"/>'
    for label, value in panel.marks.items():
        yield (f'<line x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{y0}" y2="{y0 + height}" class="level"/>'
               f'<text x="{x(value) + 4:.1f}" y="{y0 + 12}">{escape(label)}</text>')
    colours, ends = {}, {}
    for name, curve in panel.curves.items():
        name = name.split("#")[0]
        colour = colours.setdefault(name, COLOURS[len(colours) % len(COLOURS)])
        path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in curve)
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
        for a, b in curve if len(curve) <= 12 else []:
            yield f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="2.2" fill="{colour}"/>'
        ends[name] = (y(curve[-1][1]), colour, name)
    yield from name_labels(x0 + width + 7, ends.values())


def draw(panels):
    """Returns an SVG with the panels in two columns. A panel without points is left out."""
    panels = [p for p in panels if any(p.curves.values())]
    columns = min(2, max(1, len(panels)))
    style = ("text{font:12px sans-serif}.title{font-weight:bold}.up{text-anchor:end}.along{text-anchor:middle}"
             ".grid{stroke:#ddd}.level{stroke:black;stroke-dasharray:6 4}")
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{columns * WIDTH}" '
             f'height="{-(-len(panels) // columns) * HEIGHT}">', f"<style>{style}</style>",
             '<rect width="100%" height="100%" fill="white"/>']
    for i, panel in enumerate(panels):
        lines += lines_of(panel, i % columns, i // columns)
    return "\n".join([*lines, "</svg>", ""])
