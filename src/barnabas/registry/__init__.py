"""The Schema Registry: subjects and versions of schemas, kept in a topic, served over HTTP."""
