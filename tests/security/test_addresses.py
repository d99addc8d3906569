"""Addresses that belong to a key."""

from __future__ import annotations

import os

import pytest

from dafka.mesh.address import check_address, new_address
from dafka.security.addresses import address_of, belongs, is_of_a_key

ONE, OTHER = bytes(range(32)), bytes(range(1, 33))


def test_an_address_belongs_to_its_key_and_to_no_other():
    for address in (address_of(ONE), address_of(ONE, b"pose")):
        check_address(address.decode())
        assert is_of_a_key(address) and belongs(address, ONE) and not belongs(address, OTHER)


def test_a_named_one_is_always_the_same_and_others_are_new():
    assert address_of(ONE, b"pose") == address_of(ONE, b"pose") != address_of(ONE, b"scan")
    assert address_of(ONE, b"pose") != address_of(OTHER, b"pose")
    assert len({address_of(ONE) for _ in range(1000)}) == 1000


@pytest.mark.parametrize("address", [b"", b"x", b"AB" * 16, b"ab" * 16, b"AB" * 17, b"\xff" * 32, b"0" * 32])
def test_any_other_octets_are_of_nobodys_key(address):
    assert not is_of_a_key(address) and not belongs(address, ONE)


def test_addresses_of_nodes_without_keys_are_taken_for_none():
    assert not any(is_of_a_key(new_address()) for _ in range(1000))
    assert not any(belongs(os.urandom(16).hex().upper().encode(), ONE) for _ in range(1000))


@pytest.mark.parametrize("digit", range(32))
def test_each_digit_counts(digit):
    address = address_of(ONE, b"pose")
    other = b"1" if address[digit : digit + 1] == b"0" else b"0"
    assert not belongs(address[:digit] + other + address[digit + 1 :], ONE)
