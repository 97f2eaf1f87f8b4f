"""Requests of an administrator to a cluster: one module for each kind of thing, joined by `admin.Admin`.

Coroutines of the core, so that they serve every face of the client.
"""
