"""The look of the report and of the lineage's picture: CSS with the same names in light and dark."""

COLOURS = """
:root {
  --paper: #fbfaf7; --panel: #ffffff; --ink: #1d2328; --quiet: #68727a; --rule: #e4e1da; --accent: #2f5d8a;
  --good: #4c9a6a; --bad: #c8473d; --warn: #c98a1b;
  --c0: #2f6fa7; --c1: #d9822b; --c2: #3f9b6c; --c3: #8d62ad; --c4: #b9a13a; --c5: #c25b78; --c6: #3c9aa5;
  --c7: #7a6a58;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14181b; --panel: #1c2226; --ink: #e6e8e6; --quiet: #95a0a6; --rule: #2d353a; --accent: #86b6e2;
    --good: #66b886; --bad: #e5746a; --warn: #dfab4e;
    --c0: #6ea8dc; --c1: #e8a45c; --c2: #6cc296; --c3: #b894d6; --c4: #d3bf63; --c5: #e08aa2; --c6: #6cc2cc;
    --c7: #b3a28e;
  }
}
"""

PLOTS = """
svg { display: block; width: 100%; height: auto; font: 12px system-ui, sans-serif; }
svg .grid { stroke: var(--rule); stroke-width: 1; }
svg .base { stroke: var(--quiet); stroke-width: 1; }
svg .tick { fill: var(--quiet); font-size: 11px; font-variant-numeric: tabular-nums; }
svg .name { fill: var(--ink); font-size: 12px; }
"""

STYLE = (
    COLOURS
    + """
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 40px 24px 64px; }
header { margin-bottom: 28px; }
h1 { font-size: 34px; line-height: 1.15; margin: 0 0 4px; letter-spacing: -.02em; }
h2 { font-size: 19px; margin: 0 0 14px; letter-spacing: -.01em; }
h3 { font-size: 15px; margin: 0; }
header p, .quiet, footer, figcaption { color: var(--quiet); margin: 0; font-size: 13px; }
.quiet { margin-bottom: 8px; }
code { font: 0.92em ui-monospace, monospace; }
section { background: var(--panel); border: 1px solid var(--rule); border-radius: 10px; padding: 22px 24px;
  margin: 0 0 18px; }
section.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 1px;
  padding: 0; background: var(--rule); overflow: hidden; }
.card { background: var(--panel); padding: 18px 20px; display: flex; flex-direction: column; }
.card span { color: var(--quiet); font-size: 13px; }
.card strong { font-size: 27px; line-height: 1.25; letter-spacing: -.02em;
  font-variant-numeric: tabular-nums; }
.card em { color: var(--quiet); font-size: 12px; font-style: normal; }
.wide { overflow-x: auto; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 26px; }
article { min-width: 0; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; font-variant-numeric: tabular-nums; }
th { text-align: left; color: var(--quiet); font-weight: 500; font-size: 12px; }
th, td { padding: 6px 14px 6px 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
tr:last-child td { border-bottom: 0; }
td.number, th.number, .numbers th:nth-child(n+2), .numbers td:nth-child(n+2) { text-align: right; }
.numbers.two th:nth-child(2), .numbers.two td:nth-child(2) { text-align: left; }
.tight { white-space: nowrap; }
.state { font-weight: 600; color: var(--quiet); }
.state.running, .state.idle { color: var(--good); }
.state.failed { color: var(--bad); }
.state.waiting, .state.starting { color: var(--warn); }
.meter { width: 40%; }
.meter i { display: block; height: 10px; margin-top: 5px; background: var(--bad);
  border-radius: 2px; opacity: .8; }
figure { margin: 0 0 22px; }
figure:last-child { margin-bottom: 0; }
figcaption { margin-bottom: 4px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 0 0 12px; font-size: 13px;
  color: var(--quiet); }
.legend i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 6px; }
footer { padding: 8px 2px; }
"""
    + PLOTS
)
