"""Server-side assignors of the consumer protocol: which member reads which partitions (KIP-848).

`spec` defines the input and output of an assignor, `uniform` and `range` are Kafka's two, `registry` finds
them by name. An assignor depends on its arguments alone: equal groups get equal assignments.
"""
