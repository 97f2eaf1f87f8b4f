"""AlterUserScramCredentials: create, change and delete the SCRAM credentials of users.

In: the request and the image. Out: one record for each changed credential, and a result for each user. A user
may appear once in a request, whatever the mechanism, as in Apache Kafka. Clients send the salted password;
only the derived keys are stored (RFC 5802).
Does not know: the exchange in which a credential is used.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from typing import Any

from barnabas.controller.context import Context
from barnabas.controller.decision import Decision, InSteps
from barnabas.metadata.security import ScramUser
from barnabas.metadata.steps import Steps
from barnabas.metadata.versions import SCRAM
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.log_records.metadata import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)

ALGORITHMS = {1: "sha256", 2: "sha512"}  # by the mechanism's number: SCRAM-SHA-256, SCRAM-SHA-512
ITERATIONS_MIN = 4096
ITERATIONS_MAX = 16384

Result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion


@InSteps
def alter_user_scram_credentials(
    context: Context, request: AlterUserScramCredentialsRequest
) -> Steps[Decision[AlterUserScramCredentialsResponse]]:
    if context.level < SCRAM:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The current metadata version does not support SCRAM")
    changes: list[Upsertion | Deletion] = [*request.deletions, *request.upsertions]
    times = Counter(change.name for change in changes)
    results: dict[str, Result] = {}
    records: list[Message] = []
    for change in changes:
        yield
        code, message = ErrorCode.NONE, None
        try:
            if times[change.name] > 1:
                raise KafkaError(
                    ErrorCode.DUPLICATE_RESOURCE,
                    "A user credential cannot be altered twice in the same request",
                )
            records.append(_record(context, change))
        except KafkaError as error:
            code, message = error.code, error.message
        results[change.name] = Result(user=change.name, error_code=code, error_message=message)
    return Decision(AlterUserScramCredentialsResponse(results=list(results.values())), records)


def refused_credentials(request: Any, error: KafkaError) -> AlterUserScramCredentialsResponse:
    """The response that gives every user of the request the same error."""
    users = dict.fromkeys(change.name for change in (*request.deletions, *request.upsertions))
    results = [Result(user=user, error_code=error.code, error_message=error.message) for user in users]
    return AlterUserScramCredentialsResponse(results=results)


def credential_record(
    name: str, mechanism: int, salt: bytes, salted_password: bytes, iterations: int
) -> UserScramCredentialRecord:
    algorithm = ALGORITHMS[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", algorithm)
    return UserScramCredentialRecord(
        name=name,
        mechanism=mechanism,
        salt=salt,
        stored_key=hashlib.new(algorithm, client_key).digest(),
        server_key=hmac.digest(salted_password, b"Server Key", algorithm),
        iterations=iterations,
    )


def _record(context: Context, change: Upsertion | Deletion) -> Message:
    if not change.name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change.mechanism not in ALGORITHMS:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, Deletion):
        if ScramUser(change.name, change.mechanism) not in context.image.security.scram:
            raise KafkaError(
                ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
            )
        return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)
    if change.iterations < ITERATIONS_MIN:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > ITERATIONS_MAX:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if not change.salted_password:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "The salted password must not be empty")
    return credential_record(
        change.name, change.mechanism, bytes(change.salt), bytes(change.salted_password), change.iterations
    )
