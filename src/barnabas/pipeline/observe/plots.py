"""Plots as SVG text: lines over time, a strip of runs, stacked bars.

In: named series of numbers. Out: one `<svg>` each. Colours are CSS variables of the page (`--c0` to
`--c7`, `--ink`, `--quiet`, `--rule`), so that one page serves light and dark. Each mark shows its value as
a tooltip. Does not know: what the numbers mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

WIDTH = 720
LEFT, RIGHT, TOP, BOTTOM = 56, 30, 10, 24
COLOURS = 8
TICKS_X = 6
TICKS_Y = 4
STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400, 604800)
POINTS_MAX = 400


@dataclass(frozen=True, slots=True)
class Series:
    """Points in the order of their x (seconds since 1970)."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: int = 0


@dataclass(frozen=True, slots=True)
class Bar:
    """One run on a strip."""

    start: float
    end: float
    title: str
    is_bad: bool = False


@dataclass(frozen=True, slots=True)
class Strip:
    name: str
    bars: Sequence[Bar]
    colour: int = 0


def short(number: float) -> str:
    """A number for a person: 1,234 or 12.3 k or 4.5 M."""
    size = abs(number)
    for limit, unit in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if size >= limit:
            scale = 1e3 if unit == " k" else limit
            return f"{number / scale:.3g}{unit}"
    if size >= 100 or number == int(number):
        return f"{number:,.0f}"
    return f"{number:.2g}" if size < 1 else f"{number:.1f}"


def shown_bytes(number: float) -> str:
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if abs(number) < 1000 or unit == "TB":
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    raise AssertionError("unreachable")


def shown_seconds(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172800 else f"{seconds / 86400:.1f} days"


def clock(at: float, span: float = 0.0) -> str:
    pattern = "%H:%M:%S" if span < 1800 else "%H:%M" if span < 172800 else "%b %d"
    return datetime.fromtimestamp(at, UTC).strftime(pattern)


def nice_ceiling(value: float) -> float:
    """The next of 1, 2, 2.5, 4, 5, 8 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in (1, 2, 2.5, 4, 5, 8) if step * power >= value), 10 * power)


def time_ticks(low: float, high: float) -> list[float]:
    span = max(high - low, 1.0)
    step = next((each for each in STEPS_S if span / each <= TICKS_X), STEPS_S[-1])
    return [tick * step for tick in range(math.ceil(low / step), math.floor(high / step) + 1)]


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Reduce points to as many as can be seen: the largest of each stretch stays."""
    if len(points) <= POINTS_MAX:
        return list(points)
    size = math.ceil(len(points) / POINTS_MAX)
    return [max(points[at : at + size], key=lambda point: point[1]) for at in range(0, len(points), size)]


class Frame:
    """The axes of a plot over time."""

    def __init__(self, low: float, high: float, height: int, left: int = LEFT) -> None:
        self.low, self.high = low, max(high, low + 1.0)
        self.height, self.left = height, left
        self.parts: list[str] = []

    def x(self, at: float) -> float:
        return self.left + (at - self.low) / (self.high - self.low) * (WIDTH - self.left - RIGHT)

    def axis_x(self) -> None:
        base = self.height - BOTTOM
        for tick in time_ticks(self.low, self.high):
            x = self.x(tick)
            self.parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{base}"/>')
            text = clock(tick, self.high - self.low)
            self.parts.append(
                f'<text class="tick" x="{x:.1f}" y="{base + 16}" text-anchor="middle">{text}</text>'
            )

    def axis_y(self, top: float, shown: Callable[[float], str]) -> None:
        for number in range(TICKS_Y + 1):
            value = top * number / TICKS_Y
            y = self.y(value, top)
            self.parts.append(
                f'<line class="{"base" if number == 0 else "grid"}" x1="{self.left}" x2="{WIDTH - RIGHT}"'
                f' y1="{y:.1f}" y2="{y:.1f}"/>'
                f'<text class="tick" x="{self.left - 8}" y="{y + 4:.1f}" text-anchor="end">'
                f"{shown(value)}</text>"
            )

    def y(self, value: float, top: float) -> float:
        room = self.height - TOP - BOTTOM
        return TOP + room * (1 - value / top)

    def svg(self, label: str) -> str:
        return (
            f'<svg viewBox="0 0 {WIDTH} {self.height}" role="img" aria-label="{escape(label)}">'
            + "".join(self.parts)
            + "</svg>"
        )


def lines(
    label: str, series: Sequence[Series], shown: Callable[[float], str] = short, height: int = 200
) -> str:
    """Lines over time with a soft area under each; empty text where there is nothing to show."""
    every = [point for each in series for point in each.points]
    if not every:
        return ""
    frame = Frame(min(x for x, _ in every), max(x for x, _ in every), height)
    top = nice_ceiling(max(y for _, y in every))
    frame.axis_x()
    frame.axis_y(top, shown)
    base = height - BOTTOM
    for each in series:
        points = [(frame.x(x), frame.y(y, top), y, x) for x, y in thinned(each.points)]
        if not points:
            continue
        colour = f"var(--c{each.colour % COLOURS})"
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in points)
        if len(points) > 1:
            area = f"{points[0][0]:.1f},{base} {path} {points[-1][0]:.1f},{base}"
            frame.parts.append(f'<polygon points="{area}" fill="{colour}" opacity=".06"/>')
            frame.parts.append(
                f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"'
                ' stroke-linejoin="round"/>'
            )
        for x, y, value, at in points:
            radius = 2.6 if len(points) <= 60 else 1.6
            frame.parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}">'
                f"<title>{escape(each.name)}: {shown(value)} at {clock(at)}</title></circle>"
            )
    return frame.svg(label)


