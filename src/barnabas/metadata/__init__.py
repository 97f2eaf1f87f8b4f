"""The cluster's metadata as values: deltas of `__cluster_metadata` records build an immutable image.

Brokers and the controller look things up in `image.MetadataImage`. `delta.MetadataDelta` applies records to
it and shows what changed. `snapshot` writes an image as records again. `serde` encodes records for the log.
Does not know: where records come from, time, files, who decides.
"""
