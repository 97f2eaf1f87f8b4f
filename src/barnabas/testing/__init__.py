"""For users' tests: `Broker`, a broker in well under a second; and Apache Kafka as a reference
(`testing.apache`).
"""

from barnabas.testing.broker import Broker

__all__ = ["Broker"]
