"""Converters of this package, by the names of Java's."""

from barnabas.connect.plugins.known import Kind, Known

PLACE = "barnabas.connect.convert"
APACHE = "org.apache.kafka.connect"
CONFLUENT = "io.confluent.connect"

SIMPLE = {
    f"{APACHE}.storage.StringConverter": "text:StringConverter",
    f"{APACHE}.json.JsonConverter": "json:JsonConverter",
    f"{APACHE}.converters.ByteArrayConverter": "numbers:ByteArrayConverter",
    f"{APACHE}.converters.BooleanConverter": "numbers:BooleanConverter",
    f"{APACHE}.converters.ShortConverter": "numbers:ShortConverter",
    f"{APACHE}.converters.IntegerConverter": "numbers:IntegerConverter",
    f"{APACHE}.converters.LongConverter": "numbers:LongConverter",
    f"{APACHE}.converters.FloatConverter": "numbers:FloatConverter",
    f"{APACHE}.converters.DoubleConverter": "numbers:DoubleConverter",
    f"{CONFLUENT}.avro.AvroConverter": "registered.avro:AvroConverter",
    f"{CONFLUENT}.json.JsonSchemaConverter": "registered.json_schema:JsonSchemaConverter",
    f"{CONFLUENT}.protobuf.ProtobufConverter": "registered.protobuf:ProtobufConverter",
}
HEADERS = {
    f"{APACHE}.storage.SimpleHeaderConverter": "simple_headers:SimpleHeaderConverter",
    f"{APACHE}.storage.StringConverter": "as_headers:StringHeaders",
    f"{APACHE}.json.JsonConverter": "as_headers:JsonHeaders",
    f"{APACHE}.converters.ByteArrayConverter": "as_headers:ByteArrayHeaders",
    f"{APACHE}.converters.BooleanConverter": "as_headers:BooleanHeaders",
    f"{APACHE}.converters.ShortConverter": "as_headers:ShortHeaders",
    f"{APACHE}.converters.IntegerConverter": "as_headers:IntegerHeaders",
    f"{APACHE}.converters.LongConverter": "as_headers:LongHeaders",
    f"{APACHE}.converters.FloatConverter": "as_headers:FloatHeaders",
    f"{APACHE}.converters.DoubleConverter": "as_headers:DoubleHeaders",
}
PLUGINS = (
    *(Known(Kind.CONVERTER, f"{PLACE}.{target}", (name,)) for name, target in SIMPLE.items()),
    *(Known(Kind.HEADER_CONVERTER, f"{PLACE}.{target}", (name,)) for name, target in HEADERS.items()),
)
