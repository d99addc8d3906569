"""Addresses and topics as users write them: the valid ones, and how others are refused."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from dafka.mesh.address import (
    DEFAULT_TOWER,
    InvalidAddressError,
    InvalidTopicError,
    address_name,
    check_address,
    check_topic,
    new_address,
    topic_name,
    tower_addresses,
)

PAIR = ("tcp://10.0.0.1:5556", "tcp://10.0.0.1:5557")
OTHER = ("ipc:///tmp/sub", "inproc://pub")


def test_a_new_address_is_one_and_no_other():
    one, other = new_address(), new_address()
    assert check_address(one.decode()) == one
    assert one != other


@pytest.mark.parametrize("wrong", ["", "ab" * 16, "AB" * 15, "AB" * 17, "AB" * 16 + "\n", b"AB" * 16, 5])
def test_anything_but_an_address_is_named(wrong):
    with pytest.raises(InvalidAddressError, match=re.escape(repr(wrong))):
        check_address(wrong)


@pytest.mark.parametrize(
    ("topic", "octets"), [("hello", b"hello"), ("Straße", "Straße".encode()), (b"\xff\x00", b"\xff\x00")]
)
def test_a_topic_is_any_octets_and_users_see_it_as_text_that_leads_back(topic, octets):
    assert check_topic(topic) == octets
    assert check_topic(topic_name(octets)) == octets


@pytest.mark.parametrize("topic", ["", b"", "x" * 256, "ß" * 128])
def test_a_topic_has_1_to_255_octets(topic):
    with pytest.raises(InvalidTopicError, match="1 to 255 octets"):
        check_topic(topic)


@pytest.mark.parametrize("topic", ["x" * 255, "ß" * 127, b"\xff" * 255])
def test_a_topic_of_255_octets_is_one(topic):
    assert 254 <= len(check_topic(topic)) <= 255


def test_values_other_than_text_and_octets_are_not_topics():
    with pytest.raises(InvalidTopicError, match="not int"):
        check_topic(5)


def test_octets_that_no_address_has_are_shown():
    assert address_name(b"AB\xff\n") == "AB\\xff\n"


def test_a_tower_is_a_pair_or_something_that_has_one_or_several():
    tower = SimpleNamespace(addresses=PAIR)
    assert tower_addresses(None) == (DEFAULT_TOWER,)
    assert tower_addresses(PAIR) == tower_addresses(list(PAIR)) == tower_addresses(tower) == (PAIR,)
    assert tower_addresses([tower, OTHER, PAIR]) == (PAIR, OTHER)


@pytest.mark.parametrize(
    "wrong",
    [
        "tcp://10.0.0.1:5556",
        ("tcp://10.0.0.1:5556",),
        ("10.0.0.1:5556", "10.0.0.1:5557"),
        ("udp://10.0.0.1:5556", "tcp://10.0.0.1:5557"),
        (PAIR, 5),
        5,
        "127.0.0.1:5556",
    ],
)
def test_anything_but_a_tower_is_named(wrong):
    with pytest.raises(InvalidAddressError, match="is not a tower: a pair of ZeroMQ addresses") as raised:
        tower_addresses(wrong)
    assert not isinstance(wrong, str) or str(raised.value).startswith(repr(wrong))


@pytest.mark.parametrize("port", [0, 65536, 10**19])
def test_ports_of_a_tower_are_ports(port):
    with pytest.raises(InvalidAddressError, match="ports are 1 to 65535"):
        tower_addresses((f"tcp://10.0.0.1:{port}", "tcp://10.0.0.1:5557"))


def test_no_tower_at_all_is_refused():
    with pytest.raises(InvalidAddressError, match="at least one tower"):
        tower_addresses([])
