"""Filters: the prefixes of the topics that a node wants, without those that another one covers.

Prefixes match by octets: ``/te`` covers ``/test``, and the empty prefix covers everything.
"""

from __future__ import annotations

from collections.abc import Iterable

Filter = tuple[bytes, ...]
"""Sorted; no prefix begins with another."""


def reduced(prefixes: Iterable[bytes]) -> Filter:
    """The filter that lets the same topics pass."""
    kept: list[bytes] = []
    # Topics that begin with a prefix stand directly behind it in this order.
    ordered = sorted(prefixes)
    if not any(map(bytes.startswith, ordered[1:], ordered)):
        return tuple(ordered)
    for prefix in ordered:
        if not kept or not prefix.startswith(kept[-1]):
            kept.append(prefix)
    return tuple(kept)


def announced(prefixes: Iterable[bytes], local: bytes) -> Filter:
    """The same for what other nodes are told: nothing of topics that begin with ``local``."""
    return reduced([prefix for prefix in prefixes if not prefix.startswith(local)])


def matches(filter: Filter, topic: bytes) -> bool:
    return topic.startswith(filter)
