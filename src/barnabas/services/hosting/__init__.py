"""Services as processes: sockets, TLS, uvicorn, signals."""
