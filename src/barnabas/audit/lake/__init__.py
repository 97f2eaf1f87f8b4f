"""The audit on Spark: counts summed up by executors, and the zones of a pipeline counted."""
