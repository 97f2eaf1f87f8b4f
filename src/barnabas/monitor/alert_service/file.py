"""The file of alerts: clusters to look at, rules, targets, routes, maintenance.

In: YAML. Out: `AlertsFile`, with the default rules changed by the file. SettingsError names the place that
is wrong and what fits. Values may be references (`${env:NAME}`, `${file:PATH:KEY}`), so that no secret
stands in it.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import time
from pathlib import Path
from typing import Annotated, Any, TypeVar
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, HttpUrl, ValidationError, field_validator

from barnabas.client.core.address import Address, parse_bootstrap
from barnabas.monitor.alert_service.durations import seconds
from barnabas.monitor.alerts.defaults import DEFAULTS
from barnabas.monitor.alerts.notices import Grouping, Route
from barnabas.monitor.alerts.rule import Rule, Severity, check_rule
from barnabas.monitor.alerts.silences import DAYS, MaintenanceWindow, Matcher, parse_matcher
from barnabas.monitor.checks.names import CHECK_NAMES
from barnabas.monitor.lag.cluster_lag import LagRules
from barnabas.monitor.targets.making import NotEmpty, Strict, TargetSettings, make_target
from barnabas.monitor.targets.target import Target
from barnabas.security.clients.client_security import ClientSecurity, client_security, ignored_properties
from barnabas.security.clients.references import UnresolvedReference, resolve_text
from barnabas.security.errors import SecuritySettingsError
from barnabas.settings.errors import SettingsError

log = logging.getLogger("barnabas.alerts")

FILE_BYTES_MAX = 4 * 1024 * 1024
BOOTSTRAP = "bootstrap.servers"
INTERVAL_S = 15.0
INTERVAL_S_MIN = 1.0

T = TypeVar("T")
Duration = Annotated[float, BeforeValidator(seconds)]
Limit = Annotated[float, Field(allow_inf_nan=False)]
LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
OWN_LABELS = ("alertname", "severity")
DAY_MINUTES = 24 * 60


def label_name(given: str) -> str:
    if not LABEL.fullmatch(given) or given in OWN_LABELS:
        raise ValueError(
            f"{given!r} is no name of a label: letters, digits and _, not {' or '.join(OWN_LABELS)}"
        )
    return given


def time_of_day(given: object) -> object:
    """YAML reads 22:00 without quotes as the number 22 * 60, and 22:00:30 as that of seconds."""
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        at_s = given * 60 if given < DAY_MINUTES else given
        return f"{at_s // 3600:02d}:{at_s // 60 % 60:02d}:{at_s % 60:02d}"
    return given


def text_of(given: object) -> str:
    return str(given).lower() if isinstance(given, bool) else str(given)


class ClusterEntry(Strict):
    name: NotEmpty
    properties: Annotated[dict[str, Annotated[str, BeforeValidator(text_of)]], Field(min_length=1)]
    metrics: list[HttpUrl] = []

    @field_validator("properties")
    @classmethod
    def has_brokers(cls, given: dict[str, str]) -> dict[str, str]:
        if BOOTSTRAP not in given:
            raise ValueError(f"{BOOTSTRAP} is missing")
        return given


class RuleEntry(Strict):
    """All but the name may be missing: then the default rule of that name gives it."""

    name: NotEmpty
    enabled: bool = True
    check: str | None = None
    severity: Severity | None = None
    above: Limit | None = None
    below: Limit | None = None
    good_at: Limit | None = None
    for_s: Duration | None = Field(default=None, alias="for")
    keep_s: Duration | None = Field(default=None, alias="keep")
    summary: str | None = None
    look_at: str | None = None
    command: str | None = None
    labels: dict[Annotated[str, AfterValidator(label_name)], str] = {}
    targets: list[str] = []
    metric: str | None = None
    match: dict[str, str] = {}
    least: Limit | None = None
    over_s: Duration | None = Field(default=None, alias="over")


class RouteEntry(Strict):
    targets: list[str]
    match: list[str] = []


class GroupEntry(Strict):
    by: list[str] = list(Grouping().by)
    wait_s: Duration = Field(default=Grouping().wait_s, alias="wait")
    interval_s: Duration = Field(default=Grouping().interval_s, alias="interval")
    repeat_s: Duration = Field(default=Grouping().repeat_s, alias="repeat")


class GroupsEntry(Strict):
    """Patterns that group ids contain; without `allow` all groups are watched."""

    allow: str | None = None
    deny: str | None = None

    @field_validator("allow", "deny")
    @classmethod
    def is_pattern(cls, given: str) -> str:
        try:
            re.compile(given)
        except re.error as error:
            raise ValueError(f"{given!r} is no pattern: {error}") from None
        return given


class MaintenanceEntry(Strict):
    name: NotEmpty
    since: Annotated[time, BeforeValidator(time_of_day)] = Field(alias="from")
    until: Annotated[time, BeforeValidator(time_of_day)] = Field(alias="to")
    days: list[str] = []
    zone: str = Field(default="UTC", alias="timezone")
    match: list[str] = []

    @field_validator("days")
    @classmethod
    def are_days(cls, given: list[str]) -> list[str]:
        for day in given:
            if day not in DAYS:
                raise ValueError(f"{day!r} is no day: use {', '.join(DAYS)}")
        return given

    @field_validator("zone")
    @classmethod
    def is_zone(cls, given: str) -> str:
        try:
            ZoneInfo(given)
        except (KeyError, ValueError, OSError):
            raise ValueError(f"{given!r} is no time zone: write it as Europe/Berlin") from None
        return given


class FileModel(Strict):
    clusters: list[ClusterEntry] = []
    interval_s: Duration = Field(default=INTERVAL_S, alias="interval")
    external_url: str = ""
    audit: list[HttpUrl] = []
    connect: list[HttpUrl] = []
    certificates: list[str] = []
    metrics: list[HttpUrl] = []
    consumer_groups: GroupsEntry = GroupsEntry()
    targets: dict[NotEmpty, TargetSettings] = {}
    routes: list[RouteEntry] = []
    group: GroupEntry = GroupEntry()
    rules: list[RuleEntry] = []
    maintenance: list[MaintenanceEntry] = []


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    name: str
    bootstrap: tuple[Address, ...]
    security: ClientSecurity
    metrics: tuple[str, ...] = ()

    @property
    def bootstrap_text(self) -> str:
        return ",".join(map(str, self.bootstrap))


@dataclass(frozen=True, slots=True)
class AlertsFile:
    clusters: tuple[ClusterSettings, ...]
    rules: tuple[Rule, ...]
    targets: Mapping[str, Target]
    routes: tuple[Route, ...] = ()
    grouping: Grouping = field(default_factory=Grouping)
    windows: tuple[MaintenanceWindow, ...] = ()
    interval_s: float = INTERVAL_S
    audit: tuple[str, ...] = ()
    connect: tuple[str, ...] = ()
    certificates: tuple[Address, ...] = ()
    metrics: tuple[str, ...] = ()  # endpoints that belong to no cluster
    external_url: str = ""
    groups_allowed: re.Pattern[str] | None = None
    groups_denied: re.Pattern[str] | None = None
    lag_rules: LagRules | None = None  # how groups are judged; None: by default, with the patterns above
    refreshed_s: Mapping[str, float] = field(
        default_factory=dict
    )  # how often targets hear of what still fires

    def admits(self, group_id: str) -> bool:
        """Whether the group is watched."""
        allowed, denied = self.groups_allowed, self.groups_denied
        if allowed is not None and allowed.search(group_id) is None:
            return False
        return denied is None or denied.search(group_id) is None


def read_file(path: Path) -> AlertsFile:
    import yaml

    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > FILE_BYTES_MAX:
        raise SettingsError(f"{path} is larger than {FILE_BYTES_MAX} bytes: it is no file of alerts")
    try:
        tree = yaml.safe_load(data.decode())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is no YAML: {' '.join(str(error).split())}") from None
    if tree is None:
        tree = {}
    if not isinstance(tree, dict):
        raise SettingsError(f"{path}: expected entries such as clusters, rules and targets")
    return alerts_file(tree, str(path))


def alerts_file(tree: Mapping[str, Any], place: str) -> AlertsFile:
    try:
        model = FileModel.model_validate(with_values(tree))
        targets = {name: make_target(name, each, model.external_url) for name, each in model.targets.items()}
        rules = rules_of(model.rules)
        found = AlertsFile(
            tuple(map(cluster_of, model.clusters)),
            rules,
            targets,
            tuple(Route(tuple(each.targets), matchers(each.match)) for each in model.routes)
            or default_routes(targets),
            Grouping(tuple(model.group.by), model.group.wait_s, model.group.interval_s, model.group.repeat_s),
            tuple(map(window_of, model.maintenance)),
            model.interval_s,
            tuple(str(each).rstrip("/") for each in model.audit),
            tuple(str(each).rstrip("/") for each in model.connect),
            tuple(parse_bootstrap(each)[0] for each in model.certificates),
            tuple(map(str, model.metrics)),
            model.external_url,
            pattern_of(model.consumer_groups.allow),
            pattern_of(model.consumer_groups.deny),
        )
        check_file(found)
    except ValidationError as error:
        raise SettingsError(f"{place}: {problems(error)}") from None
    except RecursionError:
        raise SettingsError(f"{place}: an entry refers to itself (&name and *name)") from None
    except (ValueError, UnresolvedReference, SecuritySettingsError) as error:
        raise SettingsError(f"{place}: {error}") from None
    return found


def with_values(tree: Any) -> Any:
    """Replace references in all texts."""
    if isinstance(tree, Mapping):
        return {str(name): with_values(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [with_values(each) for each in tree]
    return resolve_text(tree) if isinstance(tree, str) else tree


def problems(error: ValidationError) -> str:
    """All problems in one line: where, and what. Values are left out: they may be secrets."""
    found = []
    for each in error.errors(include_input=False, include_url=False):
        where = ".".join(map(str, each["loc"])) or "the file"
        text = each["msg"].removeprefix("Value error, ")
        if each["type"] == "extra_forbidden":
            text = "no such entry" + close_name(each["loc"])
        found.append(f"{where}: {text}")
    return "; ".join(found)


def close_name(location: tuple[int | str, ...]) -> str:
    known = [
        name
        for model in (
            FileModel,
            RuleEntry,
            ClusterEntry,
            MaintenanceEntry,
            RouteEntry,
            GroupEntry,
            GroupsEntry,
        )
        for field, info in model.model_fields.items()
        for name in (info.alias or field,)
    ]
    found = difflib.get_close_matches(str(location[-1]), known, 1)
    return f"; did you mean {found[0]}?" if found else ""


def cluster_of(entry: ClusterEntry) -> ClusterSettings:
    for text in ignored_properties(entry.properties):
        log.warning("clusters: %s: the property %s", entry.name, text)
    return ClusterSettings(
        entry.name,
        tuple(parse_bootstrap(entry.properties[BOOTSTRAP])),
        client_security(entry.properties),
        tuple(map(str, entry.metrics)),
    )


def pattern_of(text: str | None) -> re.Pattern[str] | None:
    return re.compile(text) if text is not None else None


def matchers(texts: list[str]) -> tuple[Matcher, ...]:
    return tuple(map(parse_matcher, texts))


def window_of(entry: MaintenanceEntry) -> MaintenanceWindow:
    return MaintenanceWindow(
        entry.name, entry.since, entry.until, tuple(entry.days), entry.zone, matchers(entry.match)
    )


def default_routes(targets: Mapping[str, Target]) -> tuple[Route, ...]:
    """Without routes every target gets every alert."""
    return (Route(tuple(targets)),) if targets else ()


def rules_of(entries: list[RuleEntry]) -> tuple[Rule, ...]:
    found = {rule.name: rule for rule in DEFAULTS}
    for entry in entries:
        if not entry.enabled:
            if entry.name not in found:
                names = difflib.get_close_matches(entry.name, found, 1)
                raise ValueError(
                    f"rules: {entry.name} is not known" + (f"; did you mean {names[0]}?" if names else "")
                )
            del found[entry.name]
            continue
        rule = changed(found[entry.name], entry) if entry.name in found else new_rule(entry)
        check_rule(rule)
        found[entry.name] = rule
    return tuple(found.values())


FIELDS = ("check", "severity", "good_at", "for_s", "keep_s", "summary", "look_at", "command")


def changed(rule: Rule, entry: RuleEntry) -> Rule:
    given: dict[str, Any] = {
        name: getattr(entry, name) for name in FIELDS if getattr(entry, name) is not None
    }
    if entry.above is not None or entry.below is not None:
        given |= {"above": entry.above, "below": entry.below}
        given.setdefault("good_at", None)  # that of the default belongs to its limit
    if entry.labels:
        given["labels"] = {**rule.labels, **entry.labels}
    if entry.targets:
        given["targets"] = tuple(entry.targets)
    if options := options_of(entry):
        given["options"] = {**rule.options, **options}
    return replace(rule, **given)


def options_of(entry: RuleEntry) -> dict[str, object]:
    found: dict[str, object] = {}
    if entry.metric is not None:
        found["metric"] = entry.metric
    if entry.match:
        found["match"] = dict(entry.match)
    if entry.least is not None:
        found["least"] = entry.least
    if entry.over_s is not None:
        found["over"] = entry.over_s
    return found


def new_rule(entry: RuleEntry) -> Rule:
    check = needed(entry, "check", entry.check)
    if check.startswith("metric"):
        needed(entry, "metric", entry.metric)
    return Rule(
        entry.name,
        check,
        entry.severity or Severity.WARNING,
        entry.summary or f"{entry.name}: {{value}} ({{labels}}) {{detail}}",
        entry.look_at or "the value of the check, over time",
        entry.command or "barnabas health",
        entry.above,
        entry.below,
        entry.good_at,
        entry.for_s or 0.0,
        entry.keep_s or 0.0,
        entry.labels,
        tuple(entry.targets),
        options_of(entry),
    )


def needed(entry: RuleEntry, name: str, value: T | None) -> T:
    if value is None:
        known = difflib.get_close_matches(entry.name, [rule.name for rule in DEFAULTS], 1)
        hint = f" (or did you mean the rule {known[0]}?)" if known else ""
        raise ValueError(f"rules: {entry.name} is a new rule and needs `{name}`{hint}")
    return value


def check_file(found: AlertsFile) -> None:
    names = [each.name for each in found.clusters]
    if len(names) != len(set(names)):
        raise ValueError("clusters: two have the same name")
    if found.interval_s < INTERVAL_S_MIN:
        raise ValueError(f"interval: give at least {INTERVAL_S_MIN:g} s")
    for rule in found.rules:
        if rule.check not in CHECK_NAMES:
            raise ValueError(
                f"rules: {rule.name}: no check is called {rule.check}; known: {', '.join(CHECK_NAMES)}"
            )
        check_targets(found, f"rules: {rule.name}", rule.targets)
    for route in found.routes:
        check_targets(found, "routes", route.targets)


def check_targets(found: AlertsFile, place: str, names: tuple[str, ...]) -> None:
    for name in names:
        if name not in found.targets:
            known = ", ".join(found.targets) or "none"
            raise ValueError(f"{place}: no target is called {name}; known: {known}")
