"""Calls of an administrator to a running broker."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest
from barnabas.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.testing import Broker

from .conversation import Conversation

SET, REMOVE = 0, 1
TOPIC, BROKER = 2, 4


def set_quotas(broker: Broker, entity: Mapping[str, str | None], **values: float | None) -> None:
    """Quotas of an entity; None removes one. In force when this returns."""
    kind = AlterClientQuotasRequest.EntryData
    entry = kind(
        entity=[kind.EntityData(entity_type=each, entity_name=name) for each, name in entity.items()],
        ops=[kind.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in values.items()],
    )
    with Conversation(broker, client_id="administrator") as talk:
        [answer] = talk.ask(AlterClientQuotasRequest(entries=[entry]), 1).entries
    assert answer.error_code == 0, answer.error_message


def set_configs(broker: Broker, name: str = "", kind: int = BROKER, **values: str | None) -> None:
    """Settings of a resource, underscores for dots; None removes one. In force when this returns."""
    alter = {key.replace("_", "."): value for key, value in values.items()}
    alter_configs(broker, name, kind, alter)


def alter_configs(broker: Broker, name: str, kind: int, values: Mapping[str, str | None]) -> None:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    changes = [
        resource.AlterableConfig(name=key, config_operation=REMOVE if value is None else SET, value=value)
        for key, value in values.items()
    ]
    wanted = resource(resource_type=kind, resource_name=name, configs=changes)
    with Conversation(broker, client_id="administrator") as talk:
        [answer] = talk.ask(IncrementalAlterConfigsRequest(resources=[wanted]), 1).responses
    assert answer.error_code == 0, answer.error_message


def shown_config(broker: Broker, name: str, setting: str, kind: int = TOPIC) -> tuple[str | None, int]:
    """A setting's value and where it comes from."""
    asked = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=[setting]
    )
    with Conversation(broker, client_id="administrator") as talk:
        [result] = talk.ask(DescribeConfigsRequest(resources=[asked]), 4).results
    [config] = result.configs
    return config.value, config.config_source
