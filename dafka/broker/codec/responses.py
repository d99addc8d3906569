"""Responses, from bytes to objects of kafka-python, with a check that its decoders lack.

Its decoders accept null for any string and array, also where the protocol does not allow it. Code that uses
the response would fail on it much later.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from dafka.broker.codec.reader import skip_tags

_NULLABLE = ("string", "bytes", "records")


def read_response(response_class: Any, version: int, tagged: bool, answer: memoryview) -> Any:
    """The response after the correlation id; ``tagged``: its header has tagged fields.

    Raises ValueError and the exceptions of kafka-python's decoders.
    """
    response = response_class.decode(body_of(answer, tagged), version=version)
    _check(response, version)
    return response


def body_of(answer: memoryview, tagged: bool) -> memoryview:
    """The body of a response, after the tagged fields of its header if it has any."""
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
    """The names of non-nullable fields, and of arrays of structs."""
    fields = [one for one in part_class._struct._fields if one.for_version_q(version) and one._tag is None]
    # Numbers are not checked: kafka-python represents some of them by None (operations not requested).
    needed = [
        one.name
        for one in fields
        if not one.nullable_for_version_q(version) and (one.is_array() or one.type_str in _NULLABLE)
    ]
    return needed, [one.name for one in fields if one.is_struct_array()]
