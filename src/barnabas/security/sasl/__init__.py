"""SASL mechanisms, each as two small machines: the server's side and the client's side of one login."""
