"""All dashboards and rules as files.

In: a dialect, a folder. Out: a JSON file for each dashboard, `barnabas-rules.yml`, and the file with which
Grafana loads dashboards by itself. Does not know: the command line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from barnabas.monitor.dashboards.broker import BROKER
from barnabas.monitor.dashboards.cluster import CLUSTER
from barnabas.monitor.dashboards.controller import CONTROLLER_DASHBOARD
from barnabas.monitor.dashboards.grafana import document
from barnabas.monitor.dashboards.groups import AUDIT, GROUPS, LAG
from barnabas.monitor.dashboards.model import Dashboard
from barnabas.monitor.dashboards.others import CONNECT, PIPELINES, STREAMS_DASHBOARD
from barnabas.monitor.dashboards.prometheus_rules import rules_file
from barnabas.monitor.dashboards.replication import REPLICATION
from barnabas.monitor.dashboards.rules import ALERTS, RECORDINGS
from barnabas.monitor.dashboards.topics import TOPICS_DASHBOARD

DASHBOARDS: tuple[Dashboard, ...] = (
    CLUSTER,
    BROKER,
    TOPICS_DASHBOARD,
    GROUPS,
    LAG,
    AUDIT,
    REPLICATION,
    CONTROLLER_DASHBOARD,
    PIPELINES,
    CONNECT,
    STREAMS_DASHBOARD,
)
PROVIDER = """\
# For Grafana's folder provisioning/dashboards.
apiVersion: 1
providers:
  - name: barnabas
    folder: Barnabas
    type: file
    options: {path: %s}
"""
RULES = "barnabas-rules.yml"


def files(dialect: str, folder: Path) -> Iterator[tuple[Path, str]]:
    """Paths and contents."""
    boards = folder / "grafana"
    for dashboard in DASHBOARDS:
        text = json.dumps(document(dashboard, dialect), indent=2, ensure_ascii=False)
        yield boards / f"barnabas-{dashboard.name}.json", text + "\n"
    yield folder / "grafana-provider.yml", PROVIDER % json.dumps(str(boards.resolve()))
    yield folder / RULES, rules_file(ALERTS, RECORDINGS, dialect)


def export(dialect: str, folder: Path) -> list[Path]:
    """Write all files; those that exist are replaced."""
    written = []
    for path, text in files(dialect, folder):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        written.append(path)
    return written
