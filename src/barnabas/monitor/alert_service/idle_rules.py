"""Rules that look at nothing, because the file of alerts names no place for their check.

In: a rule, the file. Out: a sentence that says which entry is missing, or None. Pure.
"""

from __future__ import annotations

from barnabas.monitor.alert_service.file import AlertsFile
from barnabas.monitor.alerts.rule import Rule

ENTRIES = {
    "audit": ("audit", "the URL of the audit's service"),
    "connector_failed": ("connect", "the URLs of Connect workers"),
    "certificate_days": ("certificates", "addresses of TLS listeners"),
    "metric": ("metrics", "the URLs of metrics pages, below `clusters` or on their own"),
    "metric_peers": ("metrics", "the URLs of metrics pages, below `clusters` or on their own"),
    "metric_increase": ("metrics", "the URLs of metrics pages, below `clusters` or on their own"),
}


def why_idle(rule: Rule, file: AlertsFile) -> str | None:
    if rule.check not in ENTRIES:
        return None
    entry, what = ENTRIES[rule.check]
    is_given = bool(getattr(file, entry))
    if entry == "metrics":
        is_given = is_given or any(each.metrics for each in file.clusters)
    if entry == "certificates":
        is_given = is_given or any(each.security.tls is not None for each in file.clusters)
    return None if is_given else f"it looks at nothing: the file has no `{entry}` ({what})"
