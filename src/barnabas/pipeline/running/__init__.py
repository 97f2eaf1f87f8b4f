"""Running a pipeline: one lock a lake, schedules, two Spark applications and serving under a supervisor."""
