"""A topic's settings, translated for the log and for the validation of produced batches.

In: `TopicSettings`. Out: `LogSettings` for storage and `AppendRules` for appends, shared by all topics with
equal settings.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from barnabas.records.compression import Compression
from barnabas.records.validation import AppendRules, Validation
from barnabas.settings import TopicSettings
from barnabas.storage.segments.settings import LogSettings

AS_PRODUCED = "producer"
CODECS = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}


class TopicRules(NamedTuple):
    settings: TopicSettings
    log: LogSettings
    append: AppendRules


@lru_cache(maxsize=1024)
def rules_of(settings: TopicSettings) -> TopicRules:
    recompressed = settings.compression_type != AS_PRODUCED
    append = AppendRules(
        max_message_bytes=settings.max_message_bytes,
        segment_bytes=settings.segment_bytes,
        compression=CODECS[settings.compression_type] if recompressed else None,
        compression_level=settings.compression_level if recompressed else None,
        compacted=settings.compact,
        append_time=settings.log_append_time,
        timestamp_before_max_ms=settings.message_timestamp_before_max_ms,
        timestamp_after_max_ms=settings.message_timestamp_after_max_ms,
        validation=Validation[settings.barnabas_produce_validation.upper()],
    )
    return TopicRules(settings, LogSettings.of(settings), append)
