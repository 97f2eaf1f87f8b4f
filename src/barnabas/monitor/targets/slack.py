"""Slack's form of messages, which Mattermost and others accept too: text, and an attachment with a colour."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from barnabas.monitor.alerts.notices import Notice
from barnabas.monitor.targets import texts
from barnabas.monitor.targets.target import post

COLOURS = {"critical": "danger", "warning": "warning", "info": "#439FE0", "resolved": "good"}
TEXT_CHARS_MAX = 30_000


@dataclass(frozen=True, slots=True)
class Slack:
    name: str
    url: str = field(repr=False)
    channel: str = ""

    def deliver(self, notice: Notice) -> None:
        post(self.url, self.body(notice))

    def body(self, notice: Notice) -> dict[str, Any]:
        title = escaped(texts.title(notice))
        worst = "resolved"
        if notice.firing:
            worst = min((each.severity for each in notice.firing), key=list(COLOURS).index)
        text = escaped("\n".join(texts.lines(notice)))[:TEXT_CHARS_MAX]
        attachment = {"color": COLOURS[worst], "title": title, "text": text, "fallback": title}
        channel = {"channel": self.channel} if self.channel else {}
        return {**channel, "text": title, "attachments": [attachment]}


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
