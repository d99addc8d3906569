"""The identity of a client: those that Java's clients build, and every wrong shape."""

from __future__ import annotations

import re
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafka.protocol.errors import DafkaError
from dafka.zper import identity
from dafka.zper.identity import COPY, InvalidIdentityError, Mode, build, hash_octet, is_copy, parse

UNIQUE = UUID("00112233-4455-6677-8899-aabbccddeeff").bytes
TOPIC = st.from_regex(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,50}", fullmatch=True)


def java_hash(topic: str) -> int:
    """String.hashCode(), 32 bits."""
    return sum(ord(sign) * 31 ** (len(topic) - 1 - place) for place, sign in enumerate(topic)) & 0xFFFFFFFF


def test_has_the_octets_that_java_clients_send():
    assert java_hash("hello") == 99162322  # printed by Java for "hello".hashCode()
    assert build("hello", 1, UNIQUE) == bytes([99162322 & 0xFF, 1, 5]) + b"hello" + UNIQUE


@given(TOPIC)
def test_begins_with_the_low_octet_of_javas_hash_of_the_topic(topic: str):
    assert hash_octet(topic.encode()) == java_hash(topic) & 0xFF == build(topic)[0]


@given(TOPIC, st.sampled_from(Mode), st.binary(min_size=16, max_size=16))
def test_a_built_identity_can_be_parsed(topic: str, mode: Mode, unique: bytes):
    assert parse(build(topic, mode, unique)) == (topic, topic, 0, mode)


def test_two_identities_of_a_topic_are_different():
    assert build("flights") != build("flights")
    assert len(build("flights")) == 3 + 7 + 16


@pytest.mark.parametrize(("topic", "name", "partition"), [("a:0", "a", 0), ("a:17", "a", 17)])
def test_a_number_behind_a_colon_is_a_partition(topic: str, name: str, partition: int):
    assert parse(build(topic)) == (topic, name, partition, Mode.NO_RESPONSE)


def test_the_longest_identity_is_one_that_zeromq_takes():
    assert len(build("t" * identity.TOPIC_LIMIT)) <= identity.IDENTITY_LIMIT


def test_the_octet_of_the_hash_is_not_checked_and_what_follows_the_topic_is_not_looked_at():
    assert parse(b"\x00\x02\x01t") == ("t", "t", 0, Mode.EVERY_WRITE)
    assert parse(b"\xff\x00\x01t" + b"x" * 200).topic == "t"


CHARACTERS = [b"a b", b"a/b", b"../x", b"a\0", b"a\n", b"\xc3\xa4", b"\xff", b".", b"..", b"..:1", b":1"]
CHARACTERS += [b"a:", b"a:b", b"a:1:2", b"a:-1", b"a:1\n"]
PARTITIONS = [b"a:01", b"a:00", b"a:2147483648", b"a:99999999999999999999"]
WRONG = [
    (b"", "too-short"),
    (b"\x00", "too-short"),
    (b"\x00\x00", "too-short"),
    (b"\x00\x00\x00", "topic-length"),
    (b"\x00\x00\x00" + UNIQUE, "topic-length"),
    (b"\x00\x00\x05four", "too-short"),
    (b"\x00\x00\x41" + b"t" * 65 + UNIQUE, "topic-length"),
    (b"\x00\x00\xff" + b"t" * 16, "topic-length"),
    (b"\x00\x03\x01t" + UNIQUE, "mode"),
    (b"\x00\xff\x01t" + UNIQUE, "mode"),
    *((bytes([0, 0, len(topic)]) + topic + UNIQUE, "topic-characters") for topic in CHARACTERS),
    *((bytes([0, 0, len(topic)]) + topic + UNIQUE, "partition") for topic in PARTITIONS),
]


@pytest.mark.parametrize(("octets", "cause"), WRONG, ids=repr)
def test_a_wrong_shape_has_an_error_that_names_the_cause(octets: bytes, cause: str):
    with pytest.raises(InvalidIdentityError) as raised:
        parse(octets)
    assert raised.value.cause == cause
    assert isinstance(raised.value, DafkaError) and isinstance(raised.value, ValueError)


@given(st.binary(max_size=90))
def test_any_octets_are_an_identity_or_an_error_of_ours(octets: bytes):
    try:
        found = parse(octets)
    except InvalidIdentityError:
        return
    assert re.fullmatch(r"[A-Za-z0-9._-]+(:[0-9]+)?", found.topic)
    assert parse(build(found.topic, found.mode)) == found


@pytest.mark.parametrize("topic", ["", "ä", "a b", "t" * 65, "a:x", "\udc80"])
def test_an_identity_is_not_built_for_a_topic_that_a_server_would_not_take(topic: str):
    with pytest.raises(InvalidIdentityError):
        build(topic)


def test_an_identity_is_not_built_with_another_mode_or_length():
    with pytest.raises(InvalidIdentityError, match="mode: 3 is not one of 0, 1 and 2"):
        build("t", 3)
    with pytest.raises(InvalidIdentityError, match="unique: 2 octets"):
        build("t", 0, b"ab")


def test_a_node_that_copies_its_messages_is_known_by_its_unique_octets():
    assert is_copy(build("events", unique=COPY + bytes(8)))
    assert not is_copy(build("events"))
    assert not is_copy(bytes([0, 0, 6]) + b"events")
