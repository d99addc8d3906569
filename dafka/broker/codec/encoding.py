"""Responses, from objects of kafka-python's classes to bytes.

kafka-python encodes an object in one of two ways. It follows the schema field by field, or it generates a
function for the class and version and has Python compile it. The compiled function is about three times as
fast, but compiling takes time (5 ms for Metadata), which a client that has just connected would wait for and
which small responses never regain. So a layout is compiled only after following its schema has taken that
long in total.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache
from time import perf_counter
from typing import Any, cast

from dafka.broker.codec import limits

COMPILE_SECONDS = 0.005

_followed: dict[tuple[type, int], float] = {}  # seconds spent on following each schema


def is_wide(response: Any) -> bool:
    """Whether a response has so many items, at any depth, that a thread should encode it, and not the hub."""
    return _items(response, limits.INLINE_ITEMS) > limits.INLINE_ITEMS


def _items(part: Any, most: int) -> int:
    """How many items there are in all lists of a part of a response; of more than ``most`` not all count."""
    count = 0
    for name, has_parts in _inside(cast(Hashable, type(part))):
        value = getattr(part, name, None)
        if isinstance(value, list):
            count += len(value)
            for item in value if has_parts else ():
                if count > most:
                    return count
                count += _items(item, most - count)
        elif value is not None:
            count += _items(value, most - count)
        if count > most:
            break
    return count


@cache
def _inside(part_class: Hashable) -> list[tuple[str, bool]]:
    """The fields of a class that have lists in them, and whether these are of structures."""
    fields = getattr(part_class, "fields", {}).values()
    return [
        (one.name, one.is_struct() or one.is_struct_array())
        for one in fields
        if one.is_array() or one.is_struct()
    ]


def encoded(response: Any, version: int) -> bytes:
    """The body of ``response`` in bytes."""
    layout = type(response), version
    spent = _followed.get(layout, 0.0)
    if spent >= COMPILE_SECONDS:
        compiled: bytes = response.encode(version=version)
        return compiled
    began = perf_counter()
    flexible = response.flexible_version_q(version)
    octets: bytes = response._struct.encode(response, version=version, compact=flexible, tagged=flexible)
    _followed[layout] = spent + perf_counter() - began
    return octets
