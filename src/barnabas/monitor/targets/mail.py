"""Mail by SMTP: one text message for each notice."""

from __future__ import annotations

import smtplib
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate, make_msgid

from barnabas.monitor.alerts.notices import Notice
from barnabas.monitor.targets import texts
from barnabas.monitor.targets.target import DELIVERY_S_MAX, DeliveryFailed


@dataclass(frozen=True, slots=True)
class Mail:
    """`security`: none, starttls or tls."""

    name: str
    host: str
    port: int
    sender: str
    to: tuple[str, ...]
    security: str = "starttls"
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"Mail({self.name!r})"

    def deliver(self, notice: Notice) -> None:
        message = self.message(notice)
        try:
            with self._connection() as server:
                if self.user:
                    server.login(self.user, self.password)
                refused = server.send_message(message)
        except (OSError, smtplib.SMTPException) as error:
            raise DeliveryFailed(f"{self.host}:{self.port}: {error or type(error).__name__}") from None
        if refused:
            raise DeliveryFailed(f"{self.host}:{self.port} refused {', '.join(refused)}")

    def message(self, notice: Notice) -> EmailMessage:
        message = EmailMessage()
        message["Subject"] = texts.title(notice)
        message["From"] = self.sender
        message["To"] = ", ".join(self.to)
        message["Date"] = formatdate(usegmt=True)
        message["Message-ID"] = make_msgid(domain="barnabas")
        message["Auto-Submitted"] = "auto-generated"
        message.set_content("\n".join(texts.lines(notice)))
        return message

    def _connection(self) -> smtplib.SMTP:
        if self.security == "tls":
            return smtplib.SMTP_SSL(
                self.host, self.port, timeout=DELIVERY_S_MAX, context=ssl.create_default_context()
            )
        server = smtplib.SMTP(self.host, self.port, timeout=DELIVERY_S_MAX)
        if self.security == "starttls":
            try:
                server.starttls(context=ssl.create_default_context())
            except BaseException:
                server.close()
                raise
        return server
