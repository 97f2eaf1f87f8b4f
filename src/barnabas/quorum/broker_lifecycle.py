"""A broker's session with the controller: registration, heartbeats, unfencing, controlled shutdown.

In: a function that sends controller requests (in process, or over the network), this broker's identity. Out:
the broker's epoch and whether it is fenced. `stop` returns when the controller permits the shutdown, or when
its timeout passes.
Does not know: partitions, sockets, the metadata log beyond the offset this broker has read to.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from barnabas.metadata.versions import supported_features
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from barnabas.protocol.messages.broker_registration import BrokerRegistrationRequest
from barnabas.quorum.listener_entries import listener_entries
from barnabas.settings.listeners import EndPoint

logger = logging.getLogger(__name__)

Send = Callable[[Message], Awaitable[Any]]
RETRY_MS = 100
RETRIABLE_ERRORS = (
    ErrorCode.DUPLICATE_BROKER_REGISTRATION,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.KAFKA_STORAGE_ERROR,  # a failing disk makes this controller resign, another one takes over
)
SHUTDOWN_HEARTBEAT_MS = 50
LEADERLESS_MS_MAX = 3_000  # an election takes less while a majority of voters is alive


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    node_id: int
    cluster_id: str
    incarnation_id: bytes
    listeners: Sequence[EndPoint]  # where others reach it, with the ports that were actually bound
    log_dirs: Sequence[bytes]  # directory ids
    rack: str | None = None
    previous_epoch: int = -1  # read from the clean shutdown file


class BrokerLifecycle:
    def __init__(
        self,
        identity: BrokerIdentity,
        send: Send,
        metadata_offset: Callable[[], int],
        heartbeat_interval_ms: int,
    ) -> None:
        self._identity = identity
        self._send = send
        self._metadata_offset = metadata_offset
        self._interval_ms = heartbeat_interval_ms
        self._heartbeats: asyncio.Task[None] | None = None
        self._send_now = asyncio.Event()
        self.offline_log_dirs: list[bytes] = []
        self.offline_log_dirs_reported = 0  # how many of them the controller has acknowledged
        self.cordoned_log_dirs: list[bytes] = []
        self.epoch = -1
        self.is_fenced = True

    async def register(self, timeout_ms: int = 0) -> int:
        """Register this broker, which begins fenced, and return its epoch. Raises KafkaError when refused.
        While the timeout lasts it waits for a controller, and for an earlier session of this broker to
        expire."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        response = await self._send(self._registration())
        while response.error_code in RETRIABLE_ERRORS and loop.time() < deadline:
            await asyncio.sleep(RETRY_MS / 1000)
            response = await self._send(self._registration())
        if response.error_code != ErrorCode.NONE:
            raise KafkaError(
                ErrorCode(response.error_code),
                f"broker {self._identity.node_id} could not register: {ErrorCode(response.error_code).name}",
            )
        self.epoch = response.broker_epoch
        return self.epoch

    async def tell_listeners(
        self, listeners: Sequence[EndPoint], log_dirs: Sequence[bytes], timeout_ms: int
    ) -> None:
        """Register again with other listeners. The broker keeps its epoch. Raises KafkaError when refused."""
        if self.epoch >= 0 and list(listeners) != list(self._identity.listeners):
            self._identity = replace(self._identity, listeners=listeners, log_dirs=log_dirs)
            await self.register(timeout_ms)

    def _registration(self) -> BrokerRegistrationRequest:
        identity = self._identity
        return BrokerRegistrationRequest(
            broker_id=identity.node_id,
            cluster_id=identity.cluster_id,
            incarnation_id=identity.incarnation_id,
            listeners=listener_entries(BrokerRegistrationRequest.Listener, identity.listeners),
            features=[
                BrokerRegistrationRequest.Feature(
                    name=name, min_supported_version=lowest, max_supported_version=highest
                )
                for name, (lowest, highest) in supported_features().items()
            ],
            rack=identity.rack,
            log_dirs=list(identity.log_dirs),
            previous_broker_epoch=identity.previous_epoch,
        )

    async def unfence(self) -> None:
        """Send heartbeats until the controller unfences this broker, then keep sending them in the
        background."""
        while True:
            try:
                if not (await self._send_heartbeat()).is_fenced:
                    break
            except KafkaError as error:
                if error.code not in RETRIABLE_ERRORS:
                    raise
            await asyncio.sleep(RETRY_MS / 1000)
        self._heartbeats = asyncio.get_running_loop().create_task(self._keep_sending())

    def heartbeat_soon(self) -> None:
        """Send the next heartbeat now, because something changed that the controller should know."""
        self._send_now.set()

    async def _keep_sending(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._interval_ms / 1000):
                    await self._send_now.wait()
            self._send_now.clear()
            try:
                await self._send_heartbeat()
            except KafkaError as error:
                logger.error("heartbeat to the controller failed: %s", error)

    async def _send_heartbeat(self, *, shut_down: bool = False) -> BrokerHeartbeatResponse:
        request = BrokerHeartbeatRequest(
            broker_id=self._identity.node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._metadata_offset(),
            want_fence=False,
            want_shut_down=shut_down,
            offline_log_dirs=list(self.offline_log_dirs),
            cordoned_log_dirs=list(self.cordoned_log_dirs),
        )
        response: BrokerHeartbeatResponse = await self._send(request)
        if response.error_code != ErrorCode.NONE:
            raise KafkaError(ErrorCode(response.error_code), "the controller refused a heartbeat")
        self.offline_log_dirs_reported = len(request.offline_log_dirs)
        self.is_fenced = response.is_fenced
        return response

    async def stop(self, timeout_ms: int, is_led: Callable[[], bool] = lambda: True) -> bool:
        """Ask the controller for a controlled shutdown, which moves partition leaders to other brokers first.
        Returns False when that failed, timed out, or when the quorum has no leader (`is_led`): the last nodes
        of a cluster that stops have no controller to ask."""
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            await asyncio.wait([self._heartbeats])
        if self.epoch < 0:
            return True
        leaving = asyncio.get_running_loop().create_task(self._leave())
        waits = LEADERLESS_MS_MAX // SHUTDOWN_HEARTBEAT_MS
        without_leader = 0
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while not leaving.done() and without_leader < waits:
                    await asyncio.wait([leaving], timeout=SHUTDOWN_HEARTBEAT_MS / 1000)
                    without_leader = 0 if is_led() else without_leader + 1
                if not leaving.done():
                    raise KafkaError(ErrorCode.NOT_CONTROLLER, "the quorum has no leader")
                leaving.result()
        except (TimeoutError, KafkaError) as error:
            logger.warning("node %d stops without a controlled shutdown: %s", self._identity.node_id, error)
            return False
        finally:
            leaving.cancel()
        return True

    async def _leave(self) -> None:
        while True:
            try:
                if (await self._send_heartbeat(shut_down=True)).should_shut_down:
                    return
            except KafkaError as error:
                if error.code not in RETRIABLE_ERRORS:  # another controller may take over
                    raise
            await asyncio.sleep(SHUTDOWN_HEARTBEAT_MS / 1000)
