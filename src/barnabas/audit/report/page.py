"""A report as a page: alarms first, then a table with a row for each topic, bucket and tier.

In: a report. Out: HTML without scripts, which asks for itself again. Does not know: routes, the ledger.
"""

from __future__ import annotations

from html import escape

from barnabas.audit.core.report import Report, Row, alarm_text
from barnabas.audit.core.verdicts import State
from barnabas.audit.report.text import HEADER, cells, time_text

ROWS_MAX = 2_000
COLOURS = {
    State.COMPLETE: "good",
    State.LATE: "fair",
    State.UNCERTAIN: "fair",
    State.COMPACTED: "fair",
    State.DIFFERENT: "bad",
    State.MISSING: "bad",
    State.DUPLICATED: "bad",
    State.MISSING_AND_DUPLICATED: "bad",
}
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 1500px; padding: 0 1rem }
h1 { font-size: 1.4rem } table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #e3e7ec; white-space: nowrap }
th { font-size: .75rem; color: #5b6675 } td:nth-child(n+5):nth-child(-n+12) { text-align: right }
.good td:nth-child(13) { color: #0b7a3b } .fair td:nth-child(13) { color: #9a6400 }
.bad { background: #fdecec } .bad td:nth-child(13) { color: #b3141c; font-weight: 600 }
.alarm { background: #fdecec; border-left: 4px solid #b3141c; padding: .5rem .8rem; margin: .4rem 0 }
.note { color: #5b6675; margin: .2rem 0 } .scroll { overflow-x: auto }
@media (prefers-color-scheme: dark) { body { background: #11161d; color: #dfe5ec }
  .bad, .alarm { background: #3a1a1d } .good td:nth-child(13) { color: #56c987 } }
"""


def page(report: Report | None, refresh_s: int) -> str:
    if report is None:
        body = "<p>The first report is being made.</p>"
    else:
        alarms = "".join(f'<p class="alarm">{escape(alarm_text(row))}</p>' for row in report.alarms[:100])
        notes = "".join(f'<p class="note">{escape(note)}</p>' for note in report.notes[:100])
        head = "".join(f"<th>{name}</th>" for name in HEADER)
        rows = "".join(
            f'<tr class="{COLOURS.get(row.verdict.state, "")}">'
            + "".join(f"<td>{escape(cell)}</td>" for cell in cells(row))
            + "</tr>"
            for row in newest_first(report)
        )
        count = len(report.alarms)
        summary = "no alarms" if not count else "1 alarm" if count == 1 else f"{count} alarms"
        body = (
            f"<p>Report of {time_text(report.time_ms)}: {summary}.</p>{alarms}{notes}"
            f'<div class="scroll"><table><tr>{head}</tr>{rows}</table></div>'
        )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8">'
        f'<meta http-equiv="refresh" content="{refresh_s}">'
        f'<meta name="viewport" content="width=device-width"><title>Audit</title><style>{STYLE}</style>'
        f"<h1>Audit</h1>{body}</html>"
    )


def newest_first(report: Report) -> list[Row]:
    return sorted(report.rows, key=lambda row: (-row.bucket_ms, row.topic))[:ROWS_MAX]
