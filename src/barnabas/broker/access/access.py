"""Access control of a node: its authorizer, fed from the metadata log, and the rights of callers.

In: settings, changes of ACLs in the committed metadata. Out: `Rights` of principals. Connections of the same
principal and address share one object; it lives as long as one of them does.
Does not know: requests, handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from barnabas.broker.access.decision_log import DecisionLog
from barnabas.broker.access.rights import Rights
from barnabas.security.acls.authorizer import StandardAuthorizer, parse_super_users
from barnabas.security.acls.rules import Rule

if TYPE_CHECKING:
    from barnabas.broker.access.audit_topic import AuditTopic
    from barnabas.broker.access.role_follower import RoleFollower
    from barnabas.broker.broker import Broker
    from barnabas.metadata.delta import MetadataDelta
    from barnabas.metadata.image import MetadataImage
    from barnabas.metadata.security import AccessControlEntry, SecurityDelta
    from barnabas.quorum.metadata_log import MetadataLog
    from barnabas.security.principal import Principal
    from barnabas.settings import BrokerSettings


class Access:
    def __init__(self, authorizer: StandardAuthorizer, time_s: Callable[[], float]) -> None:
        self.authorizer = authorizer
        authorizer.is_loaded = False  # until `load`
        authorizer.on_change.append(self._changed)
        self.log = DecisionLog(time_s)
        self.acl_count = 0
        self.on_change: list[Callable[[], None]] = []  # a right that was allowed may be denied from now on
        self._roles: RoleFollower | None = None
        self._audit: AuditTopic | None = None
        self._rights: WeakValueDictionary[tuple[Principal, str], Rights] = WeakValueDictionary()

    def start(self, broker: Broker) -> None:
        """Begin to read the bindings of roles, and to write the audit topic, if the settings want them."""
        audit_topic: str = broker.settings["barnabas.audit.topic"]
        if audit_topic:
            from barnabas.broker.access.audit_topic import AuditTopic

            self._audit = AuditTopic(broker, audit_topic)
            self._audit.start()
            self.log.sink = self._audit.put
        if self.authorizer.awaits_roles:
            from barnabas.broker.access.role_follower import RoleFollower

            self._roles = RoleFollower(broker, self)
            self._roles.start()

    async def close(self) -> None:
        if self._roles is not None:
            await self._roles.close()
        if self._audit is not None:
            await self._audit.close()

    def rights(self, principal: Principal, host: str) -> Rights:
        found = self._rights.get((principal, host))
        if found is None:
            found = self._rights[principal, host] = Rights(self, principal, host)
        return found

    # -- ACLs from the metadata log ------------------------------------------------------------------

    def follow(self, metadata: MetadataLog) -> None:
        """Decide with the ACLs of the committed metadata, from now on."""
        self.load(metadata.image.security.acls)
        metadata.add_listener(self.publish)

    def load(self, acls: Mapping[bytes, AccessControlEntry]) -> None:
        """Begin to decide with these ACLs. Until then only super users are allowed."""
        self.authorizer.is_loaded = True
        self.acl_count = len(acls)
        self.authorizer.change(added=[Rule(*entry) for entry in acls.values()])

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply a change of committed metadata."""
        security = delta.security
        if security is not None and security.acls.changed:
            added, removed = changes(security)
            self.acl_count = len(image.security.acls)
            self.authorizer.change(added, removed)

    def _changed(self) -> None:
        for rights in list(self._rights.values()):
            rights.forget()
        for tell in self.on_change:
            tell()


def changes(security: SecurityDelta) -> tuple[list[Rule], list[Rule]]:
    added, removed = [], []
    before = security.image.acls
    for acl_id, entry in security.acls.changed.items():
        known = before.get(acl_id)
        if known is not None:
            removed.append(Rule(*known))
        if entry is not None:
            added.append(Rule(*entry))
    return added, removed


def access_of(settings: BrokerSettings, time_s: Callable[[], float]) -> Access | None:
    """The access control that the settings want; None where `authorizer.class.name` is empty.
    SettingsError if it cannot be made."""
    from barnabas.settings.errors import SettingsError, invalid_value

    name: str = settings["authorizer.class.name"]
    follows_roles: bool = settings["barnabas.roles.enable"]
    if not name:
        if follows_roles:
            raise invalid_value("barnabas.roles.enable", "true", "roles need authorizer.class.name")
        return None
    static = settings.static
    try:
        super_users = parse_super_users(static.get("super.users", ""))
    except ValueError as error:
        raise SettingsError(str(error), name="super.users", allowed="User:admin;User:other") from None
    everyone = static.get("allow.everyone.if.no.acl.found", "false").strip().lower() == "true"
    make: Any = StandardAuthorizer
    if ":" in name:
        from importlib import import_module

        module, _, attribute = name.partition(":")
        try:
            make = getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise invalid_value("authorizer.class.name", name, f"it cannot be loaded: {error}") from error
    authorizer = make(super_users, allows_everyone=everyone)
    if not isinstance(authorizer, StandardAuthorizer):
        raise invalid_value(
            "authorizer.class.name", name, "an authorizer is a subclass of StandardAuthorizer"
        )
    authorizer.awaits_roles = follows_roles
    return Access(authorizer, time_s)