def strips(label: str, rows: Sequence[Strip]) -> str:
    """When everything ran: a line for each name, a mark for each run."""
    every = [bar for row in rows for bar in row.bars]
    if not every:
        return ""
    line = 24
    left = min(260, 24 + 7 * max(len(row.name) for row in rows))
    frame = Frame(
        min(bar.start for bar in every),
        max(bar.end for bar in every),
        TOP + line * len(rows) + BOTTOM,
        left,
    )
    frame.axis_x()
    for number, row in enumerate(rows):
        y = TOP + line * number
        frame.parts.append(
            f'<text class="name" x="{left - 10}" y="{y + 16}" text-anchor="end">{escape(row.name)}</text>'
        )
        for bar in row.bars:
            x = frame.x(bar.start)
            width = max(2.0, frame.x(bar.end) - x)
            fill = "var(--bad)" if bar.is_bad else f"var(--c{row.colour % COLOURS})"
            frame.parts.append(
                f'<rect x="{x:.1f}" y="{y + 5}" width="{width:.1f}" height="14" rx="2" fill="{fill}"'
                f' opacity=".85"><title>{escape(bar.title)}</title></rect>'
            )
    return frame.svg(label)


def stacked(label: str, rows: Sequence[tuple[str, Sequence[tuple[str, float, str]]]]) -> str:
    """A bar for each row, cut into pieces of (name, number, CSS colour), each as wide as its share of the
    row."""
    line, left = 30, 128
    height = TOP + line * len(rows)
    if not rows:
        return ""
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">']
    room = WIDTH - left - 90
    for number, (name, cuts) in enumerate(rows):
        y = TOP + line * number
        whole = sum(value for _, value, _ in cuts)
        parts.append(
            f'<text class="name" x="{left - 10}" y="{y + 15}" text-anchor="end">{escape(name)}</text>'
        )
        x = float(left)
        for title, value, colour in cuts:
            if whole <= 0 or value <= 0:
                continue
            width = max(1.5, room * value / whole)
            share = f"{100 * value / whole:.1f} %"
            parts.append(
                f'<rect x="{x:.1f}" y="{y + 2}" width="{width:.1f}" height="18" fill="{colour}">'
                f"<title>{escape(name)}, {escape(title)}: {value:,.0f} ({share})</title></rect>"
            )
            x += width
        parts.append(f'<text class="tick" x="{x + 8:.1f}" y="{y + 15}">{short(whole)}</text>')
    return "".join(parts) + "</svg>"
