"""The zones of the lake: raw, staging, trusted, refined; and the Delta commits that carry batches into
them."""
