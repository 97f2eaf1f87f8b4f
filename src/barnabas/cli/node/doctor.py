"""doctor: check whether this machine suits a broker, and say what to change and why.

In: the data folder. Out: a table, then a command and a reason for each finding. The exit status is 1 if
something must change before a broker runs here, else 0, also if there are recommendations.
"""

import argparse
import sys

from barnabas.cli.frame.message_json import compact
from barnabas.cli.frame.output import Output
from barnabas.cli.node.host_checks import Finding, Verdict, examine
from barnabas.cli.node.host_facts import gather

EXAMPLES = ("", "--data /var/lib/barnabas", "--json")
NEEDS_ARGUMENTS = False
COLOURS = {Verdict.GOOD: "green", Verdict.ADVICE: "yellow", Verdict.BAD: "red", Verdict.UNKNOWN: "dim"}
PLAIN_WIDTH = 120  # of the table if the output is no terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", default="data", metavar="DIR", help="the data folder (default: data)")
    parser.add_argument("--json", action="store_true", help="one line of JSON for each check")
    parser.add_argument("--strict", action="store_true", help="exit with status 1 for recommendations, too")


def run(options: argparse.Namespace, out: Output) -> int:
    findings = examine(gather(options.data))
    if options.json:
        for finding in findings:
            out.line(compact(as_json(finding)))
    else:
        show_table(findings)
        for line in advice(findings):
            out.line(line)
    failing = {Verdict.BAD, Verdict.ADVICE} if options.strict else {Verdict.BAD}
    return 1 if any(finding.verdict in failing for finding in findings) else 0


def show_table(findings: list[Finding]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="This machine, as a broker sees it", title_justify="left")
    for column in ("check", "found", "wanted", ""):
        table.add_column(column, overflow="fold")
    for each in findings:
        colour = COLOURS[each.verdict]
        table.add_row(
            each.check, escape(each.found), each.wanted, f"[{colour}]{each.verdict.value}[/{colour}]"
        )
    width = None if sys.stdout.isatty() else PLAIN_WIDTH
    Console(file=sys.stdout, width=width, highlight=False).print(table)


def advice(findings: list[Finding]) -> list[str]:
    """Lines about the changes to make, the urgent ones first."""
    lines = []
    for verdict, title in ((Verdict.BAD, "Change this:"), (Verdict.ADVICE, "Better for a busy broker:")):
        chosen = [finding for finding in findings if finding.verdict is verdict]
        if chosen:
            lines += ["", title]
        for finding in chosen:
            lines += [f"  {finding.check}: {finding.change}", f"    because {finding.why}"]
    return lines or ["", "All is well."]


def as_json(finding: Finding) -> dict[str, str]:
    return {
        "check": finding.check,
        "found": finding.found,
        "wanted": finding.wanted,
        "verdict": finding.verdict.value,
        "change": finding.change,
        "why": finding.why,
    }
