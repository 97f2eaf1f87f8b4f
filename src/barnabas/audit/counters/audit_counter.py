"""AuditCounter: counts records of one tier in one process, from any thread, and sends the counts by itself.

In: records as topic, timestamp and partition. Out: count messages, every `window_ms`, and a last one when it
is closed. A call costs a lock and two dictionary entries; it never waits for the network. A thread with an
event loop of its own sends. If the brokers cannot be reached, counts stay in memory, which is bounded by the
cells of a window. Each counter is a session: a restart begins a new one, and nothing is counted twice.
Does not know: clients, what the records hold.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import socket
import threading
import time
import uuid
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.audit.core.buckets import WIDTH_MS, check_width
from barnabas.audit.core.contents import content_of, is_plain, plain_bytes
from barnabas.audit.core.messages import NO_OFFSET, NO_PARTITION, CountMessage, StreamKind
from barnabas.audit.core.window import ABORTED, COUNT, DROPPED, FAILED, Window
from barnabas.audit.counters.audit_topic import AUDIT_TOPIC, is_counted
from barnabas.audit.counters.publisher import Publisher
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.errors import ClientError
from barnabas.protocol import KafkaError
from barnabas.security.clients.client_security import ClientSecurity, client_security
from barnabas.security.errors import SecuritySettingsError

log = logging.getLogger("barnabas.audit")
WINDOW_MS = 10_000
CLOSE_S = 10.0
WARN_AGAIN_S = 30.0
SOON_S = 1.0  # between messages of a client that commits often
SECURITY_PREFIXES = ("sasl.", "ssl.", "security.")


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """The receiver of counts, and the interval."""

    bootstrap: str
    topic: str = AUDIT_TOPIC
    width_ms: int = WIDTH_MS
    window_ms: int = WINDOW_MS
    host: str = field(default_factory=socket.gethostname)
    application: str = ""
    security: ClientSecurity | None = None
    sums: bool = False  # also of what records hold

    def __post_init__(self) -> None:
        check_width(self.width_ms)
        parse_bootstrap(self.bootstrap)

    @classmethod
    def of_client(cls, properties: Mapping[str, object]) -> AuditSettings:
        """From a client's own properties in Kafka's names: the same brokers and the same login."""
        secured = {
            name: str(value) for name, value in properties.items() if name.startswith(SECURITY_PREFIXES)
        }
        return cls.with_login(properties, client_security(secured) if secured else None)

    @classmethod
    def with_login(cls, properties: Mapping[str, object], security: ClientSecurity | None) -> AuditSettings:
        """From a client's own properties, whose login is known already."""
        servers = properties.get("bootstrap.servers") or properties.get("bootstrap_servers")
        if not servers:
            raise ValueError("bootstrap.servers is missing: the audit needs brokers to send counts to")
        text = servers if isinstance(servers, str) else ",".join(map(str, servers))  # type: ignore[call-overload]
        name = str(properties.get("client.id") or properties.get("client_id") or "")
        return cls(text, application=name, security=security)


