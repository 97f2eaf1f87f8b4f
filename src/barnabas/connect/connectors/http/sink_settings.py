"""Settings of the HTTP sink, with Confluent's names and with Aiven's, and what both mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import quote

from barnabas.connect.config import REQUIRED, ConfigDef, Settings, at_least, between, one_of_any_case
from barnabas.connect.connectors.http.logins import define_logins, login_of
from barnabas.connect.connectors.http.replacements import Replacements, define_replacements, replacements_of
from barnabas.connect.connectors.http.templates import Template, header_templates
from barnabas.connect.connectors.stores.http_client import HttpClient, define_host_check, tls_properties
from barnabas.connect.connectors.stores.http_logins import ClientCredentials, FixedLogin, Login, NoLogin
from barnabas.connect.connectors.stores.licence import LICENCE
from barnabas.connect.connectors.stores.retries import PAUSE_MS_MAX, Pauses, define_policy, pauses_of
from barnabas.connect.plugins import ConnectError

BATCH_MAX = 100_000
RETRIED = "408,425,429,500-"


@dataclass(frozen=True, slots=True)
class SinkPlan:
    """How records become requests."""

    url: Template
    method: str = "POST"
    headers: tuple[tuple[str, Template], ...] = ()
    body: Template | None = None
    replacements: Replacements = ()
    as_json: bool = False  # texts too are written as JSON
    decimals: str = "text"
    batch_size: int = 1
    batch_key: Template = field(default_factory=lambda: Template(""))  # records of one request have the same
    prefix: str = ""
    separator: str = ""
    suffix: str = ""
    nulls: str = "ignore"
    on_error: str = "fail"
    retries_max: int = 10
    pauses: Pauses = field(default_factory=lambda: Pauses(3000))
    retried: Callable[[int], bool] = lambda status: status >= 500


def status_codes(text: str) -> Callable[[int], bool]:
    """`400-` from 400 on, `500-599`, `429`; several with commas."""
    ranges: list[tuple[int, int]] = []
    for each in filter(None, (one.strip() for one in text.split(","))):
        low, dash, high = (one.strip() for one in each.partition("-"))
        if not low.isdecimal() or (high and not high.isdecimal()):
            raise ConnectError(
                f"retry.on.status.codes: {each!r} is no status: write 429, 500-599 or 500-, commas between"
            )
        ranges.append((int(low), int(high) if high else 999 if dash else int(low)))
    return lambda status: any(low <= status <= high for low, high in ranges)


def confluent_definitions() -> ConfigDef:
    found = (
        ConfigDef()
        .define("http.api.url", "STRING", REQUIRED, "HIGH",
                "The address; ${topic}, ${key}, ${key.field} and ${field} of the value are filled in.")
        .define("request.method", "STRING", "POST", "HIGH", "The method of requests.",
                validator=one_of_any_case("PUT", "POST", "PATCH", "DELETE"))
        .define("request.body.format", "STRING", "string", "MEDIUM",
                "string: texts as they are, other values as JSON; json: everything as JSON.",
                validator=one_of_any_case("string", "json"))
        .define("request.body.template", "STRING", "", "LOW", "The body of a record, in place of its value.")
        .define("headers", "PASSWORD", "", "MEDIUM",
                "Headers name:value; values may hold ${key} and the like. Hidden: headers carry logins.")
        .define("header.separator", "STRING", "|", "LOW", "Between headers.")
        .define("batch.max.size", "INT", 1, "HIGH", "Records of a request.", validator=between(1, BATCH_MAX))
        .define("batch.prefix", "STRING", "", "MEDIUM", "Before the records of a request.")
        .define("batch.suffix", "STRING", "", "MEDIUM", "Behind the records of a request.")
        .define("batch.separator", "STRING", ",", "MEDIUM", "Between the records of a request.")
        .define("batch.key.pattern", "STRING", "", "MEDIUM",
                "Records of a request have the same text; ${key} and the like are filled in.")
        .define("batch.json.as.array", "BOOLEAN", False, "MEDIUM", "Records of a request are a JSON array.")
        .define("behavior.on.null.values", "STRING", "ignore", "LOW", "What tombstones do.",
                validator=one_of_any_case("ignore", "delete", "fail", "log"))
        .define("behavior.on.error", "STRING", "fail", "LOW",
                "fail: as errors.tolerance says; ignore, log: reported, then left behind.",
                validator=one_of_any_case("fail", "ignore", "log"))
        .define("max.retries", "INT", 10, "MEDIUM", "Retries until the task fails; -1: without end.",
                validator=at_least(-1))
        .define("retry.backoff.ms", "INT", 3000, "MEDIUM", "The first pause; the following ones double.",
                validator=at_least(0))
        .define("retry.on.status.codes", "STRING", RETRIED, "LOW", "Statuses that are tried again.")
        .define("http.connect.timeout.ms", "INT", 30_000, "LOW", "Time to connect.", validator=at_least(1))
        .define("http.request.timeout.ms", "INT", 30_000, "LOW", "Time for a response.",
                validator=at_least(1))
        .define("reporter.bootstrap.servers", "LIST", "", "MEDIUM",
                "Brokers of the report topics; empty: no reports.")
        .define("reporter.result.topic.name", "STRING", "success-${connector}", "LOW",
                "Reports of successes.")
        .define("reporter.result.topic.replication.factor", "INT", 3, "LOW", "Replicas of that topic.",
                validator=at_least(-1))
        .define("reporter.error.topic.name", "STRING", "error-${connector}", "LOW", "Reports of failures.")
        .define("reporter.error.topic.replication.factor", "INT", 3, "LOW", "Replicas of that topic.",
                validator=at_least(-1))
        .define("reporter.result.topic.partitions", "INT", 1, "LOW", "Partitions of that topic.",
                validator=at_least(1))
        .define("reporter.error.topic.partitions", "INT", 1, "LOW", "Partitions of that topic.",
                validator=at_least(1))
        .define("report.errors.as", "STRING", "error_string", "LOW",
                "Reports of failures hold our message, or the response of the server.",
                validator=one_of_any_case("error_string", "http_response"))
    )  # fmt: skip
    as_text = "reports have texts as keys and values"
    found.without_effect(
        {f"reporter.{kind}.topic.{part}.format": (None, as_text)
         for kind in ("result", "error") for part in ("key", "value")}
    )  # fmt: skip
    found = define_host_check(define_policy(define_replacements(found))).without_effect(LICENCE)
    return define_proxy(define_logins(found))


def confluent_plan(settings: Settings) -> SinkPlan:
    as_array = settings.flag("batch.json.as.array")
    body = settings.text("request.body.template")
    as_json = settings.text("request.body.format").lower() == "json"
    headers = header_templates(settings.text("headers"), settings.text("header.separator") or "|", "headers")
    if not any(name == "content-type" for name, _ in headers):
        kind = "application/json" if as_json or as_array else "text/plain; charset=utf-8"
        headers += (("content-type", Template(kind)),)
    return SinkPlan(
        url=Template(checked_url(settings.text("http.api.url"), "http.api.url"), in_url=True),
        method=settings.text("request.method").upper(),
        headers=headers,
        body=Template(body) if body else None,
        replacements=replacements_of(settings),
        as_json=as_json,
        batch_size=settings.integer("batch.max.size"),
        batch_key=Template(settings.text("batch.key.pattern")),
        prefix="[" if as_array else untrimmed(settings, "batch.prefix", ""),
        separator="," if as_array else untrimmed(settings, "batch.separator", ","),
        suffix="]" if as_array else untrimmed(settings, "batch.suffix", ""),
        nulls=settings.text("behavior.on.null.values").lower(),
        on_error=settings.text("behavior.on.error").lower(),
        retries_max=settings.integer("max.retries"),
        pauses=pauses_of(settings),
        retried=status_codes(settings.text("retry.on.status.codes")),
    )


def define_proxy(found: ConfigDef) -> ConfigDef:
    return (
        found.define("http.proxy.host", "STRING", "", "LOW", "A proxy.")
        .define("http.proxy.port", "INT", 80, "LOW", "The port of the proxy.", validator=between(1, 65535))
        .define("http.proxy.user", "STRING", "", "LOW", "The user of the proxy.")
        .define("http.proxy.password", "PASSWORD", None, "LOW", "The password of the proxy.")
    )


def proxy_of(settings: Settings) -> str | None:
    """The address of the proxy with its login."""
    host, user = settings.text("http.proxy.host"), settings.text("http.proxy.user")
    if not host:
        return None
    login = f"{quote(user, safe='')}:{quote(settings.text('http.proxy.password'), safe='')}@" if user else ""
    return f"http://{login}{host}:{settings.integer('http.proxy.port')}"


def confluent_client(settings: Settings) -> HttpClient:
    return HttpClient(
        login=login_of(settings),
        connect_s=settings.integer("http.connect.timeout.ms") / 1000,
        read_s=settings.integer("http.request.timeout.ms") / 1000,
        tls=tls_properties(settings, "https."),
        proxy=proxy_of(settings),
        bytes_max=16 << 20,
    )


def aiven_definitions() -> ConfigDef:
    found = (
        ConfigDef()
        .define("http.url", "STRING", REQUIRED, "HIGH", "The address.")
        .define("http.authorization.type", "STRING", "none", "HIGH", "The login.",
                validator=one_of_any_case("none", "static", "oauth2", "apikey"))
        .define("http.headers.authorization", "PASSWORD", None, "MEDIUM",
                "The header Authorization for static and apikey.")
        .define("http.headers.content.type", "STRING", "", "LOW", "The header Content-Type.")
        .define("http.headers.additional", "PASSWORD", "", "LOW",
                "Headers name:value with commas between. Hidden: headers carry logins.")
        .define("oauth2.access.token.url", "STRING", "", "HIGH", "The token server.")
        .define("oauth2.client.id", "STRING", "", "HIGH", "The client.")
        .define("oauth2.client.secret", "PASSWORD", None, "HIGH", "Its secret.")
        .define("oauth2.client.scope", "STRING", "", "LOW", "The scope.")
        .define("oauth2.client.authorization.mode", "STRING", "HEADER", "MEDIUM",
                "HEADER: id and secret as Basic; URL: in the body.",
                validator=one_of_any_case("HEADER", "URL"))
        .define("oauth2.response.token.property", "STRING", "access_token", "LOW", "The name of the token.")
        .define("batching.enabled", "BOOLEAN", False, "HIGH", "Several records in a request.")
        .define("batch.max.size", "INT", 500, "MEDIUM", "Records of a request.",
                validator=between(1, 1_000_000))
        .define("batch.prefix", "STRING", "", "HIGH", "Before the records of a request.")
        .define("batch.suffix", "STRING", "", "HIGH", "Behind the records; by default a line end.")
        .define("batch.separator", "STRING", "", "HIGH", "Between the records; by default a line end.")
        .define("max.retries", "INT", 1, "MEDIUM", "Retries until the task fails; -1: without end.",
                validator=at_least(-1))
        .define("retry.backoff.ms", "INT", 3000, "MEDIUM", "The first pause; the following ones double.",
                validator=at_least(0))
        .define("kafka.retry.backoff.ms", "LONG", -1, "MEDIUM",
                "Try again without end, after so long at most; -1: max.retries is the bound.",
                validator=between(-1, 86_400_000))
        .define("decimal.format", "STRING", "", "LOW", "NUMERIC: decimals are numbers; otherwise texts.",
                validator=one_of_any_case("", "NUMERIC"))
        .define("http.timeout", "INT", 30, "LOW", "Seconds for a response.", validator=at_least(1))
    )  # fmt: skip
    every = "certificates are always checked: name the authority by http.ssl.truststore.location"
    return found.refused({"http.ssl.trust.all.certs": ("false", every)})


def aiven_plan(settings: Settings) -> SinkPlan:
    is_batched = settings.flag("batching.enabled")
    headers = header_templates(settings.text("http.headers.additional"), ",", "http.headers.additional")
    kind = settings.text("http.headers.content.type")
    if kind:
        headers += (("content-type", Template(kind)),)
    longest = settings.integer("kafka.retry.backoff.ms")
    first = settings.integer("retry.backoff.ms")
    return SinkPlan(
        url=Template(checked_url(settings.text("http.url"), "http.url"), in_url=True),
        headers=headers,
        batch_size=settings.integer("batch.max.size") if is_batched else 1,
        prefix=untrimmed(settings, "batch.prefix", "") if is_batched else "",
        separator=untrimmed(settings, "batch.separator", "\n") if is_batched else "",
        suffix=untrimmed(settings, "batch.suffix", "\n") if is_batched else "",
        nulls="fail",
        decimals=settings.text("decimal.format").lower() or "text",
        retries_max=settings.integer("max.retries") if longest < 0 else -1,
        pauses=Pauses(first) if longest < 0 else Pauses(min(first, longest), min(longest, PAUSE_MS_MAX)),
        retried=status_codes(RETRIED),
    )


def aiven_client(settings: Settings) -> HttpClient:
    return HttpClient(
        login=aiven_login(settings),
        read_s=settings.integer("http.timeout"),
        tls=tls_properties(settings, "http."),
        bytes_max=16 << 20,
    )


def aiven_login(settings: Settings) -> Login:
    kind = settings.text("http.authorization.type").lower()
    if kind in ("static", "apikey"):
        text = settings.text("http.headers.authorization")
        if not text:
            raise ConnectError(
                f"http.headers.authorization is needed with http.authorization.type={kind}: set its value"
            )
        return FixedLogin({"authorization": text})
    if kind == "oauth2":
        for name in ("oauth2.access.token.url", "oauth2.client.id", "oauth2.client.secret"):
            if not settings.text(name):
                raise ConnectError(f"{name} is needed with http.authorization.type=oauth2")
        return ClientCredentials(
            settings.text("oauth2.access.token.url"),
            settings.text("oauth2.client.id"),
            settings.text("oauth2.client.secret"),
            settings.text("oauth2.client.scope"),
            settings.text("oauth2.client.authorization.mode").upper() == "HEADER",
            settings.text("oauth2.response.token.property"),
        )
    return NoLogin()


def untrimmed(settings: Settings, name: str, default: str) -> str:
    """A text as the user gave it: line ends and blanks count."""
    given = settings.raw.get(name)
    return default if given is None else given


def checked_url(text: str, setting: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise ConnectError(f"{setting} must begin with http:// or https://, and is {text!r}")
    return text
