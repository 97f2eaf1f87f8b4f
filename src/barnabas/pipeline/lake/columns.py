"""Columns that the platform adds to rows.

Out: names of columns. Does not know: what is in them.
"""

# Columns that the platform adds to the tables of staging and trusted: where a row came from, and what befell
# it.
TOPIC, PARTITION, OFFSET, TIMESTAMP, BATCH = "_topic", "_partition", "_offset", "_timestamp", "_batch"
INGESTED_AT, LATE, RESCUED = "_ingested_at", "_late", "_rescued"
COORDINATES = (TOPIC, PARTITION, OFFSET)
SYSTEM_COLUMNS = (TOPIC, PARTITION, OFFSET, TIMESTAMP, BATCH, INGESTED_AT, LATE, RESCUED)

OP = "_op"  # upsert, delete, or ignore
UPSERT, DELETE, IGNORE = "u", "d", "i"
