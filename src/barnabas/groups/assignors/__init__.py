"""Server-side assignors of the consumer protocol: who of a group reads which partitions (KIP-848).

`spec` says what an assignor sees and answers, `uniform` and `range` are Kafka's two, `registry` finds them by
name. Pure; an assignor decides from its arguments alone: the same group is always assigned the same way.
"""
