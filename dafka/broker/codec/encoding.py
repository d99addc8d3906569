"""Responses, from objects of kafka-python's classes to bytes.

kafka-python encodes an object in one of two ways. It follows the schema field by field, or it generates a
function for the class and version and has Python compile it. The compiled function is about three times as
fast, but compiling takes time (5 ms for Metadata), which a client that has just connected would wait for and
which small responses never regain. So a layout is compiled only after following its schema has taken that
long in total.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

from dafka.broker.codec import limits

COMPILE_SECONDS = 0.005

_followed: dict[tuple[type, int], float] = {}  # seconds spent on following each schema


def is_wide(response: Any) -> bool:
    """Whether a response lists so many items that it should be encoded in a thread outside of the hub."""
    count = 0
    for field in _arrays(response):
        count += len(field)
        for item in field[: limits.INLINE_ITEMS]:
            count += sum(map(len, _arrays(item)))
        if count > limits.INLINE_ITEMS:
            return True
    return False


def _arrays(item: Any) -> list[list[Any]]:
    values = (getattr(item, name, None) for name in getattr(item, "fields", ()))
    return [value for value in values if isinstance(value, list)]


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
