"""The part of a remote broker about security: accounts and access control lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kafka.errors import for_code
from kafka.protocol.admin import (
    AlterUserScramCredentialsRequest,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    DescribeUserScramCredentialsRequest,
)

from dafka.broker.codec.acls import acl_of, acls_of_resources, creation_of, filter_fields
from dafka.broker.codec.errors import error_of
from dafka.broker.interface.access import (
    AccessInterface,
    CredentialDeletion,
    CredentialUpsertion,
    DeletedAcls,
    DescribedAccount,
)
from dafka.broker.interface.outcome import Outcome
from dafka.broker.remote.cluster import Cluster
from dafka.broker.remote.controller import ask_controller
from dafka.security.acls.terms import Acl, AclFilter


class RemoteAccess(AccessInterface):
    """The accounts of a cluster, and its access control lists."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def describe_accounts(self, users: Iterable[str] | None = None) -> dict[str, DescribedAccount]:
        """Raises KafkaError: the cluster cannot be asked, or does not tell."""
        name = DescribeUserScramCredentialsRequest.UserName
        wanted = None if users is None else [name(name=user) for user in dict.fromkeys(users)]
        response = self._cluster.ask_any(DescribeUserScramCredentialsRequest(users=wanted))
        if response.error_code:
            raise for_code(response.error_code)(response.error_message)
        return {
            one.user: DescribedAccount(
                error_of(one.error_code),
                {info.mechanism: info.iterations for info in one.credential_infos},
                one.error_message or "",
            )
            for one in response.results
        }

    def alter_accounts(
        self, deletions: Sequence[CredentialDeletion], upsertions: Sequence[CredentialUpsertion]
    ) -> dict[str, Outcome]:
        request_class: Any = AlterUserScramCredentialsRequest
        request = request_class(
            deletions=[
                request_class.ScramCredentialDeletion(name=one.user, mechanism=int(one.mechanism))
                for one in deletions
            ],
            upsertions=[
                request_class.ScramCredentialUpsertion(
                    name=one.user,
                    mechanism=int(one.mechanism),
                    iterations=one.iterations,
                    salt=one.salt,
                    salted_password=one.salted_password,
                )
                for one in upsertions
            ],
        )
        users = dict.fromkeys([one.user for one in deletions] + [one.user for one in upsertions])
        return ask_controller(
            self._cluster, request, users, lambda response: {one.user: one for one in response.results}
        )

    def describe_acls(self, wanted: AclFilter) -> list[Acl]:
        request_class: Any = DescribeAclsRequest
        response = self._cluster.ask_any(request_class(**filter_fields(wanted)))
        if response.error_code:
            raise for_code(response.error_code)(response.error_message)
        return acls_of_resources(response.resources)

    def create_acls(self, acls: Sequence[Acl]) -> list[Outcome]:
        request = CreateAclsRequest(creations=[creation_of(acl) for acl in acls])
        found = ask_controller(
            self._cluster, request, range(len(acls)), lambda response: dict(enumerate(response.results))
        )
        return list(found.values())

    def delete_acls(self, filters: Sequence[AclFilter]) -> list[DeletedAcls]:
        request_class: Any = DeleteAclsRequest
        request = request_class(
            filters=[request_class.DeleteAclsFilter(**filter_fields(one)) for one in filters]
        )
        deleted: dict[int, DeletedAcls] = {}

        def results(response: Any) -> dict[int, Any]:
            for number, one in enumerate(response.filter_results):
                gone = [acl_of(acl, acl) for acl in one.matching_acls if not acl.error_code]
                left = [acl for acl in one.matching_acls if acl.error_code]
                deleted[number] = DeletedAcls(None, gone)
                if left:
                    error, detail = error_of(left[0].error_code), left[0].error_message or ""
                    deleted[number] = DeletedAcls(error, gone, detail, [acl_of(acl, acl) for acl in left])
            return dict(enumerate(response.filter_results))

        found = ask_controller(self._cluster, request, range(len(filters)), results)
        return [
            deleted[number] if outcome.error is None else DeletedAcls(outcome.error, (), outcome.detail)
            for number, outcome in found.items()
        ]
