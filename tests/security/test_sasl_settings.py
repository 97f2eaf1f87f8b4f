"""Settings of SASL listeners: where logins come from, plug-ins, changes while running, limits of logins."""

from __future__ import annotations

import asyncio
import re
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from tests.security.sasl_broker import (
    ADMIN,
    PLAIN,
    SASL_SETTINGS,
    add_scram_user,
    as_admin,
    client_properties,
    cluster_of,
    plain_entry,
)
from tests.security.token_scripts import Create, user

from barnabas.broker.node import StartError
from barnabas.broker.quorum.peers import Connections
from barnabas.broker.wire import login
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import ConfigResource, ResourceType
from barnabas.client.blocking import run
from barnabas.client.core.errors import AuthenticationError, BootstrapError
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.quorum.peers import PeerUnreachable
from barnabas.security.clients.client_security import client_security
from barnabas.settings.quorum import Address
from barnabas.testing.broker import Broker
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

[METRICS_PORT] = free_ports(1)
PROTOCOLS = "listener.security.protocol.map"
JAAS = "listener.name.plaintext.plain.sasl.jaas.config"
WITHOUT_JAAS = {name: value for name, value in SASL_SETTINGS.items() if name != JAAS}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    more = {"connection.failed.authentication.delay.ms": "1", "barnabas.metrics.port": METRICS_PORT}
    with Broker(overrides={**SASL_SETTINGS, **more}) as broker:
        yield broker


def logs_in(broker: Broker, mechanism: str, user: str, password: str) -> bool:
    try:
        with cluster_of(broker.bootstrap, client_properties(mechanism, user, password)) as cluster:
            run(cluster.refresh())
    except AuthenticationError:
        return False
    return True


def alter(broker: Broker, name: str, value: str | None) -> None:
    with as_admin(broker) as cluster:
        run(Admin(cluster).alter_configs(ConfigResource(ResourceType.BROKER, "1"), {name: value}))


# -- where logins come from ----------------------------------------------------------------------


def test_a_jaas_file_has_the_logins_of_listeners(tmp_path: Path) -> None:
    path = tmp_path / "jaas.conf"
    path.write_text(
        f'KafkaServer {{ {PLAIN} required user_alice="wrong one"; }};\n'
        f'plaintext.KafkaServer {{ {PLAIN} required user_alice="of the file"; }};\n'
    )
    with Broker(overrides={**WITHOUT_JAAS, "barnabas.jaas.file": path}) as broker:
        assert logs_in(broker, "PLAIN", "alice", "of the file")
        assert not logs_in(broker, "PLAIN", "alice", "wrong one")


def test_a_listener_without_logins_does_not_start() -> None:
    with pytest.raises(StartError, match=r"listener\.name\.plaintext\.plain\.sasl\.jaas\.config"):
        Broker(overrides=WITHOUT_JAAS).start()


def test_a_python_entry_point_checks_passwords() -> None:
    handler = {
        "listener.name.plaintext.plain.sasl.server.callback.handler.class": (
            "tests.security.plug_ins:reversed_password"
        )
    }
    with Broker(overrides={**WITHOUT_JAAS, **handler}) as broker:
        assert logs_in(broker, "PLAIN", "carol", "lorac")
        assert not logs_in(broker, "PLAIN", "carol", "carol")


def test_an_entry_point_that_fails_refuses_the_login(caplog: pytest.LogCaptureFixture) -> None:
    name = "listener.name.plaintext.plain.sasl.server.callback.handler.class"
    with (
        Broker(overrides={**WITHOUT_JAAS, name: "tests.security.plug_ins:broken"}) as broker,
        cluster_of(broker.bootstrap, client_properties("PLAIN", "carol", "secret")) as cluster,
        pytest.raises(AuthenticationError, match="the broker could not check the credentials"),
    ):
        run(cluster.refresh())
    assert "OSError: the directory of users is down" in caplog.text


