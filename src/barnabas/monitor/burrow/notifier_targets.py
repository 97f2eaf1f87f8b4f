"""Burrow's notifiers as targets of alerts: a request over HTTP or a mail for each group, by templates.

In: notices whose alerts have the status of a group as their subject. Out: what the templates say. An alert
that ends is told where `send-close` says so. Does not know: files, which groups a notifier is for.
"""

from __future__ import annotations

import smtplib
import ssl
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from typing import Any

import httpx

from barnabas.monitor.alerts.notices import Notice
from barnabas.monitor.alerts.states import Alert, State
from barnabas.monitor.burrow.template_functions import FUNCTIONS, time_record
from barnabas.monitor.burrow.template_parsing import TemplateError, Tree, parse
from barnabas.monitor.burrow.template_running import Number, Record, Run
from barnabas.monitor.lag.commit_window import NO_LAG, Commit
from barnabas.monitor.lag.judgement import Status
from barnabas.monitor.lag.statuses import GroupStatus, PartitionStatus
from barnabas.monitor.lag_service.burrow_json import partition_json, single
from barnabas.monitor.targets.target import BODY_SHOWN_MAX, DELIVERY_S_MAX, DeliveryFailed

OWN_FIELDS = ("lag_seconds", "lag_seconds_method")
INCIDENTS = uuid.UUID("6f2d7f3e-5d0c-4c4e-9a53-0b8a5a6c7d1e")  # the namespace of their ids


@dataclass(frozen=True, slots=True)
class Template:
    tree: Tree = field(repr=False)

    @staticmethod
    def of(text: str) -> Template:
        return Template(parse(text))

    def text(self, alert: Alert, extras: Mapping[str, str]) -> str:
        return Run(FUNCTIONS, value := incident(alert, extras)).text(self.tree, value)


def incident(alert: Alert, extras: Mapping[str, str]) -> Record:
    """Values of a template. An alert of another process has no partitions until the next look."""
    labels = alert.all_labels
    cluster, group = labels.get("cluster", ""), labels.get("group", "")
    status = alert.subject
    if not isinstance(status, GroupStatus):
        code = Status.OK if alert.state is State.RESOLVED else Status(int(alert.value))
        status = GroupStatus(cluster, group, code, 1.0, (), 0)
    begun = datetime.fromtimestamp(alert.began_ms / 1000).astimezone()
    return Record(
        {
            "Cluster": cluster,
            "Group": group,
            "ID": str(uuid.uuid5(INCIDENTS, f"{alert.fingerprint} {alert.began_ms}")),
            "Id": str(uuid.uuid5(INCIDENTS, f"{alert.fingerprint} {alert.began_ms}")),
            "Start": time_record(begun),
            "Extras": dict(extras),
            "Result": group_record(status),
        }
    )


def group_record(status: GroupStatus) -> Record:
    bad = [each for each in status.partitions if each.status > Status.OK]
    return Record(
        {
            "Cluster": status.cluster,
            "Group": status.group,
            "Status": Number(status.status, status.status.name),
            "Complete": single(status.complete),
            "Partitions": [partition_record(each) for each in bad],
            "TotalPartitions": len(status.partitions),
            "Maxlag": partition_record(status.largest) if status.largest is not None else None,
            "TotalLag": status.lag,
        }
    )


def partition_record(status: PartitionStatus) -> Record:
    fields = {
        "Topic": status.topic,
        "Partition": status.partition,
        "Owner": status.owner,
        "ClientID": status.client_id,
        "Status": Number(status.status, status.status.name),
        "Start": commit_record(status.start),
        "End": commit_record(status.end),
        "CurrentLag": status.lag,
        "Complete": single(status.complete),
    }

    def body() -> dict[str, Any]:
        return {name: value for name, value in partition_json(status).items() if name not in OWN_FIELDS}

    return Record(fields, {"JSON": body})


def commit_record(commit: Commit | None) -> Record | None:
    if commit is None:
        return None
    lag = (
        "<nil>" if commit.lag == NO_LAG else Record({"Value": commit.lag})
    )  # printed in braces, as by Burrow
    return Record(
        {
            "Offset": commit.offset,
            "Timestamp": commit.timestamp_ms,
            "ObservedTimestamp": commit.observed_ms // 1000 * 1000,
            "Lag": lag,
        }
    )


