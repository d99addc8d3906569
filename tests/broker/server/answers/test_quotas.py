"""Answers about quotas."""

from __future__ import annotations

from typing import Any

import pytest
from broker.clients import Client
from broker.server.client import WireClient
from kafka.errors import InvalidRequestError, NoError, UnsupportedVersionError
from kafka.protocol.admin import AlterClientQuotasRequest, DescribeClientQuotasRequest
from timing import each_time, short_turns

ENTRY = AlterClientQuotasRequest.EntryData
EXACT, DEFAULT, ANY = 0, 1, 2


def alter(wire: WireClient, version: int, *entries: tuple[dict, dict], validate_only: bool = False) -> Any:
    request = AlterClientQuotasRequest(
        entries=[
            ENTRY(
                entity=[
                    ENTRY.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()
                ],
                ops=[
                    ENTRY.OpData(key=key, value=value or 0.0, remove=value is None)
                    for key, value in values.items()
                ],
            )
            for entity, values in entries
        ],
        validate_only=validate_only,
    )
    return wire.ask(request, version).entries


def describe(
    wire: WireClient, version: int, *filters: tuple[str, int, str | None], strict: bool = False
) -> Any:
    part = DescribeClientQuotasRequest.ComponentData
    components = [part(entity_type=kind, match_type=how, match=name) for kind, how, name in filters]
    return wire.ask(DescribeClientQuotasRequest(components=components, strict=strict), version)


def entries(response: Any) -> list[tuple[dict, dict]]:
    return [
        (
            {part.entity_type: part.entity_name for part in one.entity},
            {has.key: has.value for has in one.values},
        )
        for one in response.entries
    ]


@pytest.mark.parametrize("version", [0, 1])
def test_quotas_are_described_until_they_are_removed(wire: WireClient, version: int) -> None:
    alice = {"user": "alice"}
    both = {"user": None, "client-id": "c"}
    done = alter(wire, version, (alice, {"producer_byte_rate": 10.0}), (both, {"request_percentage": 0.5}))
    assert [one.error_code for one in done] == [0, 0]
    assert entries(describe(wire, version, ("user", EXACT, "alice"))) == [
        (alice, {"producer_byte_rate": 10.0})
    ]
    assert entries(describe(wire, version, ("client-id", ANY, None))) == [(both, {"request_percentage": 0.5})]
    assert entries(describe(wire, version, ("user", DEFAULT, None), strict=True)) == []
    assert len(entries(describe(wire, version))) == 2
    alter(wire, version, (alice, {"producer_byte_rate": None}), validate_only=True)
    assert len(entries(describe(wire, version))) == 2
    alter(wire, version, (alice, {"producer_byte_rate": None}), (both, {"request_percentage": None}))
    assert entries(describe(wire, version)) == []


def test_errors_are_of_the_entity_or_of_the_filter(wire: WireClient) -> None:
    wrong, right = alter(
        wire,
        1,
        ({"ip": "127.0.0.1"}, {"producer_byte_rate": 1.0}),
        ({"user": "a"}, {"request_percentage": 1.0}),
    )
    assert (wrong.error_code, right.error_code) == (InvalidRequestError.errno, NoError.errno)
    assert "producer_byte_rate" in wrong.error_message and right.error_message is None
    assert [(part.entity_type, part.entity_name) for part in wrong.entity] == [("ip", "127.0.0.1")]
    response = describe(wire, 1, ("team", ANY, None))
    assert (response.error_code, response.entries) == (UnsupportedVersionError.errno, None)


@each_time
def test_a_long_list_takes_short_turns_of_the_hub(client: Client, wire: WireClient) -> None:
    """Of 10 000, as many as there may be; in one turn they took 0.15 s."""
    table = client.core.quotas
    table.quotas.update({(("user", f"u{number}"),): {"producer_byte_rate": 1.0} for number in range(10_000)})
    with short_turns():
        described = describe(wire, 1)
    assert len(entries(described)) == 10_000
