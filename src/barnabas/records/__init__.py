"""Record batches (format v2): headers, checksums, codecs, records, and the checks of a leader.

`batch` reads and writes headers and is on the hot path. `validation` checks produced batches. `record` reads
and builds records. `control` reads and builds control batches.
"""

from barnabas.records.batch import BATCH_OVERHEAD, BatchHeader, TimestampType, peek
from barnabas.records.compression import Compression
from barnabas.records.record import Record, build_batch, iter_records, read_records
from barnabas.records.validation import AppendRules, RecordsRejected, validate_produce

__all__ = [
    "BATCH_OVERHEAD",
    "AppendRules",
    "BatchHeader",
    "Compression",
    "Record",
    "RecordsRejected",
    "TimestampType",
    "build_batch",
    "iter_records",
    "peek",
    "read_records",
    "validate_produce",
]
