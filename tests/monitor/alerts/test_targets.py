"""Targets deliver to real receivers: an SMTP server, a webhook server, Alertmanager."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import httpx
import pytest

from barnabas.monitor.alerts.notices import Notice
from barnabas.monitor.alerts.states import Alert, State
from barnabas.monitor.targets.alertmanager import REFRESH_S, Alertmanager
from barnabas.monitor.targets.mail import Mail
from barnabas.monitor.targets.pagerduty import PagerDuty
from barnabas.monitor.targets.slack import Slack
from barnabas.monitor.targets.target import DeliveryFailed
from barnabas.monitor.targets.webhook import Webhook
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until
from installed_tools import needs
from monitor.alerts.receiving import hook, smtp_server

NOW_MS = 1_770_000_000_000


def alert(state: State = State.FIRING, severity: str = "critical", at_ms: int = NOW_MS) -> Alert:
    return Alert(
        "OfflinePartitions",
        state,
        severity,
        (("cluster", "main"),),
        2.0,
        "2 partitions of <main> have no leader",
        "the brokers",
        "barnabas topics --describe",
        at_ms,
        at_ms,
        at_ms + 60_000 if state is State.RESOLVED else 0,
    )


def firing(at_ms: int = NOW_MS) -> Notice:
    return Notice("it", (("alertname", "OfflinePartitions"),), (alert(at_ms=at_ms),), ())


def resolved(at_ms: int = NOW_MS) -> Notice:
    return Notice("it", (("alertname", "OfflinePartitions"),), (), (alert(State.RESOLVED, at_ms=at_ms),))


def test_a_mail_says_what_to_look_at_and_what_to_run() -> None:
    with smtp_server() as (address, mails):
        host, _, port = address.partition(":")
        mail = Mail(
            "ops", host, int(port), "kafka@example", ("a@example", "b@example"), "none", "watcher", "secret"
        )
        mail.deliver(firing())
        mail.deliver(resolved())
        first, second = mails.messages
        assert first["Subject"] == "[CRITICAL] OfflinePartitions"
        assert first["To"] == "a@example, b@example"
        text = first.get_payload()
        assert "look at: the brokers" in text
        assert "run:     barnabas topics --describe" in text
        assert second["Subject"] == "[RESOLVED] OfflinePartitions"


def test_a_wrong_password_and_an_absent_server_are_failures_that_tell_no_secret() -> None:
    with smtp_server() as (address, mails):
        host, _, port = address.partition(":")
        mail = Mail("ops", host, int(port), "a@example", ("b@example",), "none", "watcher", "wrong-one")
        with pytest.raises(DeliveryFailed) as raised:
            mail.deliver(firing())
        assert "wrong-one" not in str(raised.value)
        assert not mails.messages
    with pytest.raises(DeliveryFailed):
        mail.deliver(firing())


def test_a_webhook_gets_the_form_of_alertmanager() -> None:
    with hook() as receiver:
        target = Webhook(
            "hook", f"{receiver.url}/secret", "http://alerts.example", {"X-Key": "1"}, ("me", "pw")
        )
        target.deliver(firing())
        ((path, body),) = receiver.bodies
        assert path == "/secret"
        assert (body["version"], body["status"], body["receiver"]) == ("4", "firing", "it")
        (found,) = body["alerts"]
        assert found["labels"] == {
            "alertname": "OfflinePartitions",
            "severity": "critical",
            "cluster": "main",
        }
        assert found["annotations"]["command"] == "barnabas topics --describe"
        assert found["endsAt"] == "0001-01-01T00:00:00Z"
        receiver.status = 500
        with pytest.raises(DeliveryFailed) as raised:
            target.deliver(firing())
        assert "500" in str(raised.value)
        assert "secret" not in str(raised.value)


def test_slack_gets_escaped_text_with_a_colour() -> None:
    with hook() as receiver:
        Slack("chat", receiver.url, "#ops").deliver(firing())
        ((_, body),) = receiver.bodies
        assert body["channel"] == "#ops"
        assert body["attachments"][0]["color"] == "danger"
        assert "&lt;main&gt;" in body["attachments"][0]["text"]


def test_pagerduty_ends_what_it_began_by_the_same_key() -> None:
    with hook() as receiver:
        target = PagerDuty("pager", "key", receiver.url)
        target.deliver(firing())
        target.deliver(resolved())
        (_, begun), (_, ended) = receiver.bodies
        assert (begun["event_action"], begun["payload"]["severity"]) == ("trigger", "critical")
        assert ended == {"routing_key": "key", "dedup_key": begun["dedup_key"], "event_action": "resolve"}


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = shutil.which("alertmanager")
    if program is None:
        program = "prometheus-alertmanager"  # Debian's name
        needs(program)
    folder: Path = tmp_path_factory.mktemp("alertmanager")
    (folder / "am.yml").write_text(
        "global: {resolve_timeout: 2s}\nroute: {receiver: none}\nreceivers: [{name: none}]\n"
    )
    address = f"127.0.0.1:{free_ports(1)[0]}"
    process = subprocess.Popen(
        [
            program,
            f"--config.file={folder}/am.yml",
            f"--storage.path={folder}",
            f"--web.listen-address={address}",
            "--cluster.listen-address=",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def is_ready() -> bool:
        try:
            return httpx.get(f"http://{address}/-/ready").is_success
        except httpx.HTTPError:
            return False

    try:
        wait_until(is_ready, 30)
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(10)


def test_a_real_alertmanager_takes_alerts_and_their_end(alertmanager: str) -> None:
    now_ms = time.time_ns() // 1_000_000 - 120_000
    target = Alertmanager("am", ("http://127.0.0.1:1", alertmanager))  # one of its nodes is down
    target.deliver(firing(now_ms))
    url = f"{alertmanager}/api/v2/alerts"
    (found,) = httpx.get(url).json()
    assert found["labels"]["alertname"] == "OfflinePartitions"
    assert found["annotations"]["summary"].startswith("2 partitions")
    ends_ms = datetime.fromisoformat(found["endsAt"].replace("Z", "+00:00")).timestamp() * 1000
    assert ends_ms > now_ms + 3 * REFRESH_S * 1000  # Alertmanager's own timeout would be 2 s
    target.deliver(resolved(now_ms))
    wait_until(lambda: httpx.get(url).json() == [], 20)
    with pytest.raises(DeliveryFailed):
        Alertmanager("am", ("http://127.0.0.1:1",)).deliver(firing())


def test_urls_of_webhooks_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    with hook() as receiver:
        Webhook("it", f"{receiver.url}/secret").deliver(firing())
    assert "secret" not in caplog.text
