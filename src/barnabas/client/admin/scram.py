"""SCRAM credentials of users: which there are, adding and removing them.

In: a Cluster, passwords. Out: mechanisms and iterations of users. A password leaves this module only as its
salted hash, which is what the controller keeps.
"""

import hashlib
import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from barnabas.client.admin.part import AdminPart
from barnabas.client.core.errors import error_of
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

SALT_BYTES = 24
HASHES = {1: "sha256", 2: "sha512"}


class ScramMechanism(IntEnum):
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def mechanism_name(self) -> str:
        return self.name.replace("_", "-")


@dataclass(frozen=True, slots=True)
class NewCredential:
    iterations: int
    password: str


class ScramAdmin(AdminPart):
    async def describe_scram(
        self, users: Collection[str] = ()
    ) -> dict[str, dict[ScramMechanism, int] | KafkaError]:
        """Iterations of each mechanism of each user (none named: of all); users without any are left out."""
        nested = DescribeUserScramCredentialsRequest
        request = nested(users=[nested.UserName(name=user) for user in users] or None)
        response = await self.ask(request, DescribeUserScramCredentialsResponse)
        return {
            result.user: error_of(result.error_code, result.error_message)
            if result.error_code
            else {ScramMechanism(each.mechanism): each.iterations for each in result.credential_infos}
            for result in response.results
            if result.error_code != ErrorCode.RESOURCE_NOT_FOUND
        }

    async def alter_scram(
        self,
        user: str,
        added: Mapping[ScramMechanism, NewCredential],
        removed: Iterable[ScramMechanism] = (),
    ) -> None:
        nested = AlterUserScramCredentialsRequest
        request = nested(
            deletions=[nested.ScramCredentialDeletion(name=user, mechanism=each) for each in removed],
            upsertions=[upsertion(user, mechanism, new) for mechanism, new in added.items()],
        )
        await self.ask(request, AlterUserScramCredentialsResponse, results=lambda response: response.results)


def upsertion(
    user: str, mechanism: ScramMechanism, new: NewCredential
) -> AlterUserScramCredentialsRequest.ScramCredentialUpsertion:
    salt = secrets.token_bytes(SALT_BYTES)
    salted = hashlib.pbkdf2_hmac(HASHES[mechanism], new.password.encode(), salt, new.iterations)
    return AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=new.iterations, salt=salt, salted_password=salted
    )
