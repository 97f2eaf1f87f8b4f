"""Transforms and predicates of this package, by the names of Java's."""

from barnabas.connect.plugins.known import Kind, Known

PLACE = "barnabas.connect.transforms"
APACHE = "org.apache.kafka.connect.transforms"
BOTH = {
    "Cast": "values",
    "ExtractField": "fields",
    "Flatten": "fields",
    "HeaderFrom": "routing",
    "HoistField": "fields",
    "InsertField": "fields",
    "MaskField": "values",
    "ReplaceField": "fields",
    "SetSchemaMetadata": "fields",
    "TimestampConverter": "timestamps",
}
ONE = {
    "DropHeaders": "routing",
    "Filter": "routing",
    "InsertHeader": "routing",
    "RegexRouter": "routing",
    "TimestampRouter": "routing",
    "ValueToKey": "fields",
}
DEBEZIUM = {
    "ExtractNewRecordState": "change_events:ExtractNewRecordState",
    "ExtractChangedRecordState": "change_headers:ExtractChangedRecordState",
    "HeaderToValue": "change_headers:HeaderToValue",
    "ByLogicalTableRouter": "change_events:ByLogicalTableRouter",
    "outbox.EventRouter": "outbox:EventRouter",
    "partitions.PartitionRouting": "event_routing:PartitionRouting",
    "SchemaChangeEventFilter": "event_routing:SchemaChangeEventFilter",
    "TimezoneConverter": "event_times:TimezoneConverter",
}
PREDICATES = ("HasHeaderKey", "RecordIsTombstone", "TopicNameMatches")
PLUGINS = (
    *(
        Known(Kind.TRANSFORMATION, f"{PLACE}.{module}:{name}.{form}", (f"{APACHE}.{name}${form}",))
        for name, module in BOTH.items()
        for form in ("Key", "Value")
    ),
    *(
        Known(Kind.TRANSFORMATION, f"{PLACE}.{module}:{name}", (f"{APACHE}.{name}",))
        for name, module in ONE.items()
    ),
    *(
        Known(Kind.TRANSFORMATION, f"{PLACE}.{target}", (f"io.debezium.transforms.{name}",))
        for name, target in DEBEZIUM.items()
    ),
    *(
        Known(Kind.PREDICATE, f"{PLACE}.routing:{name}", (f"{APACHE}.predicates.{name}",))
        for name in PREDICATES
    ),
)
