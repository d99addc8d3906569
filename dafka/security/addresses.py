"""Addresses that belong to a key: the key alone shows whether a node may use one.

An address is 16 octets, as 32 upper-case hex digits: seven that follow from a node's public key and from the
salt, six of salt, and three that follow from the others and say that the address is of this kind. So nobody
has to be told whose an address is, and nobody can take one before its owner does: to speak under an address
takes a key that it was made with, and another such key is one of 2 ** 56.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from hashlib import blake2b

SALT_OCTETS = 6
_BOUND_OCTETS, _MARK_OCTETS = 7, 3
_ADDRESS = re.compile(rb"[0-9A-F]{32}")
_KNOWN = 65536  # answers that are remembered


def address_of(key: bytes, name: bytes | None = None) -> bytes:
    """An address of the node with this public key: a new one, or with a ``name`` always the same."""
    salt = os.urandom(SALT_OCTETS) if name is None else _hash(b"dafka name", name, SALT_OCTETS)
    bound = _hash(b"dafka key", key + salt, _BOUND_OCTETS)
    return (bound + salt + _mark(bound + salt)).hex().upper().encode()


@lru_cache(_KNOWN)
def is_of_a_key(address: bytes) -> bool:
    """Whether it belongs to any key."""
    if not _ADDRESS.fullmatch(address):
        return False
    octets = bytes.fromhex(address.decode())
    return _mark(octets[:-_MARK_OCTETS]) == octets[-_MARK_OCTETS:]


@lru_cache(_KNOWN)
def belongs(address: bytes, key: bytes) -> bool:
    """Whether it belongs to this key."""
    if not is_of_a_key(address):
        return False
    octets = bytes.fromhex(address.decode())
    salt = octets[_BOUND_OCTETS:-_MARK_OCTETS]
    return _hash(b"dafka key", key + salt, _BOUND_OCTETS) == octets[:_BOUND_OCTETS]


def _mark(octets: bytes) -> bytes:
    return _hash(b"dafka address", octets, _MARK_OCTETS)


def _hash(purpose: bytes, octets: bytes, size: int) -> bytes:
    return blake2b(octets, digest_size=size, person=purpose).digest()
