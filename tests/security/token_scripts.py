"""Requests about delegation tokens in every situation, and their outcomes in a form that can be compared."""

from __future__ import annotations

import base64
from typing import Any

from tests.security.sasl_broker import USERS, client_properties, cluster_of

from barnabas.client.blocking import run
from barnabas.client.core.connection import ConnectionCore
from barnabas.client.core.errors import AuthenticationError, ConnectionLost
from barnabas.protocol import Message
from barnabas.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from barnabas.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from barnabas.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from barnabas.testing.waiting import wait_until

HOUR_MS = 3_600_000
RESPONSES: dict[type[Message], type[Message]] = {
    CreateDelegationTokenRequest: CreateDelegationTokenResponse,
    RenewDelegationTokenRequest: RenewDelegationTokenResponse,
    ExpireDelegationTokenRequest: ExpireDelegationTokenResponse,
    DescribeDelegationTokenRequest: DescribeDelegationTokenResponse,
}
Create, Describe = CreateDelegationTokenRequest, DescribeDelegationTokenRequest
Renew, Expire = RenewDelegationTokenRequest, ExpireDelegationTokenRequest


class Caller:
    """A user with a connection of its own."""

    def __init__(self, bootstrap: str, properties: dict[str, str]) -> None:
        self._cluster = cluster_of(bootstrap, properties)
        self.connection: ConnectionCore = run(self._cluster.any_connection())

    def ask(self, request: Message, version: int | None = None) -> Any:
        return run(self.connection.send(request, RESPONSES[type(request)], version=version))

    def close(self) -> None:
        run(self._cluster.close())


def user(bootstrap: str, name: str) -> Caller:
    return Caller(bootstrap, client_properties("PLAIN", name, USERS[name]))


def token_properties(token: Any, mechanism: str = "SCRAM-SHA-256") -> dict[str, str]:
    password = base64.b64encode(bytes(token.hmac)).decode()
    return client_properties(mechanism, token.token_id, password, ' tokenauth="true"')


def shown_created(told: Any, version: int = 3) -> dict[str, Any]:
    found = {
        "error": told.error_code,
        "owner": f"{told.principal_type}:{told.principal_name}",
        "requester": f"{told.token_requester_principal_type}:{told.token_requester_principal_name}",
        "expiry": hours(told.expiry_timestamp_ms, told.issue_timestamp_ms),
        "max": hours(told.max_timestamp_ms, told.issue_timestamp_ms),
        "hmac_bytes": len(told.hmac),
        "id_length": len(told.token_id),
    }
    if told.issue_timestamp_ms <= 0:
        found["times"] = [told.issue_timestamp_ms, told.expiry_timestamp_ms, told.max_timestamp_ms]
    return found


def hours(end_ms: int, start_ms: int) -> float:
    return round((end_ms - start_ms) / HOUR_MS, 2)


def shown_time(told: Any, issued_ms: int) -> dict[str, Any]:
    """The error and the new time, in hours since the token was issued, rounded."""
    at = told.expiry_timestamp_ms
    return {"error": told.error_code, "expiry": at if at <= 0 else round((at - issued_ms) / HOUR_MS, 1)}


def shown_tokens(told: Any) -> dict[str, Any]:
    tokens = sorted(
        [
            f"{each.principal_name} {each.token_requester_principal_name}",
            [f"{renewer.principal_type}:{renewer.principal_name}" for renewer in each.renewers],
            len(each.hmac),
        ]
        for each in told.tokens
    )
    return {"error": told.error_code, "tokens": tokens}


def renewers(*names: str, kind: str = "User") -> list[Any]:
    return [Create.CreatableRenewers(principal_type=kind, principal_name=name) for name in names]


def owners(*names: str) -> list[Any]:
    return [
        Describe.DescribeDelegationTokenOwner(principal_type="User", principal_name=name) for name in names
    ]


