"""A broker for the tests of this folder, and a topic for each test."""

from barnabas.testing.plugin import barnabas_broker, barnabas_topic

__all__ = ["barnabas_broker", "barnabas_topic"]
