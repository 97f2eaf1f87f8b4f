"""Waits until a change is visible: the controller acknowledges a change a moment before brokers apply it.

In: a function that says whether the change is visible. A timeout is no error, because the change is made.
"""

from collections.abc import Awaitable, Callable

from barnabas.client.admin.admin import Admin
from barnabas.client.core.errors import ClientError

VISIBLE_MS_MAX = 2_000
NOT_YET = ClientError("the broker does not show the change yet")


async def wait_until_visible(admin: Admin, is_visible: Callable[[], Awaitable[bool]]) -> None:
    patience = admin.cluster.patience(VISIBLE_MS_MAX)
    while not await is_visible():
        try:
            await patience.pause(NOT_YET)
        except ClientError:
            return
