"""The cluster's metadata as values: records of `__cluster_metadata` become an immutable image, by deltas.

`image.MetadataImage` is what a broker and the controller look things up in; `delta.MetadataDelta` applies
records to it and says what changed; `snapshot` writes an image as records again; `serde` frames records for
the log.
Does not know: where records come from, time, files, or who decides.
"""
