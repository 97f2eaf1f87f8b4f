"""A cache of the indexes of closed segments.

In: a segment. Out: its offset or time index, checked against the log file and rebuilt if it does not fit. The
cache has a limit in bytes for all logs of the process. Thread-safe.
Does not know: active segments (their writers hold their indexes).
"""

import logging
from collections import OrderedDict
from threading import Lock

from barnabas.storage.files import names
from barnabas.storage.segments.index import CorruptIndex, OffsetIndex, TimeIndex
from barnabas.storage.segments.segment import CorruptLog, Segment

CACHED_INDEX_BYTES_MAX = 64 << 20
ENTRY_OVERHEAD_BYTES = 512  # for the objects around an index, so that the limit also holds for empty ones

logger = logging.getLogger(__name__)


class IndexCache:
    """An LRU cache. Its keys are segment objects, since file names change."""

    __slots__ = ("_bytes", "_bytes_max", "_indexes", "_lock")

    def __init__(self, bytes_max: int = CACHED_INDEX_BYTES_MAX) -> None:
        self._indexes: OrderedDict[tuple[str, Segment], OffsetIndex | TimeIndex] = OrderedDict()
        self._bytes = 0
        self._bytes_max = bytes_max
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._indexes)

    def offset_index(self, segment: Segment) -> OffsetIndex:
        key = (names.OFFSET_INDEX, segment)
        index = self._get(key)
        if not isinstance(index, OffsetIndex):
            index = self._load_offset_index(segment)
            self._put(key, index)
        return index

    def time_index(self, segment: Segment) -> TimeIndex:
        key = (names.TIME_INDEX, segment)
        index = self._get(key)
        if not isinstance(index, TimeIndex):
            index = self._load_time_index(segment)
            self._put(key, index)
        return index

    def forget(self, segment: Segment) -> None:
        with self._lock:
            for suffix in (names.OFFSET_INDEX, names.TIME_INDEX):
                index = self._indexes.pop((suffix, segment), None)
                if index is not None:
                    self._bytes -= len(index.data) + ENTRY_OVERHEAD_BYTES

    def _get(self, key: tuple[str, Segment]) -> OffsetIndex | TimeIndex | None:
        with self._lock:
            index = self._indexes.get(key)
            if index is not None:
                self._indexes.move_to_end(key)
            return index

    def _put(self, key: tuple[str, Segment], index: OffsetIndex | TimeIndex) -> None:
        with self._lock:
            replaced = self._indexes.pop(key, None)
            if replaced is not None:
                self._bytes -= len(replaced.data) + ENTRY_OVERHEAD_BYTES
            self._indexes[key] = index
            self._bytes += len(index.data) + ENTRY_OVERHEAD_BYTES
            while self._bytes > self._bytes_max and len(self._indexes) > 1:
                _, evicted = self._indexes.popitem(last=False)
                self._bytes -= len(evicted.data) + ENTRY_OVERHEAD_BYTES

    def _load_offset_index(self, segment: Segment) -> OffsetIndex:
        try:
            index = OffsetIndex(segment.base_offset, segment.read_file(names.OFFSET_INDEX))
            index.check(segment.size)
        except (FileNotFoundError, CorruptIndex, CorruptLog) as error:
            logger.warning("Rebuilding the indexes of %s: %s", segment.path, error)
            index, _ = segment.rebuild_indexes()
        return index

    def _load_time_index(self, segment: Segment) -> TimeIndex:
        try:
            index = TimeIndex(segment.base_offset, segment.read_file(names.TIME_INDEX))
            index.check()
        except (FileNotFoundError, CorruptIndex, CorruptLog) as error:
            logger.warning("Rebuilding the indexes of %s: %s", segment.path, error)
            _, index = segment.rebuild_indexes()
        return index
