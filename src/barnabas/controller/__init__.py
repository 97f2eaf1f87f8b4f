"""The controller's decisions: topics, partitions, brokers, producer ids, leaders; one module each, all pure.

A decision takes a request and a `context.Context` (the image, settings, time, random numbers) and gives a
`decision.Decision`: records for the metadata log and the reply for when they are committed. Nothing changes
while deciding; replaying the records into the image is the only way to change anything.
Does not know: the log, the network, threads.
"""
