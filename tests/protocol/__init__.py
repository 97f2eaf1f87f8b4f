"""Tests of Kafka's vocabulary: messages, codecs, headers, error codes, ids."""
