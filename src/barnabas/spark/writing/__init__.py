"""Writing: rows become record batches, in compiled loops."""
