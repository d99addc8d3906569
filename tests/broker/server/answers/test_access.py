"""Answers about accounts and access control lists."""

from __future__ import annotations

from typing import Any

import pytest
from broker.clients import Client
from broker.server.admin_samples import ANY_ACL
from broker.server.client import WireClient, answered
from kafka.errors import (
    DuplicateResourceError,
    IllegalSaslStateError,
    InvalidRequestError,
    ResourceNotFoundError,
    SecurityDisabledError,
    UnacceptableCredentialError,
)
from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    AlterUserScramCredentialsRequest,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeUserScramCredentialsRequest,
)
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from timing import each_time, short_turns

from dafka import Broker
from dafka.security import ServerAcls
from dafka.security.credentials import ScramCredential

FILTER = DescribeClientQuotasRequest.ComponentData
QUOTA = AlterClientQuotasRequest.EntryData
EXACT, DEFAULT, ANY = range(3)


def creation(**change: Any) -> Any:
    fields = {
        "resource_type": 2,
        "resource_name": "t",
        "resource_pattern_type": 3,
        "principal": "User:a",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return CreateAclsRequest.AclCreation(**{**fields, **change})


def test_acls_are_disabled_unless_there_is_an_authorizer(client: Client) -> None:
    acl = creation()
    described = answered(client, DescribeAclsRequest(**ANY_ACL))
    created = answered(client, CreateAclsRequest(creations=[acl, acl])).results
    deleted = answered(client, DeleteAclsRequest(filters=[DeleteAclsRequest.DeleteAclsFilter(**ANY_ACL)]))
    found = [described, *created, *deleted.filter_results]
    assert [one.error_code for one in found] == [SecurityDisabledError.errno] * 4
    assert {one.error_message for one in found} == {"No Authorizer is configured."}


def test_acls_are_created_described_and_deleted() -> None:
    with Broker(acls=ServerAcls()) as broker:
        client = Client(broker)
        asked = [creation(), creation(operation=4), creation(operation=99), creation(resource_type=4)]
        created = answered(client, CreateAclsRequest(creations=asked)).results
        assert [one.error_code for one in created] == [0, 0, 42, 42]
        assert "Invalid operation UNKNOWN" in created[2].error_message
        described = answered(client, DescribeAclsRequest(**ANY_ACL))
        assert [(one.resource_name, len(one.acls)) for one in described.resources] == [("t", 2)]
        unknown = DescribeAclsRequest(**{**ANY_ACL, "operation": 99})
        assert answered(client, unknown).error_code == InvalidRequestError.errno
        filters = [{**ANY_ACL, "operation": number} for number in (4, 5, 99)]
        request = DeleteAclsRequest(filters=[DeleteAclsRequest.DeleteAclsFilter(**one) for one in filters])
        results = answered(client, request).filter_results
        assert [one.error_code for one in results] == [0, 0, InvalidRequestError.errno]
        assert [[acl.operation for acl in one.matching_acls] for one in results] == [[4], [], []]


@pytest.mark.parametrize("users", [None, []])
def test_there_are_no_scram_users(client: Client, users: list[Any] | None) -> None:
    response = answered(client, DescribeUserScramCredentialsRequest(users=users))
    assert (response.error_code, response.error_message, response.results) == (0, "", [])


def test_a_missing_user_is_not_found_and_a_bad_credential_refused(client: Client) -> None:
    names = [DescribeUserScramCredentialsRequest.UserName(name="a")]
    (described,) = answered(client, DescribeUserScramCredentialsRequest(users=names)).results
    assert (described.user, described.error_code) == ("a", ResourceNotFoundError.errno)
    assert described.error_message == "Attempt to describe a user credential that does not exist: a"
    twice = answered(client, DescribeUserScramCredentialsRequest(users=names * 2)).results
    assert [one.error_code for one in twice] == [DuplicateResourceError.errno]
    changes = AlterUserScramCredentialsRequest(
        deletions=[AlterUserScramCredentialsRequest.ScramCredentialDeletion(name="a", mechanism=1)],
        upsertions=[
            AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
                name="b", mechanism=1, iterations=4096, salt=b"s", salted_password=b"p"
            )
        ],
    )
    assert {one.user: one.error_code for one in answered(client, changes).results} == {
        "a": ResourceNotFoundError.errno,
        "b": UnacceptableCredentialError.errno,
    }


def test_a_user_is_set_and_described(client: Client) -> None:
    upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name="b", mechanism=1, iterations=4096, salt=b"s" * 32, salted_password=b"p" * 32
    )
    deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion(name="b", mechanism=1)
    (made,) = answered(client, AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion])).results
    assert (made.user, made.error_code) == ("b", 0)
    (described,) = answered(client, DescribeUserScramCredentialsRequest(users=None)).results
    assert [(one.mechanism, one.iterations) for one in described.credential_infos] == [(1, 4096)]
    (gone,) = answered(client, AlterUserScramCredentialsRequest(deletions=[deletion], upsertions=[])).results
    assert (gone.user, gone.error_code) == ("b", 0)


def test_sasl_is_out_of_place_where_there_is_none(client: Client) -> None:
    handshake = answered(client, SaslHandshakeRequest(mechanism="PLAIN"))
    assert (handshake.error_code, handshake.mechanisms) == (IllegalSaslStateError.errno, [])
    authenticate = answered(client, SaslAuthenticateRequest(auth_bytes=b""))
    assert (authenticate.error_code, authenticate.auth_bytes) == (IllegalSaslStateError.errno, b"")


@each_time
def test_a_long_list_of_users_takes_short_turns_of_the_hub(client: Client, wire: WireClient) -> None:
    """Of 10 000; in one turn they took 0.12 s."""
    one = ScramCredential(bytes(16), bytes(32), bytes(32), 4096)
    client.core.accounts._known.update({("SCRAM-SHA-256", f"u{number}"): one for number in range(10_000)})
    with short_turns():
        answer = wire.ask(DescribeUserScramCredentialsRequest(users=None), 0)
    assert len(answer.results) == 10_000
