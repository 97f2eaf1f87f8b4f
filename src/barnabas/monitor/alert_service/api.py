"""Alerts over HTTP: the paths and forms of Alertmanager's API version 2, and a page for people.

GET /                        alerts that hold now, as a page
GET /api/v2/alerts           ?filter=MATCHER, ?active=, ?silenced=
GET, POST /api/v2/silences   POST creates or changes one; DELETE /api/v2/silence/ID ends it
GET /api/v2/status           the leader, and checks that could not look
GET /api/v1/history          changes, newest last; ?since=MS, ?limit=
GET /api/v1/rules            the rules in force

So `amtool` and dashboards for Alertmanager work. Does not know: where alerts come from.
"""

from __future__ import annotations

import html
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from barnabas.monitor.alert_service.evaluator import Evaluator, TooManySilences, now_ms
from barnabas.monitor.alert_service.idle_rules import why_idle
from barnabas.monitor.alert_service.measuring import place_text
from barnabas.monitor.alerts.rule import Rule
from barnabas.monitor.alerts.silences import Matcher, Silence, match_all, parse_matcher
from barnabas.monitor.alerts.states import Alert, State
from barnabas.monitor.targets.texts import at, iso
from barnabas.monitor.targets.webhook import notes_of
from barnabas.services.errors import ApiError
from barnabas.services.json_bodies import read_object
from barnabas.services.routes import Need, ServiceRoute

Json = dict[str, Any]
History = Callable[[int, int], Awaitable[list[Json]]]
HISTORY_LIMIT, HISTORY_LIMIT_MAX = 200, 10_000
MATCHERS_MAX = 50
PROBLEMS_MAX = 5  # that a rule shows
PAGE_REFRESH_S = 15


class AlertsApi:
    def __init__(self, evaluator: Evaluator, history: History, status: Callable[[], Json]) -> None:
        self._evaluator = evaluator
        self._history = history
        self._status = status

    def routes(self) -> list[ServiceRoute]:
        return [
            ServiceRoute("/", self._page, needs=Need.READ),
            ServiceRoute("/api/v2/alerts", self._alerts, needs=Need.READ),
            ServiceRoute("/api/v2/silences", self._silences, needs=Need.READ),
            ServiceRoute("/api/v2/silences", self._post_silence, needs=Need.WRITE, methods=("POST",)),
            ServiceRoute("/api/v2/silence/{id}", self._silence, needs=Need.READ),
            ServiceRoute("/api/v2/silence/{id}", self._end_silence, needs=Need.WRITE, methods=("DELETE",)),
            ServiceRoute("/api/v2/status", self._get_status, needs=Need.READ),
            ServiceRoute("/api/v1/history", self._get_history, needs=Need.READ),
            ServiceRoute("/api/v1/rules", self._rules, needs=Need.READ),
        ]

    async def _alerts(self, request: Request) -> Response:
        wanted = matchers_of(request)
        with_active, with_silenced = (flag(request, name) for name in ("active", "silenced"))
        found = []
        for alert in self._evaluator.book.alerts():
            if alert.state is not State.FIRING or not match_all(wanted, alert.all_labels):
                continue
            silenced_by = self._evaluator.silenced_by(alert)
            if with_silenced if silenced_by else with_active:
                found.append(alert_json(alert, silenced_by, self._evaluator.file.external_url))
        return JSONResponse(found)

    async def _silences(self, request: Request) -> Response:
        wanted = matchers_of(request)
        found = [
            silence_json(each)
            for each in self._evaluator.silences.values()
            if all(any(one == other for other in each.matchers) for one in wanted)
        ]
        return JSONResponse(found)

    async def _silence(self, request: Request) -> Response:
        found = self._evaluator.silences.get(request.path_params["id"])
        if found is None:
            raise ApiError(404, 40401, f"there is no silence {request.path_params['id']}")
        return JSONResponse(silence_json(found))

    async def _post_silence(self, request: Request) -> Response:
        silence = silence_of(await read_object(request))
        if silence.id and silence.id not in self._evaluator.silences:
            raise ApiError(404, 40401, f"there is no silence {silence.id}")
        try:
            stored = await self._evaluator.add_silence(silence)
        except TooManySilences as error:
            raise ApiError(429, 42901, str(error)) from None
        return JSONResponse({"silenceID": stored.id})

    async def _end_silence(self, request: Request) -> Response:
        if not await self._evaluator.end_silence(request.path_params["id"]):
            raise ApiError(404, 40401, f"there is no silence {request.path_params['id']}")
        return Response(status_code=200)

    async def _get_status(self, request: Request) -> Response:
        return JSONResponse(self._status())

    async def _get_history(self, request: Request) -> Response:
        limit = min(number(request, "limit", HISTORY_LIMIT), HISTORY_LIMIT_MAX)
        return JSONResponse(await self._history(number(request, "since", 0), limit))

    async def _rules(self, request: Request) -> Response:
        return JSONResponse(
            [
                {
                    "name": rule.name,
                    "check": rule.check,
                    "severity": rule.severity,
                    "above": rule.above,
                    "below": rule.below,
                    "good_at": rule.good_at,
                    "for_s": rule.for_s,
                    "keep_s": rule.keep_s,
                    "look_at": rule.look_at,
                    "command": rule.command,
                    "problem": self._problem(rule),
                }
                for rule in self._evaluator.file.rules
            ]
        )

    def _problem(self, rule: Rule) -> str | None:
        """Why the rule looks at nothing, or where it could not look the last time."""
        evaluator = self._evaluator
        blind = [
            f"{place_text(place)}: {reason}"
            for place, reason in evaluator.unknown.items()
            if place[0] == rule.check
        ]
        return why_idle(rule, evaluator.file) or "; ".join(blind[:PROBLEMS_MAX]) or None

    async def _page(self, request: Request) -> Response:
        return HTMLResponse(page(self._evaluator))


