"""What the CONTROLLER listener of a combined node answers: run against that port."""

from __future__ import annotations

from barnabas.protocol import ApiKey
from barnabas.protocol.apis import request_header_version

from ..frames import framed, request
from ..requests import batch, produce, versions
from ..talk import Talk, encode, scenario
from .security_off import ENTRY, FILTER, said, upsertion

BUILT = {17, 18, 19, 20, 29, 30, 31, 32, 33, 36, 37, 38, 39, 40, 41, 43, 44, 46, 49, 50, 51, 55, 57, 60}
"""APIs of the controller whose versions are compared; a node may announce more."""


@scenario
def versions_are_announced(talk: Talk) -> None:
    api = ApiKey.API_VERSIONS
    for version in versions(api):
        answer = talk.silently(api, version, client_software_name="interop", client_software_version="1")
        answer["api_keys"] = [each for each in answer["api_keys"] if each["api_key"] in BUILT]
        talk.note(f"{api.name} v{version}", answer)


@scenario
def the_cluster_is_its_controllers(talk: Talk) -> None:
    api = ApiKey.DESCRIBE_CLUSTER
    for version in versions(api):
        for endpoint in (1, 2, 3) if version else (1,):
            for operations in (False, True):
                fields = {"endpoint_type": endpoint, "include_cluster_authorized_operations": operations}
                talk.ask(f"endpoint type {endpoint}, operations {operations}", api, version, **fields)


@scenario
def apis_of_brokers_are_not_served(talk: Talk) -> None:
    bodies = {
        ApiKey.METADATA: (9, {"topics": []}),
        ApiKey.PRODUCE: (9, produce(talk, "t", batch(b"x"))),
        ApiKey.LIST_OFFSETS: (7, {"replica_id": -1, "topics": []}),
        ApiKey.INIT_PRODUCER_ID: (4, {"transactional_id": None}),
        ApiKey.DESCRIBE_LOG_DIRS: (4, {"topics": []}),
        ApiKey.DESCRIBE_PRODUCERS: (0, {"topics": []}),
    }
    for api, (version, values) in bodies.items():
        header = request_header_version(api, version)
        talk.frame(
            f"{api.name} v{version}", framed(request(api, version, header, 1, encode(api, version, values)))
        )


@scenario
def topics_are_decided_here(talk: Talk) -> None:
    name = talk.name("topic")
    wanted = {"name": name, "num_partitions": 2, "replication_factor": 1}
    for validate_only in (True, False, False):
        answer = talk.silently(ApiKey.CREATE_TOPICS, 7, topics=[wanted], validate_only=validate_only)
        if answer["topics"][0]["topic_id"] != bytes(16):
            talk.learn(name, answer["topics"][0]["topic_id"])
        talk.note(f"CREATE_TOPICS v7: validate only {validate_only}", answer)
    grown = [{"name": name, "count": 3, "assignments": None}]
    talk.ask("to three", ApiKey.CREATE_PARTITIONS, 3, topics=grown, timeout_ms=30_000)
    talk.ask("again", ApiKey.CREATE_PARTITIONS, 3, topics=grown, timeout_ms=30_000)
    change = [{"name": "retention.ms", "config_operation": 0, "value": "5"}]
    resource = {"resource_type": 2, "resource_name": name, "configs": change}
    talk.ask("a setting", ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
    missing = {**resource, "resource_name": talk.name("missing")}
    talk.ask("of no topic", ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[missing])
    for _ in range(2):
        talk.ask("by name", ApiKey.DELETE_TOPICS, 6, topics=[{"name": name}], timeout_ms=30_000)


@scenario
def settings_and_quotas_are_decided_here(talk: Talk) -> None:
    describe, alter = ApiKey.DESCRIBE_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS
    for kind, name in (
        (4, "1"),
        (4, ""),
        (4, "2"),
        (2, talk.name("missing")),
        (8, "1"),
        (16, "m"),
        (32, "g"),
    ):
        asked = {
            "resource_type": kind,
            "resource_name": name,
            "configuration_keys": ["node.id", "root", "match"],
        }
        answer = talk.silently(describe, 4, resources=[asked], include_synonyms=True)
        for each in answer["results"][0]["configs"]:
            each["value"] = "<level>" if kind == 8 else each["value"]
        talk.note(f"described {kind} {name}", answer)
    for kind, name, key, value in (
        (4, "1", "log.segment.bytes", "2000000"),
        (4, "", "log.segment.bytes", "x"),
        (4, "", "node.id", "5"),
        (2, talk.name("missing"), "retention.ms", "5"),
        (8, "1", "root", "INFO"),
        (16, "m", "interval.ms", "5000"),
        (32, "g", "consumer.session.timeout.ms", "50000"),
    ):
        configs = [{"name": key, "config_operation": 0, "value": value}]
        one = {"resource_type": kind, "resource_name": name, "configs": configs}
        talk.ask(f"{kind} {name}: {key}={value}", alter, 1, resources=[one], validate_only=True)
    entity = [{"entity_type": "user", "entity_name": "u"}]
    ops = [{"key": "producer_byte_rate", "value": 5.0, "remove": False}]
    entries = [{"entity": entity, "ops": ops}]
    talk.ask("a quota", ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=entries, validate_only=True)
    update = [{"feature": "group.version", "max_version_level": 1, "upgrade_type": 1}]
    talk.ask("a feature", ApiKey.UPDATE_FEATURES, 2, feature_updates=update, validate_only=True)
    talk.ask("moves", ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, topics=None)


@scenario
def security_is_off(talk: Talk) -> None:
    said(talk, "a mechanism", ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    said(talk, "a name", ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"\0u\0secret")
    said(talk, "all", ApiKey.DESCRIBE_ACLS, 3, **FILTER)
    said(talk, "one", ApiKey.CREATE_ACLS, 3, creations=[ENTRY])
    said(talk, "one", ApiKey.DELETE_ACLS, 3, filters=[FILTER])
    said(talk, "a token", ApiKey.CREATE_DELEGATION_TOKEN, 3, renewers=[], max_lifetime_ms=-1)
    said(talk, "renewed", ApiKey.RENEW_DELEGATION_TOKEN, 2, hmac=b"x", renew_period_ms=5)
    said(talk, "expired", ApiKey.EXPIRE_DELEGATION_TOKEN, 2, hmac=b"x", expiry_time_period_ms=5)
    said(talk, "all", ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, owners=None)
    said(talk, "nobody's", ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, upsertions=[upsertion("")])
