"""Share sessions: the partitions that a member of a share group fetches here, kept between its requests."""
