"""The controller's decisions: topics, partitions, brokers, producer ids, leaders; one module each. No I/O.

A decision takes a request and a `context.Context` (the image, settings, time, random numbers) and returns a
`decision.Decision`: records for the metadata log, and the reply for when they are committed. Deciding changes
nothing: only replaying the records into the image does.
Does not know: the log, the network, threads.
"""