def deliver(notice: Notice, *, with_ends: bool, send: Callable[[Alert], None]) -> None:
    for alert in notice.alerts:
        if alert.state is not State.RESOLVED or with_ends:
            try:
                send(alert)
            except TemplateError as error:
                raise DeliveryFailed(f"the template cannot be filled in: {error}") from None


@dataclass(frozen=True, slots=True)
class Call:
    """A method, a URL, a body: the URL is a template too."""

    method: str
    url: Template
    body: Template


@dataclass(frozen=True, slots=True)
class BurrowHttp:
    name: str
    begin: Call
    end: Call | None = None
    extras: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    auth: tuple[str, str] | None = field(default=None, repr=False)
    timeout_s: float = 5.0
    tls: ssl.SSLContext | None = None

    def deliver(self, notice: Notice) -> None:
        deliver(notice, with_ends=self.end is not None, send=self._send)

    def _send(self, alert: Alert) -> None:
        call = self.end if alert.state is State.RESOLVED and self.end is not None else self.begin
        url = call.url.text(alert, self.extras)
        content = call.body.text(alert, self.extras).encode()
        headers = {"Content-Type": "application/json", **self.headers}
        try:
            with httpx.Client(timeout=self.timeout_s, verify=self.tls or True) as client:
                response = client.request(call.method, url, content=content, headers=headers, auth=self.auth)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise DeliveryFailed(f"{self.name}: {error or type(error).__name__}") from None
        if not response.is_success:
            text = response.text[:BODY_SHOWN_MAX].strip()
            raise DeliveryFailed(f"{self.name}: the receiver responded with {response.status_code}: {text}")


@dataclass(frozen=True, slots=True)
class BurrowMail:
    """The first lines of the template are headers: `Subject:`, and `Content-Type:` and `MIME-version:`."""

    name: str
    host: str
    port: int
    sender: str
    to: tuple[str, ...]
    begin: Template
    end: Template | None = None
    extras: Mapping[str, str] = field(default_factory=dict, repr=False)
    auth: tuple[str, str] | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = None

    def deliver(self, notice: Notice) -> None:
        deliver(notice, with_ends=self.end is not None, send=self._send)

    def _send(self, alert: Alert) -> None:
        template = self.end if alert.state is State.RESOLVED and self.end is not None else self.begin
        message = self.message(template.text(alert, self.extras))
        try:
            with self._connection() as server:
                if self.auth is not None:
                    server.login(*self.auth)
                refused = server.send_message(message)
        except (OSError, smtplib.SMTPException) as error:
            raise DeliveryFailed(f"{self.host}:{self.port}: {error or type(error).__name__}") from None
        if refused:
            raise DeliveryFailed(f"{self.host}:{self.port} refused {', '.join(refused)}")

    def message(self, text: str) -> EmailMessage:
        if not text.startswith("Subject: "):
            raise DeliveryFailed("the template must begin with a line `Subject: ...`")
        headers = {"subject": "", "content-type": "text/plain", "mime-version": ""}
        body = []
        for line in text.split("\n"):
            name, _, value = line.partition(": ")
            if name in ("Subject", "Content-Type", "MIME-version") and not (
                name == "Subject" and headers["subject"]
            ):
                headers[name.lower()] = value.strip()
            else:
                body.append(line)
        message = EmailMessage()
        message["Subject"] = " ".join(headers["subject"].split())
        message["From"], message["To"] = self.sender, ", ".join(self.to)
        message["Date"], message["Message-ID"] = formatdate(usegmt=True), make_msgid(domain="barnabas")
        kind = headers["content-type"].partition(";")[0].partition("/")[2] or "plain"
        message.set_content("\n".join(body), subtype=kind)
        return message

    def _connection(self) -> smtplib.SMTP:
        """TLS on port 465, STARTTLS where the server offers it, as Burrow's mailer does."""
        tls = self.tls or ssl.create_default_context()
        if self.port == smtplib.SMTP_SSL_PORT:
            return smtplib.SMTP_SSL(self.host, self.port, timeout=DELIVERY_S_MAX, context=tls)
        server = smtplib.SMTP(self.host, self.port, timeout=DELIVERY_S_MAX)
        try:
            server.ehlo()
            if server.has_extn("starttls"):
                server.starttls(context=tls)
        except BaseException:
            server.close()
            raise
        return server
