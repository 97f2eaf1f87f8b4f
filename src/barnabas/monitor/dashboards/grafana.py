"""Dashboards as Grafana's JSON.

In: a `Dashboard`, a dialect. Out: a document that Grafana imports: panels placed in rows of 24 columns,
variables for the data source, the job and the instance. Does not know: files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.monitor.dashboards.model import STAT, TABLE, TIMESERIES, Dashboard, Panel, Variable, promql

SCHEMA_VERSION = 39
COLUMNS = 24
COUNTED = ("short", "bytes")
COLUMN_PIXELS_MIN = 70
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
TAG = "barnabas"
PALETTE = {"mode": "palette-classic"}


def document(dashboard: Dashboard, dialect: str) -> dict[str, Any]:
    return {
        "uid": f"barnabas-{dashboard.name}",
        "title": f"Barnabas: {dashboard.title}",
        "description": dashboard.help,
        "tags": [TAG],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timepicker": {},
        "timezone": "",
        "annotations": {"list": []},
        "links": [
            {
                "title": "Barnabas",
                "type": "dashboards",
                "tags": [TAG],
                "asDropdown": True,
                "includeVars": True,
                "keepTime": True,
                "icon": "external link",
                "targetBlank": False,
                "tooltip": "",
                "url": "",
            }
        ],
        "templating": {"list": [source_variable(), *(variable(v, dialect) for v in dashboard.variables)]},
        "panels": list(panels(dashboard, dialect)),
    }


def panels(dashboard: Dashboard, dialect: str) -> Iterator[dict[str, Any]]:
    y, number = 0, 1
    for row in dashboard.rows:
        place = {"x": 0, "y": y, "w": COLUMNS, "h": 1}
        yield {
            "type": "row",
            "id": number,
            "title": row.title,
            "collapsed": False,
            "gridPos": place,
            "panels": [],
        }
        number += 1
        y += 1
        x = height = 0
        for each in row.panels:
            if x + each.width > COLUMNS:
                x, y, height = 0, y + height, 0
            place = {"x": x, "y": y, "w": each.width, "h": each.height}
            yield {"id": number, "gridPos": place, **panel(each, dialect)}
            number += 1
            x += each.width
            height = max(height, each.height)
        y += height


def panel(each: Panel, dialect: str) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if each.red_above is not None:
        steps.append({"color": "red", "value": each.red_above})
    found: dict[str, Any] = {
        "type": each.kind,
        "title": each.title,
        "description": each.help,
        "datasource": SOURCE,
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": SOURCE,
                "expr": promql(query.text, dialect),
                "legendFormat": promql(query.legend, dialect) or "__auto",
                "instant": each.kind in (STAT, TABLE),
                "range": each.kind not in (STAT, TABLE),
                "format": "table" if each.kind == TABLE else "time_series",
            }
            for index, query in enumerate(each.queries)
        ],
        "fieldConfig": {
            "defaults": {
                "unit": each.unit,
                "color": {"mode": "thresholds"} if each.red_above is not None else PALETTE,
                "thresholds": {"mode": "absolute", "steps": steps},
            },
            "overrides": [],
        },
        "options": options(each.kind),
    }
    if each.is_often_empty:
        found["fieldConfig"]["defaults"]["noValue"] = "none"
    if each.kind == TIMESERIES:
        found["fieldConfig"]["defaults"]["min"] = 0
        found["fieldConfig"]["defaults"]["custom"] = {"fillOpacity": 8, "showPoints": "never", "lineWidth": 1}
        if each.unit in COUNTED:
            found["fieldConfig"]["defaults"]["custom"]["axisSoftMax"] = 1  # otherwise 100, if all are 0
    if each.kind == TABLE:
        set_columns(found, each)
    return found


def set_columns(found: dict[str, Any], each: Panel) -> None:
    """The unit is that of the value: Grafana would show it behind any label that looks like a number."""
    hidden = {"Time": True, "job": True, "instance": True, "__name__": True, "Value": not each.column}
    organized = {"excludeByName": hidden, "renameByName": {"Value": each.column}}
    found["transformations"] = [{"id": "organize", "options": organized}]
    config = found["fieldConfig"]
    config["defaults"] |= {"unit": "string", "custom": {"minWidth": COLUMN_PIXELS_MIN}}
    value = {"id": "byName", "options": each.column}
    config["overrides"] = [{"matcher": value, "properties": [{"id": "unit", "value": each.unit}]}]


def options(kind: str) -> dict[str, Any]:
    reduced = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    if kind == STAT:
        return {"reduceOptions": reduced, "colorMode": "value", "graphMode": "area", "textMode": "auto"}
    if kind == TIMESERIES:
        legend = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
        return {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}
    if kind == TABLE:
        return {"showHeader": True, "footer": {"show": False}}
    return {"reduceOptions": reduced, "orientation": "horizontal", "displayMode": "gradient"}


def source_variable() -> dict[str, Any]:
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "current": {},
        "hide": 0,
        "multi": False,
        "includeAll": False,
        "refresh": 1,
        "regex": "",
        "options": [],
    }


def variable(each: Variable, dialect: str) -> dict[str, Any]:
    query = promql(each.query, dialect)
    return {
        "name": each.name,
        "label": each.label,
        "type": "query",
        "datasource": SOURCE,
        "definition": query,
        "query": {"query": query, "refId": each.name},
        "refresh": 2,
        "sort": 1,
        "hide": 0,
        "regex": "",
        "multi": each.with_all,
        "includeAll": each.with_all,
        "allValue": ".*" if each.with_all else None,
        "current": {"text": "All", "value": "$__all"} if each.with_all else {},
        "options": [],
    }
