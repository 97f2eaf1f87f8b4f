"""The broker: connections, request routing, one handler an API, partitions, and the node that composes
them.
"""
