"""Signed requests between workers: the session key of the config topic, HMAC of the body.

In: the session key's record, bodies. Out: headers of a request, or why a request is refused.
"""

from __future__ import annotations

import base64
import hmac
import os
from collections.abc import Mapping
from typing import Any

from barnabas.connect.herder.errors import Refused

SIGNATURE = "x-connect-authorization"
ALGORITHM = "x-connect-request-signature-algorithm"
DIGESTS = {"HmacSHA256": "sha256", "HmacSHA384": "sha384", "HmacSHA512": "sha512", "HmacSHA1": "sha1"}
KEY_BITS = {"HmacSHA1": 512, "HmacSHA256": 256, "HmacSHA384": 384, "HmacSHA512": 512}  # Java's


def new_key(now_ms: int, algorithm: str = "HmacSHA256", bits: int | None = None) -> dict[str, Any]:
    """A random session key; `bits` None: as many as Java makes for the algorithm."""
    key = base64.b64encode(os.urandom(((bits or KEY_BITS[algorithm]) + 7) // 8)).decode()
    return {"key": key, "algorithm": algorithm, "creation-timestamp": now_ms}


def key_of(worker: Mapping[str, str], now_ms: int) -> dict[str, Any]:
    """A session key as the worker's settings ask for it."""
    size = worker.get("inter.worker.key.size")
    algorithm = worker.get("inter.worker.key.generation.algorithm", "HmacSHA256")
    return new_key(now_ms, algorithm, None if size is None else int(size))


def is_expired(key: Mapping[str, Any] | None, now_ms: int, ttl_ms: int) -> bool:
    return key is None or (ttl_ms > 0 and now_ms - int(key.get("creation-timestamp", 0)) >= ttl_ms)


def signed(key: Mapping[str, Any], body: bytes, algorithm: str = "HmacSHA256") -> dict[str, str]:
    """The headers of a request."""
    digest = hmac.digest(base64.b64decode(key["key"]), body, DIGESTS[algorithm])
    return {SIGNATURE: base64.b64encode(digest).decode(), ALGORITHM: algorithm}


def check(
    key: Mapping[str, Any] | None, headers: Mapping[str, str], body: bytes, allowed: tuple[str, ...]
) -> None:
    """Refuse a request that no worker of the cluster has signed."""
    if key is None:
        raise Refused(503, "This worker is still starting up and has not been able to read a session key.")
    given, algorithm = headers.get(SIGNATURE), headers.get(ALGORITHM)
    if given is None or algorithm is None:
        raise Refused(400, "Internal request missing required signature")
    if algorithm not in DIGESTS:
        raise Refused(400, f"Algorithm {algorithm} not available")
    if algorithm not in allowed:
        raise Refused(400, f"This worker does not support the '{algorithm}' key signing algorithm")
    expected = signed(key, body, algorithm)[SIGNATURE]
    if not hmac.compare_digest(expected.encode(), given.encode()):
        raise Refused(403, "Internal request contained invalid signature.")