class AuditCounter:
    """`with AuditCounter(settings, tier) as counter: counter.count("orders", record.timestamp)`."""

    def __init__(self, settings: AuditSettings, tier: str) -> None:
        self.settings = settings
        self.tier = tier
        self.sees_aborted = False  # of a consumer
        self.session = uuid.uuid4().hex
        self._window = Window(settings.width_ms)
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._sequence = 0
        self._unsent: list[CountMessage] = []  # of the last window, until they are stored
        self._stop = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None
        self._flushed: list[threading.Event] = []
        self._thread: threading.Thread | None = None
        self._warn_again_at = 0.0
        self._is_asked = False

    def __enter__(self) -> AuditCounter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- counting, from any thread ---------------------------------------------------------------------

    def count(
        self,
        topic: str,
        timestamp_ms: int,
        partition: int = NO_PARTITION,
        count: int = 1,
        content: int | None = None,
        offset: int = NO_OFFSET,
    ) -> None:
        """Records that passed this tier, with their own timestamp; -1 for none. `content`: the sum of
        `content_of` of each of them. `offset`: that of the first one, which tells where a tier began."""
        self._add(topic, timestamp_ms, partition, count, COUNT, content, offset)

    def dropped(
        self,
        topic: str,
        timestamp_ms: int,
        partition: int = NO_PARTITION,
        count: int = 1,
        content: int | None = None,
    ) -> None:
        """Records that this tier leaves out on purpose: they are accounted for, not lost."""
        self._add(topic, timestamp_ms, partition, count, DROPPED, content)

    def content(self, key: object, value: object, timestamp_ms: int) -> int | None:
        """The number of a record's content; None if this counter does not sum them up (`AuditSettings.sums`),
        or if a serializer hides it."""
        if not self.settings.sums or not (is_plain(key) and is_plain(value)):
            return None
        return content_of(plain_bytes(key), plain_bytes(value), timestamp_ms)

    def failed(self, topic: str, timestamp_ms: int, partition: int = NO_PARTITION, count: int = 1) -> None:
        """Records that were never acknowledged: nobody expects them behind this tier."""
        self._add(topic, timestamp_ms, partition, count, FAILED)

    def aborted(self, topic: str, timestamp_ms: int, partition: int = NO_PARTITION, count: int = 1) -> None:
        """Records of a transaction that was aborted."""
        self._add(topic, timestamp_ms, partition, count, ABORTED)

    def in_transaction(self) -> TransactionCounts:
        """Counts that are kept until the transaction ends."""
        return TransactionCounts(self)

    def _add(
        self,
        topic: str,
        timestamp_ms: int,
        partition: int,
        count: int,
        kind: int,
        content: int | None = None,
        offset: int = NO_OFFSET,
    ) -> None:
        if not is_counted(topic, self.settings.topic):
            return
        now_ms = int(time.time() * 1000)
        with self._lock:
            if self._thread is None:
                self._start()
            self._window.add(topic, partition, timestamp_ms, now_ms, count, kind, content, offset)

    def add_window(self, window: Window, field: int) -> None:
        """Add what was counted apart, as another kind."""
        with self._lock:
            if self._thread is None:
                self._start()
            self._window.merge(window, field)

    # -- sending, in a thread of its own ---------------------------------------------------------------

    def _start(self) -> None:
        if self._stop.is_set():
            raise RuntimeError("the counter is closed")
        self._thread = threading.Thread(target=self._run, name="barnabas-audit", daemon=True)
        self._thread.start()
        atexit.register(_close_if_alive, weakref.ref(self))

    def flush(self, timeout_s: float = CLOSE_S) -> bool:
        """Send what was counted so far. False if it is not stored in time."""
        done = threading.Event()
        with self._lock:
            if self._thread is None:
                return True
            self._flushed.append(done)
        self._wake_up()
        return done.wait(timeout_s)

    def send_soon(self) -> None:
        """Send what was counted so far, without waiting: the client has flushed or committed, so a crash from
        here on loses no record. Calls within a second of the last one wait for that second."""
        self._is_asked = True
        self._wake_up()

    def close(self, timeout_s: float = CLOSE_S) -> bool:
        """Send the last counts and end the session. False if they are not stored in time."""
        self._stop.set()
        thread = self._thread
        if thread is None:
            return True
        self._wake_up()
        thread.join(timeout_s)
        return not thread.is_alive() and not self._unsent and not self._window

    def _wake_up(self) -> None:
        loop, wake = self._loop, self._wake
        if loop is not None and wake is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(wake.set)

    def _run(self) -> None:
        try:
            asyncio.run(self._send_windows())
        except Exception:
            log.exception("the counter of %s ends: its counts are lost", self.tier)

    async def _send_windows(self) -> None:
        self._wake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        settings = self.settings
        security = settings.security
        options = {} if security is None else {"security": security}
        cluster = Cluster(parse_bootstrap(settings.bootstrap), client_id="barnabas-audit", **options)  # type: ignore[arg-type]
        async with cluster:
            publisher = Publisher(cluster, settings.topic)
            give_up_at: float | None = None
            try:
                while True:
                    is_last = self._stop.is_set()
                    is_sent = await self._send(publisher, is_last=is_last)
                    if is_last:
                        give_up_at = give_up_at or self._loop.time() + CLOSE_S
                        if is_sent or self._loop.time() >= give_up_at:
                            return
                    if self._stop.is_set() or self._flushed:
                        await asyncio.sleep(0 if is_sent else 0.1)
                        continue
                    await self._wait(self._wake, self._loop.time())
            finally:
                await publisher.close()

    async def _wait(self, wake: asyncio.Event, since: float) -> None:
        """Wait until the window is over, or until somebody asks for its counts."""
        assert self._loop is not None
        until = since + self.settings.window_ms / 1000
        while (left := until - self._loop.time()) > 0 and not (self._stop.is_set() or self._flushed):
            if self._is_asked:
                left = min(until, since + SOON_S) - self._loop.time()
                if left <= 0:
                    break
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await wake.wait()
            wake.clear()
        self._is_asked = False

    async def _send(self, publisher: Publisher, *, is_last: bool) -> bool:
        """Send the window, or that of before if it could not be sent. Whether everything is stored."""
        with self._lock:
            flushed, self._flushed = self._flushed, []
        while True:
            if not self._unsent:
                self._unsent = self._messages(is_last=is_last)
            try:
                await publisher.send(self._unsent)
            except (KafkaError, ClientError, SecuritySettingsError, OSError) as error:
                self._warn(error)
                with self._lock:
                    self._flushed += flushed
                return False
            self._unsent = []
            if not self._window:
                break
        for each in flushed:
            each.set()
        return True

    def _warn(self, error: Exception) -> None:
        """Log a failure, but not each one: brokers may be away for hours."""
        now = time.monotonic()
        if now >= self._warn_again_at:
            self._warn_again_at = now + WARN_AGAIN_S
            log.warning(
                "counts of %s cannot be sent to %s: %s. They are kept", self.tier, self.settings.topic, error
            )

    def _messages(self, *, is_last: bool) -> list[CountMessage]:
        settings = self.settings
        with self._lock:
            window, self._window = self._window, Window(settings.width_ms)
        if window.overflowed:
            log.warning("%d records have too many different timestamps: counted without", window.overflowed)
        parts = list(window.entries()) or [("", ())]  # at least a sign of life
        now_ms = int(time.time() * 1000)
        age_ms = int((time.monotonic() - self._began) * 1000)
        found = []
        for number, (topic, entries) in enumerate(parts, 1):
            found.append(
                CountMessage(
                    self.tier,
                    topic,
                    settings.host,
                    self.session,
                    StreamKind.SESSION,
                    self._sequence,
                    self._sequence + 1,
                    now_ms,
                    entries,
                    settings.width_ms,
                    settings.application,
                    is_last=is_last and number == len(parts),
                    age_ms=age_ms,
                    sees_aborted=self.sees_aborted,
                )
            )
            self._sequence += 1
        return found


class TransactionCounts:
    """Records acknowledged in a transaction. They count when the transaction is committed."""

    def __init__(self, counter: AuditCounter) -> None:
        self._counter = counter
        self._window = Window(counter.settings.width_ms)

    def count(
        self,
        topic: str,
        timestamp_ms: int,
        partition: int = NO_PARTITION,
        count: int = 1,
        content: int | None = None,
        offset: int = NO_OFFSET,
    ) -> None:
        if is_counted(topic, self._counter.settings.topic):
            now_ms = int(time.time() * 1000)
            self._window.add(topic, partition, timestamp_ms, now_ms, count, COUNT, content, offset)

    def commit(self) -> None:
        self._counter.add_window(self._window, COUNT)

    def abort(self) -> None:
        self._counter.add_window(self._window, ABORTED)


def _close_if_alive(reference: weakref.ref[AuditCounter]) -> None:
    counter = reference()
    if counter is not None:
        counter.close()
