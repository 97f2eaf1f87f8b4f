"""Handlers of requests, one module for each API; `barnabas.broker.api.routes.handles` registers them."""
