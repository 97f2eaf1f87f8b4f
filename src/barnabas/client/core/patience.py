"""How long to keep trying: a deadline, and pauses that grow between attempts.

In: a limit in milliseconds. Out: pauses while there is time, then the error that stood in the way last.
"""

from __future__ import annotations

from barnabas.client.core.errors import ClientError
from barnabas.client.core.network import Network
from barnabas.protocol import KafkaError

API_TIMEOUT_MS = 60_000
BACKOFF_MS = 100
BACKOFF_MS_MAX = 1_000
JITTER = 0.2


class Patience:
    """One operation's time: `await pause(error)` between attempts raises the error when the time is up."""

    def __init__(self, network: Network, timeout_ms: float = API_TIMEOUT_MS) -> None:
        self._network = network
        self._deadline = network.now() + timeout_ms / 1000
        self.attempts = 0

    @property
    def left_ms(self) -> float:
        return max(0.0, (self._deadline - self._network.now()) * 1000)

    async def pause(self, error: KafkaError | ClientError) -> None:
        pause_ms = min(BACKOFF_MS * 2**self.attempts, BACKOFF_MS_MAX)
        pause_ms *= 1 + self._network.uniform(-JITTER, JITTER)
        self.attempts += 1
        if pause_ms >= self.left_ms:
            raise error
        await self._network.sleep(pause_ms / 1000)
