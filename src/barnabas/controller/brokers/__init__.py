"""Decisions on brokers and controllers: registered, heard of by heartbeats, their log directories."""
