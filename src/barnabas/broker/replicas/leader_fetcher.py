"""The fetcher of the partitions that one leader leads, in one fetch session over one connection.

In: partitions with their leader epochs. Out: batches appended unchanged, diverging logs truncated, the
leader's high watermark. One fetch is in flight at any time. The next one leaves when the batches of the last
are written, and names only partitions that have changed (KIP-227). For new partitions a second fetch follows
at once, and our leaders then end the first; new partitions join the session a few at a time (`SessionNames`).
A partition whose log is being truncated, or is out of the leader's range, is left out meanwhile.
Does not know: who leads what, the metadata log, how logs are truncated.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.fetch.fetch_templates import FetchTemplate
from barnabas.broker.replicas.follower_repairs import FollowerRepairs
from barnabas.broker.replicas.leader_link import LeaderLink
from barnabas.broker.replicas.session_names import Key, SessionNames
from barnabas.client.asyncio_network import open_connection
from barnabas.client.core.address import Address
from barnabas.client.core.errors import ClientError
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.replication.divergence import truncation_offset
from barnabas.security.errors import SecuritySettingsError

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.produce.tick import Tick
    from barnabas.broker.quotas.replication_throttle import ReplicationThrottle
    from barnabas.runtime.pieces import Steps
    from barnabas.storage.logs.truncation import Truncation

log = logging.getLogger("barnabas.following")
FetchKey = tuple[int, int, int, int, int]  # the fields of a fetch of one partition, without its offset
Topic = FetchRequest.FetchTopic
Asked = Topic.FetchPartition
Diverged = tuple[Key, "Followed", int, int]  # the epoch up to which the logs agree, and where it ends
Data = FetchResponse.FetchableTopicResponse.PartitionData
BACKOFF_MS, BACKOFF_MS_MAX = 50, 1_000
CONNECT_SECONDS_MAX = 10.0
INT32_MAX = 2**31 - 1
NOT_FETCHED = 2**63
TEMPLATES_MAX = 64  # partitions that are fetched alone in turns


class Followed:
    """One partition that is fetched."""

    __slots__ = ("epoch", "fetch_number", "fetch_offset", "is_delayed", "is_in_repair", "partition")

    def __init__(self, partition: Partition, epoch: int) -> None:
        self.partition = partition
        self.epoch = epoch
        self.fetch_offset = -1  # of the last fetch
        self.fetch_number = INT32_MAX  # of the fetch that named it last: earlier responses do not count
        self.is_delayed = False  # not to be fetched for a while
        self.is_in_repair = False  # it diverges from the leader's log, or is out of its range


class LeaderFetcher:
    def __init__(
        self, broker: Broker, tick: Tick, leader_id: int, throttle: ReplicationThrottle, number: int = 0
    ) -> None:
        self.leader_id = leader_id
        self._number = number  # of several to the same leader
        self._broker = broker
        self._tick = tick
        self._throttle = throttle
        settings = broker.settings
        self._bytes_max: int = settings["replica.fetch.max.bytes"]
        self._response_bytes_max: int = settings["replica.fetch.response.max.bytes"]
        self._wait_ms: int = settings["replica.fetch.wait.max.ms"]
        self._bytes_min: int = settings["replica.fetch.min.bytes"]
        self._followed: dict[Key, Followed] = {}
        self._names = SessionNames()
        self._session_id = self._session_epoch = 0
        # By partition, for fetches that name it alone. A template is made when the same key comes again.
        self._templates: dict[Key, tuple[FetchKey, FetchTemplate | None]] = {}
        self._repairs = FollowerRepairs(broker.node_id, broker.pieces)
        self._diverged: deque[Diverged] = deque()  # from the leader's log: to be truncated
        self._link: LeaderLink | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._backoff_ms = BACKOFF_MS
        self._requests_in_flight = 0  # fetches without a response
        self._fetches = self._responses = 0  # requests and responses over this connection
        self.responses_total = 0
        self._is_urgent = False  # the session lacks a partition
        self._is_second_fetch_scheduled = False
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._followed)

    # -- followed partitions ---------------------------------------------------------------------

    def add(self, partition: Partition, epoch: int) -> None:
        key = partition.topic_id, partition.index
        each = self._followed[key] = Followed(partition, epoch)
        truncation = partition.log.truncation
        if truncation is not None:  # begun in an earlier epoch
            self._leave_out(key, each)
            truncation.when_done(partial(self._fetch_again, key, each))
        else:
            self._fetch(key)

    def remove(self, key: Key) -> None:
        self._followed.pop(key, None)
        self._names.leave_out(key)

    def followed(self) -> list[Followed]:
        return list(self._followed.values())

    def epoch_of(self, key: Key) -> int | None:
        found = self._followed.get(key)
        return found.epoch if found is not None else None

    def close(self) -> None:
        self._is_closed = True
        self._followed = {}
        if self._connecting is not None:
            self._connecting.cancel()
        if self._link is not None:
            self._link.abort("nothing is followed there any more")

    # -- connecting ------------------------------------------------------------------------------

    def _go(self) -> None:
        """Send the next fetch if none is in flight, or a second one if the session lacks a partition."""
        if self._is_closed:
            return
        if self._requests_in_flight:
            if (
                self._requests_in_flight == 1
                and self._is_urgent
                and not self._is_second_fetch_scheduled
                and self._link is not None
            ):
                self._is_second_fetch_scheduled = True
                self._broker.loop.call_soon(self._fetch_second)
        elif self._link is not None:
            try:
                self._ask()
            except Exception:
                self._broker.unexpected.note("fetching from leader", self.leader_id)
                self._link.abort("the next fetch could not be sent")  # it connects again a little later
        elif self._connecting is None:
            self._connecting = self._broker.loop.create_task(self._connect())

    def _fetch_second(self) -> None:
        """Send a second fetch: the leader may wait long before it responds to the first."""
        self._is_second_fetch_scheduled = False
        if self._requests_in_flight == 1 and self._link is not None and self._session_epoch:
            self._ask()

    async def _connect(self) -> None:
        while not self._is_closed:
            reason = await self._try_to_connect()
            if reason is None:
                self._connecting = None
                self._backoff_ms = BACKOFF_MS
                self._go()
                return
            log.info("cannot connect to leader %d yet: %s", self.leader_id, reason)
            await asyncio.sleep(self._backoff_ms / 1000)
            self._backoff_ms = min(2 * self._backoff_ms, BACKOFF_MS_MAX)

    async def _try_to_connect(self) -> str | None:
        broker, settings = self._broker, self._broker.settings
        registered = broker.image.cluster.brokers.get(self.leader_id)
        listener = settings.inter_broker_listener_name
        endpoint = registered.listeners.get(listener) if registered is not None else None
        if endpoint is None:
            return "its address is not known"
        client_id = f"broker-{broker.node_id}-fetcher-{self._number}"
        timeout_ms: int = settings["replica.socket.timeout.ms"]
        link: LeaderLink | None = None
        try:
            async with asyncio.timeout(CONNECT_SECONDS_MAX):
                address, security = Address(endpoint.host, endpoint.port), broker.security.to_brokers()
                link = LeaderLink(self._tick, client_id, timeout_ms, self._lost)
                await open_connection(broker.loop, link, address, security.tls)
                await link.greet(address, security)
        except BaseException as error:
            if link is not None:
                link.abort(str(error))
            if not isinstance(error, OSError | KafkaError | ClientError | SecuritySettingsError):
                raise
            return str(error) or type(error).__name__
        if link.is_closed:
            return "the connection was lost at once"
        # Set after the handshake: a fetch needs the leader's API versions.
        self._link = link
        return None

    def _lost(self, link: LeaderLink, reason: str) -> None:
        if self._link is not link:
            return
        self._link = None
        self._requests_in_flight = self._fetches = self._responses = 0
        self._repairs.lost()
        self._diverged.clear()
        for each in self._followed.values():
            if each.is_in_repair:
                each.is_delayed = each.is_in_repair = False
        self._start_anew()
        if not self._is_closed and self._connecting is None:
            log.info("the connection to leader %d is lost: %s", self.leader_id, reason)
            self._go_later()

    def _go_later(self) -> None:
        self._broker.loop.call_later(self._backoff_ms / 1000, self._go)

    def _start_anew(self) -> None:
        """Start a new session with the next fetch."""
        self._session_id = self._session_epoch = 0
        self._templates.clear()
        self._names.start_anew(self._followed)

    # -- requests --------------------------------------------------------------------------------

    def _ask(self) -> None:
        assert self._link is not None
        self._is_urgent = False
        followed, session = self._followed, self._names
        names = session.next(lambda key: followed[key].is_delayed)
        throttled = self._throttle.throttled(followed[key].partition for key in names)
        if throttled:
            for partition in throttled:
                self._delay((partition.topic_id, partition.index), self._throttle.retry_ms)
            names = [key for key in names if not followed[key].is_delayed]
        if not names and self._requests_in_flight:
            return  # the fetch in flight has all partitions
        forgotten = list(session.forgotten)
        if not names and session.is_ending:
            # The session would be empty: a new one begins when there is something to fetch.
            if forgotten:
                self._start_anew()
            return
        body = self._repeated_fetch(names[0]) if len(names) == 1 and not forgotten else None
        wait_ms = 0 if session.new else self._wait_ms  # more new partitions follow at once
        request = self._request(names, forgotten, wait_ms) if body is None else None
        session.sent(names)
        self._fetches += 1
        for key in names:
            followed[key].fetch_number = self._fetches
        if self._session_epoch:
            self._session_epoch = self._session_epoch + 1 if self._session_epoch < INT32_MAX else 1
        self._requests_in_flight += 1
        if body is not None:
            self._link.send_encoded(body, FetchResponse, self._handle_response)
        elif request is not None:
            self._link.send_request(request, FetchResponse, self._handle_response)

    def _repeated_fetch(self, key: Key) -> bytes | None:
        """The bytes of a fetch that differs from the last one of this partition in session epoch and offset
        alone; None if there is no template yet."""
        each = self._followed[key]
        partition_log = each.partition.log
        fetch_key = (
            each.epoch,
            partition_log.epochs.latest_epoch,
            partition_log.log_start_offset,
            self._session_id,
            self._broker.epoch,
        )
        known, template = self._templates.get(key, (None, None))
        if fetch_key != known or not self._session_epoch:
            if len(self._templates) >= TEMPLATES_MAX:
                self._templates.clear()
            self._templates[key] = fetch_key, None
            return None
        if template is None:
            assert self._link is not None
            request = self._request([key], [], self._wait_ms)
            template = FetchTemplate(request, self._link.version_of(FetchResponse))
            self._templates[key] = fetch_key, template
        each.fetch_offset = partition_log.written_offset
        return template.fill(self._session_epoch, each.fetch_offset)

    def _request(self, names: list[Key], forgotten: list[Key], wait_ms: int) -> FetchRequest:
        broker = self._broker
        topics: dict[bytes, Topic] = {}
        for key in names:
            each = self._followed[key]
            partition_log = each.partition.log
            each.fetch_offset = partition_log.written_offset
            topic = topics.get(key[0])
            if topic is None:
                topic = topics[key[0]] = Topic(topic_id=key[0], partitions=[])
            topic.partitions.append(
                Asked(
                    partition=key[1],
                    current_leader_epoch=each.epoch,
                    fetch_offset=each.fetch_offset,
                    last_fetched_epoch=partition_log.epochs.latest_epoch,
                    log_start_offset=partition_log.log_start_offset,
                    partition_max_bytes=self._bytes_max,
                )
            )
        gone: dict[bytes, FetchRequest.ForgottenTopic] = {}
        for topic_id, index in forgotten:
            topic_gone = gone.setdefault(
                topic_id, FetchRequest.ForgottenTopic(topic_id=topic_id, partitions=[])
            )
            topic_gone.partitions.append(index)
        return FetchRequest(
            replica_state=FetchRequest.ReplicaState(replica_id=broker.node_id, replica_epoch=broker.epoch),
            max_wait_ms=wait_ms,
            min_bytes=self._bytes_min,
            max_bytes=self._response_bytes_max,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=list(topics.values()),
            forgotten_topics_data=list(gone.values()),
        )

    # -- responses -------------------------------------------------------------------------------

    def _handle_response(self, response: FetchResponse) -> None:
        self._requests_in_flight -= 1
        self._responses += 1
        self.responses_total += 1
        if response.error_code:
            log.info(
                "leader %d responded to a fetch with %s",
                self.leader_id,
                ErrorCode(response.error_code).name,
            )
            self._start_anew()
            self._go_later()
            return
        if self._session_epoch == 0:
            self._session_id = response.session_id
            self._session_epoch = 1 if response.session_id else 0
        now_ms = self._broker.clock.now_ms()
        for topic in response.responses:
            for data in topic.partitions:
                key = topic.topic_id, data.partition_index
                each = self._followed.get(key)
                if each is not None:
                    self._accept(key, each, data, now_ms)
        if not self._session_id:  # the leader keeps no session for us
            self._names.name_all(self._followed)
        self._tick.when_written(self._go)
        if self._diverged:
            self._tick.when_written(self._begin_cutting)

    def _begin_cutting(self) -> None:
        self._broker.pieces.begin(self._cut_all())

    def _accept(self, key: Key, each: Followed, data: Data, now_ms: int) -> None:
        partition = each.partition
        if partition.is_leader or each.epoch != partition.leader_epoch:
            return  # the leader epoch has changed
        if self._is_outdated(each):
            return
        partition_log = partition.log
        try:
            if data.error_code:
                self._refused(key, each, ErrorCode(data.error_code))
            elif data.diverging_epoch.epoch >= 0:
                self._leave_out_for_repair(key, each)
                self._diverged.append(
                    (key, each, data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
                )
            elif each.fetch_offset != partition_log.end_offset:
                self._names.changed[key] = None  # fetched before the log was truncated
            else:
                self._append(key, partition, data, now_ms)
        except Exception as error:
            self._failed(key, each, error)

    def _is_outdated(self, each: Followed) -> bool:
        """Whether a response was requested before the log was, or will be, truncated: the records are fetched
        again from the new log end."""
        return (
            each.fetch_number > self._responses
            or each.is_in_repair
            or each.partition.log.truncation is not None
        )

    def _append(self, key: Key, partition: Partition, data: Data, now_ms: int) -> None:
        if data.records:
            self._names.changed[key] = None
            self._throttle.count(partition, len(data.records))
            partition.append_followed(data.records, data.high_watermark, now_ms)
        else:
            partition.learn_high_watermark(data.high_watermark)
        partition_log = partition.log
        if data.log_start_offset > partition_log.log_start_offset:
            self._names.changed[key] = None  # the next fetch tells the leader
            partition_log.advance_log_start(min(data.log_start_offset, partition_log.end_offset))

    def _refused(self, key: Key, each: Followed, code: ErrorCode) -> None:
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._leave_out_for_repair(key, each)
            self._repairs.add(each.partition, each.epoch, partial(self._repair, key, each), self._link)
            return
        log.debug("%s: broker %d does not lead it yet: %s", each.partition, self.leader_id, code.name)
        if not each.is_delayed:  # two fetches in flight may both be refused
            self._delay(key)

    # -- leaving partitions out ------------------------------------------------------------------

    def _leave_out(self, key: Key, each: Followed) -> None:
        """Leave a partition out of fetches until `_fetch_again`."""
        each.is_delayed = True
        self._names.leave_out(key)

    def _leave_out_for_repair(self, key: Key, each: Followed) -> None:
        """Leave a partition out until it is repaired."""
        self._leave_out(key, each)
        each.is_in_repair = True

    def _delay(self, key: Key, delay_ms: int | None = None) -> None:
        """Leave a partition out for a little while."""
        each = self._followed[key]
        self._leave_out(key, each)
        if delay_ms is None:
            delay_ms = min(2 * BACKOFF_MS, self._broker.settings["replica.fetch.backoff.ms"])
        self._broker.loop.call_later(delay_ms / 1000, self._fetch_again, key, each)

    def _fetch_again(self, key: Key, each: Followed) -> None:
        if self._followed.get(key) is each and each.partition.log.truncation is None:
            each.is_delayed = each.is_in_repair = False
            self._fetch(key)

    def _fetch(self, key: Key) -> None:
        """Name a partition in the next fetch, and send that soon."""
        self._names.want(key)
        self._is_urgent = True
        self._go()

    def _cut(self, key: Key, each: Followed, truncation: Truncation | None) -> None:
        """Fetch a partition again when its log is truncated."""
        if truncation is None:
            self._fetch_again(key, each)
        else:
            truncation.when_done(partial(self._fetch_again, key, each))
            self._broker.truncations.start(truncation)

    def _is_followed(self, key: Key, each: Followed) -> bool:
        """Whether a response about this partition still counts."""
        partition = each.partition
        return (
            self._followed.get(key) is each
            and not partition.is_leader
            and each.epoch == partition.leader_epoch
            and partition.log.truncation is None  # otherwise its callback goes on
        )

    def _cut_all(self) -> Steps[None]:
        """Truncate logs that diverge from the leader's; after a failover there may be thousands."""
        while self._diverged:
            key, each, epoch, end_offset = self._diverged.popleft()
            if not self._is_followed(key, each):
                continue
            partition, partition_log = each.partition, each.partition.log
            try:
                offset = truncation_offset(partition_log.epochs, partition_log.end_offset, epoch, end_offset)
                if offset < partition_log.end_offset:
                    log.info("%s diverges from its leader: truncating it to %d", partition, offset)
                self._cut(key, each, partition.truncate(offset))
            except Exception as error:
                self._failed(key, each, error)
            yield

    def _failed(self, key: Key, each: Followed, error: Exception) -> None:
        """Log a failure and try again a little later."""
        if isinstance(error, KafkaError):
            log.warning("%s cannot follow its leader: %s", each.partition, error.message)
        else:
            self._broker.unexpected.note("following", each.partition)
        each.is_in_repair = False
        self._delay(key)

    def _repair(self, key: Key, each: Followed, latest: int | None, earliest: int | None) -> None:
        """Repair a log with the end and start offsets of the leader's log; None: the leader refused."""
        if not self._is_followed(key, each):
            return
        partition, end = each.partition, each.partition.log.end_offset
        try:
            if latest is None:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the leader did not return its offsets")
            if latest < end:
                log.warning("truncating %s to %d, the end of its leader's log", partition, latest)
                self._cut(key, each, partition.truncate(latest))
            elif earliest is not None and earliest > end:
                log.warning("%s restarts at %d, the start of its leader's log", partition, earliest)
                self._cut(key, each, partition.start_anew(earliest))
            else:
                self._fetch_again(key, each)
        except Exception as error:
            self._failed(key, each, error)
