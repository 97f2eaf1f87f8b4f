"""A `burrow.toml` with notifiers, run by the alert service: who is told of a group, and what."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.topology import TopicPartition
from barnabas.client.producer import NewRecord, Producer
from barnabas.monitor.alert_service.burrow_alerts import read_any
from barnabas.monitor.alert_service.evaluator import Evaluator
from barnabas.monitor.alert_service.measuring import Measuring
from barnabas.settings.errors import SettingsError
from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until

from ..alerts.receiving import hook, smtp_server

OPEN = """{"id": "{{.ID}}", "group": {{jsonencoder .Group}}, "status": "{{.Result.Status}}",
"tier": "{{index .Extras "tier"}}",
"partitions": {{.Result.Partitions | jsonencoder}}, "lag": {{.Result.TotalLag}}, "start": {{.Start.Unix}}}"""
CLOSE = '{"id": "{{.ID}}", "group": {{jsonencoder .Group}}, "status": "{{.Result.Status}}"}'
FIELDS = {"topic", "partition", "owner", "client_id", "status", "start", "end", "current_lag", "complete"}
MAIL = """Subject: [Burrow] {{.Group}} of {{.Cluster}}
Content-Type: text/html

{{range .Result.Partitions}}{{.Topic}}:{{.Partition}} {{.Status}}{{end}}
"""
TOML = """
[zookeeper]
servers=["zk:2181"]
[client-profile.test]
client-id="burrow-test"
[cluster.local]
class-name="kafka"
servers=["{bootstrap}"]
client-profile="test"
offset-refresh=1
[consumer.local]
class-name="kafka"
cluster="local"
servers=["{bootstrap}"]
[storage.default]
class-name="inmemory"
intervals=4
[notifier.web]
class-name="http"
url-open="{hook}/open/{{{{.Cluster}}}}"
url-close="{hook}/close/{{{{.ID}}}}"
template-open="open.tmpl"
template-close="close.tmpl"
send-close=true
send-once=true
interval=1
threshold=3
group-denylist="^console-"
[notifier.web.extras]
tier="one"
[notifier.web.headers]
X-Team="a"
[notifier.ops]
class-name="email"
server="{smtp_host}"
port={smtp_port}
from="burrow@example.com"
to="a@example.com, b@example.com"
template-open="mail.tmpl"
interval=1
threshold=2
[notifier.nobody]
class-name="null"
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as found:
        found.create_topic("orders")
        yield found


def written(folder: Path, text: str) -> Path:
    for name, template in (("open", OPEN), ("close", CLOSE), ("mail", MAIL)):
        (folder / f"{name}.tmpl").write_text(template)
    path = folder / "burrow.toml"
    path.write_text(text)
    return path


def filled(**given: object) -> str:
    return TOML.format(
        **{"bootstrap": "a:1", "hook": "http://h:1", "smtp_host": "m", "smtp_port": 25, **given}
    )


async def stall(cluster: Cluster, groups: list[str], commits: int) -> None:
    """Groups commit the same offset while records come."""
    admin = Admin(cluster)
    async with Producer(cluster) as producer:
        for _ in range(commits):
            for sent in await producer.send_all("orders", [NewRecord(0, None, b"x")] * 5):
                await sent  # type: ignore[misc]
            await asyncio.sleep(1.2)  # the ends are read every second
            for group in groups:
                at = TopicPartition("orders", 0)
                assert await admin.alter_offsets(group, {at: 1}) == {at: None}


def test_a_stalled_group_is_told_and_so_is_its_end(broker: Broker, tmp_path: Path) -> None:
    groups = ['it\'s a "group"', "console-consumer-1"]

    async def main() -> None:
        with hook() as receiver, smtp_server() as (address, mails):
            host, _, port = address.partition(":")
            text = filled(bootstrap=broker.bootstrap, hook=receiver.url, smtp_host=host, smtp_port=port)
            file = read_any(written(tmp_path, text))
            assert (len(file.rules), sorted(file.targets)) == (2, ["ops", "web"])
            measuring = Measuring(file)
            evaluator = Evaluator(file, measuring)
            measuring.start()
            evaluator.start()
            async with Cluster(parse_bootstrap(broker.bootstrap)) as cluster:
                await stall(cluster, groups, 5)
                await asyncio.to_thread(wait_until, lambda: receiver.bodies, 30)
                await asyncio.to_thread(wait_until, lambda: len(mails.messages) >= 2, 30)
                end = TopicPartition("orders", 0)
                await Admin(cluster).alter_offsets(groups[0], {end: 25})
                await asyncio.to_thread(wait_until, lambda: len(receiver.bodies) == 2, 30)
            await evaluator.stop()
            await measuring.stop()
            (path, opened), (close_path, closed) = receiver.bodies
            assert path == "/open/local"
            assert (opened["group"], opened["status"], opened["tier"]) == (groups[0], "ERR", "one")
            [partition] = opened["partitions"]
            assert (partition["topic"], partition["current_lag"]) == ("orders", opened["lag"])
            assert opened["lag"] in (9, 14, 19, 24)  # it is told as soon as it is judged so
            status = partition["status"]
            assert status in ("STALL", "STOP")  # STOP if it was silent for longer than its commits lasted
            assert set(partition) == FIELDS
            assert (close_path, closed["status"]) == (f"/close/{opened['id']}", "OK")
            subjects = {each["Subject"] for each in mails.messages}
            assert subjects == {f"[Burrow] {each} of local" for each in groups}
            assert {each.get_content_type() for each in mails.messages} == {"text/html"}
            assert "orders:0 ST" in str(mails.messages[0].get_payload())

    asyncio.run(main())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (('url-close="http://h:1/close/{{.ID}}"', ""), "notifier.web: url-close is missing"),
        (('template-open="mail.tmpl"', 'template-open="none.tmpl"'), "none.tmpl cannot be read"),
        (
            ("threshold=3", "threshold=9"),
            "notifier.web: threshold is 9: give 1 (OK), 2 (warning) or 3 (error)",
        ),
        (
            ('class-name="email"', 'class-name="slack"'),
            "the class slack is not known: it is one of http, email",
        ),
        (("port=25", 'port="25"'), "notifier.ops: port is '25'"),
        (('group-denylist="^console-"', 'group-denylist="("'), "group-denylist is no regular expression"),
        (("send-close=true", 'send-close="yes"'), "send-close is 'yes': give true or false"),
        (("group-denylist", "group-blacklist"), "name it group-allowlist or group-denylist"),
        (("interval=1\nthreshold=2", "interval=0"), "interval is 0: give seconds, 1 at least"),
        (("open/{{.Cluster}}", "open/{{.Cluster"), "url-open: line 1: an action does not end"),
    ],
)
def test_a_wrong_section_is_named(change: tuple[str, str], told: str, tmp_path: Path) -> None:
    text = filled().replace(*change)
    assert text != filled()
    with pytest.raises(SettingsError) as error:
        read_any(written(tmp_path, text))
    assert told in str(error.value)


def test_a_file_that_tells_nobody_is_refused(tmp_path: Path) -> None:
    text = filled()
    with pytest.raises(SettingsError, match="nobody would be told"):
        read_any(written(tmp_path, text[: text.index("[notifier.web]")]))
