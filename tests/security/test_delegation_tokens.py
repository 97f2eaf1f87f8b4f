"""Delegation tokens: requests about them in every situation, compared with Apache Kafka; logins with them.

`data/token_answers.json` has Apache Kafka's answers; BARNABAS_REWRITE=1 asks it anew (long lane).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.security.sasl_broker import SASL_SETTINGS, SCRAM
from tests.security.token_scripts import Caller, Create, Describe, Expire, Renew, play, token_properties, user

from barnabas.client.core.errors import AuthenticationError
from barnabas.protocol import ErrorCode
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import wait_until

RECORDED = Path(__file__).parent / "data" / "token_answers.json"
SETTINGS = {
    **SASL_SETTINGS,
    "listener.name.plaintext.scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
    "listener.name.plaintext.scram-sha-512.sasl.jaas.config": f"{SCRAM} required;",
    "delegation.token.secret.key": "secret of the cluster",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(overrides=SETTINGS) as broker:
        yield broker


@pytest.fixture(scope="module")
def ours(broker: Broker) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(play(broker.bootstrap)))
    return found


@pytest.mark.parametrize("name", json.loads(RECORDED.read_text()) if RECORDED.exists() else [])
def test_every_request_gets_the_answer_of_apache_kafka(name: str, ours: dict[str, Any]) -> None:
    assert ours[name] == json.loads(RECORDED.read_text())[name]


@pytest.mark.long
def test_the_recorded_answers_are_those_of_apache_kafka() -> None:
    from barnabas.testing.apache import ApacheKafka, available

    if available():
        pytest.skip(str(available()))
    with ApacheKafka(overrides=SETTINGS) as node:
        found = json.loads(json.dumps(play(node.bootstrap)))
    if os.environ.get("BARNABAS_REWRITE"):
        lines = [f"{json.dumps(name)}: {json.dumps(each)}" for name, each in found.items()]
        RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    assert found == json.loads(RECORDED.read_text())


def test_tokens_are_switched_off_without_a_secret() -> None:
    settings = {name: value for name, value in SETTINGS.items() if "secret.key" not in name}
    with Broker(overrides=settings) as broker:
        alice = user(broker.bootstrap, "alice")
        requests = (Create(), Renew(hmac=b"x"), Expire(hmac=b"x"), Describe(owners=None))
        codes = {alice.ask(request).error_code for request in requests}
        alice.close()
    assert codes == {ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED}


def test_a_listener_that_proves_nothing_gives_no_tokens() -> None:
    with Broker(overrides={"delegation.token.secret.key": "x"}) as broker:
        nobody = Caller(broker.bootstrap, {})
        requests = (Create(), Renew(hmac=b"x"), Expire(hmac=b"x"), Describe(owners=None))
        codes = {nobody.ask(request).error_code for request in requests}
        nobody.close()
    assert codes == {ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED}


def test_expired_tokens_are_swept_and_survive_a_restart_until_then(tmp_path: Path) -> None:
    more = {"delegation.token.expiry.check.interval.ms": "100"}
    with Broker(tmp_path / "data", overrides=SETTINGS | more) as broker:
        alice = user(broker.bootstrap, "alice")
        kept = alice.ask(Create())
        soon = alice.ask(Create(max_lifetime_ms=1))
        wait_until(lambda: ids(alice) == {kept.token_id}, what="the sweep of the expired token")
        alice.close()
        with pytest.raises(AuthenticationError):
            Caller(broker.bootstrap, token_properties(soon))
    with Broker(tmp_path / "data", overrides=SETTINGS) as broker:
        alice = user(broker.bootstrap, "alice")
        assert ids(alice) == {kept.token_id}
        alice.close()
        Caller(broker.bootstrap, token_properties(kept)).close()


def ids(caller: Caller) -> set[str]:
    return {each.token_id for each in caller.ask(Describe(owners=None)).tokens}


def test_rights_decide_about_tokens_of_others() -> None:
    standard = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    more = {"authorizer.class.name": standard, "super.users": "User:admin;User:ANONYMOUS"}
    with Broker(overrides=SETTINGS | more) as broker:
        alice, bob, admin = (user(broker.bootstrap, name) for name in ("alice", "bob", "admin"))
        for_alice = Create(owner_principal_type="User", owner_principal_name="alice")
        refused = bob.ask(for_alice)
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert (refused.principal_name, refused.token_requester_principal_name) == ("alice", "bob")
        own = {caller: caller.ask(Create()).token_id for caller in (alice, bob)}
        of_admin = admin.ask(for_alice).token_id
        assert ids(alice) == {own[alice], of_admin}
        assert ids(bob) == {own[bob]}
        assert ids(admin) == {*own.values(), of_admin}
        for caller in (alice, bob, admin):
            caller.close()
