"""Plans on Spark: batches of tasks, their state, their transactions."""
