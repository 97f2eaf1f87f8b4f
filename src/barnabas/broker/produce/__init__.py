"""Producing: batches are staged in a tick, written together, and responded to when acks allow."""
