"""Describes the service: OpenAPI for programs, one page for people without external resources.

In: the states of the views. Out: a document, HTML. Does not know: HTTP, the store.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from barnabas.pipeline.serving.http.answers import ARROW_MEDIA
from barnabas.pipeline.serving.store.query import LIMIT, LIMIT_MAX
from barnabas.pipeline.views.parts import ViewState

JSON_TYPES = {
    "boolean": {"type": "boolean"},
    "tinyint": {"type": "integer"},
    "smallint": {"type": "integer"},
    "int": {"type": "integer"},
    "bigint": {"type": "integer", "format": "int64"},
    "float": {"type": "number"},
    "double": {"type": "number"},
    "date": {"type": "string", "format": "date"},
    "timestamp": {"type": "string", "format": "date-time"},
    "binary": {"type": "string", "format": "byte"},
}
PARAMETERS = (
    (
        "filter",
        "A column, one of = != < <= > >= in like, and a value: `revenue>=100`, `shop in a,b`. Repeatable.",
    ),
    ("order", "Columns, separated by commas; `-revenue` or `revenue desc` for descending."),
    ("columns", "Which columns to show, separated by commas."),
    ("limit", f"At most so many rows: {LIMIT} unless told, {LIMIT_MAX} at most."),
    ("offset", "Skips so many rows."),
    ("as_of", "The view as it was: a version of its table, or a time such as 2026-03-01T12:00:00Z."),
    ("format", "json or arrow; Accept says it too."),
)


def openapi(states: Iterable[ViewState]) -> dict[str, Any]:
    paths: dict[str, Any] = {
        "/views": {
            "get": {"summary": "All views, their columns and how fresh they are", "responses": ok({})}
        },
        "/sql": {
            "post": {
                "summary": "One SELECT over the views",
                "requestBody": {
                    "required": True,
                    "content": {
                        "text/plain": {"schema": {"type": "string"}},
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "required": ["sql"],
                                "properties": {
                                    "sql": {"type": "string"},
                                    "as_of": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
                                    "format": {"enum": ["json", "arrow"]},
                                },
                            }
                        },
                    },
                },
                "responses": ok({"type": "object"}) | bad(),
            }
        },
    }
    for state in states:
        paths[f"/views/{state.view}"] = {"get": view_operation(state)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Barnabas serving", "version": "1", "description": "Merged views, with freshness."},
        "paths": paths,
        "components": {"schemas": {"Freshness": freshness_schema()}},
    }


def view_operation(state: ViewState) -> dict[str, Any]:
    properties = {
        column.name: {"type": "string"} | JSON_TYPES.get(column.type, {}) for column in state.layout.visible
    }
    parameters = [
        {"name": name, "in": "query", "description": text, "schema": {"type": "string"}}
        for name, text in PARAMETERS
    ]
    parameters += [
        {"name": name, "in": "query", "description": "Equal to this.", "schema": schema}
        for name, schema in properties.items()
    ]
    rows = {"type": "array", "items": {"type": "object", "properties": properties}}
    body = {
        "type": "object",
        "properties": {
            "rows": rows,
            "row_count": {"type": "integer"},
            "more": {"type": "boolean"},
            "freshness": {"$ref": "#/components/schemas/Freshness"},
        },
    }
    return {"summary": f"Rows of {state.view}", "parameters": parameters, "responses": ok(body) | bad()}


def freshness_schema() -> dict[str, Any]:
    position = {
        "type": "object",
        "properties": {"version": {"type": "integer"}, "time": {"type": "string", "format": "date-time"}},
    }
    return {
        "type": "object",
        "properties": {
            "view": {"type": "string"},
            "horizon": position,
            "speed": position,
            "complete_at": {"type": "string", "format": "date-time"},
            "age_seconds": {"type": "number"},
        },
    }


def ok(schema: dict[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": schema}, ARROW_MEDIA: {}}
    return {"200": {"description": "The answer", "content": content}}


def bad() -> dict[str, Any]:
    schema = {"type": "object", "properties": {"error": {"type": "string"}}}
    return {
        "400": {
            "description": "One sentence on what is wrong",
            "content": {"application/json": {"schema": schema}},
        }
    }


def page(states: Iterable[ViewState]) -> str:
    views = "".join(
        f"<tr><td><a href='/views/{escape(state.view)}?limit=100'>{escape(state.view)}</a></td>"
        f"<td>{escape(', '.join(f'{column.name} {column.type}' for column in state.layout.visible))}</td>"
        f"<td>{state.rows}</td><td>{state.horizon.version}</td><td>{state.position.version}</td>"
        f"<td>{escape(state.checked_at.isoformat(timespec='seconds'))}</td></tr>"
        for state in states
    )
    parameters = "".join(
        f"<tr><td><code>{name}</code></td><td>{escape(text)}</td></tr>" for name, text in PARAMETERS
    )
    return f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Views</title>
<style>body{{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}}
table{{border-collapse:collapse;width:100%}}
td,th{{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #8884}}
code{{background:#8882;padding:.1em .3em}}</style>
<h1>Views</h1><table><tr><th>view<th>columns<th>rows<th>horizon<th>speed<th>complete at</tr>{views}</table>
<h2>Questions</h2>
<p><code>GET /views/name?shop=berlin&amp;revenue&gt;=100&amp;order=-revenue&amp;limit=10</code></p>
<table>{parameters}</table>
<p><code>POST /sql</code> takes one SELECT over the views. <a href="/openapi.json">OpenAPI</a>.</p></html>"""
