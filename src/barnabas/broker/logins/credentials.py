"""Credentials of the cluster, as logins need them: SCRAM keys and delegation tokens of the metadata image.

Read anew at every login, so that a committed change counts at once.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.metadata.security import ScramUser
from barnabas.security.delegation_tokens import token_hmac
from barnabas.security.sasl.mechanisms import StoredKeys, TokenLogin

if TYPE_CHECKING:
    from barnabas.metadata.image import MetadataImage
    from barnabas.settings import BrokerSettings

NUMBERS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}


class ClusterCredentials:
    def __init__(self, settings: BrokerSettings, cluster_id: str, image: Callable[[], MetadataImage]) -> None:
        self._image = image
        self._token_secret = settings["delegation.token.secret.key"]
        named = (self._token_secret, settings["barnabas.secret.key"])
        secret = "\0".join([cluster_id, *(each.value for each in named if each is not None)])
        self.decoy_secret = hashlib.sha256(secret.encode()).digest()

    def scram_keys(self, mechanism: str, user: str) -> StoredKeys | None:
        found = self._image().security.scram.get(ScramUser(user, NUMBERS[mechanism]))
        return None if found is None else StoredKeys(*found)

    def token(self, token_id: str) -> TokenLogin | None:
        found = self._image().security.tokens.get(token_id)
        if found is None or self._token_secret is None:
            return None
        return TokenLogin(
            owner=found.owner.partition(":")[2],
            hmac=base64.b64encode(token_hmac(self._token_secret.value, token_id)).decode(),
            expires_at_ms=found.expiration_timestamp,
        )
