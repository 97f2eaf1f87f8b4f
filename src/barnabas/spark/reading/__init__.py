"""Reading: fetched batches become Arrow columns, in compiled loops."""
