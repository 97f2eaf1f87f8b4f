"""HTTP: a sink that sends records in requests, a source that reads pages."""
