"""Bearer tokens of callers: signed ones of an identity provider, or a few that are known.

In: a token. Out: its identity, or None. Signed tokens that were checked a moment ago are remembered by their
digest, because a signature costs more than a request. Does not know: HTTP.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Protocol

from barnabas.security.oauth.checking import TokenCheck
from barnabas.security.sasl.mechanism import Identity
from barnabas.security.sasl.oauthbearer import TokenRefused

REMEMBERED_MAX = 10_000
REMEMBERED_S = 30.0

log = logging.getLogger(__name__)


class Tokens(Protocol):
    async def identity_of(self, token: str) -> Identity | None: ...


class KnownTokens:
    """Tokens that somebody chose, each with its identity. Only digests are kept."""

    def __init__(self, tokens: Mapping[str, Identity]) -> None:
        self._known = [(digest(token), identity) for token, identity in tokens.items()]

    async def identity_of(self, token: str) -> Identity | None:
        given = digest(token)
        found = [identity for known, identity in self._known if hmac.compare_digest(given, known)]
        return found[0] if found else None


class SignedTokens:
    def __init__(self, check: TokenCheck, clock: Callable[[], float] = time.time) -> None:
        self._check = check
        self._clock = clock
        self._known: OrderedDict[bytes, tuple[float, Identity]] = OrderedDict()

    async def identity_of(self, token: str) -> Identity | None:
        mark = digest(token)
        known = self._known.get(mark)
        if known is not None and self._clock() < known[0]:
            return known[1]
        try:
            if self._check.is_slow:
                found = await asyncio.to_thread(self._check, token)
            else:
                found = self._check(token)
        except TokenRefused as error:
            self._known.pop(mark, None)
            log.info("a bearer token was refused: %s", error)
            return None
        expires_s = found.expires_at_ms / 1000 if found.expires_at_ms is not None else float("inf")
        self._known[mark] = min(self._clock() + REMEMBERED_S, expires_s), found
        if len(self._known) > REMEMBERED_MAX:
            self._known.popitem(last=False)
        return found


def digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
