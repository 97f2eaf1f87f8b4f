"""Helpers for users' tests: `Broker`, which starts in well under a second, and Apache Kafka as a reference
(`testing.apache`).
"""

from barnabas.testing.broker import Broker

__all__ = ["Broker"]
