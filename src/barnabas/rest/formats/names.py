"""Names of formats, and of subjects that hold the schemas of a topic's keys and values."""

from enum import StrEnum

from barnabas.rest.formats.errors import SchemaMissing
from barnabas.schemas.model import SchemaType


class DataFormat(StrEnum):
    BINARY = "BINARY"
    JSON = "JSON"
    STRING = "STRING"
    AVRO = "AVRO"
    JSONSCHEMA = "JSONSCHEMA"
    PROTOBUF = "PROTOBUF"

    @property
    def schema_type(self) -> SchemaType | None:
        """The type of the schemas that this format needs; None if it needs none."""
        return SCHEMA_TYPES.get(self)


SCHEMA_TYPES = {
    DataFormat.AVRO: SchemaType.AVRO,
    DataFormat.JSONSCHEMA: SchemaType.JSON,
    DataFormat.PROTOBUF: SchemaType.PROTOBUF,
}
FORMATS_OF_TYPES = {schema_type: name for name, schema_type in SCHEMA_TYPES.items()}


class SubjectNameStrategy(StrEnum):
    TOPIC_NAME = "TOPIC_NAME"
    RECORD_NAME = "RECORD_NAME"
    TOPIC_RECORD_NAME = "TOPIC_RECORD_NAME"

    @property
    def needs_record_name(self) -> bool:
        return self is not SubjectNameStrategy.TOPIC_NAME

    def subject(self, topic: str, *, is_key: bool, record_name: str | None = None) -> str:
        if self is SubjectNameStrategy.TOPIC_NAME:
            return f"{topic}-{'key' if is_key else 'value'}"
        if not record_name:
            raise SchemaMissing(
                f"The strategy {self} needs a schema with a name, given as text or by its id."
            )
        return record_name if self is SubjectNameStrategy.RECORD_NAME else f"{topic}-{record_name}"
