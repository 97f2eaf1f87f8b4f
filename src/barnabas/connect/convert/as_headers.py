"""Connect's converters of values in the place of header converters."""

from __future__ import annotations

from barnabas.connect.convert import numbers
from barnabas.connect.convert.contract import ConverterOfHeaders
from barnabas.connect.convert.json import JsonConverter
from barnabas.connect.convert.text import StringConverter


class StringHeaders(ConverterOfHeaders):
    CONFIG = StringConverter.CONFIG

    def __init__(self) -> None:
        super().__init__(StringConverter())


class JsonHeaders(ConverterOfHeaders):
    CONFIG = JsonConverter.CONFIG

    def __init__(self) -> None:
        super().__init__(JsonConverter())


class ByteArrayHeaders(ConverterOfHeaders):
    CONFIG = numbers.ByteArrayConverter.CONFIG

    def __init__(self) -> None:
        super().__init__(numbers.ByteArrayConverter())


class BooleanHeaders(ConverterOfHeaders):
    CONFIG = numbers.BooleanConverter.CONFIG

    def __init__(self) -> None:
        super().__init__(numbers.BooleanConverter())


class ShortHeaders(ConverterOfHeaders):
    CONFIG = numbers.ShortConverter.CONFIG

    def __init__(self) -> None:
        super().__init__(numbers.ShortConverter())


class IntegerHeaders(ConverterOfHeaders):
    CONFIG = numbers.IntegerConverter.CONFIG

    def __init__(self) -> None:
        super().__init__(numbers.IntegerConverter())


class LongHeaders(ConverterOfHeaders):
    CONFIG = numbers.LongConverter.CONFIG

    def __init__(self) -> None:
        super().__init__(numbers.LongConverter())


class FloatHeaders(ConverterOfHeaders):
    CONFIG = numbers.FloatConverter.CONFIG

    def __init__(self) -> None:
        super().__init__(numbers.FloatConverter())


class DoubleHeaders(ConverterOfHeaders):
    CONFIG = numbers.DoubleConverter.CONFIG

    def __init__(self) -> None:
        super().__init__(numbers.DoubleConverter())
