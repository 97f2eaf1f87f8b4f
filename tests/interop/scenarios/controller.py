"""What the CONTROLLER listener of a combined node answers: run against that port."""

from __future__ import annotations

from barnabas.protocol import ApiKey
from barnabas.protocol.apis import request_header_version

from ..frames import framed, request
from ..requests import batch, produce, versions
from ..talk import Talk, encode, scenario

BUILT = {18, 19, 20, 37, 44, 55, 60}
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
