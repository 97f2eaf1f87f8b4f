"""Metrics of the audit, for Prometheus: completeness of the last judged bucket, what is missing, delays.

In: the auditor's last report. Out: metric families, made when somebody asks. Labels are topics and tiers.
Does not know: HTTP.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from barnabas.audit.core.report import Report, Row
from barnabas.audit.core.verdicts import State
from barnabas.audit.report.auditor import Auditor

LABELS = ("topic", "tier")
QUANTILES = (0.5, 0.95, 0.99, 1.0)
NOT_JUDGED = (State.OPEN, State.IN_FLIGHT, State.NO_REFERENCE, State.UNCERTAIN, State.COMPACTED)


class AuditCollector(Collector):
    def __init__(self, auditor: Auditor) -> None:
        self._auditor = auditor
        self._families: list[Metric] = []
        auditor.on_report.append(self.prepare)

    def prepare(self, report: Report) -> None:
        """Make the families of a report, in its thread: of 10,000 topics that takes a second."""
        self._families = list(self._families_of(report))

    def collect(self) -> Iterator[Metric]:
        yield from self._families or self._families_of(None)

    def _families_of(self, report: Report | None) -> Iterator[Metric]:
        messages = CounterMetricFamily("barnabas_audit_messages", "Counted records.", labels=LABELS)
        for (tier, topic), count in self._auditor.ledger.totals.items():
            messages.add_metric((topic, tier), count)
        yield messages
        rows = report.rows if report is not None else ()
        ratio = GaugeMetricFamily(
            "barnabas_audit_completeness_ratio", "Of the last judged bucket; alert below 1.", labels=LABELS
        )
        duplicates = GaugeMetricFamily(
            "barnabas_audit_duplicate_ratio",
            "Records too many in the last judged bucket, of those expected; alert above 0.",
            labels=LABELS,
        )
        missing = GaugeMetricFamily(
            "barnabas_audit_missing", "Records missing in judged buckets.", labels=LABELS
        )
        extra = GaugeMetricFamily(
            "barnabas_audit_extra", "Records too many in judged buckets.", labels=LABELS
        )
        delay = GaugeMetricFamily(
            "barnabas_audit_delay_seconds", "From a record's time to its count.", labels=(*LABELS, "quantile")
        )
        for place, some in by_place(rows).items():
            judged = [row for row in some if row.verdict.state not in NOT_JUDGED]
            missing.add_metric(
                place, sum(row.verdict.missing for row in judged if row.verdict.state.is_wrong)
            )
            extra.add_metric(place, sum(row.verdict.extra for row in judged if row.verdict.state.is_wrong))
            if judged:
                verdict = judged[-1].verdict
                whole = verdict.expected or 1
                # Contents that differ: one record at least was lost, and another one came instead.
                lost = 1 if verdict.state is State.DIFFERENT else verdict.missing
                ratio.add_metric(place, (whole - lost) / whole)
                duplicates.add_metric(place, verdict.extra / whole)
            for share in QUANTILES:
                found = some[-1].delays.percentile_ms(share)
                if found is not None:
                    delay.add_metric((*place, f"{share:g}"), found / 1000)
        yield from (ratio, duplicates, missing, extra, delay)
        alarms = GaugeMetricFamily("barnabas_audit_alarms", "Alarms that hold now.")
        alarms.add_metric((), len(report.alarms) if report is not None else 0)
        yield alarms


def by_place(rows: tuple[Row, ...]) -> dict[tuple[str, str], list[Row]]:
    """Rows of each topic and tier, the oldest bucket first."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.topic, row.tier), []).append(row)
    return found
