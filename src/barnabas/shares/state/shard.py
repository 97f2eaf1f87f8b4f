"""The share partitions of one partition of `__share_group_state`: every request about them comes here.

In: requests (each names only share partitions of this shard, each of them once), records to apply with their
offsets, deleted topics, time. Out: outcomes. Updates follow a snapshot of a share partition, up to a limit;
then the next write is a snapshot. By time, share partitions that nobody writes get a snapshot too, so that
records before it can be deleted.
Does not know: the log, sockets, the clock, authorization; the rules of requests (see `deciding`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topic_changes import TopicChanges
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.shares.state.apis import Result, items_of, refused, response_of
from barnabas.shares.state.deciding import DECIDE, Circumstances
from barnabas.shares.state.keys import ShareKey
from barnabas.shares.state.needed_offsets import NeededOffsets
from barnabas.shares.state.outcome import ShareOutcome
from barnabas.shares.state.partition_state import ShareState
from barnabas.shares.state.records import Entry, Snapshot
from barnabas.shares.state.settings import ShareStateSettings

SHARE_VERSION = "share.version"  # a feature of the cluster
SHARE_GROUPS_SINCE = 1
LOOKED_AT_ONCE = 500  # share partitions in one turn of the search for those without traffic
RECORDS_AT_ONCE = 100


class ShareStateShard:
    def __init__(self, settings: ShareStateSettings, now_ms: int) -> None:
        self.settings = settings
        self.states: dict[ShareKey, ShareState] = {}
        self.next_offset = 0  # of the next record that is applied; the host sets it
        self._of_topic: dict[bytes, dict[ShareKey, None]] = {}
        self._needed = NeededOffsets()
        self._cold = 0  # states whose last snapshot was made by time
        self._cold_due_ms = now_ms + settings.cold_snapshot_interval_ms
        self._looking: Iterator[ShareKey] | None = None  # share partitions that may need a snapshot by time
        self._prune_due_ms = now_ms + settings.prune_interval_ms
        self._pruned_offset: int | None = None

    # -- requests ----------------------------------------------------------------------------------

    def handle(self, request: Message, image: MetadataImage, now_ms: int) -> ShareOutcome:
        """Decide a request. Its records must be applied before the next request."""
        kind = type(request)
        decide = DECIDE.get(kind)
        if decide is None:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, f"the share coordinator does not serve {kind.__name__}"
            )
        at = Circumstances(image, now_ms, self.settings.updates_per_snapshot)
        records: list[Entry] = []
        results: list[Result] = []
        for item in items_of(request):
            try:
                decided = decide(item, self.states.get(item.key), at)
            except KafkaError as error:
                results.append(refused(kind, item, error))
                continue
            results.append(Result(item.key.topic_id, decided.result))
            if decided.entry is not None:
                records.append(decided.entry)
        return ShareOutcome(records, response_of(kind, results))

    # -- records -----------------------------------------------------------------------------------

    def apply(self, entry: Entry) -> None:
        """Apply a record that was decided or replayed. Cannot fail, does not look at the clock."""
        offset, key = self.next_offset, entry.key
        self.next_offset += 1
        value = entry.value
        state = self.states.get(key)
        self._cold -= state is not None and state.is_snapshot_of_cold
        if value is None:
            self._forget(key)
            self._needed.deleted(key, offset)
            return
        if isinstance(value, Snapshot):
            if state is None:
                state = self._add(key, ShareState())
            state.apply_snapshot(value)
            self._needed.snapshot_written(key, offset)
        elif state is None:
            state = self._add(key, ShareState.of_update(value))
        else:
            state.apply_update(value)
        self._cold += state.is_snapshot_of_cold

    def _add(self, key: ShareKey, state: ShareState) -> ShareState:
        self.states[key] = state
        self._of_topic.setdefault(key.topic_id, {})[key] = None
        return state

    def _forget(self, key: ShareKey) -> None:
        if self.states.pop(key, None) is not None:
            of_topic = self._of_topic[key.topic_id]
            del of_topic[key]
            if not of_topic:
                del self._of_topic[key.topic_id]

    def apply_all(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.apply(entry)

    # -- metadata and time -------------------------------------------------------------------------

    def configure(self, settings: ShareStateSettings) -> None:
        """Change the settings at run time."""
        self.settings = settings

    def metadata_changed(
        self, image: MetadataImage, changes: TopicChanges, now_ms: int
    ) -> Iterable[ShareOutcome]:
        """Delete the state of deleted topics."""
        for topic_id in changes.deleted.values():
            keys = list(self._of_topic.get(topic_id, ()))
            for start in range(0, len(keys), RECORDS_AT_ONCE):
                some = keys[start : start + RECORDS_AT_ONCE]
                yield ShareOutcome([Entry(key, None) for key in some])

    def next_deadline_ms(self) -> int | None:
        """When to call `on_timer`. It may be too early, never too late."""
        if self._looking is not None:
            return 0
        if not self.states and self._needed.lowest() == self._pruned_offset:
            return None
        return min(self._cold_due_ms, self._prune_due_ms)

    def on_clock_set(self, by_ms: int) -> None:
        self._cold_due_ms += by_ms
        self._prune_due_ms += by_ms

    def on_timer(self, now_ms: int, image: MetadataImage) -> Iterable[ShareOutcome]:
        """Look for share partitions without traffic, a few hundred at a time; say what can be deleted."""
        settings = self.settings
        is_enabled = image.features.level(SHARE_VERSION) >= SHARE_GROUPS_SINCE
        if now_ms >= self._cold_due_ms:
            self._cold_due_ms = now_ms + settings.cold_snapshot_interval_ms
            if is_enabled and self._looking is None and self._needs_look(image):
                self._looking = iter(list(self.states))
        if self._looking is not None:
            yield from self._look(self._looking, image, now_ms)
        if now_ms >= self._prune_due_ms:
            self._prune_due_ms = now_ms + settings.prune_interval_ms
            lowest = self._needed.lowest()
            if is_enabled and lowest is not None and lowest != self._pruned_offset:
                yield ShareOutcome(prune_offset=lowest)

    def pruned(self, offset: int) -> None:
        """Note that the log starts at this offset now."""
        self._pruned_offset = offset

    def _needs_look(self, image: MetadataImage) -> bool:
        """If all were cold the last time, nothing was written since: new snapshots would free nothing."""
        if self._cold < len(self.states):
            return True
        return any(topic_id not in image.topics.by_id for topic_id in self._of_topic)

    def _look(self, keys: Iterator[ShareKey], image: MetadataImage, now_ms: int) -> Iterable[ShareOutcome]:
        """Take one turn: look at some share partitions, and write snapshots of the cold ones. Those of topics
        that were deleted while nobody looked are deleted."""
        records: list[Entry] = []
        for _ in range(LOOKED_AT_ONCE):
            key = next(keys, None)
            if key is None:
                self._looking = None
                break
            state = self.states.get(key)
            if state is not None and now_ms - state.written_ms >= self.settings.cold_snapshot_interval_ms:
                exists = key.topic_id in image.topics.by_id
                records.append(Entry(key, state.cold_snapshot(now_ms) if exists else None))
            if len(records) == RECORDS_AT_ONCE:
                break
        if records:
            yield ShareOutcome(records)

    def unload(self) -> Iterable[tuple[None, Message]]:
        """No request waits here."""
        return ()
