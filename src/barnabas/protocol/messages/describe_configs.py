"""DescribeConfigs: settings of topics, brokers, groups and loggers."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import Bool, Int8, Int16, Int32, String


class DescribeConfigsRequest(Message, key=32, versions="1-4", flexible="4+"):
    class DescribeConfigsResource(Struct):
        resource_type: Int8 = 0
        resource_name: String = ""
        configuration_keys: list[String] | None = []

    resources: list[DescribeConfigsResource] = []
    include_synonyms: Bool = since("1+", False)
    include_documentation: Bool = since("3+", False)


class DescribeConfigsResponse(Message, key=32, versions="1-4", flexible="4+"):
    class DescribeConfigsResult(Struct):
        class DescribeConfigsResourceResult(Struct):
            class DescribeConfigsSynonym(Struct):
                name: String = since("1+", "")
                value: String | None = since("1+", "")
                source: Int8 = since("1+", 0)

            name: String = ""
            value: String | None = ""
            read_only: Bool = False
            config_source: Int8 = since("1+", -1, ignorable=True)
            is_sensitive: Bool = False
            synonyms: list[DescribeConfigsSynonym] = since("1+", [], ignorable=True)
            config_type: Int8 = since("3+", 0, ignorable=True)
            documentation: String | None = since("3+", "", ignorable=True)

        error_code: Int16 = 0
        error_message: String | None = ""
        resource_type: Int8 = 0
        resource_name: String = ""
        configs: list[DescribeConfigsResourceResult] = []

    throttle_time_ms: Int32 = 0
    results: list[DescribeConfigsResult] = []
