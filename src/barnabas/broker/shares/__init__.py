"""Share partitions on this broker, and the persister that keeps their state at the share coordinators."""
