"""Server-side assignors of consumer groups and share groups: which member reads which partitions.

`spec` defines the input and output of an assignor, `uniform` and `range` are Kafka's two for consumer groups,
`registry` finds them by name, `simple` is that of share groups. An assignor depends on its arguments alone:
equal groups get equal assignments.
"""
