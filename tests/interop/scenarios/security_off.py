"""APIs of security on a node without any: no SASL on the listener, no authorizer, no token key.

Clients probe with them (SaslHandshake on a plaintext listener) and tools ask at every interval
(DescribeAcls), so each must be announced and answered with Apache Kafka's error.
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol import ApiKey

from ..requests import versions
from ..talk import Talk, scenario

ANY, TOPIC, LITERAL, ALL, ALLOW = 1, 2, 3, 2, 3
FILTER = {
    "resource_type_filter": ANY, "resource_name_filter": None, "pattern_type_filter": ANY,
    "principal_filter": None, "host_filter": None, "operation": ANY, "permission_type": ANY,
}  # fmt: skip
ENTRY = {
    "resource_type": TOPIC, "resource_name": "t", "resource_pattern_type": LITERAL,
    "principal": "User:u", "host": "*", "operation": ALL, "permission_type": ALLOW,
}  # fmt: skip
SHA_256, SHA_512 = 1, 2
SALT, SALTED = b"salt" * 8, b"password" * 4


def in_words(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer with its error messages under a name that is compared word by word."""
    found = {key: value for key, value in answer.items() if key != "error_message"}
    if "error_message" in answer:
        found["said"] = answer["error_message"]
    return {
        key: [in_words(each) if isinstance(each, dict) else each for each in value]
        if isinstance(value, list)
        else value
        for key, value in found.items()
    }


def said(talk: Talk, label: str, api: ApiKey, version: int, **values: Any) -> None:
    talk.note(f"{api.name} v{version}: {label}", in_words(talk.silently(api, version, **values)))


@scenario
def sasl_is_refused(talk: Talk) -> None:
    for version in versions(ApiKey.SASL_HANDSHAKE):
        for mechanism in ("PLAIN", "NO-SUCH", ""):
            said(talk, repr(mechanism), ApiKey.SASL_HANDSHAKE, version, mechanism=mechanism)
    for version in versions(ApiKey.SASL_AUTHENTICATE):
        said(talk, "a name", ApiKey.SASL_AUTHENTICATE, version, auth_bytes=b"\0u\0secret")
        said(talk, "nothing", ApiKey.SASL_AUTHENTICATE, version, auth_bytes=b"")
    talk.ask("after that", ApiKey.METADATA, 1, topics=[])


@scenario
def nobody_authorizes(talk: Talk) -> None:
    for version in versions(ApiKey.DESCRIBE_ACLS):
        said(talk, "all", ApiKey.DESCRIBE_ACLS, version, **FILTER)
        said(talk, "of a topic", ApiKey.DESCRIBE_ACLS, version, **FILTER | {"resource_type_filter": TOPIC})
        said(talk, "unknown", ApiKey.DESCRIBE_ACLS, version, **FILTER | {"resource_type_filter": 99})
    for version in versions(ApiKey.CREATE_ACLS):
        said(talk, "none", ApiKey.CREATE_ACLS, version, creations=[])
        said(talk, "one", ApiKey.CREATE_ACLS, version, creations=[ENTRY])
        said(talk, "two", ApiKey.CREATE_ACLS, version, creations=[ENTRY, ENTRY | {"resource_name": ""}])
    for version in versions(ApiKey.DELETE_ACLS):
        said(talk, "none", ApiKey.DELETE_ACLS, version, filters=[])
        said(talk, "one", ApiKey.DELETE_ACLS, version, filters=[FILTER])
        said(talk, "two", ApiKey.DELETE_ACLS, version, filters=[FILTER, FILTER])


@scenario
def nobody_has_tokens(talk: Talk) -> None:
    for version in versions(ApiKey.CREATE_DELEGATION_TOKEN):
        said(talk, "a token", ApiKey.CREATE_DELEGATION_TOKEN, version, renewers=[], max_lifetime_ms=-1)
        if version >= 3:
            other = {"owner_principal_type": "User", "owner_principal_name": "u"}
            said(talk, "for another", ApiKey.CREATE_DELEGATION_TOKEN, version, **other)
    for version in versions(ApiKey.RENEW_DELEGATION_TOKEN):
        said(talk, "renewed", ApiKey.RENEW_DELEGATION_TOKEN, version, hmac=b"x", renew_period_ms=5)
        said(talk, "expired", ApiKey.EXPIRE_DELEGATION_TOKEN, version, hmac=b"x", expiry_time_period_ms=5)
    for version in versions(ApiKey.DESCRIBE_DELEGATION_TOKEN):
        said(talk, "all", ApiKey.DESCRIBE_DELEGATION_TOKEN, version, owners=None)
        said(talk, "of nobody", ApiKey.DESCRIBE_DELEGATION_TOKEN, version, owners=[])


def upsertion(name: str, mechanism: int = SHA_256, iterations: int = 4096, **more: bytes) -> dict[str, Any]:
    given = {"name": name, "mechanism": mechanism, "iterations": iterations}
    return {**given, "salt": SALT, "salted_password": SALTED, **more}


@scenario
def scram_credentials_change(talk: Talk) -> None:
    alter, describe = ApiKey.ALTER_USER_SCRAM_CREDENTIALS, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
    name, other = talk.name("user"), talk.name("other")

    def gone(user: str, mechanism: int = SHA_256) -> dict[str, Any]:
        return {"name": user, "mechanism": mechanism}

    def change(label: str, upsertions: Any = (), deletions: Any = ()) -> None:
        answer = talk.silently(alter, 0, upsertions=list(upsertions), deletions=list(deletions))
        if "results" in answer:
            answer["results"].sort(key=lambda each: each["user"])
        talk.note(label, in_words(answer))

    def shown(label: str, *users: str) -> None:
        asked = [{"name": each} for each in users]
        answer = talk.silently(describe, 0, users=asked)
        for each in answer["results"]:
            each["credential_infos"].sort(key=lambda info: info["mechanism"])
        answer["results"].sort(key=lambda each: each["user"])
        talk.note(label, in_words(answer))

    change("nothing")
    change("deleted, never there", deletions=[gone(name)])
    change("no name", [upsertion("")])
    change("no name deleted", deletions=[gone("")])
    for mechanism in (0, 3, -1, 99):
        change(f"mechanism {mechanism}", [upsertion(name, mechanism)])
        change(f"mechanism {mechanism} deleted", deletions=[gone(name, mechanism)])
    for mechanism in (SHA_256, SHA_512):
        for iterations in (0, -1, 4095, 16385):
            change(f"mechanism {mechanism}, {iterations} times", [upsertion(name, mechanism, iterations)])
    change("no salt", [upsertion(name, salt=b"")])
    change("no password", [upsertion(name, salted_password=b"")])
    change("twice the same", [upsertion(name), upsertion(name)])
    change("made and deleted at once", [upsertion(name)], [gone(name)])
    change("deleted twice", deletions=[gone(name), gone(name)])
    change("one good, one bad", [upsertion(other), upsertion(name, iterations=1)])
    shown("then", name, other)
    change("both mechanisms", [upsertion(name), upsertion(name, SHA_512, 16384)])
    shown("then both", name)
    change("changed", [upsertion(name, iterations=8192)])
    shown("then changed", name)
    change("one deleted", deletions=[gone(name, SHA_512)])
    change("the same deleted again", deletions=[gone(name, SHA_512)])
    shown("then one is left", name)
    change("cleaned up", deletions=[gone(name), gone(other)])
    shown("then none", name, other)
