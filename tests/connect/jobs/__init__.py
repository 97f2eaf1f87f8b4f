"""Tasks that are Spark jobs."""
