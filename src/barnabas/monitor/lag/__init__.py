"""Consumer lag without I/O: commits, ends of partitions, Burrow's judgement, lag in time, forecasts."""
