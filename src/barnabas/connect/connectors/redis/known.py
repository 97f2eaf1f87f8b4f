"""Connectors of this room, by the names of Java."""

from __future__ import annotations

from barnabas.connect.plugins.known import Kind, Known

HERE = "barnabas.connect.connectors.redis"
PLUGINS = (
    Known(
        Kind.SINK,
        f"{HERE}.redis_sink:RedisSinkConnector",
        ("com.redis.kafka.connect.RedisSinkConnector",),
    ),
    Known(
        Kind.SINK,
        f"{HERE}.redis_sink:RedisCacheSinkConnector",
        ("com.github.jcustenborder.kafka.connect.redis.RedisSinkConnector",),
    ),
    Known(
        Kind.SOURCE,
        f"{HERE}.stream_source:RedisStreamSourceConnector",
        ("com.redis.kafka.connect.RedisStreamSourceConnector",),
    ),
)
