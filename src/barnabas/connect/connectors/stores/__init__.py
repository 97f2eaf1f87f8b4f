"""Shared by connectors of stores: values as JSON, and a count of retries."""
