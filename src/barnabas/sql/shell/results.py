"""Entities of the server as tables.

In: an entity. Out: calls of a `Display`. An entity of a kind that is not known here is shown as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from barnabas.sql.shell.display import Display

Entity = Mapping[str, Any]


def show_entity(entity: Entity, display: Display) -> None:
    if display.output == "JSON":
        display.json(entity)
        return
    render = RENDERS.get(str(entity.get("@type")))
    if render is None:
        display.json(entity)
    else:
        render(entity, display)
    for each in entity.get("warnings") or ():
        display.line(f"WARNING: {each.get('message', each)}")


def status(entity: Entity, display: Display) -> None:
    found = entity["commandStatus"]
    if found["status"] == "ERROR":
        display.error(found["message"])
        return
    display.table(["Message"], [[found["message"]]])


def sources(name: str, title: str) -> Callable[[Entity, Display], None]:
    def render(entity: Entity, display: Display) -> None:
        rows = [
            [each["name"], each["topic"], each["keyFormat"], each["valueFormat"], each["isWindowed"]]
            for each in entity[name]
        ]
        display.table([title, "Kafka Topic", "Key Format", "Value Format", "Windowed"], rows)

    return render


def topics(entity: Entity, display: Display) -> None:
    names = ["Kafka Topic", "Partitions", "Partition Replicas"]
    rows = [
        [
            each["name"],
            len(each["replicaInfo"]),
            replicas(each["replicaInfo"]),
            *([each["consumerCount"], each["consumerGroupCount"]] if "consumerCount" in each else []),
        ]
        for each in entity["topics"]
    ]
    if entity["@type"] == "kafka_topics_extended":
        names += ["Consumers", "Consumer Groups"]
    display.table(names, rows)


def replicas(counts: list[int]) -> str:
    return str(counts[0]) if len(set(counts)) == 1 else ", ".join(map(str, counts))


def queries(entity: Entity, display: Display) -> None:
    rows = [
        [
            each["id"],
            each["queryType"],
            ", ".join(f"{state}:{count}" for state, count in each["statusCount"].items()),
            ", ".join(each["sinks"]),
            ", ".join(each["sinkKafkaTopics"]),
            " ".join(each["queryString"].split()),
        ]
        for each in entity["queries"]
    ]
    display.table(["Query ID", "Query Type", "Status", "Sink Name", "Sink Kafka Topic", "Query String"], rows)
    if rows:
        display.line("For detailed information on a query run: EXPLAIN <Query ID>;")


def properties(entity: Entity, display: Display) -> None:
    changed = set(entity["overwrittenProperties"])
    rows = [
        [each["name"], each["scope"], "SESSION" if each["name"] in changed else "", each["value"]]
        for each in entity["properties"]
    ]
    display.table(["Property", "Scope", "Override", "Value"], rows)


def description(entity: Entity, display: Display) -> None:
    describe_source(entity["sourceDescription"], display)


def descriptions(entity: Entity, display: Display) -> None:
    for each in entity["sourceDescriptions"]:
        describe_source(each, display)


def describe_source(source: Entity, display: Display) -> None:
    display.line("")
    display.line(f"{'Name':<20} : {source['name']}")
    if source["extended"]:
        for title, key in (
            ("Type", "type"),
            ("Timestamp field", "timestamp"),
            ("Key format", "keyFormat"),
            ("Value format", "valueFormat"),
        ):
            display.line(f"{title:<20} : {source[key] or 'Not set - using <ROWTIME>'}")
        topic = (
            f"{source['topic']} (partitions: {source['partitions']}, replication: {source['replication']})"
        )
        display.line(f"{'Kafka topic':<20} : {topic}")
        display.line(f"{'Statement':<20} : {source['statement']}")
    display.table(["Field", "Type"], [[each["name"], field_type(each, source)] for each in source["fields"]])
    if source["extended"]:
        for title, key in (
            ("Queries that read from this", "readQueries"),
            ("Queries that write", "writeQueries"),
        ):
            for each in source[key]:
                display.line(f"{title}: {each['id']} ({each['state']}) : {each['queryString']}")
        for each in source["queryOffsetSummaries"]:
            show_offsets(each, display)
        for key in ("statistics", "errorStats"):
            if source[key]:
                display.line(source[key])
    else:
        display.line("For runtime statistics and query details run: DESCRIBE <Stream,Table> EXTENDED;")


def show_offsets(summary: Entity, display: Display) -> None:
    display.line(f"Consumer group: {summary['groupId']}")
    for topic in summary["topicSummaries"]:
        rows = [
            [
                each["partition"],
                each["logStartOffset"],
                each["logEndOffset"],
                each["consumerOffset"],
                each["logEndOffset"] - each["consumerOffset"],
            ]
            for each in topic["offsets"]
        ]
        names = ["Partition", "Start Offset", "End Offset", "Offset", "Lag"]
        display.table(names, rows, f"Kafka topic: {topic['kafkaTopic']}")


def field_type(field: Entity, source: Entity) -> str:
    found = type_text(field["schema"])
    match field.get("type"):
        case "KEY" if field["name"] in ("WINDOWSTART", "WINDOWEND"):
            return f"{found} (window)"
        case "KEY":
            return f"{found} ({'primary key' if source.get('type') == 'TABLE' else 'key'})"
        case "HEADER":
            key = field.get("headerKey")
            return f"{found} (header({key!r}))" if key else f"{found} (headers)"
    return found


def type_text(schema: Entity) -> str:
    name = schema["type"]
    match name:
        case "ARRAY":
            return f"ARRAY<{type_text(schema['memberSchema'])}>"
        case "MAP":
            return f"MAP<STRING, {type_text(schema['memberSchema'])}>"
        case "STRUCT":
            fields = (each["name"] + " " + type_text(each["schema"]) for each in schema["fields"])
            return f"STRUCT<{', '.join(fields)}>"
        case "DECIMAL" if schema.get("parameters"):
            return f"DECIMAL({schema['parameters']['precision']}, {schema['parameters']['scale']})"
    return "VARCHAR(STRING)" if name == "STRING" else str(name)


def query(entity: Entity, display: Display) -> None:
    explain(entity["queryDescription"], display)


def query_list(entity: Entity, display: Display) -> None:
    for each in entity["queryDescriptions"]:
        explain(each, display)


def explain(found: Entity, display: Display) -> None:
    display.line("")
    for title, text in (
        ("ID", found["id"]),
        ("Query Type", found["queryType"]),
        ("SQL", found["statementText"]),
        ("Host Query Status", ", ".join(f"{h}: {s}" for h, s in found["ksqlHostQueryStatus"].items())),
        ("Sources", ", ".join(found["sources"])),
        ("Sinks", ", ".join(found["sinks"])),
    ):
        if text:
            display.line(f"{title:<20} : {text}")
    fields = [[each["name"], field_type(each, {})] for each in found["fields"]]
    display.table(["Field", "Type"], fields)
    for title, key in (
        ("Execution plan", "executionPlan"),
        ("Road", "road"),
        ("Processing topology", "topology"),
    ):
        if found.get(key):
            display.line(f"\n{title}\n{'-' * len(title)}\n{found[key]}")
    changed = found["overriddenProperties"]
    if changed:
        display.table(["Property", "Value"], sorted(changed.items()), "Overridden properties")
    for each in found["queryErrors"]:
        display.error(f"{each['type']}: {each['errorMessage']}")


def functions(entity: Entity, display: Display) -> None:
    rows = [[each["name"], each["category"].upper()] for each in entity["functions"]]
    display.table(["Function Name", "Category"], sorted(rows))
    display.line("For detailed information about a function, run: DESCRIBE FUNCTION <Function Name>;")


def function(entity: Entity, display: Display) -> None:
    display.line(f"{'Name':<12} : {entity['name']}")
    display.line(f"{'Type':<12} : {entity['type']}")
    display.line(f"{'Overview':<12} : {entity['description']}")
    for each in entity["functions"]:
        arguments = ", ".join(a["type"] + ("..." if a["isVariadic"] else "") for a in each["arguments"])
        display.line(f"{'Variation':<12} : {entity['name']}({arguments}) -> {each['returnType']}")


def types(entity: Entity, display: Display) -> None:
    display.table(
        ["Type Name", "Schema"], [[name, type_text(each)] for name, each in entity["types"].items()]
    )


def variables(entity: Entity, display: Display) -> None:
    display.table(["Variable Name", "Value"], [[each["name"], each["value"]] for each in entity["variables"]])


def connectors(entity: Entity, display: Display) -> None:
    rows = [
        [each["name"], each["type"].upper(), each["className"], each["state"]]
        for each in entity["connectors"]
    ]
    display.table(["Connector Name", "Type", "Class", "Status"], rows)


def plugins(entity: Entity, display: Display) -> None:
    rows = [[each["className"], each["type"], each["version"]] for each in entity["connectorPlugins"]]
    display.table(["Class", "Type", "Version"], rows)


def connector(entity: Entity, display: Display) -> None:
    state = entity["status"] or {}
    display.line(f"{'Name':<20} : {state.get('name', '')}")
    display.line(f"{'Class':<20} : {entity['connectorClass']}")
    display.line(f"{'Type':<20} : {state.get('type', '')}")
    display.line(f"{'State':<20} : {state.get('connector', {}).get('state', '')}")
    rows = [[each["id"], each["state"], each.get("trace", "")] for each in state.get("tasks", [])]
    display.table(["Task ID", "State", "Error Trace"], rows)
    if entity["topics"]:
        display.line(f"{'Topics':<20} : {', '.join(entity['topics'])}")


def message(text: Callable[[Entity], str]) -> Callable[[Entity, Display], None]:
    def render(entity: Entity, display: Display) -> None:
        display.table(["Message"], [[text(entity)]])

    return render


RENDERS: Mapping[str, Callable[[Entity, Display], None]] = {
    "currentStatus": status,
    "streams": sources("streams", "Stream Name"),
    "tables": sources("tables", "Table Name"),
    "kafka_topics": topics,
    "kafka_topics_extended": topics,
    "queries": queries,
    "properties": properties,
    "sourceDescription": description,
    "source_descriptions": descriptions,
    "queryDescription": query,
    "query_descriptions": query_list,
    "function_names": functions,
    "describe_function": function,
    "type_list": types,
    "variables": variables,
    "connector_list": connectors,
    "connector_plugins_list": plugins,
    "connector_description": connector,
    "connector_info": message(lambda each: f"Created connector {each['info']['name']}"),
    "drop_connector": message(lambda each: "Dropped connector " + each["connectorName"]),
    "terminate_query": message(lambda each: f"Query {each['queryId']} was terminated."),
    "warning_entity": message(lambda each: each["message"]),
    "assert_topic": message(
        lambda each: f"Topic {each['topicName']} {'exists' if each['exists'] else 'does not exist'}."
    ),
    "assert_schema": message(lambda each: f"The schema {'exists' if each['exists'] else 'does not exist'}."),
}
