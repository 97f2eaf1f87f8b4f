"""Regular expressions in RE2's syntax, as Apache Kafka's brokers take them from clients. Pure.

`matching.matcher` is the door: an expression in, whether a whole text matches out, in bounded time.
Does not know: topics, transactional ids, who asks.
"""