def alert_json(alert: Alert, silenced_by: list[str], external_url: str) -> Json:
    return {
        "labels": alert.all_labels,
        "annotations": notes_of(alert),
        "startsAt": iso(alert.fired_ms),
        "endsAt": iso(alert.ended_ms),
        "updatedAt": iso(alert.fired_ms),
        "generatorURL": external_url,
        "fingerprint": alert.fingerprint,
        "receivers": [{"name": each} for each in alert.targets],
        "status": {
            "state": "suppressed" if silenced_by else "active",
            "silencedBy": silenced_by,
            "inhibitedBy": [],
            "mutedBy": [],
        },
    }


def silence_json(silence: Silence) -> Json:
    now = now_ms()
    state = "pending" if now < silence.starts_ms else "active" if now < silence.ends_ms else "expired"
    return {
        "id": silence.id,
        "status": {"state": state},
        "matchers": [
            {"name": each.name, "value": each.value, "isRegex": each.is_regex, "isEqual": each.is_equal}
            for each in silence.matchers
        ],
        "startsAt": iso(silence.starts_ms),
        "endsAt": iso(silence.ends_ms),
        "updatedAt": iso(silence.starts_ms),
        "createdBy": silence.created_by,
        "comment": silence.comment,
    }


def silence_of(body: Json) -> Silence:
    """A silence from a request. ApiError says what is wrong with it."""
    try:
        given = body["matchers"]
        if not isinstance(given, list) or not 0 < len(given) <= MATCHERS_MAX:
            raise ValueError(f"matchers: give 1 to {MATCHERS_MAX}")
        matchers = tuple(
            Matcher(
                str(each["name"]),
                str(each["value"]),
                bool(each.get("isRegex", False)),
                bool(each.get("isEqual", True)),
            )
            for each in given
        )
        starts_ms, ends_ms = time_ms(body, "startsAt"), time_ms(body, "endsAt")
        if ends_ms <= max(starts_ms, now_ms()):
            raise ValueError("endsAt is in the past, or before startsAt")
        return Silence(
            str(body.get("id") or ""),
            matchers,
            starts_ms,
            ends_ms,
            str(body.get("createdBy", ""))[:200],
            str(body.get("comment", ""))[:2000],
        )
    except KeyError as error:
        raise ApiError(400, 40001, f"the silence has no {error.args[0]}") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise ApiError(400, 40001, f"the silence is not valid: {error}") from None


def time_ms(body: Json, name: str) -> int:
    found = datetime.fromisoformat(str(body[name]).replace("Z", "+00:00"))
    if found.tzinfo is None:
        raise ValueError(f"{name} has no time zone")
    return int(found.timestamp() * 1000)


def matchers_of(request: Request) -> list[Matcher]:
    try:
        return [parse_matcher(each) for each in request.query_params.getlist("filter")[:MATCHERS_MAX]]
    except ValueError as error:
        raise ApiError(400, 40001, str(error)) from None


def flag(request: Request, name: str) -> bool:
    return request.query_params.get(name, "true").lower() != "false"


def number(request: Request, name: str, default: int) -> int:
    given = request.query_params.get(name, "")
    if not given:
        return default
    if not (given.isascii() and given.isdigit() and len(given) < 16):
        raise ApiError(400, 40001, f"{name} is {given[:40]!r}: a whole number is needed")
    return int(given)


STYLE = """body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#222}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.4rem .6rem;border-bottom:1px solid
#ddd;vertical-align:top}.critical{color:#b00020;font-weight:600}.warning{color:#8a5a00;font-weight:600}
code{background:#f4f4f4;padding:.1rem .3rem}.muted{color:#777}"""


def page(evaluator: Evaluator) -> str:
    rows = []
    for alert in sorted(evaluator.book.alerts(), key=lambda each: (each.state, each.severity, each.rule)):
        silenced = ", ".join(evaluator.silenced_by(alert))
        state = f"{alert.state}{f' (silenced: {silenced})' if silenced else ''}"
        rows.append(
            f'<tr><td class="{alert.severity}">{alert.severity}</td><td>{html.escape(state)}<br>'
            f'<span class="muted">since {at(alert.began_ms)}</span></td>'
            f"<td><b>{html.escape(alert.rule)}</b>: {html.escape(alert.summary)}<br>"
            f'<span class="muted">Look at {html.escape(alert.look_at)}</span><br>'
            f"<code>{html.escape(alert.command)}</code></td></tr>"
        )
    table = "".join(rows) or '<tr><td colspan="3">Nothing is wrong.</td></tr>'
    blind = "".join(
        f"<li>{html.escape(place_text(place))}: {html.escape(reason)}</li>"
        for place, reason in evaluator.unknown.items()
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Alerts</title>'
        f'<meta http-equiv="refresh" content="{PAGE_REFRESH_S}"><style>{STYLE}</style></head><body>'
        f"<h1>Alerts</h1><table><tr><th>severity</th><th>state</th><th>what, why, what to do</th></tr>"
        f"{table}</table>"
        + (f"<h2>Checks that could not look</h2><ul>{blind}</ul>" if blind else "")
        + "</body></html>"
    )
