"""The picture of a pipeline's lineage: zones from left to right, tables as boxes, columns in them.

In: the graph. Out: SVG in the colours of the page around it, or a page of its own on which a click on a
column shows where it comes from and where it goes. Does not know: SQL.
"""

from __future__ import annotations

import json
from html import escape

from barnabas.pipeline.lineage.graph import Column, Graph, Node
from barnabas.pipeline.observe.report_style import COLOURS, PLOTS

ZONES = ("source", "raw", "staging", "trusted", "refined", "view", "quarantine")
BELOW = {"quarantine": "trusted"}  # refused rows lie below accepted ones
BOX_WIDTH, GAP_X, GAP_Y = 150, 62, 22
HEAD, LINE, MARGIN = 26, 16, 12
COLUMNS_MAX = 14
TITLE = 24


class Drawing:
    """Coordinates of each box and each column."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        found = {column_of(node) for node in graph.nodes.values()}
        used = [zone for zone in ZONES if zone in found]
        self.zones = {zone: MARGIN + number * (BOX_WIDTH + GAP_X) for number, zone in enumerate(used)}
        self.tops: dict[str, int] = {}
        self.height = 0
        for zone in used:
            y = MARGIN + TITLE
            for node in sorted(graph.nodes.values(), key=lambda each: each.zone in BELOW):
                if column_of(node) == zone:
                    self.tops[node.key] = y
                    y += box_height(node) + GAP_Y
            self.height = max(self.height, y - GAP_Y + MARGIN)
        self.width = 2 * MARGIN + len(used) * BOX_WIDTH + max(0, len(used) - 1) * GAP_X

    def x(self, node: Node) -> int:
        return self.zones[column_of(node)]

    def y(self, column: Column) -> int | None:
        """The middle of a column's line; None for one that is not shown."""
        node = self.graph.nodes[column.node]
        shown = list(node.columns)[:COLUMNS_MAX]
        if column.name not in shown:
            return None
        return self.tops[node.key] + HEAD + LINE * shown.index(column.name) + LINE // 2


def column_of(node: Node) -> str:
    return BELOW.get(node.zone, node.zone)


def box_height(node: Node) -> int:
    lines = min(len(node.columns), COLUMNS_MAX) + (len(node.columns) > COLUMNS_MAX)
    return HEAD + LINE * lines + (6 if lines else 0)


def svg(graph: Graph) -> str:
    layout = Drawing(graph)
    parts = [
        f'<svg class="lineage" viewBox="0 0 {layout.width} {layout.height}" role="img"'
        f' style="min-width:{layout.width * 0.72:.0f}px" aria-label="lineage of {escape(graph.pipeline)}">'
    ]
    for zone, x in layout.zones.items():
        parts.append(f'<text class="tick" x="{x}" y="{MARGIN + 8}">{zone}</text>')
    parts += [edge(layout, graph.nodes[key], node) for node in graph.nodes.values() for key in node.inputs]
    parts += [
        thread(layout, origin.column, Column(node.key, column))
        for node in graph.nodes.values()
        for column, origins in node.origins.items()
        for origin in origins
        if origin.column.node in graph.nodes
    ]
    parts += [box(layout, node) for node in graph.nodes.values()]
    return "".join(parts) + "</svg>"


def svg_file(graph: Graph) -> str:
    """The picture as a file of its own."""
    drawn = svg(graph).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    head, _, rest = drawn.partition(">")
    ground = "svg { background: var(--paper); }"
    return f"{head}><style>{COLOURS}{PLOTS}{ground}</style>{rest}\n"


def edge(layout: Drawing, before: Node, node: Node) -> str:
    y1, y2 = layout.tops[before.key] + HEAD // 2, layout.tops[node.key] + HEAD // 2
    path = curve(layout.x(before) + BOX_WIDTH, y1, layout.x(node), y2)
    return f'<path d="{path}" fill="none" stroke="var(--quiet)" stroke-width="1.4" opacity=".7"/>'


def thread(layout: Drawing, before: Column, column: Column) -> str:
    y1, y2 = layout.y(before), layout.y(column)
    if y1 is None or y2 is None:
        return ""
    nodes = layout.graph.nodes
    path = curve(layout.x(nodes[before.node]) + BOX_WIDTH, y1, layout.x(nodes[column.node]), y2)
    data = f'data-from="{escape(name_of(before))}" data-to="{escape(name_of(column))}"'
    return f'<path class="thread" {data} d="{path}" fill="none" stroke="var(--accent)" opacity=".22"/>'


