"""Settings of the HTTP source, with Confluent's names, and their meaning."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.connect.config import ConfigDef, Settings, at_least, between, one_of_any_case
from barnabas.connect.connectors.http.logins import define_logins, login_of
from barnabas.connect.connectors.http.paging import MODES, OFFSET, Plan, Pointer, whole
from barnabas.connect.connectors.http.sink_settings import (
    RETRIED,
    checked_url,
    define_proxy,
    proxy_of,
    status_codes,
)
from barnabas.connect.connectors.http.templates import fixed_headers
from barnabas.connect.connectors.stores.http_client import HttpClient, define_host_check, tls_properties
from barnabas.connect.connectors.stores.licence import LICENCE
from barnabas.connect.connectors.stores.retries import define_policy, pauses_of
from barnabas.connect.plugins import ConnectError

APIS_MAX = 100
NUMBER = "barnabas.api"  # of one API's settings
SHARE = "barnabas.apis"  # the numbers of the APIs of a task
ENTITY, ENTITY_PLACE = "barnabas.entity", "${entityName}"
OF_ENTITIES = ("topic.name.pattern", "topic", "url", "http.request.parameters", "http.request.body")


def apis_of(config: Mapping[str, str]) -> list[dict[str, str]]:
    """The settings of each API: those of all, and in their place those that begin with `api1.` and so on.
    One that has an `url` is alone, or there is one for each of `entity.names`."""
    if any(ENTITY_PLACE in (config.get(each) or "") for each in OF_ENTITIES):
        return shared(config, entities_of(config))
    text = (config.get("apis.num") or "0").strip()
    count = int(text) if text.isdecimal() else 0
    if not count:
        return [dict(config)]
    if config.get("url"):
        raise ConnectError("url and apis.num exclude each other: name the paths as api1.http.api.path")
    base = (config.get("http.api.base.url") or "").rstrip("/")
    if not base:
        raise ConnectError("http.api.base.url is missing: it begins the addresses of the APIs")
    numbers = [str(number) for number in range(1, min(count, APIS_MAX) + 1)]
    common = {name: value for name, value in config.items() if not name.startswith("api")}
    found: list[dict[str, str]] = []
    for number in numbers:
        prefix = f"api{number}."
        own = {name.removeprefix(prefix): each for name, each in config.items() if name.startswith(prefix)}
        for name in ("http.api.path", "topics"):
            if not own.get(name):
                raise ConnectError(f"{prefix}{name} is missing: apis.num tells of {count} APIs")
        own |= {"url": base + own["http.api.path"], "topic": own["topics"], NUMBER: number}
        if any(each["url"] == own["url"] for each in found):
            raise ConnectError(f"{prefix}http.api.path is that of another API, whose offsets it would share")
        found.append({**common, **own})
    return shared(config, found)


def shared(config: Mapping[str, str], apis: list[dict[str, str]]) -> list[dict[str, str]]:
    """The APIs of the task; all, where it is not one of several."""
    mine = config.get(SHARE)
    return apis if mine is None else [each for each in apis if each[NUMBER] in mine.split(",")]


def entities_of(config: Mapping[str, str]) -> list[dict[str, str]]:
    """An API for each entity, whose name is filled in."""
    names = list(dict.fromkeys(filter(None, map(str.strip, (config.get("entity.names") or "").split(",")))))
    if not names:
        raise ConnectError(f"entity.names is missing: it has the values of {ENTITY_PLACE}")
    found: list[dict[str, str]] = []
    for number, name in enumerate(names, 1):
        own = {each: config[each].replace(ENTITY_PLACE, name) for each in OF_ENTITIES if each in config}
        if own.get("url") == config.get("url"):  # offsets are by address: it does not tell entities apart
            own[ENTITY] = name
        found.append({**config, **own, NUMBER: str(number)})
    return found


def definitions() -> ConfigDef:
    found = (
        ConfigDef()
        .define("url", "STRING", "", "HIGH", "The address; ${offset} is filled in.")
        .define("http.api.base.url", "STRING", "", "HIGH", "The beginning of the addresses of several APIs.")
        .define("apis.num", "INT", 0, "HIGH", "How many APIs there are: api1.http.api.path and so on.",
                validator=between(0, APIS_MAX))
        .define("entity.names", "LIST", "", "HIGH",
                "Values of ${entityName} in url, topic, parameters and body: each is read by itself.")
        .define("topic.name.pattern", "STRING", "", "HIGH", "The topic; ${entityName} is filled in.")
        .define("topic", "STRING", "", "HIGH", "The same as topic.name.pattern.")
        .define("http.request.method", "STRING", "GET", "HIGH", "The method.",
                validator=one_of_any_case("GET", "POST"))
        .define("http.request.headers", "PASSWORD", "", "MEDIUM",
                "Headers name:value. Hidden: headers carry logins.")
        .define("http.request.sensitive.headers", "PASSWORD", "", "MEDIUM", "More of them.")
        .define("http.request.headers.separator", "STRING", "|", "MEDIUM", "Between headers.")
        .define("http.request.parameters", "STRING", "", "MEDIUM",
                "Parameters name=value of the address; values may hold ${offset}.")
        .define("http.request.parameters.separator", "STRING", "&", "MEDIUM", "Between parameters.")
        .define("http.request.body", "STRING", "", "MEDIUM", "The body of POST; may hold ${offset}.")
        .define("http.offset.mode", "STRING", "SIMPLE_INCREMENTING", "HIGH", "How the next page is found.",
                validator=one_of_any_case(*MODES))
        .define("http.initial.offset", "STRING", "", "MEDIUM", "The first offset.")
        .define("http.response.data.json.pointer", "STRING", "", "HIGH", "Where the list of records lies.")
        .define("http.offset.json.pointer", "STRING", "", "MEDIUM",
                "CHAINING: where a record has its offset.")
        .define("http.next.page.json.pointer", "STRING", "", "MEDIUM",
                "CURSOR, LINK and SNAPSHOT: where a response names the next page.")
        .define("http.record.key.json.pointer", "STRING", "", "LOW", "Where a record has its key.")
        .define("http.response.format", "STRING", "value", "LOW",
                "value: records without a schema; text: each as JSON text.",
                validator=one_of_any_case("value", "text"))
        .define("http.response.max.bytes", "INT", 64 << 20, "LOW", "A larger response is an error.",
                validator=at_least(1))
        .define("request.interval.ms", "LONG", 15_000, "HIGH", "The pause when nothing more is there.",
                validator=at_least(0))
        .define("behavior.on.error", "STRING", "fail", "HIGH",
                "ignore: an API that gives an error is asked again after request.interval.ms.",
                validator=one_of_any_case("fail", "ignore"))
        .define("max.retries", "INT", 5, "MEDIUM", "Retries until the task fails; -1: without end.",
                validator=at_least(-1))
        .define("retry.backoff.ms", "INT", 3000, "MEDIUM", "The first pause; the following ones double.",
                validator=at_least(0))
        .define("retry.on.status.codes", "STRING", RETRIED, "LOW", "Statuses that are tried again.")
        .define("http.connect.timeout.ms", "INT", 30_000, "LOW", "Time to connect.", validator=at_least(1))
        .define("http.request.timeout.ms", "INT", 30_000, "LOW", "Time for a response.",
                validator=at_least(1))
    )  # fmt: skip
    told = "errors are in the task's status and in the log"
    reports = {f"reporter.{each}": (None, told) for each in ("bootstrap.servers", "error.topic.name")}
    found = define_host_check(define_policy(found)).without_effect({**LICENCE, **reports})
    return define_proxy(define_logins(found))


def plan_of(settings: Settings) -> Plan:
    mode = settings.text("http.offset.mode").upper()
    first = settings.text("http.initial.offset")
    if mode == "SIMPLE_INCREMENTING":
        first = first or "0"
        whole(first)
    topic = settings.text("topic.name.pattern") or settings.text("topic")
    if not topic:
        raise ConnectError("topic.name.pattern is missing: set the topic to write to")
    if mode == "CHAINING" and not settings.text("http.offset.json.pointer"):
        raise ConnectError("http.offset.json.pointer is needed with http.offset.mode=CHAINING")
    if mode == "CURSOR_PAGINATION" and not settings.text("http.next.page.json.pointer"):
        raise ConnectError("http.next.page.json.pointer is needed with http.offset.mode=CURSOR_PAGINATION")
    if not settings.text("url"):
        raise ConnectError("url is missing: set it, or http.api.base.url, apis.num and api1.http.api.path")
    plan = Plan(
        url=checked_url(settings.text("url"), "url"),
        topic=topic,
        mode=mode,
        first=first,
        method=settings.text("http.request.method").upper(),
        headers=tuple(
            pair
            for name in ("http.request.headers", "http.request.sensitive.headers")
            for pair in fixed_headers(settings, name, "http.request.headers.separator").items()
        ),
        params=parameters(settings),
        body=settings.text("http.request.body"),
        data=Pointer(settings.text("http.response.data.json.pointer")),
        offset=Pointer(settings.text("http.offset.json.pointer")),
        next=Pointer(settings.text("http.next.page.json.pointer")),
        key=Pointer(k) if (k := settings.text("http.record.key.json.pointer")) else None,
        as_text=settings.text("http.response.format").lower() == "text",
        interval_s=settings.integer("request.interval.ms") / 1000,
        retries_max=settings.integer("max.retries"),
        pauses=pauses_of(settings),
        goes_on=settings.text("behavior.on.error").lower() == "ignore",
        retried=status_codes(settings.text("retry.on.status.codes")),
    )
    if mode in ("CHAINING", "CURSOR_PAGINATION") and plan.is_fixed:
        raise ConnectError(
            f"url: no request holds {OFFSET}, so that each would give the same page: put it into url,"
            " http.request.parameters or http.request.body"
        )
    return plan


def parameters(settings: Settings) -> tuple[tuple[str, str], ...]:
    separator = settings.text("http.request.parameters.separator") or "&"
    found = []
    for each in filter(None, settings.text("http.request.parameters").split(separator)):
        name, equals, value = each.partition("=")
        if not equals:
            raise ConnectError(f"http.request.parameters: {each!r} is no parameter: write name=value")
        found.append((name.strip(), value.strip()))
    return tuple(found)


def client_of(settings: Settings) -> HttpClient:
    return HttpClient(
        login=login_of(settings),
        connect_s=settings.integer("http.connect.timeout.ms") / 1000,
        read_s=settings.integer("http.request.timeout.ms") / 1000,
        tls=tls_properties(settings, "https."),
        proxy=proxy_of(settings),
        bytes_max=settings.integer("http.response.max.bytes"),
    )
