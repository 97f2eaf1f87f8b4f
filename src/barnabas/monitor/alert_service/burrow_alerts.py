"""Burrow's notifiers as rules and targets of alerts.

In: the path of a `burrow.toml`. Out: an `AlertsFile`: its clusters, and for each notifier a rule on the
status of groups with a target of its own. A notifier tells of a group from `threshold` on, again every
`send-interval`, and of its end when the group is OK. SettingsError names a section that is wrong.
"""

from __future__ import annotations

import math
import re
import ssl
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from barnabas.client.core.address import parse_bootstrap
from barnabas.monitor.alert_service.file import AlertsFile, ClusterSettings, read_file
from barnabas.monitor.alerts.notices import Grouping
from barnabas.monitor.alerts.rule import Rule, Severity
from barnabas.monitor.burrow.notifier_targets import BurrowHttp, BurrowMail, Call, Template
from barnabas.monitor.burrow.template_parsing import TemplateError
from barnabas.monitor.lag.judgement import Status
from barnabas.monitor.lag_service.burrow_file import burrow_properties
from barnabas.monitor.lag_service.from_settings import clusters, rules
from barnabas.monitor.lag_service.settings_file import TOML, text_of
from barnabas.monitor.targets.target import Target
from barnabas.security.clients.client_security import client_security
from barnabas.security.errors import SecuritySettingsError
from barnabas.services.settings.loading import load_settings
from barnabas.settings.errors import SettingsError

INTERVAL_S, TIMEOUT_S = 60, 5
Table = Mapping[str, Any]


def read_any(path: Path) -> AlertsFile:
    """A file of alerts, or Burrow's."""
    return burrow_alerts(path) if path.suffix in TOML else read_file(path)


def burrow_alerts(path: Path) -> AlertsFile:
    try:
        tables = tomllib.loads(text_of(path))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is no TOML: {error}") from None
    properties, _ = burrow_properties(tables)
    found = {
        name: each for name, each in tables.get("notifier", {}).items() if each.get("class-name") != "null"
    }
    if not found:
        raise SettingsError(f"{path} has no [notifier.NAME] of class http or email: nobody would be told")
    settings = load_settings("lag", None, properties)
    try:
        watched = tuple(
            ClusterSettings(name, tuple(parse_bootstrap(each["bootstrap.servers"])), client_security(each))
            for name, each in clusters(settings).items()
        )
    except (ValueError, SecuritySettingsError) as error:
        raise SettingsError(f"{path}: {error}") from None
    notifiers = {name: Notifier(name, each, path.parent) for name, each in found.items()}
    return AlertsFile(
        watched,
        tuple(each.rule() for each in notifiers.values()),
        {name: each.target() for name, each in notifiers.items()},
        grouping=Grouping(("cluster", "group", "alertname"), 0.0, 0.0, math.inf),
        interval_s=min(each.seconds("interval", INTERVAL_S) for each in notifiers.values()),
        lag_rules=rules(settings),
        refreshed_s={name: each.refreshed_s for name, each in notifiers.items()},
    )


