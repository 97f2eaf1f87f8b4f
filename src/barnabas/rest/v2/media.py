"""Media types of API v2: which format embedded data have, and which type a response gets.

In: the headers Content-Type and Accept. Out: a format, a media type, or ApiError (415, 406, 40601).
"""

from __future__ import annotations

from barnabas.rest.formats.names import DataFormat
from barnabas.services.errors import ApiError
from barnabas.services.negotiation import HEADER_LENGTH_MAX, accepted, chosen, content_type

V2 = "application/vnd.kafka.v2+json"
FORMATS = {
    "binary": DataFormat.BINARY,
    "json": DataFormat.JSON,
    "avro": DataFormat.AVRO,
    "jsonschema": DataFormat.JSONSCHEMA,
    "protobuf": DataFormat.PROTOBUF,
}
TYPES = {data: f"application/vnd.kafka.{name}.v2+json" for name, data in FORMATS.items()}
FORMATS_OF_TYPES = {media_type: data for data, media_type in TYPES.items()} | {V2: DataFormat.BINARY}
EMBEDDED = tuple(FORMATS_OF_TYPES)
ALL = (V2, *TYPES.values())
WRONG_FORMAT = 40601


def format_of_body(header: str | None) -> DataFormat:
    """The format of records that are produced. The type without a format means binary."""
    return FORMATS_OF_TYPES[content_type(header, EMBEDDED)]


def check_control(content: str | None, accept: str | None, *, has_body: bool) -> None:
    """Refuse the media types of other APIs on requests without embedded data."""
    if has_body:
        content_type(content, (V2,))
    accepted(accept, (V2,))


def type_of_records(accept: str | None, data: DataFormat) -> str:
    """The media type of records that are read: that of the instance's format."""
    offered = (TYPES[data], V2) if data is DataFormat.BINARY else (TYPES[data],)
    given = accept[:HEADER_LENGTH_MAX] if accept else None
    found = chosen(given, offered)
    if found is not None:
        return found
    if chosen(given, ALL) is not None:
        raise ApiError(
            406,
            WRONG_FORMAT,
            "The requested embedded data format does not match the deserializer for this consumer instance: "
            f"ask for {' or '.join(offered)}",
        )
    return accepted(given, offered)
