"""Waiting until a change shows: a controller acknowledges it a moment before brokers hear of it.

In: a question whether it shows. Out: nothing; not an error if it takes long, since the change is made.
"""

from collections.abc import Awaitable, Callable

from barnabas.client.admin.admin import Admin
from barnabas.client.core.errors import ClientError

SETTLE_MS_MAX = 2_000
NOT_YET = ClientError("the broker does not show the change yet")


async def settled(admin: Admin, shows: Callable[[], Awaitable[bool]]) -> None:
    patience = admin.cluster.patience(SETTLE_MS_MAX)
    while not await shows():
        try:
            await patience.pause(NOT_YET)
        except ClientError:
            return
