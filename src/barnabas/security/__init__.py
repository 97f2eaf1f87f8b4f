"""Security without I/O: principals, SASL mechanisms, TLS stores and contexts, ACLs, settings of clients."""
