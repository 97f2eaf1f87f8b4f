"""How long to keep trying: a deadline, and pauses that grow between attempts.

In: a limit in milliseconds. Out: pauses while there is time, then the error that stood in the way last.
"""

import asyncio
from random import Random

from barnabas.client.errors import ClientError
from barnabas.protocol import KafkaError

API_TIMEOUT_MS = 60_000
BACKOFF_MS = 100
BACKOFF_MS_MAX = 1_000
JITTER = 0.2
rng = Random()  # a simulation seeds it


class Patience:
    """One operation's time: `await pause(error)` between attempts raises the error when the time is up."""

    def __init__(self, timeout_ms: float = API_TIMEOUT_MS, backoff_ms: float = BACKOFF_MS) -> None:
        self._now = asyncio.get_running_loop().time
        self._deadline = self._now() + timeout_ms / 1000
        self._backoff_ms = backoff_ms
        self.attempts = 0

    @property
    def left_ms(self) -> float:
        return max(0.0, (self._deadline - self._now()) * 1000)

    async def pause(self, error: KafkaError | ClientError) -> None:
        pause_ms = min(self._backoff_ms * 2**self.attempts, BACKOFF_MS_MAX)
        pause_ms *= 1 + rng.uniform(-JITTER, JITTER)
        self.attempts += 1
        if pause_ms >= self.left_ms:
            raise error
        await asyncio.sleep(pause_ms / 1000)
