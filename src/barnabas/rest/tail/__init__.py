"""Live tails of topics: server-sent events and WebSocket."""
