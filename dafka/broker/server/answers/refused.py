"""The response to a request that is refused as a whole, made from the schemas of its API, as Kafka has it.

A response with one error for the whole request has that one. Otherwise it has an item with the error for each
thing that the request lists: lists correspond by their order, and the fields of their items by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.interface.broker import Error
from dafka.broker.server.table import Api

_TEXT = ("string", "uuid")
_NUMBER = ("int8", "int16", "int32", "int64")
_ERRORS = {"error_code", "partition_error_code"}


def error_response(api: Api, request: Any, version: int, error: Error) -> Any:
    """The response of an API in which all that the request asks for has this error."""
    return _refused(api.response, request, version, error)


def _refused(kind: Any, asked: Any, version: int, error: Error, **named: Any) -> Any:
    """A response, or an item of one, about what was ``asked`` for. ``named``: what its fields say of that."""
    fields = {one.name: one for one in kind.fields.values() if one.for_version_q(version)}
    codes = _ERRORS & fields.keys()
    values = {**dict.fromkeys(codes, error_code(error)), **named}
    if "error_message" in fields:
        values["error_message"] = error_message(error)
    if "throttle_time_ms" in fields:
        values["throttle_time_ms"] = 0
    lists = [one for one in fields.values() if not codes and one.is_struct_array()]
    for one in lists:
        inner = one.data_class
        if _has_errors(inner, version):
            values[one.name] = [
                _refused(inner, item, version, error, **_named(inner, item))
                for item in _items(asked, version)
            ]
            break
    return kind(**values)


def _named(kind: Any, asked: Any) -> dict[str, Any]:
    """What an item of a response says about the thing that was asked for."""
    simple = [one for one in kind.fields.values() if not one.is_array() and not one.is_struct()]
    if not hasattr(asked, "fields"):  # a name or a number is in the item's first such field
        kinds = _TEXT if isinstance(asked, str) else _NUMBER
        first = next((one.name for one in simple if one._type_str in kinds and one.name not in _ERRORS), None)
        return {} if first is None else {first: asked}
    found = {}
    for one in simple:
        for name in (one.name, one.name.removeprefix("topic_")):
            value = getattr(asked, name, None)
            if value is not None and one.name not in _ERRORS:
                found[one.name] = value
    return found


def _has_errors(kind: Any, version: int) -> bool:
    """Whether its items have errors, or the items in them."""
    return any(
        one.name in _ERRORS or (one.is_struct_array() and _has_errors(one.data_class, version))
        for one in kind.fields.values()
        if one.for_version_q(version)
    )


def _items(asked: Any, version: int) -> Iterator[Any]:
    """The things that a request, or one of its items, lists."""
    for one in getattr(type(asked), "fields", {}).values():
        if one.is_array() and one.for_version_q(version):
            yield from getattr(asked, one.name) or ()