def test_a_python_entry_point_makes_principals() -> None:
    builder = {"principal.builder.class": "tests.security.plug_ins:ByMechanism"}
    tokens = {"delegation.token.secret.key": "x"}
    with Broker(overrides={**SASL_SETTINGS, **builder, **tokens}) as broker:
        alice = user(broker.bootstrap, "alice")
        token = alice.ask(Create())
        alice.close()
    assert (token.principal_type, token.principal_name) == ("Robot", "plain-alice")


def test_a_login_without_a_principal_is_refused() -> None:
    builder = {"principal.builder.class": "tests.security.plug_ins:nobody"}
    with Broker(overrides={**SASL_SETTINGS, **builder}) as broker:
        assert not logs_in(broker, "PLAIN", "alice", "alice-s3cret")


# -- nodes among themselves ----------------------------------------------------------------------


def test_a_login_that_nodes_would_refuse_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    entry = plain_entry({"alice": "x"}, own=("admin", "its own"))
    with Broker(overrides={**SASL_SETTINGS, JAAS: entry}):
        pass
    assert 'add user_admin="..."' in caplog.text
    assert "its own" not in caplog.text


def test_a_node_that_is_refused_says_so(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    security = client_security(client_properties("PLAIN", "admin", "wrong"))

    async def ask() -> None:
        connections = Connections("broker-2", 5_000, lambda: security)
        for _ in range(3):
            with pytest.raises(PeerUnreachable, match="Invalid username or password"):
                await connections.send_request(
                    Address("127.0.0.1", broker.port), MetadataRequest(topics=[]), 5_000
                )
        await connections.close()

    asyncio.run(ask())
    assert caplog.text.count("no connection to the node at 127.0.0.1") == 1


# -- changes while running -----------------------------------------------------------------------


def test_changed_passwords_count_at_the_next_login(broker: Broker) -> None:
    entry = plain_entry({"admin": "admin-s3cret", "dora": "new"})
    assert not logs_in(broker, "PLAIN", "dora", "new")
    alter(broker, JAAS, entry)
    wait_until(lambda: logs_in(broker, "PLAIN", "dora", "new"))
    alter(broker, JAAS, None)
    wait_until(lambda: not logs_in(broker, "PLAIN", "dora", "new"))


def test_changed_mechanisms_count_at_the_next_login(broker: Broker) -> None:
    name = "listener.name.plaintext.sasl.enabled.mechanisms"
    add_scram_user(broker, "erna", "s3cret")
    assert logs_in(broker, "SCRAM-SHA-256", "erna", "s3cret")
    alter(broker, name, "PLAIN")
    wait_until(lambda: not logs_in(broker, "SCRAM-SHA-256", "erna", "s3cret"))
    alter(broker, name, None)
    wait_until(lambda: logs_in(broker, "SCRAM-SHA-256", "erna", "s3cret"))


def test_a_listener_with_sasl_is_added_while_running() -> None:
    [port] = free_ports(1)
    with Broker(overrides=SASL_SETTINGS) as broker:
        changes: dict[str, str | None] = {
            "listeners": f"{broker.properties['listeners']},NEW://127.0.0.1:{port}",
            "listener.security.protocol.map": f"{SASL_SETTINGS[PROTOCOLS]},NEW:SASL_PLAINTEXT",
        }
        resource = ConfigResource(ResourceType.BROKER, "1")
        with as_admin(broker) as cluster:
            with pytest.raises(KafkaError, match=r"listener\.name\.new\.plain\.sasl\.jaas\.config"):
                run(Admin(cluster).alter_configs(resource, changes))
            changes["listener.name.new.plain.sasl.jaas.config"] = plain_entry({"fred": "new"})
            run(Admin(cluster).alter_configs(resource, changes))

        def is_open() -> bool:
            with cluster_of(f"127.0.0.1:{port}", client_properties("PLAIN", "fred", "new")) as cluster:
                try:
                    run(cluster.any_connection())
                except BootstrapError:
                    return False
            return True

        wait_until(is_open)
        with (
            cluster_of(f"127.0.0.1:{port}", client_properties("PLAIN", *ADMIN)) as cluster,
            pytest.raises(AuthenticationError),
        ):
            run(cluster.any_connection())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (JAAS, "no entry"),
        ("listener.name.plaintext.sasl.enabled.mechanisms", "CRAM-MD5"),
        ("listener.name.plaintext.sasl.enabled.mechanisms", ""),
        ("listener.name.plaintext.principal.builder.class", "not.there:at_all"),
    ],
)
def test_a_change_that_cannot_be_used_is_refused(broker: Broker, name: str, value: str) -> None:
    with pytest.raises(KafkaError) as refused:
        alter(broker, name, value)
    assert refused.value.code == ErrorCode.INVALID_REQUEST
    assert logs_in(broker, "PLAIN", "alice", "alice-s3cret")


