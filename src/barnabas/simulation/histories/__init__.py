"""Histories: clients that use a node or cluster while faults are injected, and the invariants that are
checked."""
