"""BrokerRegistration, BrokerHeartbeat, ControllerRegistration: how nodes join a cluster and stay in it.

BrokerRegistration 0-4, BrokerHeartbeat 0-2, ControllerRegistration 0. Nodes send them to the active
controller; another controller responds NOT_CONTROLLER.
"""

from __future__ import annotations

from barnabas.broker.api.needs import cluster_action
from barnabas.broker.api.routes import handles
from barnabas.broker.handlers.forwarded import to_controller
from barnabas.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.protocol.messages.broker_registration import BrokerRegistrationRequest
from barnabas.protocol.messages.controller_registration import ControllerRegistrationRequest

register_broker = handles(BrokerRegistrationRequest, "0-4", needs=cluster_action, listeners="controller")(
    to_controller
)
broker_heartbeat = handles(BrokerHeartbeatRequest, "0-2", needs=cluster_action, listeners="controller")(
    to_controller
)
register_controller = handles(
    ControllerRegistrationRequest, "0", needs=cluster_action, listeners="controller"
)(to_controller)
