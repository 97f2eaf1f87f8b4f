"""StateView: the stores of an application, to be read from any host while it runs.

In: a plan, a cluster. Out: answers with the position that they reflect. The view consumes changelogs, so it
sees what batches have committed, wherever executors run. It follows them in a thread; a lookup asks besides
whether there is more, unless it may be older (`fresh=False`). Does not know: Spark, HTTP.
"""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar

from barnabas.client.blocking import run
from barnabas.client.core.errors import ClientError
from barnabas.client.core.topology import TopicPartition
from barnabas.plans.plan import Plan
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.basics.settings import ClientSettings
from barnabas.spark.reading.fetcher import EARLIEST, LATEST
from barnabas.streams.spark import restoring
from barnabas.streams.views.rows import Answer, KeyPlace, NotReady, Row, UnknownStore, ViewError
from barnabas.streams.views.store_view import FOREVER, StoreView, queryable

FOLLOW_S = 0.1
AGAIN_S = 0.02
WAIT_S_MAX = 10.0  # for a position that was asked for
LOG = logging.getLogger("barnabas.streams.views")
T = TypeVar("T")


class StateView:
    """`stores` None: all that can be queried. In `folder` the view keeps its pages between starts; without
    one it begins anew. Thread-safe. Close it, or use it in a `with` statement."""

    def __init__(
        self,
        plan: Plan,
        client: ClientSettings,
        *,
        stores: Iterable[str] | None = None,
        folder: Path | None = None,
        follow_s: float = FOLLOW_S,
    ) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="barnabas-view-") if folder is None else None
        place = Path(self._temporary.name) if self._temporary is not None else folder
        assert place is not None
        wanted = queryable(plan) if stores is None else stores
        self._stores = {name: StoreView(plan, name, place) for name in wanted}
        self._cluster = WorkerCluster(replace(client, client_id=f"{client.client_id}-view"))
        self._lock = threading.Lock()  # of the cluster and of catching up
        self._rounds = 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._follow, args=(follow_s,), name="state-view", daemon=True)
        self._thread.start()

    # -- lookups -----------------------------------------------------------------------------------

    @property
    def stores(self) -> tuple[str, ...]:
        return tuple(self._stores)

    def get(
        self, store: str, key: Any, *, as_of: int | None = None, fresh: bool = True, at_least: Any = None
    ) -> Answer:
        """The row of a key. `as_of`: of a versioned store, the version that was valid at a time."""
        return self._ready(store, fresh, at_least).get(key, as_of)

    def range(
        self,
        store: str,
        first: Any = None,
        last: Any = None,
        *,
        limit: int | None = None,
        fresh: bool = True,
        at_least: Any = None,
    ) -> Answer:
        """Rows with keys from `first` to `last`, both included, in the order of the keys' bytes."""
        found = self._ready(store, fresh, at_least)
        return found.scan(*found.bounds(first, last), 0, FOREVER, limit)

    def prefix(
        self, store: str, prefix: Any, *, limit: int | None = None, fresh: bool = True, at_least: Any = None
    ) -> Answer:
        """Rows whose keys begin with the bytes of `prefix`."""
        found = self._ready(store, fresh, at_least)
        return found.scan(*found.prefix_bounds(prefix), 0, FOREVER, limit)

    def all(
        self, store: str, *, limit: int | None = None, fresh: bool = True, at_least: Any = None
    ) -> Answer:
        return self._ready(store, fresh, at_least).scan(None, None, 0, FOREVER, limit)

    def scan(
        self,
        store: str,
        first: bytes | None = None,
        last: bytes | None = None,
        *,
        fresh: bool = True,
        at_least: Any = None,
    ) -> Iterator[Row]:
        """Rows of a table whose keys have bytes from `first` on, before `last`, as the caller gets to them:
        in pieces, so rows that change meanwhile are seen as they are when their piece is read."""
        return self._ready(store, fresh, at_least).pieces(first, last)

    def versions(
        self,
        store: str,
        key: Any,
        low: int = 0,
        high: int = FOREVER,
        *,
        fresh: bool = True,
        at_least: Any = None,
    ) -> Answer:
        """Versions of a key that were valid at a time in [low, high], oldest first."""
        return self._ready(store, fresh, at_least).versions(key, low, high)

    def window(
        self,
        store: str,
        key: Any,
        low: int = 0,
        high: int = FOREVER,
        *,
        fresh: bool = True,
        at_least: Any = None,
    ) -> Answer:
        """Windows of a key that start in [low, high]."""
        return self._ready(store, fresh, at_least).windows(key, low, high)

    def windows(
        self,
        store: str,
        low: int = 0,
        high: int = FOREVER,
        *,
        first: Any = None,
        last: Any = None,
        limit: int | None = None,
        fresh: bool = True,
        at_least: Any = None,
    ) -> Answer:
        """Windows of all keys, or of keys from `first` to `last`, that start in [low, high]; sessions that
        end at `low` or later and start at `high` or earlier."""
        found = self._ready(store, fresh, at_least)
        return found.scan(*found.bounds(first, last), low, high, limit)

    def sessions(
        self,
        store: str,
        key: Any,
        low: int = 0,
        high: int = FOREVER,
        *,
        fresh: bool = True,
        at_least: Any = None,
    ) -> Answer:
        """Sessions of a key that end at `low` or later and start at `high` or earlier."""
        return self._ready(store, fresh, at_least).sessions(key, low, high)

    def count(self, store: str, *, fresh: bool = True) -> int:
        """How many keys a table has."""
        return self._ready(store, fresh, None).count()

    def position(self, store: str, *, fresh: bool = True) -> dict[int, int]:
        return self._ready(store, fresh, None).position

    def place_of(self, store: str, key: Any) -> KeyPlace:
        """The place of a key by the default partitioner."""
        found = self._ready(store, False, None)
        return KeyPlace(store, found.partition_of(found.key_bytes(key)), found.topic)

    def description(self, store: str) -> StoreView:
        """The store's definition: kind, formats, windows."""
        try:
            return self._stores[store]
        except KeyError:
            known = ", ".join(self._stores) or "none"
            raise UnknownStore(f"there is no store {store!r} to query; there are: {known}") from None

    def _ready(self, store: str, fresh: bool, at_least: Mapping[int, int] | None) -> StoreView:
        """The store, caught up as far as the lookup asks."""
        found = self.description(store)
        if fresh or not found.partitions:
            self._asking(self._catch_up)
        deadline = time.monotonic() + WAIT_S_MAX
        while at_least and any(found.position.get(each, -1) < offset for each, offset in at_least.items()):
            if time.monotonic() > deadline or self._closing.wait(AGAIN_S):
                raise NotReady(f"the store {store} is at {found.position}, asked for was {dict(at_least)}")
            self._asking(self._catch_up)
        if not found.partitions:
            raise NotReady(f"the changelog {found.topic} of the store {store} does not exist yet")
        return found

    # -- following ---------------------------------------------------------------------------------

    def _asking(self, question: Callable[[], T]) -> T:
        try:
            return question()
        except (KafkaError, ClientError, OSError) as error:
            raise NotReady(f"the brokers did not answer: {error}") from error

    def _catch_up(self) -> None:
        """Bring in all that is committed now. A round that began while this one waited serves it too."""
        seen = self._rounds
        with self._lock:
            if self._rounds > seen or self._closing.is_set():
                return
            self._rounds += 1
            self._open_new()
            parts = [
                (TopicPartition(store.topic, number), part)
                for store in self._stores.values()
                for number, part in enumerate(store.partitions)
            ]
            if not parts:
                return
            try:
                ends = self._cluster.offsets({place: LATEST for place, _ in parts})
            except KafkaError as error:
                if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    self._close_stores()  # a topic was deleted: look again which there are
                raise
            for place, part in parts:
                if part.position > ends[place]:  # the topic was deleted and created again
                    part.begin(part.topic_id, 0)
                for records, after in restoring.steps(self._cluster, place, part.position, ends[place]):
                    part.apply(records, after)

    def _open_new(self) -> None:
        """Open stores whose changelogs have come to be."""
        waiting = [store for store in self._stores.values() if not store.partitions]
        if not waiting:
            return
        topics = run(self._cluster.topics(None))
        for store in waiting:
            topic = topics.get(store.topic)
            if topic is None or not topic.partitions:
                continue
            starts = self._cluster.offsets(
                {TopicPartition(store.topic, each): EARLIEST for each in topic.partitions}
            )
            store.open(len(topic.partitions))
            for number, part in enumerate(store.partitions):
                start = starts[TopicPartition(store.topic, number)]
                if part.topic_id != topic.topic_id.hex() or part.position < start:
                    part.begin(topic.topic_id.hex(), start)

    def _close_stores(self) -> None:
        for store in self._stores.values():
            store.close()

    def _follow(self, follow_s: float) -> None:
        while not self._closing.wait(follow_s):
            try:
                self._asking(self._catch_up)
            except ViewError as error:
                LOG.warning("the view of state cannot follow: %s", error)
                self._closing.wait(1.0)
            except Exception:
                LOG.exception("the view of state cannot follow")
                self._closing.wait(1.0)

    def close(self) -> None:
        self._closing.set()
        self._thread.join()
        with self._lock:
            self._close_stores()
            run(self._cluster.close())
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
