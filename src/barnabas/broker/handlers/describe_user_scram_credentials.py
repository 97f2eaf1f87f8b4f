"""DescribeUserScramCredentials: which users have SCRAM credentials, of which mechanism; never the secrets."""

from __future__ import annotations

from collections import Counter

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import describe_cluster
from barnabas.broker.api.routes import handles
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

Result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
Info = Result.CredentialInfo


@handles(DescribeUserScramCredentialsRequest, "0-0", needs=describe_cluster, listeners="broker controller")
def describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    known: dict[str, list[Info]] = {}
    for user, credential in context.broker.image.security.scram.items():
        info = Info(mechanism=user.mechanism, iterations=credential.iterations)
        known.setdefault(user.name, []).append(info)
    asked = Counter(user.name for user in request.users or ())
    names = asked or dict.fromkeys(known, 1)
    return DescribeUserScramCredentialsResponse(
        results=[result(name, times, known.get(name)) for name, times in names.items()]
    )


def result(name: str, times: int, infos: list[Info] | None) -> Result:
    if times > 1:
        return Result(
            user=name,
            error_code=ErrorCode.DUPLICATE_RESOURCE,
            error_message="Cannot describe SCRAM credentials for the same user twice in a single request: "
            + name,
        )
    if infos is None:
        return Result(
            user=name,
            error_code=ErrorCode.RESOURCE_NOT_FOUND,
            error_message=f"Attempt to describe a user credential that does not exist: {name}",
        )
    return Result(user=name, credential_infos=infos)
