"""Tasks that are Spark jobs: the session of a worker, jobs of sources and sinks, what runs on executors."""
