"""TLS: key stores and trust stores, contexts made from them, names of peers, certificates for development."""