def curve(x1: float, y1: float, x2: float, y2: float) -> str:
    middle = (x1 + x2) / 2
    return f"M{x1:.0f} {y1:.0f} C{middle:.0f} {y1:.0f} {middle:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"


def box(layout: Drawing, node: Node) -> str:
    x, y, height = layout.x(node), layout.tops[node.key], box_height(node)
    colour = f"var(--c{ZONES.index(node.zone) % 8})"
    parts = [
        f'<g><rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="{height}" rx="5" fill="var(--panel)"'
        f' stroke="var(--rule)"/><rect x="{x}" y="{y}" width="4" height="{height}" rx="2" fill="{colour}"/>'
        f'<text class="name" x="{x + 12}" y="{y + 17}" font-weight="600">{escape(cut(title_of(node), 20))}'
        f"<title>{escape(node.dataset)}</title></text>"
    ]
    shown = list(node.columns.items())[:COLUMNS_MAX]
    for number, (name, kind) in enumerate(shown):
        at = y + HEAD + LINE * number + 12
        parts.append(
            f'<text class="tick column" data-column="{escape(name_of(Column(node.key, name)))}"'
            f' x="{x + 12}" y="{at}">{escape(cut(name, 22))}<title>{escape(name)}'
            f"{f' {escape(kind)}' if kind else ''}</title></text>"
        )
    if len(node.columns) > COLUMNS_MAX:
        at = y + HEAD + LINE * len(shown) + 12
        parts.append(
            f'<text class="tick" x="{x + 12}" y="{at}">and {len(node.columns) - len(shown)} more</text>'
        )
    return "".join(parts) + "</g>"


def title_of(node: Node) -> str:
    return f"{node.name} refused" if node.zone in BELOW else node.name


def name_of(column: Column) -> str:
    return f"{column.node}/{column.name}"


def cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def page(graph: Graph) -> str:
    """The picture as a page of its own."""
    edges = sorted(
        {
            (name_of(origin.column), name_of(Column(node.key, column)))
            for node in graph.nodes.values()
            for column, origins in node.origins.items()
            for origin in origins
        }
    )
    data = json.dumps(edges).replace("<", "\\u003c")  # a name must not end the script
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(graph.pipeline)}: lineage</title>'
        f"<style>{COLOURS}{PLOTS}{STYLE}</style></head><body><h1>{escape(graph.pipeline)}</h1>"
        "<p>Click a column to see where it comes from and where it goes.</p>"
        f"{svg(graph)}<script>const edges = {data};{SCRIPT}</script></body></html>\n"
    )


STYLE = """
body { margin: 24px; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 26px; } p { margin: 0 0 18px; color: var(--quiet); }
.column { cursor: pointer; }
.chosen .thread { opacity: .05; } .chosen .thread.on { opacity: 1; stroke-width: 1.8; }
.chosen .column { opacity: .35; } .chosen .column.on { opacity: 1; fill: var(--accent); font-weight: 600; }
"""

SCRIPT = """
const picture = document.querySelector('svg.lineage');
function reach(start, a, b) {
  const found = new Set([start]);
  for (let grew = true; grew;) {
    grew = false;
    for (const e of edges) if (found.has(e[a]) && !found.has(e[b])) { found.add(e[b]); grew = true; }
  }
  return found;
}
picture.addEventListener('click', event => {
  const column = event.target.closest('.column');
  const all = picture.querySelectorAll('.on');
  all.forEach(each => each.classList.remove('on'));
  picture.classList.toggle('chosen', !!column);
  if (!column) return;
  const before = reach(column.dataset.column, 1, 0), behind = reach(column.dataset.column, 0, 1);
  picture.querySelectorAll('.column').forEach(each => {
    if (before.has(each.dataset.column) || behind.has(each.dataset.column)) each.classList.add('on');
  });
  picture.querySelectorAll('.thread').forEach(each => {
    const {from, to} = each.dataset;
    const on = (before.has(from) && before.has(to)) || (behind.has(from) && behind.has(to));
    each.classList.toggle('on', on);
  });
});
"""
