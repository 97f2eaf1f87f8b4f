"""Settings: Kafka's names, types, defaults and checks for nodes, topics and groups.

`BrokerSettings.load` parses the properties of a node, `TopicSettings.resolve` those of a topic.
Nothing here reads a file, the environment or a clock.
"""

from barnabas.settings.broker import BrokerSettings
from barnabas.settings.errors import SettingsError
from barnabas.settings.listeners import EndPoint
from barnabas.settings.quorum import Address, Voter
from barnabas.settings.topic import TopicSettings
from barnabas.settings.values import Password

__all__ = ["Address", "BrokerSettings", "EndPoint", "Password", "SettingsError", "TopicSettings", "Voter"]
