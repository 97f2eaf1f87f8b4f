"""Text as bytes: any value is written as Java prints it, and everything is read as text."""

from __future__ import annotations

import codecs
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.config import ConfigType, Importance, Width, invalid
from barnabas.connect.convert.contract import Converted, Converter, Encoded, whole, with_type
from barnabas.connect.data import OPTIONAL_STRING, Column, Headers
from barnabas.connect.data.java_text import java_text, java_texts


class StringConverter(Converter):
    """`converter.encoding` is the character set, UTF-8 if nothing is said."""

    JAVA_NAMES = ("org.apache.kafka.connect.storage.StringConverter",)
    CONFIG = with_type().define(
        "converter.encoding",
        ConfigType.STRING,
        "UTF-8",
        importance=Importance.HIGH,
        width=Width.MEDIUM,
        display_name="Encoding",
        doc="The character set of the text.",
    )

    def configure(self, config: Mapping[str, str], is_key: bool) -> None:
        super().configure(config, is_key)
        name = self.settings.text("converter.encoding")
        try:
            self.encoding = codecs.lookup(name).name
        except LookupError:
            raise invalid("converter.encoding", name, "no such character set is known") from None

    def from_bytes(self, topic: str, data: pa.Array, headers: list[Headers] | None = None) -> Converted:
        if self.encoding == "utf-8":
            try:
                return whole(Column(OPTIONAL_STRING, pc.cast(data, pa.string())))
            except pa.ArrowInvalid:
                pass  # Java puts a replacement character where bytes are no text: so does the loop below
        texts = [None if one is None else one.decode(self.encoding, "replace") for one in data.to_pylist()]
        return whole(Column(OPTIONAL_STRING, pa.array(texts, pa.string())))

    def to_bytes(self, topic: str, column: Column, headers: list[Headers] | None = None) -> Encoded:
        if column.schema is not None:
            texts = java_texts(column.data, column.schema)
        else:
            texts = pa.array([None if one is None else java_text(one) for one in column.data], pa.string())
        if self.encoding == "utf-8":
            return Encoded(pc.cast(texts, pa.binary()))
        coded = [None if one is None else one.encode(self.encoding, "replace") for one in texts.to_pylist()]
        return Encoded(pa.array(coded, pa.binary()))
