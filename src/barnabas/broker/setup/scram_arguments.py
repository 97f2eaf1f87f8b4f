"""`--add-scram`: turns `SCRAM-SHA-256=[name=alice,password=secret]` into a credential record.

In: the argument. Out: a UserScramCredentialRecord; ValueError with Kafka's message for an invalid argument.
The record does not hold the password, only keys derived from it (RFC 5802).
Does not know: how a client authenticates with the credential.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable

from barnabas.controller.scram import ITERATIONS_MAX, ITERATIONS_MIN, credential_record
from barnabas.protocol.log_records.metadata import UserScramCredentialRecord

MECHANISMS = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
ITERATIONS_DEFAULT = 4096
SALT_BYTES = 32
_KNOWN = ("name", "salt", "iterations", "password", "saltedpassword")


def scram_record(argument: str, random_bytes: Callable[[int], bytes]) -> UserScramCredentialRecord:
    mechanism, parts = _split(argument.strip())
    number, algorithm = MECHANISMS[mechanism]
    if "name" not in parts:
        raise ValueError("You must supply 'name' to add-scram")
    iterations = _iterations(parts, mechanism)
    salt = _decoded(parts["salt"], "salt") if "salt" in parts else random_bytes(SALT_BYTES)
    salted = _salted_password(parts, algorithm, salt, iterations)
    return credential_record(parts["name"], number, salt, salted, iterations)


def _split(argument: str) -> tuple[str, dict[str, str]]:
    mechanism, equals, rest = argument.partition("=")
    if not equals:
        raise ValueError(f"Failed to find equals sign in SCRAM argument '{argument}'")
    if mechanism not in MECHANISMS:
        raise ValueError(f"The add-scram mechanism {mechanism} is not supported.")
    if not rest.startswith("["):
        raise ValueError("Expected configuration string to start with [")
    if not rest.endswith("]"):
        raise ValueError("Expected configuration string to end with ]")
    parts: dict[str, str] = {}
    for part in rest[1:-1].split(","):
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"No equals sign found in SCRAM component: {part}")
        quoted = len(value) >= 2 and value.startswith('"') and value.endswith('"')
        parts[name] = value[1:-1] if quoted else value
    unknown = sorted(set(parts) - set(_KNOWN))
    if unknown:
        raise ValueError(f"Unknown SCRAM configurations: {', '.join(unknown)}")
    return mechanism, parts


def _iterations(parts: dict[str, str], mechanism: str) -> int:
    text = parts.get("iterations", str(ITERATIONS_DEFAULT))
    try:
        iterations = int(text)
    except ValueError:
        raise ValueError(f"Failed to parse iterations count: {text}") from None
    if iterations < ITERATIONS_MIN:
        raise ValueError(
            f"The 'iterations' value must be >= {ITERATIONS_MIN} for add-scram using {mechanism}"
        )
    if iterations > ITERATIONS_MAX:
        raise ValueError(
            f"The 'iterations' value must be <= {ITERATIONS_MAX} for add-scram using {mechanism}"
        )
    return iterations


def _salted_password(parts: dict[str, str], algorithm: str, salt: bytes, iterations: int) -> bytes:
    if "password" in parts:
        return hashlib.pbkdf2_hmac(algorithm, parts["password"].encode(), salt, iterations)
    if "saltedpassword" not in parts:
        raise ValueError("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if "salt" not in parts:
        raise ValueError("You must supply 'salt' with 'saltedpassword' to add-scram")
    return _decoded(parts["saltedpassword"], "saltedPassword")


def _decoded(text: str, name: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError(f"Failed to decode given {name}: {text}") from None
