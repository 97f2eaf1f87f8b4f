"""Delegation tokens: the secret that proves one, derived from the cluster's secret key and the token's id."""

from __future__ import annotations

import hmac
from functools import lru_cache

REMEMBERED_MAX = 65_536


@lru_cache(maxsize=REMEMBERED_MAX)
def token_hmac(secret_key: str, token_id: str) -> bytes:
    """The metadata log does not hold it: every node derives it from `delegation.token.secret.key`."""
    return hmac.digest(secret_key.encode(), token_id.encode(), "sha512")