class Notifier:
    """One section of the file."""

    def __init__(self, name: str, table: Table, folder: Path) -> None:
        self._name = f"notifier.{name}"
        self._table = table
        self._folder = folder
        self._short = name

    def _wrong(self, reason: str) -> SettingsError:
        return SettingsError(f"{self._name}: {reason}", name=self._name)

    def _text(self, key: str, default: str | None = None) -> str:
        found = self._table.get(key, default)
        if not isinstance(found, str) or (not found and default is None):
            raise self._wrong(f"{key} is missing or no text")
        return found

    def seconds(self, key: str, default: float) -> float:
        found = self._table.get(key, default)
        if isinstance(found, bool) or not isinstance(found, int | float) or found < 1:
            raise self._wrong(f"{key} is {found!r}: give seconds, 1 at least")
        return float(found)

    def _is_set(self, key: str) -> bool:
        found = self._table.get(key, False)
        if not isinstance(found, bool):
            raise self._wrong(f"{key} is {found!r}: give true or false")
        return found

    def _pattern(self, key: str) -> re.Pattern[str] | None:
        text = self._text(key, "")
        try:
            return re.compile(text) if text else None
        except re.error as error:
            raise self._wrong(f"{key} is no regular expression: {error}") from None

    def _texts(self, key: str) -> dict[str, str]:
        found = self._table.get(key, {})
        if not isinstance(found, Mapping):
            raise self._wrong(f"{key} is no table")
        return {str(name): str(value) for name, value in found.items()}

    def _template(self, key: str) -> Template:
        path = self._folder / self._text(key)
        try:
            return Template.of(text_of(path))
        except TemplateError as error:
            raise self._wrong(f"{key}: {path}: {error}") from None

    def _inline(self, key: str) -> Template:
        try:
            return Template.of(self._text(key))
        except TemplateError as error:
            raise self._wrong(f"{key}: {error}") from None

    @property
    def refreshed_s(self) -> float:
        """Twice the same group only after so long."""
        interval_s = self.seconds("send-interval", self.seconds("interval", INTERVAL_S))
        return math.inf if self._is_set("send-once") else interval_s

    def rule(self) -> Rule:
        threshold = self._table.get("threshold", int(Status.WARN))
        if not isinstance(threshold, int) or threshold not in (Status.OK, Status.WARN, Status.ERR):
            raise self._wrong(f"threshold is {threshold!r}: give 1 (OK), 2 (warning) or 3 (error)")
        for old in ("group-whitelist", "group-blacklist"):
            if old in self._table:
                raise self._wrong(f"{old} is not read: name it group-allowlist or group-denylist")
        return Rule(
            self._name,
            "group_status",
            Severity.WARNING if threshold < Status.ERR else Severity.CRITICAL,
            "group {group} of {cluster}: {detail}",
            "its members' logs: a stopped group commits nothing, a stalled one commits the same offset",
            "barnabas lag --group {group} --bootstrap-server {bootstrap}",
            above=threshold - 1,
            good_at=min(threshold - 1, int(Status.OK)),
            targets=(self._short,),
            groups_allowed=self._pattern("group-allowlist"),
            groups_denied=self._pattern("group-denylist"),
        )

    def target(self) -> Target:
        makers: Mapping[str, Callable[[], Target]] = {"http": self._http, "email": self._mail}
        kind = self._text("class-name")
        if kind not in makers:
            raise self._wrong(f"the class {kind} is not known: it is one of {', '.join(makers)}, null")
        return makers[kind]()

    def _http(self) -> BurrowHttp:
        begin = Call(
            self._text("method-open", "POST"), self._inline("url-open"), self._template("template-open")
        )
        end = None
        if self._is_set("send-close"):
            method = self._text("method-close", "POST")
            end = Call(method, self._inline("url-close"), self._template("template-close"))
        return BurrowHttp(
            self._short,
            begin,
            end,
            self._texts("extras"),
            self._texts("headers"),
            self._login(),
            self.seconds("timeout", TIMEOUT_S),
            self._tls(),
        )

    def _mail(self) -> BurrowMail:
        port = self._table.get("port")
        if not isinstance(port, int) or not 0 < port < 65536:
            raise self._wrong(f"port is {port!r}: give the server's port")
        kind = self._text("auth-type", "").lower()
        if kind not in ("", "plain", "crammd5"):
            raise self._wrong(f"auth-type {kind} is not known: give plain or crammd5")
        end = self._template("template-close") if self._is_set("send-close") else None
        to = tuple(each.strip() for each in self._text("to").split(",") if each.strip())
        return BurrowMail(
            self._short,
            self._text("server"),
            port,
            self._text("from"),
            to,
            self._template("template-open"),
            end,
            self._texts("extras"),
            self._login() if kind else None,
            self._tls(),
        )

    def _login(self) -> tuple[str, str] | None:
        user = self._text("username", "")
        return (user, self._text("password", "")) if user else None

    def _tls(self) -> ssl.SSLContext | None:
        file = self._text("extra-ca", "")
        if not file and not self._is_set("noverify"):
            return None
        context = ssl.create_default_context()
        if self._is_set("noverify"):
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            return context
        try:
            context.load_verify_locations(self._folder / file)
        except (OSError, ssl.SSLError) as error:
            raise self._wrong(f"extra-ca {file} cannot be read: {error}") from None
        return context
