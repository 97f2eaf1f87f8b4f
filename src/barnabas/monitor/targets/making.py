"""Targets from their settings in the file: the kind is the name of the only entry.

In: `{mail: {...}}` and the like. Out: a target. ValueError says which entry is wrong.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, HttpUrl, model_validator

from barnabas.client.core.address import parse_bootstrap
from barnabas.monitor.targets.alertmanager import Alertmanager
from barnabas.monitor.targets.mail import Mail
from barnabas.monitor.targets.pagerduty import URL as PAGERDUTY_URL
from barnabas.monitor.targets.pagerduty import PagerDuty
from barnabas.monitor.targets.slack import Slack
from barnabas.monitor.targets.target import Target
from barnabas.monitor.targets.webhook import Webhook

PORTS = {"none": 25, "starttls": 587, "tls": 465}
NotEmpty = Annotated[str, Field(min_length=1)]


def one_line(given: str) -> str:
    if not given.isprintable():
        raise ValueError("there is a line end or a control character in it")
    return given


def header_text(given: str) -> str:
    if not (given.isascii() and given.isprintable()):
        raise ValueError("a header holds ASCII without control characters")
    return given


Line = Annotated[NotEmpty, AfterValidator(one_line)]
Header = Annotated[str, AfterValidator(header_text)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Basic(Strict):
    user: NotEmpty
    password: str


class MailSettings(Strict):
    server: NotEmpty
    sender: Line = Field(alias="from")
    to: Annotated[list[Line], Field(min_length=1)]
    security: Literal["none", "starttls", "tls"] = "starttls"
    user: str = ""
    password: str = ""


class WebhookSettings(Strict):
    url: HttpUrl
    headers: dict[Header, Header] = {}
    basic: Basic | None = None


class SlackSettings(Strict):
    url: HttpUrl
    channel: str = ""


class PagerDutySettings(Strict):
    routing_key: NotEmpty
    url: HttpUrl = HttpUrl(PAGERDUTY_URL)


class AlertmanagerSettings(Strict):
    urls: Annotated[list[HttpUrl], Field(min_length=1)]
    basic: Basic | None = None


class TargetSettings(Strict):
    mail: MailSettings | None = None
    webhook: WebhookSettings | None = None
    slack: SlackSettings | None = None
    pagerduty: PagerDutySettings | None = None
    alertmanager: AlertmanagerSettings | None = None

    @model_validator(mode="after")
    def one_kind(self) -> TargetSettings:
        if len(self.model_fields_set) != 1:
            raise ValueError(f"a target is one of {', '.join(type(self).model_fields)}")
        return self


def make_target(name: str, settings: TargetSettings, external_url: str) -> Target:
    if settings.mail is not None:
        mail = settings.mail
        server = mail.server if ":" in mail.server else f"{mail.server}:{PORTS[mail.security]}"
        address = parse_bootstrap(server)[0]
        return Mail(
            name,
            address.host,
            address.port,
            mail.sender,
            tuple(mail.to),
            mail.security,
            mail.user,
            mail.password,
        )
    if settings.webhook is not None:
        hook = settings.webhook
        return Webhook(name, str(hook.url), external_url, hook.headers, credentials(hook.basic))
    if settings.slack is not None:
        return Slack(name, str(settings.slack.url), settings.slack.channel)
    if settings.pagerduty is not None:
        return PagerDuty(name, settings.pagerduty.routing_key, str(settings.pagerduty.url))
    assert settings.alertmanager is not None
    nodes = settings.alertmanager
    return Alertmanager(name, tuple(map(str, nodes.urls)), external_url, credentials(nodes.basic))


def credentials(basic: Basic | None) -> tuple[str, str] | None:
    return (basic.user, basic.password) if basic is not None else None
