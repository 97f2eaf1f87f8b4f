"""This node's seat in the quorum, the way to the active controller, and the other brokers."""
