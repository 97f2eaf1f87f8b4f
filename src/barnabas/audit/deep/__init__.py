"""Two topics compared record by record, on Spark: digests of ranges of keys first, then what differs."""
