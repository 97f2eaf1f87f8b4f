"""Access control of a node: who may do what, checked before handlers and logged."""
