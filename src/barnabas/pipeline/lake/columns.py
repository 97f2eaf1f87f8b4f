"""Columns that the platform adds to rows of staging and trusted tables.

Out: names of columns, and the codes of `_op`. Does not know: where rows go.
"""

# The origin of a row, and what happened to it.
TOPIC, PARTITION, OFFSET, TIMESTAMP, BATCH = "_topic", "_partition", "_offset", "_timestamp", "_batch"
INGESTED_AT, LATE, RESCUED = "_ingested_at", "_late", "_rescued"
COORDINATES = (TOPIC, PARTITION, OFFSET)
SYSTEM_COLUMNS = (TOPIC, PARTITION, OFFSET, TIMESTAMP, BATCH, INGESTED_AT, LATE, RESCUED)

OP = "_op"  # of a batch being written: upsert, delete, or ignore
UPSERT, DELETE, IGNORE = "u", "d", "i"

# Of a batch being written: the row's number, whether it could not be parsed, and the prefix of raw's columns.
ROW = "_row"
MALFORMED = "_malformed"
RAW_PREFIX = "__"