def play(bootstrap: str) -> dict[str, Any]:
    """What becomes of every request, by what it shows. The broker has no authorizer: all is allowed."""
    alice, bob, admin = (user(bootstrap, name) for name in ("alice", "bob", "admin"))
    found: dict[str, Any] = {}
    for version in (1, 2, 3):
        found[f"create v{version}"] = shown_created(alice.ask(Create(), version))
    token = alice.ask(Create(renewers=renewers("bob"), max_lifetime_ms=2 * HOUR_MS))
    issued_ms = token.issue_timestamp_ms
    found["create with renewer and lifetime"] = shown_created(token)
    found["create with a long lifetime"] = shown_created(alice.ask(Create(max_lifetime_ms=10**15)))
    found["create with a negative lifetime"] = shown_created(alice.ask(Create(max_lifetime_ms=-7)))
    other = Create(owner_principal_type="User", owner_principal_name="bob")
    found["create for another owner"] = shown_created(admin.ask(other))
    found["create with a renewer of another type"] = shown_created(
        alice.ask(Create(renewers=renewers("ops", kind="Group")))
    )
    # Apache Kafka's broker learns of a token a moment after its controller has created it.
    created = sum(not each["error"] for each in found.values())
    wait_until(lambda: len(bob.ask(Describe(owners=None)).tokens) == created)
    found["describe all"] = shown_tokens(alice.ask(Describe(owners=None)))
    found["describe of bob"] = shown_tokens(alice.ask(Describe(owners=owners("bob"))))
    found["describe of nobody"] = shown_tokens(alice.ask(Describe(owners=owners("nobody"))))
    found["describe of no owner"] = shown_tokens(alice.ask(Describe(owners=[])))
    found["describe v1"] = shown_tokens(alice.ask(Describe(owners=owners("bob")), 1))
    hmac = bytes(token.hmac)
    found["renew by the owner"] = shown_time(alice.ask(Renew(hmac=hmac, renew_period_ms=HOUR_MS)), issued_ms)
    found["renew by a renewer"] = shown_time(bob.ask(Renew(hmac=hmac, renew_period_ms=-1)), issued_ms)
    found["renew by another"] = shown_time(admin.ask(Renew(hmac=hmac)), issued_ms)
    found["renew what is not there"] = shown_time(alice.ask(Renew(hmac=b"none")), issued_ms)
    found["expire by another"] = shown_time(admin.ask(Expire(hmac=hmac)), issued_ms)
    found["expire what is not there"] = shown_time(alice.ask(Expire(hmac=bytes(64))), issued_ms)
    found["expire in an hour"] = shown_time(
        alice.ask(Expire(hmac=hmac, expiry_time_period_ms=HOUR_MS)), issued_ms
    )
    found["expire in ten years"] = shown_time(
        alice.ask(Expire(hmac=hmac, expiry_time_period_ms=10 * 8760 * HOUR_MS)), issued_ms
    )
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        holder = Caller(bootstrap, token_properties(token, mechanism))
        found[f"create with a token, {mechanism}"] = shown_created(holder.ask(Create()))
        found["renew with a token"] = shown_time(holder.ask(Renew(hmac=hmac)), issued_ms)
        found["expire with a token"] = shown_time(holder.ask(Expire(hmac=hmac)), issued_ms)
        found["describe with a token"] = shown_tokens(holder.ask(Describe(owners=None)))
        found["a session with a token has a limit"] = holder.connection._renew_at is not None
        holder.close()
    found["expire in no time"] = shown_time(alice.ask(Expire(hmac=hmac, expiry_time_period_ms=0)), issued_ms)
    wait_until(lambda: "EXPIRED" in renewed(alice, hmac))
    found["renew what has expired"] = shown_time(alice.ask(Renew(hmac=hmac)), issued_ms)
    found["expire what has expired"] = shown_time(
        alice.ask(Expire(hmac=hmac, expiry_time_period_ms=5)), issued_ms
    )
    found["log in with an expired token"] = logged_in(bootstrap, token)
    found["expire now"] = shown_time(alice.ask(Expire(hmac=hmac, expiry_time_period_ms=-1)), issued_ms)
    found["renew what was removed"] = shown_time(alice.ask(Renew(hmac=hmac)), issued_ms)
    wait_until(lambda: "cannot" in logged_in(bootstrap, token))
    found["log in with a removed token"] = logged_in(bootstrap, token)
    for caller in (alice, bob, admin):
        caller.close()
    return found


def renewed(caller: Caller, hmac: bytes) -> str:
    from barnabas.protocol import ErrorCode

    return ErrorCode(caller.ask(Renew(hmac=hmac, renew_period_ms=1)).error_code).name


def logged_in(bootstrap: str, token: Any) -> str:
    try:
        holder = Caller(bootstrap, token_properties(token))
    except AuthenticationError:
        return "cannot log in"
    try:
        run(holder.connection.send(MetadataRequest(topics=[]), MetadataResponse))
    except ConnectionLost:
        return "the first request closes the connection"
    finally:
        holder.close()
    return "served"
