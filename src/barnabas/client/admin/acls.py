"""ACLs of a cluster: which there are, adding and removing them.

In: a Cluster, rules and filters. Out: rules. A field of a filter that is None (or ANY) matches everything.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from barnabas.client.admin.part import AdminPart
from barnabas.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from barnabas.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from barnabas.security.acls.rules import Rule
from barnabas.security.acls.vocabulary import Operation, PatternType, Permission, ResourceType


@dataclass(frozen=True, slots=True)
class AclFilter:
    resource_type: int = ResourceType.ANY
    name: str | None = None
    pattern_type: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = Operation.ANY
    permission: int = Permission.ANY


EVERY_ACL = AclFilter()


class AclAdmin(AdminPart):
    async def create_acls(self, rules: Iterable[Rule]) -> None:
        nested = CreateAclsRequest.AclCreation
        request = CreateAclsRequest(
            creations=[
                nested(
                    resource_type=rule.resource_type,
                    resource_name=rule.name,
                    resource_pattern_type=rule.pattern_type,
                    principal=rule.principal,
                    host=rule.host,
                    operation=rule.operation,
                    permission_type=rule.permission,
                )
                for rule in rules
            ]
        )
        await self.ask(request, CreateAclsResponse, results=lambda response: response.results)

    async def describe_acls(self, wanted: AclFilter = EVERY_ACL) -> list[Rule]:
        request = DescribeAclsRequest(
            resource_type_filter=wanted.resource_type,
            resource_name_filter=wanted.name,
            pattern_type_filter=wanted.pattern_type,
            principal_filter=wanted.principal,
            host_filter=wanted.host,
            operation=wanted.operation,
            permission_type=wanted.permission,
        )
        response = await self.ask(request, DescribeAclsResponse)
        return [
            Rule(
                resource.resource_type,
                resource.resource_name,
                resource.pattern_type,
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission_type,
            )
            for resource in response.resources
            for acl in resource.acls
        ]

    async def delete_acls(self, filters: Sequence[AclFilter]) -> list[Rule]:
        """Delete the ACLs that match any of the filters. Returns them."""
        nested = DeleteAclsRequest.DeleteAclsFilter
        request = DeleteAclsRequest(
            filters=[
                nested(
                    resource_type_filter=each.resource_type,
                    resource_name_filter=each.name,
                    pattern_type_filter=each.pattern_type,
                    principal_filter=each.principal,
                    host_filter=each.host,
                    operation=each.operation,
                    permission_type=each.permission,
                )
                for each in filters
            ]
        )
        response = await self.ask(
            request,
            DeleteAclsResponse,
            results=lambda response: (
                part for result in response.filter_results for part in (result, *result.matching_acls)
            ),
        )
        return [
            Rule(
                acl.resource_type,
                acl.resource_name,
                acl.pattern_type,
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission_type,
            )
            for result in response.filter_results
            for acl in result.matching_acls
        ]
