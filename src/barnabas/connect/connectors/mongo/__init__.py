"""MongoDB: a sink of documents and a source of change streams, with MongoDB's own settings."""
