"""Java class names in settings: which are supported, and errors or warnings for the others.

In: a setting's name and the class names in its value. Out: SettingsError with the supported classes, or a
warning if the class is known but the setting has no effect. `package.module:Name` is a Python entry point and
is accepted; the code that uses the setting loads it.
"""

from __future__ import annotations

from barnabas.settings.errors import SettingsError

COMMON = "org.apache.kafka.common."
SECURITY = COMMON + "security."
OAUTH = SECURITY + "oauthbearer."
ASSIGNOR = "org.apache.kafka.coordinator.group.assignor."
REMOTE = "org.apache.kafka.server.log.remote."
PERSISTER = "org.apache.kafka.server.share.persister."

KNOWN: dict[str, tuple[str, ...]] = {
    "alter.config.policy.class.name": (),
    "authorizer.class.name": (
        "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "kafka.security.authorizer.AclAuthorizer",
        "kafka.security.auth.SimpleAclAuthorizer",
        "io.confluent.kafka.security.authorizer.ConfluentServerAuthorizer",
    ),
    "client.quota.callback.class": (),
    "create.topic.policy.class.name": (),
    "group.consumer.assignors": (
        "uniform",
        "range",
        ASSIGNOR + "UniformAssignor",
        ASSIGNOR + "RangeAssignor",
    ),
    "group.share.assignors": ("simple", ASSIGNOR + "SimpleAssignor"),
    "group.share.persister.class.name": (
        PERSISTER + "DefaultStatePersister",
        PERSISTER + "NoOpStatePersister",
    ),
    "kafka.metrics.reporters": ("kafka.metrics.KafkaCSVMetricsReporter",),
    "metric.reporters": (
        COMMON + "metrics.JmxReporter",
        "io.confluent.metrics.reporter.ConfluentMetricsReporter",
        "otlp",
        "graphite",
        "statsd",
        "cloudwatch",
    ),
    "principal.builder.class": (SECURITY + "authenticator.DefaultKafkaPrincipalBuilder",),
    "remote.log.metadata.manager.class.name": (
        REMOTE + "metadata.storage.TopicBasedRemoteLogMetadataManager",
        REMOTE + "storage.NoOpRemoteLogMetadataManager",
    ),
    "remote.log.storage.manager.class.name": (
        REMOTE + "storage.LocalTieredStorage",
        REMOTE + "storage.NoOpRemoteStorageManager",
    ),
    "replica.selector.class": (
        COMMON + "replica.RackAwareReplicaSelector",
        COMMON + "replica.LeaderSelector",
    ),
    "sasl.client.callback.handler.class": (
        OAUTH + "internals.OAuthBearerSaslClientCallbackHandler",
        SECURITY + "authenticator.SaslClientCallbackHandler",
    ),
    "sasl.login.callback.handler.class": (
        OAUTH + "OAuthBearerLoginCallbackHandler",
        OAUTH + "secured.OAuthBearerLoginCallbackHandler",
        OAUTH + "internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler",
        SECURITY + "authenticator.AbstractLogin$DefaultLoginCallbackHandler",
    ),
    "sasl.login.class": (
        SECURITY + "authenticator.DefaultLogin",
        SECURITY + "kerberos.KerberosLogin",
        OAUTH + "internals.OAuthBearerRefreshingLogin",
    ),
    "sasl.oauthbearer.jwt.retriever.class": (
        OAUTH + "DefaultJwtRetriever",
        OAUTH + "ClientCredentialsJwtRetriever",
        OAUTH + "FileJwtRetriever",
        OAUTH + "JwtBearerJwtRetriever",
    ),
    "sasl.oauthbearer.jwt.validator.class": (
        OAUTH + "DefaultJwtValidator",
        OAUTH + "BrokerJwtValidator",
        OAUTH + "ClientJwtValidator",
    ),
    "sasl.server.callback.handler.class": (
        OAUTH + "OAuthBearerValidatorCallbackHandler",
        OAUTH + "secured.OAuthBearerValidatorCallbackHandler",
        OAUTH + "internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler",
        SECURITY + "plain.internals.PlainServerCallbackHandler",
    ),
    "ssl.engine.factory.class": (SECURITY + "ssl.DefaultSslEngineFactory",),
}

# Known, but without effect in this version. A warning at start says so.
WITHOUT_EFFECT = {
    "kafka.metrics.reporters": "metrics are served at barnabas.metrics.port",
    "replica.selector.class": "consumers read from leaders",
    "security.providers": "security providers belong to the JVM",
}
UNLESS = COMMON + "metrics.JmxReporter"
# Settings whose values may be names of installed entry points, by the group of these.
ENTRY_POINTS = {"metric.reporters": "barnabas.metric_reporters"}


def check_classes(setting: str, classes: tuple[str, ...]) -> str | None:
    """Return a warning if the class has no effect; SettingsError if it is unknown."""
    known = KNOWN.get(setting)
    for name in classes:
        if (
            known is not None
            and name not in known
            and not is_entry_point(name)
            and not is_installed(setting, name)
        ):
            raise SettingsError(
                f"Invalid value {name} for configuration {setting}: Class {name} could not be found.",
                name=setting,
                allowed=", ".join([*known, "a Python entry point package.module:Name"]),
            )
    effect = WITHOUT_EFFECT.get(setting)
    if effect and any(name != UNLESS for name in classes):
        return f"{setting}={','.join(classes)} has no effect in this version: {effect}."
    return None


def is_installed(setting: str, name: str) -> bool:
    """Whether an installed package offers an entry point of this name for the setting."""
    group = ENTRY_POINTS.get(setting)
    if group is None:
        return False
    from importlib.metadata import entry_points  # reads the metadata of all packages

    return bool(entry_points(group=group, name=name))


def is_entry_point(name: str) -> bool:
    module, colon, attribute = name.partition(":")
    return bool(colon) and attribute.isidentifier() and all(part.isidentifier() for part in module.split("."))
