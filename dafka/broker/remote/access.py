"""The part of a remote broker about who may come in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kafka.errors import for_code
from kafka.protocol.admin import AlterUserScramCredentialsRequest, DescribeUserScramCredentialsRequest

from dafka.broker.codec.errors import error_of
from dafka.broker.interface.access import (
    AccessInterface,
    CredentialDeletion,
    CredentialUpsertion,
    DescribedAccount,
)
from dafka.broker.interface.outcome import Outcome
from dafka.broker.remote.cluster import Cluster
from dafka.broker.remote.controller import ask_controller


class RemoteAccess(AccessInterface):
    """The accounts of a cluster."""

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
