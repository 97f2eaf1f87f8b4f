"""Plans by columns: the steps of a sub-topology over Arrow columns, a batch of records at a time."""
