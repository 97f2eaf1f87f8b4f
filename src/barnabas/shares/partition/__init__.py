"""One share partition: records in flight, by whom, until when, how often they were delivered."""
