"""Groups whose members are different clients."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise

import pytest
from clients.adapters import CLIENTS, Confluent
from clients.adapters.client import Client, Member
from clients.conftest import MakeTopic
from clients.records import Record
from timing import until

PARTITIONS = 12


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def members() -> Iterator[list[Member]]:
    """Those that are in it are closed in the end."""
    with ExitStack() as stack:
        started: list[Member] = []
        stack.callback(lambda: [member.close() for member in started])
        yield started


def write(servers: str, topic: str, stretch: int) -> set[bytes]:
    """One more record into each partition; kcat's members read keys and values as text without spaces."""
    records = [Record(f"{stretch}:{number}".encode(), b"k", partition=number) for number in range(PARTITIONS)]
    Confluent().produce(servers, topic, records)
    return {record.value or b"" for record in records}


def settled(members: Sequence[Member]) -> bool:
    """Every partition has one member, and every member some."""
    shares = [member.assigned or frozenset() for member in members]
    return all(shares) and sorted(number for share in shares for number in share) == list(range(PARTITIONS))


def values(members: Sequence[Member]) -> set[bytes | None]:
    return {record.value for member in members for record in member.records}


def test_members_of_all_clients_share_a_topic_and_take_over_from_each_other(
    servers: str, new_topic: MakeTopic, group: str, members: list[Member]
) -> None:
    topic = new_topic(PARTITIONS)
    expected = write(servers, topic, 0)
    for client in CLIENTS:
        if client.missing() is None:
            members.append(client.member(servers, group, topic))
            until(lambda: settled(members), members)
    until(lambda: values(members) >= expected, members)

    expected |= write(servers, topic, 1)
    until(lambda: values(members) >= expected, members)

    gone = members.pop(0)
    gone.close()
    until(lambda: settled(members), members)
    expected |= write(servers, topic, 2)
    until(lambda: values([gone, *members]) >= expected, members)

    dead = members.pop(0)
    dead.kill()
    until(lambda: settled(members), members)
    expected |= write(servers, topic, 3)
    until(lambda: values([gone, dead, *members]) == expected, members)
    for member in members:
        assert all(a.offset < b.offset for a, b in _neighbours(member)), "records of a partition out of order"


def test_a_group_goes_on_with_another_client_where_the_first_one_committed(
    client: Client, servers: str, new_topic: MakeTopic, group: str, members: list[Member]
) -> None:
    topic = new_topic(PARTITIONS)
    first = write(servers, topic, 0)
    member = client.member(servers, group, topic)
    members.append(member)
    until(lambda: values([member]) == first, member)
    members.remove(member)
    member.close()

    second = write(servers, topic, 1)
    available = [each for each in CLIENTS if each.missing() is None]
    other = available[(available.index(client) + 1) % len(available)].member(servers, group, topic)
    members.append(other)
    until(lambda: values([other]) >= second, other)
    assert values([other]) == second


def _neighbours(member: Member) -> Iterator[tuple[Record, Record]]:
    for number in range(PARTITIONS):
        own = [record for record in member.records if record.partition == number]
        yield from pairwise(own)
