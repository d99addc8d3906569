"""Responses, from octets to kafka-python's objects, checked for what its decoders let pass.

They take a null for any string or array, also where the protocol has none; who uses a response would
stumble over it much later.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from dafka.broker.codec.reader import skip_tags

_NULLABLE = ("string", "bytes", "records")


def read_response(response_class: Any, version: int, tagged: bool, answer: memoryview) -> Any:
    """The response behind the correlation id; ``tagged``: there are tagged fields in front of it.

    Raises ValueError and whatever kafka-python's decoders do.
    """
    response = response_class.decode(body_of(answer, tagged), version=version)
    _check(response, version)
    return response


def body_of(answer: memoryview, tagged: bool) -> memoryview:
    """What is behind the tagged fields of a response's header, if it has any."""
    return answer[skip_tags(answer, 0) :] if tagged else answer


def _check(part: Any, version: int) -> None:
    part_class: Any = type(part)
    needed, arrays = _fields(part_class, version)
    for name in needed:
        if getattr(part, name) is None:
            raise ValueError(f"{type(part).__name__}.{name} is null")
    for name in arrays:
        for element in getattr(part, name) or ():
            _check(element, version)


@lru_cache(maxsize=4096)
def _fields(part_class: Any, version: int) -> tuple[list[str], list[str]]:
    """The fields that must not be null, and those that are arrays of further parts."""
    fields = [one for one in part_class._struct._fields if one.for_version_q(version) and one._tag is None]
    # A number is None where kafka-python has a word for it: operations that were not asked for, say.
    needed = [
        one.name
        for one in fields
        if not one.nullable_for_version_q(version) and (one.is_array() or one.type_str in _NULLABLE)
    ]
    return needed, [one.name for one in fields if one.is_struct_array()]