# -- credentials ---------------------------------------------------------------------------------


def test_other_credentials_survive_a_restart_after_one_was_deleted(tmp_path: Path) -> None:
    """Apache Kafka 4.3.1 may forget all credentials of the mechanism then."""
    from barnabas.client.admin.scram import ScramMechanism

    with Broker(tmp_path / "data", overrides=SASL_SETTINGS) as broker:
        add_scram_user(broker, "gone", "s3cret")
        with as_admin(broker) as cluster:
            run(Admin(cluster).alter_scram("gone", {}, [ScramMechanism.SCRAM_SHA_256]))
        add_scram_user(broker, "kept", "s3cret")
        add_scram_user(broker, "gone", "s3cret")
        with as_admin(broker) as cluster:
            run(Admin(cluster).alter_scram("gone", {}, [ScramMechanism.SCRAM_SHA_256]))
    with Broker(tmp_path / "data", overrides=SASL_SETTINGS) as broker:
        assert logs_in(broker, "SCRAM-SHA-256", "kept", "s3cret")
        assert not logs_in(broker, "SCRAM-SHA-256", "gone", "s3cret")


# -- limits --------------------------------------------------------------------------------------


def test_a_login_that_takes_too_long_is_closed(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "LOGIN_SECONDS_MAX", 0.2)
    silent = socket.create_connection(("127.0.0.1", broker.port), 10)
    half = socket.create_connection(("127.0.0.1", broker.port), 10)
    half.sendall(struct.pack(">ihh", 100, 17, 1))  # the beginning of a SaslHandshake
    for each in (silent, half):
        assert each.recv(1) == b""
        each.close()
    assert logs_in(broker, "PLAIN", "alice", "alice-s3cret")


def test_large_frames_of_strangers_use_bounded_memory(broker: Broker) -> None:
    strangers = []
    for _ in range(login.LARGE_FRAMES_MAX + 3):
        stranger = socket.create_connection(("127.0.0.1", broker.port), 10)
        stranger.sendall(struct.pack(">ihh", 300_000, 17, 1) + bytes(1000))
        strangers.append(stranger)
    for stranger in strangers[-3:]:
        assert stranger.recv(1) == b""
    assert logs_in(broker, "PLAIN", "alice", "alice-s3cret")
    for stranger in strangers:
        stranger.close()

    def has_room() -> bool:
        stranger = socket.create_connection(("127.0.0.1", broker.port), 0.1)
        stranger.sendall(struct.pack(">ihh", 300_000, 17, 1) + bytes(1000))
        try:
            return stranger.recv(1) != b""
        except TimeoutError:
            return True
        finally:
            stranger.close()

    wait_until(has_room)


def test_logins_are_counted(broker: Broker) -> None:
    def counts() -> list[int]:
        with urlopen(f"http://127.0.0.1:{METRICS_PORT}/metrics") as answer:
            text = answer.read().decode()
        found = re.findall(
            r"^kafka_server_socket_server_metrics_(\w+)_authentication_total.*? (\d+)", text, re.M
        )
        totals = Counter[str]()
        for name, count in found:  # of each listener
            totals[name] += int(count)
        return [totals["failed"], totals["successful"]]

    failed, succeeded = counts()
    assert logs_in(broker, "PLAIN", "alice", "alice-s3cret")
    assert not logs_in(broker, "PLAIN", "alice", "wrong")
    assert counts() == [failed + 1, succeeded + 1]
