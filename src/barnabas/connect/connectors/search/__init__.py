"""Elasticsearch and OpenSearch: a sink of documents by bulk requests."""
