"""Regular expressions in RE2's syntax, which Apache Kafka's brokers accept from clients.

`matching.matcher` compiles an expression. Its result tells whether a whole text matches, in bounded time.
Does not know: topics, transactional ids.
"""
