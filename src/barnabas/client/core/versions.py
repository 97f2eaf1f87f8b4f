"""Versions of APIs that a broker speaks, and the newest that we share with it.

In: a connection that is just made. Out: a table from api key to the broker's lowest and highest version.
A broker that does not know our version of ApiVersions responds in version 0 and names its own: ask again so.
"""

from typing import Protocol, TypeAlias, TypeVar

from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

R = TypeVar("R", bound=Message)
ApiRanges: TypeAlias = dict[int, tuple[int, int]]

SOFTWARE_NAME = "barnabas"
SOFTWARE_VERSION = "0.1.0"
ASK_VERSION_MAX = 4
ASK_ATTEMPTS_MAX = 2


class Requests(Protocol):
    """Any connection: what a handshake needs of it."""

    async def send(self, request: Message, response: type[R], *, version: int) -> R: ...


def newest_common(
    request: type[Message], offered: tuple[int, int], version_max: int | None = None
) -> int | None:
    """The newest version of a request that we and the broker know, if any."""
    known = request.schema.versions
    last = min(known.last, offered[1], known.last if version_max is None else version_max)
    return last if last >= max(known.first, offered[0]) else None


def versions_request(version: int) -> ApiVersionsRequest:
    request = ApiVersionsRequest()
    if version >= 3:
        request.client_software_name = SOFTWARE_NAME
        request.client_software_version = SOFTWARE_VERSION
    return request


async def ask_versions(connection: Requests) -> ApiRanges:
    """The broker's table of APIs."""
    response = await ask(connection)
    return {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}


async def ask(connection: Requests) -> ApiVersionsResponse:
    """The whole response to ApiVersions, features included where the broker tells them."""
    version = ASK_VERSION_MAX
    for _ in range(ASK_ATTEMPTS_MAX):
        response = await connection.send(versions_request(version), ApiVersionsResponse, version=version)
        if response.error_code != ErrorCode.UNSUPPORTED_VERSION:
            break
        theirs = [
            each.max_version for each in response.api_keys if each.api_key == ApiVersionsRequest.schema.key
        ]
        version = min(theirs[0], ASK_VERSION_MAX) if theirs else 0
    if response.error_code:
        raise KafkaError(ErrorCode(response.error_code), "the broker does not tell its API versions")
    return response
